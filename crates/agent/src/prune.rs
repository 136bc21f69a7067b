//! Removes the backups that no rule keeps.

use etcd_operator_protocol::report::{Done, Failure, Pruned};
use etcd_operator_protocol::task::{Prune, Retention};
use etcd_operator_store::destination::Destination;
use jiff::Timestamp;
use tracing::info;

pub async fn prune(task: &Prune) -> Result<Done, Failure> {
    let below = Destination::open(&task.below)?;
    let pruned = of_schedule(&below, &task.schedule, task.retention.as_ref()).await?;
    Ok(Done { pruned: Some(pruned), ..Done::default() })
}

/// Without rules all of the schedule's backups go.
pub async fn of_schedule(
    below: &Destination,
    schedule: &str,
    retention: Option<&Retention>,
) -> Result<Pruned, Failure> {
    let pruned = etcd_operator_store::prune::prune(below, schedule, retention, Timestamp::now()).await?;
    let (kept, deleted, problem) = (pruned.kept, pruned.deleted, pruned.problem.as_deref().unwrap_or("none"));
    info!(schedule, kept, deleted, would_delete = pruned.would_delete.len(), problem, "pruned the backups");
    Ok(pruned)
}
