//! Which versions members may be created with.

use etcd_operator_api::WaitReason;
use semver::Version;

use super::support::{awaited, cluster_of, steps_of, version};
use crate::cluster::observed::{BackupFirst, Observed};
use crate::cluster::plan::{Model, Plan, Step, plan};
use crate::cluster::spec_diff::{SpecDiff, UpdateMethod};
use crate::cluster::step::{ClusterStep, MemberStep};
use crate::cluster::versions::{VersionDecision, decide_version};
use crate::ordinal::Ordinal;

/// A cluster of three that runs one version, and whose spec desires another.
fn asked(runs: &str, wanted: &str) -> Observed {
    let mut observed = cluster_of(3);
    observed.be_ready();
    observed.wanted.version = Some(version(wanted));
    observed.recorded.version = Some(version(runs));
    observed.etcd.cluster_version = Some(minor(runs));
    observed.recorded.oldest_log = Some(minor(runs));
    for ordinal in 0..3 {
        observed.run(ordinal, runs);
        observed.objects.claims.get_mut(&Ordinal(ordinal)).unwrap().version = Some(version(runs));
    }
    observed
}

fn minor(text: &str) -> Version {
    let Version { major, minor, .. } = version(text);
    Version::new(major, minor, 0)
}

impl Observed {
    fn run(&mut self, ordinal: u32, runs: &str) {
        self.objects.peers.get_mut(&Ordinal(ordinal)).unwrap().version = Some(version(runs));
        self.answer(ordinal);
        let fields = vec![format!("spec.version {runs} → {}", self.wanted.version.as_ref().unwrap())];
        let change = SpecDiff { fields, method: UpdateMethod::Restart };
        self.objects.outdated.remove(&Ordinal(ordinal));
        if Some(version(runs)) != self.wanted.version {
            self.objects.outdated.insert(Ordinal(ordinal), change);
        }
    }

    fn store(&mut self, ordinal: u32, stored: &str) {
        let answer = self.etcd.answers.get_mut(&Ordinal(ordinal)).unwrap().as_mut().unwrap();
        answer.storage_version = Some(version(stored));
        let own = answer.version.clone().filter(|own| minor(&own.to_string()) == version(stored));
        self.objects.claims.get_mut(&Ordinal(ordinal)).unwrap().version = Some(own.unwrap_or(version(stored)));
    }
}

fn accepts(observed: &Observed) -> bool {
    steps_of(observed) == [Step::Cluster(ClusterStep::AcceptVersion(observed.wanted.version.clone().unwrap()))]
}

/// Why the version is refused. No step may be taken then.
fn refusal(observed: &Observed) -> String {
    let Plan { steps, waiting } = plan(observed);
    assert_eq!(steps, []);
    let waiting = waiting.expect("it is refused");
    assert_eq!(waiting.reason, WaitReason::ChangeRefused, "{}", waiting.message);
    waiting.message
}

#[test]
fn up_by_a_patch_or_one_minor_and_down_by_a_patch() {
    for (runs, wanted) in
        [("3.5.35", "3.6.16"), ("3.6.16", "3.7.3"), ("3.6.12", "3.6.16"), ("3.6.16", "3.6.12"), ("3.5.20", "3.5.35")]
    {
        assert!(accepts(&asked(runs, wanted)), "{runs} → {wanted}: {:?}", plan(&asked(runs, wanted)));
    }
}

#[test]
fn a_minor_is_not_skipped() {
    let message = refusal(&asked("3.5.35", "3.7.3"));
    assert!(message.contains("from 3.5 to 3.7 in one step") && message.contains("a version of 3.6 first"), "{message}");
    let message = refusal(&asked("3.7.3", "3.5.35"));
    assert!(message.contains("downgraded from 3.7 to 3.5 in one step"), "{message}");
}

#[test]
fn some_patches_are_too_old_to_leave() {
    for (runs, wanted, first) in [("3.5.25", "3.6.16", "3.5.26"), ("3.6.10", "3.7.3", "3.6.11")] {
        let message = refusal(&asked(runs, wanted));
        assert!(message.contains(&format!("set spec.version to {first} or a later patch first")), "{message}");
        assert!(accepts(&asked(first, wanted)));
    }
}

