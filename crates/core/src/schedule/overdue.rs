//! Whether backups have come to nothing for too long: two times of the schedule since the last one that succeeded.

use jiff::{SignedDuration, Timestamp};

use super::cron::Cron;

/// From when on a schedule is overdue if nothing succeeds. It goes by the times of the schedule and not by how far apart
/// they are, so that a weekend without backups is none.
pub fn overdue_from(cron: &Cron, last_success: Timestamp, deadline: Option<SignedDuration>) -> Option<Timestamp> {
    let second = cron.next_after(cron.next_after(last_success)?)?;
    second.checked_add(deadline.unwrap_or_default()).ok()
}
