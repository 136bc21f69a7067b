//! What the agent leaves for the operator when it ends: its termination message.

use std::path::PathBuf;
use std::{env, fs};

use etcd_operator_protocol::report::{MAX_BYTES, Report};
use tracing::warn;

/// Where the kubelet looks for it.
const TERMINATION_LOG: &str = "/dev/termination-log";

/// How it ended is told by the exit code too, so a message that can't be left changes nothing.
pub fn write_termination_message(report: &Report) {
    let file: PathBuf = env::var_os("AGENT_TERMINATION_LOG").map_or_else(|| TERMINATION_LOG.into(), PathBuf::from);
    if let Err(error) = fs::write(&file, in_few_words(report.clone())) {
        warn!("can't write {}: {error}", file.display());
    }
}

/// The report as JSON, with less of what can be long if it would not fit: the kubelet would cut the end off, and what is
/// left could not be read at all.
fn in_few_words(mut report: Report) -> String {
    loop {
        let words = serde_json::to_string(&report).unwrap_or_default();
        if words.len() <= MAX_BYTES || !shorten(&mut report, words.len() - MAX_BYTES) {
            return words;
        }
    }
}

/// Makes it shorter by some of `excess` bytes; false if nothing in it can be shortened any more.
fn shorten(report: &mut Report, excess: usize) -> bool {
    match report {
        Report::Failed(failure) => cut(&mut failure.message, excess),
        Report::Done(done) => {
            let pruned = done.pruned.as_mut();
            let of_pruned = pruned.is_some_and(|pruned| {
                pruned.would_delete.pop().is_some() || pruned.problem.as_mut().is_some_and(|words| cut(words, excess))
            });
            of_pruned || done.remark.as_mut().is_some_and(|words| cut(words, excess))
        }
    }
}

/// Leaves the beginning, which says what was being done. Half of it at least: what is escaped in JSON takes more bytes
/// there than here. So this may have to be repeated.
fn cut(words: &mut String, excess: usize) -> bool {
    const MORE: &str = " …";
    let whole = words.strip_suffix(MORE).unwrap_or(words).len();
    if whole == 0 {
        return false;
    }
    let mut end = whole.saturating_sub(excess + MORE.len()).max(whole / 2);
    while !words.is_char_boundary(end) {
        end -= 1;
    }
    words.truncate(end);
    words.push_str(MORE);
    true
}

#[cfg(test)]
mod tests {
    use etcd_operator_protocol::report::{Done, Failure, Pruned, Reason};

    use super::*;

    fn read(words: &str) -> Report {
        assert!(words.len() <= MAX_BYTES, "{} bytes", words.len());
        serde_json::from_str(words).unwrap()
    }

    #[test]
    fn report_that_fits_is_unchanged() {
        let failure = Failure { reason: Reason::WrongKey, message: "x".repeat(MAX_BYTES - 100) };
        let report = Report::Failed(failure);
        assert_eq!(read(&in_few_words(report.clone())), report);
    }

    #[test]
    fn long_message_is_truncated_and_the_report_still_parses() {
        for long in ["x", "\"", "\u{1}", "ä", "…"] {
            let message = format!("writing s3://b/x.db: {}", long.repeat(5000));
            let Report::Failed(failure) =
                read(&in_few_words(Report::Failed(Failure { reason: Reason::StoreFailed, message })))
            else {
                panic!("it was a failure")
            };
            assert!(failure.message.starts_with("writing s3://b/x.db: "), "{}", failure.message);
            assert!(failure.message.ends_with(" …"), "{}", failure.message);
            assert!(failure.message.len() > 400, "{}", failure.message);
        }
    }

    #[test]
    fn list_of_backups_to_delete_is_truncated_to_fit() {
        let all: Vec<String> = (0..500).map(|n| format!("s3://backups/team/{n}.db")).collect();
        let pruned = Pruned { kept: 3, deleted: 0, would_delete: all.clone(), problem: Some("y".repeat(100)) };
        let report = Report::Done(Box::new(Done { pruned: Some(pruned), ..Done::default() }));
        let Report::Done(done) = read(&in_few_words(report)) else { panic!("it was done") };
        let pruned = done.pruned.unwrap();
        assert!(pruned.would_delete.len() > 100, "{}", pruned.would_delete.len());
        assert!(all.starts_with(&pruned.would_delete));
        assert_eq!(pruned.problem, Some("y".repeat(100)));
    }
}
