//! The agent: runs in the pods of backups and restores, does the one thing that it finds in its environment, and says how
//! that ended: in words for the operator, and by its exit code for the Job.

mod backup;
mod check;
mod choose;
mod fetch;
mod last_words;
mod logging;
mod members;
mod numbers;
mod prune;
mod stop;
mod verify;

use std::env;
use std::process::ExitCode;

use etcd_operator_store::report::{Done, FAILED, FAILED_FOR_GOOD, Failure, Reason, Report};
use etcd_operator_store::task::{TASK, Task};
use tokio::runtime::Builder;
use tracing::{error, info};

use crate::last_words::last_words;
use crate::stop::Stop;

fn main() -> ExitCode {
    match work() {
        Ok(done) => {
            info!("done");
            last_words(&Report::Done(Box::new(done)));
            ExitCode::SUCCESS
        }
        Err(failure) => {
            error!(reason = ?failure.reason, "{}", failure.message);
            let code = if failure.reason.may_pass() { FAILED } else { FAILED_FOR_GOOD };
            last_words(&Report::Failed(failure));
            ExitCode::from(code)
        }
    }
}

fn work() -> Result<Done, Failure> {
    logging::start().map_err(|e| bad_order(format!("{e:#}")))?;
    let order = env::var(TASK).map_err(|e| bad_order(format!("reading the task from {TASK}: {e}")))?;
    let task: Task =
        serde_json::from_str(&order).map_err(|e| bad_order(format!("{TASK} holds no task that is known: {e}")))?;
    // One thread is enough to carry bytes from one connection to another, and keeps the memory in one place.
    let runtime = Builder::new_current_thread().enable_all().build();
    let runtime =
        runtime.map_err(|e| Failure { reason: Reason::Stopped, message: format!("starting to work: {e}") })?;
    let outcome = runtime.block_on(obey(&task));
    // Whatever still waits for a store or for etcd is not waited for.
    runtime.shutdown_background();
    outcome
}

async fn obey(task: &Task) -> Result<Done, Failure> {
    let stop = Stop::on_signals()?;
    match task {
        Task::Backup(order) => backup::take(order, &stop).await,
        Task::Check(order) => stop.before(check::check(order)).await,
        Task::Fetch(order) => stop.before(fetch::fetch(order)).await,
        Task::Verify(order) => stop.before(verify::verify(order)).await,
        Task::Prune(order) => stop.before(prune::prune(order)).await,
    }
}

fn bad_order(message: String) -> Failure {
    Failure { reason: Reason::BadOrder, message }
}
