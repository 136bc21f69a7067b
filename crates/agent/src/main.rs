//! The agent: runs in the pods of backups and restores, carries out the one task that it finds in its environment, and
//! reports how that ended: in its `termination_message` for the operator, and by its exit code for the Job.
//!
//! A file for each task: `backup`, `check`, `fetch`, `verify`, `prune`. `members` asks the members, `select_member`
//! chooses whose snapshot is taken. How a backup is stored belongs in `etcd_operator_store`; tasks, reports and
//! which backups may go in `etcd_operator_protocol`. The agent does not talk to Kubernetes.

mod backup;
mod check;
mod fetch;
mod logging;
mod members;
mod numbers;
mod prune;
mod select_member;
mod shutdown;
mod termination_message;
mod verify;

use std::env;
use std::process::ExitCode;

use etcd_operator_protocol::report::{Done, FAILED, FAILED_FOR_GOOD, Failure, Reason, Report};
use etcd_operator_protocol::task::{TASK, Task};
use tokio::runtime::Builder;
use tracing::{error, info};

use crate::shutdown::Shutdown;
use crate::termination_message::write_termination_message;

fn main() -> ExitCode {
    match work() {
        Ok(done) => {
            info!("done");
            write_termination_message(Report::Done(Box::new(done)));
            ExitCode::SUCCESS
        }
        Err(failure) => {
            error!(reason = ?failure.reason, "{}", failure.message);
            let code = if failure.reason.may_pass() { FAILED } else { FAILED_FOR_GOOD };
            write_termination_message(Report::Failed(failure));
            ExitCode::from(code)
        }
    }
}

fn work() -> Result<Done, Failure> {
    logging::start().map_err(|e| invalid_request(format!("{e:#}")))?;
    let task = env::var(TASK).map_err(|e| invalid_request(format!("reading the task from {TASK}: {e}")))?;
    let task: Task =
        serde_json::from_str(&task).map_err(|e| invalid_request(format!("{TASK} holds no task that is known: {e}")))?;
    // One thread is enough to carry bytes from one connection to another, and keeps the memory in one place.
    let runtime = Builder::new_current_thread().enable_all().build();
    let runtime =
        runtime.map_err(|e| Failure { reason: Reason::Stopped, message: format!("starting to work: {e}") })?;
    let outcome = runtime.block_on(run(&task));
    // Whatever still waits for a store or for etcd is not waited for.
    runtime.shutdown_background();
    outcome
}

async fn run(task: &Task) -> Result<Done, Failure> {
    let shutdown = Shutdown::on_signals()?;
    match task {
        Task::Backup(task) => backup::take(task, &shutdown).await,
        Task::Check(task) => shutdown.before(check::check(task)).await,
        Task::Fetch(task) => shutdown.before(fetch::fetch(task)).await,
        Task::Verify(task) => shutdown.before(verify::verify(task)).await,
        Task::Prune(task) => shutdown.before(prune::prune(task)).await,
    }
}

fn invalid_request(message: String) -> Failure {
    Failure { reason: Reason::InvalidRequest, message }
}
