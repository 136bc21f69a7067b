//! Ends the process when it may no longer be the leader.
//!
//! It runs in its own thread, so that nothing that hangs in the rest of the program can delay it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use tracing::error;

use super::GIVE_UP_AFTER;

/// How long to wait for the last log lines: the log may be blocked, for example because the standard output is not
/// read. Long enough for a very busy machine, and well within the time until another process may become the leader.
const LAST_LOG_LINES: Duration = Duration::from_secs(1);
const STOPPED: u64 = u64::MAX;

pub struct Watchdog {
    start: Instant,
    /// When to end the process, in milliseconds after `start`.
    deadline: Arc<AtomicU64>,
}

impl Watchdog {
    /// Ends the process at `deadline`, unless it is extended before.
    pub fn start(deadline: Instant) -> Self {
        let watchdog = Self { start: Instant::now(), deadline: Arc::new(AtomicU64::new(0)) };
        watchdog.extend(deadline);
        let (start, deadline) = (watchdog.start, watchdog.deadline.clone());
        thread::spawn(move || watch(start, &deadline));
        watchdog
    }

    pub fn extend(&self, deadline: Instant) {
        let millis = deadline.saturating_duration_since(self.start).as_millis();
        self.deadline.store(u64::try_from(millis).unwrap_or(STOPPED), Ordering::SeqCst);
    }

    pub fn stop(&self) {
        self.deadline.store(STOPPED, Ordering::SeqCst);
    }
}

fn watch(start: Instant, deadline: &AtomicU64) {
    loop {
        let millis = deadline.load(Ordering::SeqCst);
        if millis == STOPPED {
            return;
        }
        let left = (start + Duration::from_millis(millis)).saturating_duration_since(Instant::now());
        if left.is_zero() {
            end_process(format!("the lease could not be renewed for {} s", GIVE_UP_AFTER.as_secs()));
        }
        thread::sleep(left);
    }
}

/// Ends the process at once.
pub fn end_process(why: String) -> ! {
    let (said, heard) = mpsc::channel();
    thread::spawn(move || {
        error!(why, "not allowed to lead any more, ending the process");
        let _ = said.send(());
    });
    let _ = heard.recv_timeout(LAST_LOG_LINES);
    std::process::exit(1)
}