#[test]
fn flags_that_the_new_version_does_not_know_are_named() {
    let mut observed = asked("3.6.16", "3.7.3");
    observed.wanted.flags = vec!["max-txn-ops".into(), "experimental-compaction-batch-limit".into()];
    let message = refusal(&observed);
    assert!(message.contains("etcd 3.7") && message.contains("experimental-compaction-batch-limit"), "{message}");
    assert!(!message.contains("max-txn-ops"), "{message}");
}

#[test]
fn upgrade_waits_until_all_members_are_healthy() {
    let mut observed = asked("3.5.35", "3.6.16");
    observed.stop_answering(1);
    assert_eq!((awaited(&plan(&observed)), steps_of(&observed)), ("WaitingForHealthyMembers", Vec::new()));
}

#[test]
fn while_versions_are_mixed_a_member_may_go_back() {
    let mut observed = asked("3.5.35", "3.5.35");
    observed.run(2, "3.6.16");
    observed.recorded.version = Some(version("3.6.16"));
    assert!(accepts(&observed));
    observed.run(1, "3.6.16");
    observed.run(0, "3.6.16");
    let message = plan(&observed).steps;
    assert_eq!(
        message,
        [Step::Cluster(ClusterStep::EnableDowngrade(version("3.5.0")))],
        "all are new, although etcd has not said so yet"
    );
}

#[test]
fn member_that_failed_with_one_patch_is_tried_with_another() {
    let mut observed = asked("3.5.35", "3.6.16");
    observed.run(2, "3.6.99");
    observed.recorded.version = Some(version("3.6.99"));
    observed.stop_answering(2);
    assert_eq!(awaited(&plan(&observed)), "WaitingForHealthyMembers", "it was well as it is, and will be again");
    observed.objects.peers.get_mut(&Ordinal(2)).unwrap().proven = false;
    assert!(accepts(&observed));
}

/// A person deletes its EtcdPeer while the downgrade is prepared, and its pod stops before its data is readable.
#[test]
fn downgrade_waits_for_a_stopped_member_whose_claim_holds_later_data() {
    let mut observed = asked("3.7.3", "3.6.16");
    observed.etcd.downgrade = Some(version("3.6.0"));
    observed.etcd.cluster_version = Some(version("3.6.0"));
    (0..2).for_each(|ordinal| observed.store(ordinal, "3.6.0"));
    observed.etcd.answers.remove(&Ordinal(2));
    observed.objects.pods.remove(&Ordinal(2));
    observed.objects.peers.remove(&Ordinal(2));
    let note = |observed: &mut Observed, noted: &str| {
        observed.objects.claims.get_mut(&Ordinal(2)).unwrap().version = Some(version(noted));
    };
    note(&mut observed, "3.7.3");
    assert!(matches!(decide_version(&observed), VersionDecision::Wait(_)), "3.6 could not read what 2 may have");
    note(&mut observed, "3.6.0");
    assert_eq!(decide_version(&observed), VersionDecision::Possible);
}

#[test]
fn down_by_a_minor_only_when_the_data_is_readable() {
    let mut observed = asked("3.7.3", "3.6.16");
    (0..3).for_each(|ordinal| observed.store(ordinal, "3.7.0"));
    assert_eq!(steps_of(&observed), [Step::Cluster(ClusterStep::EnableDowngrade(version("3.6.0")))]);
    observed.etcd.downgrade = Some(version("3.6.0"));
    assert_eq!((awaited(&plan(&observed)), steps_of(&observed)), ("PreparingDowngrade", Vec::new()));
    observed.etcd.cluster_version = Some(version("3.6.0"));
    observed.store(0, "3.6.0");
    observed.store(1, "3.6.0");
    assert_eq!(awaited(&plan(&observed)), "PreparingDowngrade", "2 is not done");
    observed.store(2, "3.6.0");
    assert!(accepts(&observed));
    observed.recorded.version = Some(version("3.6.16"));
    assert_eq!(steps_of(&observed), [Step::Member(Ordinal(2), MemberStep::DrainPod)]);
}

