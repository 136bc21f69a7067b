//! What the end of the Job that deletes stored backups means.

use etcd_operator_api::Reason;
use etcd_operator_protocol::report::{Done, Pruned};

use super::support::{at, nightly, with_status};
use crate::agent_job::Progress;
use crate::schedule::plan::{Deletion, Observed, ObservedCluster, plan};

fn done(pruned: Option<Pruned>) -> Progress {
    Progress::Done { attempts: 1, done: Box::new(Done { pruned, ..Done::default() }) }
}

#[test]
fn deletion_that_left_something_has_failed() {
    let problem = Some("a.db is locked".to_owned());
    let pruned = Pruned { deleted: 3, problem, ..Pruned::default() };
    let failed = Deletion::Failed { reason: Reason::verbatim("NotAllDeleted"), message: "a.db is locked".to_owned() };
    assert_eq!(Deletion::of(&nightly(), done(Some(pruned))), failed);
}

#[test]
fn deletion_that_left_nothing_is_done() {
    let pruned = Pruned { deleted: 3, ..Pruned::default() };
    assert_eq!(Deletion::of(&nightly(), done(Some(pruned))), Deletion::Done { deleted: 3 });
    assert_eq!(Deletion::of(&nightly(), done(None)), Deletion::Done { deleted: 0 });
}

#[test]
fn deletion_from_an_unknown_location_is_impossible() {
    assert_eq!(Deletion::of(&nightly(), Progress::NotBegun), Deletion::NotBegun);
    let mut schedule = nightly();
    let template = schedule.spec.backup_template.spec.as_mut().unwrap();
    template.destination.object_url_template = Some("s3://backups/{{ .Nam }}".to_owned());
    let deletion = Deletion::of(&schedule, Progress::NotBegun);
    assert!(matches!(&deletion, Deletion::Impossible { message } if message.contains("{{ .Nam }}")), "{deletion:?}");
}

#[test]
fn deletion_without_a_report_deletes_its_job_and_is_reported_as_running() {
    let mut schedule = nightly();
    schedule.spec.delete_with_cluster = true;
    let observe =
        |schedule, cluster, deletion| plan(&Observed { schedule, taken: &[], cluster, deletion, now: at("15T13:00") });
    let cluster = ObservedCluster::Present { uid: "7a1f".to_owned() };
    let seen = with_status(&schedule, observe(&schedule, cluster, Deletion::NotBegun).status);
    let lost = observe(&seen, ObservedCluster::Gone, Deletion::of(&seen, Progress::NoReport));
    let runs = observe(&seen, ObservedCluster::Gone, Deletion::Runs { trouble: None });
    assert!(lost.delete_job_without_report && !runs.delete_job_without_report);
    assert_eq!((lost.status, lost.delete_backups_of), (runs.status, None));
}
