//! What the lab prints while it works: each step, its progress and its time.

use std::time::{Duration, Instant};

/// One step of a longer job, timed from its start.
pub struct Step {
    name: String,
    started: Instant,
}

impl Step {
    pub fn start(name: impl Into<String>) -> Self {
        Step { name: name.into(), started: Instant::now() }
    }

    /// Says that a step goes on and how far it is.
    pub fn progress(&self, how_far: &str) {
        println!("  ... {}: {how_far}, {}", self.name, seconds(self.started.elapsed()));
    }

    pub fn done(self, result: &str) {
        println!("  ok  {}: {result} ({})", self.name, seconds(self.started.elapsed()));
    }
}

pub fn seconds(time: Duration) -> String {
    let tenths = time.as_millis() / 100;
    match tenths / 600 {
        0 => format!("{}.{}s", tenths / 10, tenths % 10),
        minutes => format!("{minutes}m{:02}s", tenths % 600 / 10),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_printed_in_readable_units() {
        assert_eq!(seconds(Duration::from_millis(40)), "0.0s");
        assert_eq!(seconds(Duration::from_millis(59_990)), "59.9s");
        assert_eq!(seconds(Duration::from_secs(61)), "1m01s");
        assert_eq!(seconds(Duration::from_secs(754)), "12m34s");
    }
}
