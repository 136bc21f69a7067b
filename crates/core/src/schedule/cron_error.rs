//! Why a schedule can't be understood, in a sentence for the user.

/// What is wrong with a schedule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScheduleError {
    #[error("spec.schedule {schedule:?} cannot be understood: {why}")]
    Cron { schedule: String, why: CronError },
    #[error("spec.timeZone {0:?} is not the name of a time zone; write it like Europe/London")]
    TimeZone(String),
}

/// What is wrong with the fields of cron.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CronError {
    #[error("of the names that begin with @ there are {known}")]
    UnknownName { known: String },
    #[error("it has {0} fields instead of five: minute, hour, day of the month, month and day of the week")]
    NotFiveFields(usize),
    #[error("there is no such day in any year")]
    NoSuchDay,
    #[error("the range {0:?} goes backwards; write the smaller number first")]
    Backwards(String),
    #[error("{text:?} is not {name}; there are {first} to {largest}")]
    NotInField { text: String, name: &'static str, first: u8, largest: u8 },
    #[error("{text:?} is not a step here; there are 1 to {longest}")]
    NotAStep { text: String, longest: u8 },
}
