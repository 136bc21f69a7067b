//! Tests of agent jobs: `golden` compares each kind with a file, here is what they have in common.

mod golden;

use super::*;

#[test]
fn jobs_of_earlier_operators_are_watched_too() {
    let selector = labelled_agent_jobs().label_selector;
    assert_eq!(selector.as_deref(), Some("app.kubernetes.io/name in (etcd-agent,etcd-errand)"));
}

#[test]
fn names_are_unique_and_fit() {
    let mut backup = etcd_operator_api::EtcdBackup::new(&"a.b".repeat(21), Default::default());
    backup.metadata.uid = Some("0123456789".to_owned());
    let name = name_of("backup", &backup);
    assert!(name.len() <= 63 && name.ends_with("-01234567") && !name.contains('.'), "{name}");
}