#[test]
fn a_downgrade_is_cancelled_when_the_spec_goes_back() {
    let mut observed = asked("3.7.3", "3.7.3");
    observed.etcd.downgrade = Some(version("3.6.0"));
    assert_eq!(steps_of(&observed), [Step::Cluster(ClusterStep::CancelDowngrade)]);
}

#[test]
fn downgrade_is_cancelled_while_a_member_joins_and_resumed_afterwards() {
    let mut observed = asked("3.7.3", "3.6.16");
    observed.etcd.downgrade = Some(version("3.6.0"));
    observed.wanted.replicas = 4;
    assert_eq!(steps_of(&observed), [Step::Cluster(ClusterStep::CancelDowngrade)]);
}

#[test]
fn downgrade_that_etcd_does_not_support_is_refused() {
    let message = refusal(&asked("3.5.35", "3.4.30"));
    assert!(message.contains("3.5 can't be downgraded"), "{message}");
    let mut observed = asked("3.7.3", "3.6.16");
    (observed.wanted.durable, observed.objects.claims) = (false, Default::default());
    assert!(refusal(&observed).contains("keep their data in their pods"));
}

#[test]
fn refused_version_reaches_no_new_member() {
    let mut observed = asked("3.5.35", "3.7.3");
    observed.objects.peers.remove(&Ordinal(1));
    observed.objects.outdated.remove(&Ordinal(1));
    let steps = steps_of(&observed);
    let made = Step::Member(Ordinal(1), MemberStep::CreatePeer { initial: false, model: Model::Member(Ordinal(0)) });
    assert!(steps.contains(&made), "{steps:?}");
    observed.objects.peers.clear();
    observed.objects.outdated.clear();
    let made = Step::Member(
        Ordinal(0),
        MemberStep::CreatePeer { initial: false, model: Model::SpecWithVersion(version("3.5.35")) },
    );
    assert!(steps_of(&observed).contains(&made));
}

#[test]
fn downgrade_waits_for_an_initial_member_that_never_started_and_lets_it_start() {
    let mut observed = asked("3.6.16", "3.5.35");
    observed.member_mut(2).started = false;
    observed.etcd.answers.remove(&Ordinal(2));
    observed.objects.peers.get_mut(&Ordinal(2)).unwrap().proven = false;
    let plan = plan(&observed);
    let enabled = Step::Cluster(ClusterStep::EnableDowngrade(version("3.5.0")));
    assert!(!plan.steps.contains(&enabled), "nobody could join any more: {plan:?}");
    assert_eq!(awaited(&plan), "WaitingForHealthyMembers");
    observed.etcd.downgrade = Some(version("3.5.0"));
    let steps = steps_of(&observed);
    assert!(steps.contains(&Step::Cluster(ClusterStep::CancelDowngrade)), "{steps:?}");
}

#[test]
fn a_cluster_that_is_created_again_asks_for_a_version_that_can_read_its_data() {
    let mut observed = asked("3.7.3", "3.6.16");
    let (wanted, recorded) = (observed.wanted.version.clone(), observed.recorded.clone());
    let (said, downgrade) = (observed.etcd.cluster_version.clone(), observed.etcd.downgrade.clone());
    observed.recreate();
    observed.wanted.version = wanted;
    observed.recorded.cluster_id = recorded.cluster_id;
    (observed.recorded.version, observed.recorded.oldest_log) = (None, recorded.oldest_log);
    (observed.etcd.cluster_version, observed.etcd.downgrade) = (said, downgrade);
    assert!(refusal(&observed).contains("data is of etcd 3.7"));
    observed.wanted.version = Some(version("3.7.2"));
    assert!(accepts(&observed));
}

