//! Whether no backup has succeeded for too long: two times of the schedule since the last success.

use jiff::{SignedDuration, Timestamp};

use super::cron::Cron;

/// When a schedule becomes overdue if no backup succeeds. This depends on the times of the schedule and not on their
/// distance, so that a weekend without scheduled backups does not count.
pub fn overdue_from(cron: &Cron, last_success: Timestamp, deadline: Option<SignedDuration>) -> Option<Timestamp> {
    let second = cron.next_after(cron.next_after(last_success)?)?;
    second.checked_add(deadline.unwrap_or_default()).ok()
}