#[test]
fn log_entries_of_3_5_are_dropped_before_an_upgrade_to_3_7() {
    let mut observed = asked("3.6.16", "3.7.3");
    observed.recorded.oldest_log = Some(version("3.5.35"));
    (0..3).for_each(|ordinal| observed.store(ordinal, "3.6.0"));
    assert_eq!(
        steps_of(&observed),
        [Step::Cluster(ClusterStep::EnableDowngrade(version("3.5.0")))],
        "3.6 writes snapshots then"
    );
    observed.etcd.downgrade = Some(version("3.5.0"));
    assert_eq!((awaited(&plan(&observed)), steps_of(&observed)), ("PreparingUpgrade", Vec::new()));
    observed.etcd.cluster_version = Some(version("3.5.0"));
    (0..3).for_each(|ordinal| observed.store(ordinal, "3.5.0"));
    assert_eq!(steps_of(&observed), [Step::Cluster(ClusterStep::RecordLogVersion(version("3.6.0")))]);
    observed.recorded.oldest_log = Some(version("3.6.0"));
    assert_eq!(steps_of(&observed), [Step::Cluster(ClusterStep::CancelDowngrade)]);
    observed.etcd.downgrade = None;
    assert_eq!((awaited(&plan(&observed)), steps_of(&observed)), ("PreparingUpgrade", Vec::new()), "3.7 needs 3.6");
    observed.etcd.cluster_version = Some(version("3.6.0"));
    (0..3).for_each(|ordinal| observed.store(ordinal, "3.6.0"));
    assert!(accepts(&observed));
}

#[test]
fn logs_of_which_nobody_knows_are_taken_for_old_ones() {
    let mut observed = asked("3.6.16", "3.7.3");
    observed.recorded.oldest_log = None;
    (0..3).for_each(|ordinal| observed.store(ordinal, "3.6.0"));
    assert_eq!(steps_of(&observed), [Step::Cluster(ClusterStep::EnableDowngrade(version("3.5.0")))]);
    assert!(accepts(&asked("3.6.16", "3.7.3")), "bootstrapped by 3.6");
}

#[test]
fn a_backup_comes_first_if_one_is_asked_for() {
    let with = |backup_first: BackupFirst| asked("3.6.16", "3.7.3").with(|it| it.objects.backup_first = backup_first);
    assert_eq!(steps_of(&with(BackupFirst::ToTake)), [Step::Cluster(ClusterStep::TakeBackup)]);
    let running = plan(&with(BackupFirst::Running("b".into())));
    assert_eq!((running.steps.len(), awaited(&running)), (0, "BackingUp"));
    let failure = BackupFirst::Failed { name: "b".into(), message: "no such bucket".into() };
    let invalid = BackupFirst::InvalidSchedule { name: "s".into(), why: "Mars is no time zone".into() };
    let no_ways = [
        (failure, "no such bucket"),
        (BackupFirst::NoSchedule, "EtcdBackupSchedule"),
        (invalid, "Mars is no time zone"),
    ];
    for (no_way, words) in no_ways {
        let Plan { steps, waiting } = plan(&with(no_way));
        let waiting = waiting.unwrap();
        assert_eq!(
            (steps.len(), waiting.reason),
            (0, WaitReason::UpgradeBackupFailed),
            "nothing moves without a backup"
        );
        assert!(waiting.reason.needs_user_action() && waiting.message.contains(words), "{}", waiting.message);
    }
    assert!(accepts(&with(BackupFirst::Taken)));
}

#[test]
fn while_a_cluster_is_bootstrapped_it_stays_with_its_minor() {
    let mut observed = asked("3.5.20", "3.6.16").with(|it| {
        it.recorded.cluster_id = None;
        it.etcd.membership = None;
    });
    observed.etcd.answers.clear();
    observed.recorded.bootstrap = Some(super::support::bootstrap_of(3));
    let is_accepted = |observed: &Observed| {
        steps_of(observed).iter().any(|it| matches!(it, Step::Cluster(ClusterStep::AcceptVersion(_))))
    };
    assert!(!is_accepted(&observed), "somebody may have begun: {:?}", plan(&observed));
    observed.wanted.version = Some(version("3.5.35"));
    observed.objects.claims.clear();
    observed.objects.pods.clear();
    observed.objects.peers.clear();
    assert!(is_accepted(&observed), "another patch can read it: {:?}", plan(&observed));
    observed.wanted.version = Some(version("3.6.16"));
    assert!(is_accepted(&observed), "nobody has begun: {:?}", plan(&observed));
}
