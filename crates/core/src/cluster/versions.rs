//! Whether members may be created with the desired version of etcd: etcd is upgraded and downgraded by one minor
//! version at a time, and downgraded only after the downgrade was enabled.

use etcd_operator_api::WaitReason;
use semver::Version;

use crate::cluster::flags::unknown_flags;
use crate::cluster::observed::{Answer, Claim, Member, Observed, Pod};
use crate::cluster::step::{ClusterStep, Step, Waiting};

/// The first patch of a minor version that can be upgraded to the next minor: with earlier ones, members that were
/// removed long ago reappear.
static FIRST_UPGRADABLE_PATCH: [Version; 2] = [Version::new(3, 5, 26), Version::new(3, 6, 11)];
/// The first minor version that can be downgraded.
const FIRST_DOWNGRADABLE_MINOR: u64 = 6;
/// The first minor version that can't read log entries of the minor before the previous one, and that previous one,
/// which can.
const CANNOT_READ_3_5_LOGS: u64 = 7;
const LAST_TO_READ_3_5_LOGS: u64 = 6;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VersionDecision {
    /// Members may be created with it.
    Possible,
    /// etcd has to be prepared first.
    Prepare(Step),
    Wait(Waiting),
    /// It is not possible, and why.
    Refused(String),
}

pub fn decide_version(observed: &Observed) -> VersionDecision {
    let Some(wanted) = observed.wanted.version.clone() else {
        return VersionDecision::Refused("spec.version is not a version".to_owned());
    };
    let unknown = unknown_flags(wanted.minor, observed.wanted.flags.iter().map(String::as_str));
    if !unknown.is_empty() {
        return VersionDecision::Refused(format!(
            "etcd {}.{} does not know these flags in spec.etcd.extraArgs: {}; remove them or write what replaced them",
            wanted.major,
            wanted.minor,
            unknown.join(", ")
        ));
    }
    if observed.recorded.cluster_id.is_none() {
        return decide_before_bootstrap(observed, &wanted);
    }
    if observed.etcd.membership.is_none() {
        return decide_without_quorum(observed, &wanted);
    }
    let downgrade = observed.etcd.downgrade.as_ref().map(|target| target.minor);
    if downgrade.is_some_and(|target| target != wanted.minor) {
        return clean_logs(observed, &wanted)
            .unwrap_or(VersionDecision::Prepare(Step::Cluster(ClusterStep::CancelDowngrade)));
    }
    let Some(current) = cluster_minor(observed) else {
        return VersionDecision::Wait(Waiting::new(
            WaitReason::VersionUnknown,
            "etcd has not said yet which version its members agree on",
        ));
    };
    if wanted.minor == current {
        return is_data_readable(observed, &wanted);
    }
    if wanted.minor == current + 1 {
        return may_go_up(observed, &wanted);
    }
    if wanted.minor + 1 == current && current >= FIRST_DOWNGRADABLE_MINOR {
        return may_go_down(observed, &wanted, downgrade);
    }
    // The members may already run the version in between, while etcd has not reported it yet.
    let accepted = observed.recorded.version.as_ref().map(|version| version.minor);
    if accepted.is_some_and(|accepted| accepted > current && accepted + 1 == wanted.minor) {
        return VersionDecision::Wait(not_agreed(&wanted));
    }
    VersionDecision::Refused(too_far(&wanted, current))
}

/// Initial members that may have started have data of the version that they were created with, even if none was
/// observed.
fn decide_before_bootstrap(observed: &Observed, wanted: &Version) -> VersionDecision {
    let accepted = observed.recorded.version.as_ref();
    match accepted.filter(|accepted| accepted.minor != wanted.minor) {
        Some(accepted) if may_have_begun(observed) => VersionDecision::Refused(format!(
            "the cluster is still bootstrapping with etcd {0}.{1}: set spec.version to a version of {0}.{1} until it answers, or \
             delete the cluster and its volume claims and create it anew",
            accepted.major, accepted.minor
        )),
        _ => VersionDecision::Possible,
    }
}

/// Whether any initial member may have written data: not if a problem keeps all of them from running.
fn may_have_begun(observed: &Observed) -> bool {
    let is_kept_from_running = |pod: &Pod| pod.problem.is_some();
    let mut initial_members = observed.objects.claims.keys().chain(observed.objects.pods.keys());
    initial_members.any(|ordinal| !observed.objects.pods.get(ordinal).is_some_and(is_kept_from_running))
}

fn not_agreed(wanted: &Version) -> Waiting {
    let message = format!("etcd has not said yet that its members agree on {}.{}", wanted.major, wanted.minor - 1);
    Waiting::new(WaitReason::PreparingUpgrade, message)
}

fn too_far(wanted: &Version, current: u64) -> String {
    let Version { major, minor, .. } = wanted;
    if *minor > current {
        let next = current + 1;
        return format!(
            "etcd can't be upgraded from {major}.{current} to {major}.{minor} in one step: set spec.version to a version of \
             {major}.{next} first, and go on when all members run it"
        );
    }
    if *minor + 1 == current {
        return format!(
            "etcd {major}.{current} can't be downgraded; set spec.version back, or restore a backup into a new cluster"
        );
    }
    let next = current - 1;
    format!(
        "etcd can't be downgraded from {major}.{current} to {major}.{minor} in one step: set spec.version to a version of \
         {major}.{next} first"
    )
}

/// etcd can't be queried. The last known cluster version still holds, and so does the accepted version.
fn decide_without_quorum(observed: &Observed, wanted: &Version) -> VersionDecision {
    let known = observed.etcd.cluster_version.as_ref().or(observed.recorded.version.as_ref());
    let Some(current) = known.map(|version| version.minor) else {
        return VersionDecision::Possible;
    };
    let is_accepted = observed.is_version_accepted();
    let may_be_next = wanted.minor == current + 1 && (is_accepted || may_follow_the_annotation(observed));
    if wanted.minor == current || may_be_next {
        return VersionDecision::Possible;
    }
    VersionDecision::Refused(format!(
        "the members' data is of etcd {0}.{current}, and no quorum of them answers: set spec.version to a version of \
         {0}.{current}; it can be changed when they run",
        wanted.major
    ))
}

/// Whether data that is known only from annotations on the claims may be of the next version: the annotations may
/// predate the last change. If it is not, etcd does not start, and that can be reverted.
fn may_follow_the_annotation(observed: &Observed) -> bool {
    let noted = observed.noted_version().filter(|_| observed.objects.peers.is_empty());
    // Without a patch version it was written by a later minor, which had been upgraded from this one.
    noted.is_some_and(|noted| noted.patch == 0 || is_new_enough(&noted))
}

/// Whether this version can be upgraded to the next minor.
fn is_new_enough(version: &Version) -> bool {
    FIRST_UPGRADABLE_PATCH.iter().all(|first| first.minor != version.minor || version >= first)
}

fn may_go_up(observed: &Observed, wanted: &Version) -> VersionDecision {
    let old = |version: &Version| version.minor + 1 == wanted.minor && !is_new_enough(version);
    for (ordinal, answer) in &observed.etcd.answers {
        let version = answer.as_ref().ok().and_then(|answer| answer.version.as_ref());
        let Some(version) = version.filter(|version| old(version)) else { continue };
        let first = FIRST_UPGRADABLE_PATCH.iter().find(|first| first.minor == version.minor);
        return VersionDecision::Refused(format!(
            "{} runs {version}, and from there etcd can't be upgraded to {}.{} safely: set spec.version to {} or a later \
             patch first",
            observed.names.member_name(*ordinal),
            wanted.major,
            wanted.minor,
            first.unwrap_or(version),
        ));
    }
    // All members may already run it, while etcd has not reported it yet.
    let agreed = observed.etcd.cluster_version.as_ref().map(|version| version.minor);
    if agreed != Some(wanted.minor - 1) {
        return VersionDecision::Wait(not_agreed(wanted));
    }
    let begin = clean_logs(observed, wanted).unwrap_or(VersionDecision::Possible);
    if_all_are_healthy(observed, wanted, "upgraded", begin)
}

/// etcd 3.7 exits at once if it finds entries from 3.5 in its log, even if 3.6 has run since. 3.6 drops them with a
/// snapshot, and it writes one when it prepares for a downgrade. So a downgrade is enabled, and then cancelled. `None`
/// if there is nothing to clean.
fn clean_logs(observed: &Observed, wanted: &Version) -> Option<VersionDecision> {
    let oldest = observed.recorded.oldest_log.as_ref();
    let is_clean = oldest.is_some_and(|oldest| oldest.minor >= LAST_TO_READ_3_5_LOGS);
    let mut running = observed.etcd.answers.values().flatten().filter_map(|answer| answer.version.as_ref());
    if wanted.minor != CANNOT_READ_3_5_LOGS || is_clean || running.any(|version| version.minor != LAST_TO_READ_3_5_LOGS)
    {
        return None;
    }
    if !observed.wanted.durable {
        return Some(VersionDecision::Refused(
            "the members' logs hold what etcd 3.5 wrote, which 3.7 can't read, and members that keep their data in their \
             pods get it from the others: create another cluster"
                .to_owned(),
        ));
    }
    // Only a member with data of the later version proves by downgrading it that it has written a snapshot.
    let members = observed.etcd.membership.iter().flat_map(|membership| &membership.members);
    let storage = |answer: &Answer| answer.storage_version.as_ref().map(|version| version.minor);
    let storage: Vec<Option<u64>> = members.map(|member| observed.answer_of(member).and_then(storage)).collect();
    let all_have = |minor: u64| storage.iter().all(|storage| *storage == Some(minor));
    let before = LAST_TO_READ_3_5_LOGS - 1;
    match observed.etcd.downgrade {
        None if all_have(LAST_TO_READ_3_5_LOGS) => Some(VersionDecision::Prepare(Step::Cluster(
            ClusterStep::EnableDowngrade(Version::new(wanted.major, before, 0)),
        ))),
        Some(_) if all_have(before) => Some(VersionDecision::Prepare(Step::Cluster(ClusterStep::RecordLogVersion(
            Version::new(wanted.major, LAST_TO_READ_3_5_LOGS, 0),
        )))),
        _ => {
            let message = "the upgrade is being prepared: the members write snapshots, because 3.7 can't read what 3.5 left \
                           in their logs";
            Some(VersionDecision::Wait(Waiting::new(WaitReason::PreparingUpgrade, message)))
        }
    }
}

fn may_go_down(observed: &Observed, wanted: &Version, under_way: Option<u64>) -> VersionDecision {
    if under_way.is_some() {
        return VersionDecision::Wait(preparing(wanted, "etcd was asked"));
    }
    // Members that keep their data in their pods are updated by replacement, and none can join during a downgrade.
    if !observed.wanted.durable {
        return VersionDecision::Refused(
            "members that keep their data in their pods can't be downgraded to another minor version: set spec.version \
             back, or create another cluster"
                .to_owned(),
        );
    }
    let mut members = observed.etcd.membership.iter().flat_map(|membership| &membership.members);
    if let Some(starting) = members.find(|member| !member.started) {
        let name = observed.name_of(starting);
        return VersionDecision::Wait(Waiting::new(
            WaitReason::WaitingForHealthyMembers,
            format!("waiting for {name} to start for the first time: etcd lets no member join during a downgrade"),
        ));
    }
    let target = Version::new(wanted.major, wanted.minor, 0);
    if_all_are_healthy(
        observed,
        wanted,
        "downgraded",
        VersionDecision::Prepare(Step::Cluster(ClusterStep::EnableDowngrade(target))),
    )
}

/// Whether every member has made its data readable for the target of a downgrade.
fn is_data_readable(observed: &Observed, wanted: &Version) -> VersionDecision {
    let ahead = observed.etcd.answers.iter().find(|(_, answer)| {
        let storage = answer.as_ref().ok().and_then(|answer| answer.storage_version.as_ref());
        storage.is_some_and(|storage| storage.minor > wanted.minor)
    });
    // A member that does not answer may have stopped before it did. What it was last known to have is on its claim.
    let is_ahead = |claim: &Claim| claim.version.as_ref().is_some_and(|it| it.minor > wanted.minor);
    let silent = observed.etcd.membership.iter().flat_map(|membership| &membership.members);
    let mut silent = silent.filter_map(|member| member.ordinal).filter(|ordinal| !observed.is_reached(*ordinal));
    let stopped = || silent.find(|ordinal| observed.objects.claims.get(ordinal).is_some_and(is_ahead));
    match ahead.map(|(ordinal, _)| *ordinal).or_else(stopped) {
        Some(ordinal) => {
            let name = observed.names.member_name(ordinal);
            VersionDecision::Wait(preparing(wanted, &format!("{name} has not made its data readable for it yet")))
        }
        None => VersionDecision::Possible,
    }
}

fn preparing(wanted: &Version, what: &str) -> Waiting {
    Waiting::new(
        WaitReason::PreparingDowngrade,
        format!("the downgrade to {}.{} is being prepared: {what}", wanted.major, wanted.minor),
    )
}

/// Before a version is accepted, all members must be healthy. Once it is accepted, an updated member that does not
/// start is no reason to revert that; and a member that was never healthy since it was created may be tried with
/// another version.
fn if_all_are_healthy(observed: &Observed, wanted: &Version, done: &str, decision: VersionDecision) -> VersionDecision {
    if observed.is_version_accepted() {
        return decision;
    }
    let was_tried = |member: &Member| {
        member.ordinal.and_then(|ordinal| observed.objects.peers.get(&ordinal)).is_some_and(|peer| !peer.proven)
    };
    let mut members = observed.etcd.membership.iter().flat_map(|membership| &membership.members);
    match members.find(|member| !observed.is_healthy(member) && !was_tried(member)) {
        Some(unhealthy) => VersionDecision::Wait(Waiting::new(
            WaitReason::WaitingForHealthyMembers,
            format!(
                "waiting for {} to become healthy before the cluster is {done} to {wanted}",
                observed.name_of(unhealthy)
            ),
        )),
        None => decision,
    }
}

/// The minor version that the members agree on. etcd takes some seconds to report that all of them run the new one,
/// from which there is no way back, so the running versions count before it does; unless a downgrade is in progress.
fn cluster_minor(observed: &Observed) -> Option<u64> {
    let reported = observed.etcd.cluster_version.as_ref()?.minor;
    let members = observed.etcd.membership.iter().flat_map(|membership| &membership.members);
    let running = members.map(|member| Some(observed.answer_of(member)?.version.as_ref()?.minor));
    let lowest = running.collect::<Option<Vec<u64>>>().and_then(|all| all.into_iter().min());
    match lowest.filter(|_| observed.etcd.downgrade.is_none()) {
        Some(lowest) => Some(reported.max(lowest)),
        None => Some(reported),
    }
}

/// Whether the members have agreed on a version that is too new for this one.
pub fn is_too_old(observed: &Observed, version: Option<&Version>) -> bool {
    cluster_minor(observed).is_some_and(|current| version.is_some_and(|version| version.minor < current))
}

/// The version of etcd whose minor is the earliest that can read a member's data, as etcd reports it, or as annotated
/// if it reports none; with the last patch of that minor that ran.
pub fn data_version(observed: &Observed, member: &Member, noted: Option<&Version>) -> Option<Version> {
    let answer = observed.answer_of(member).filter(|answer| answer.identity.member_id == member.id);
    let said = answer.map(|answer| [answer.storage_version.as_ref(), observed.etcd.cluster_version.as_ref()]);
    let Some(data) = said.into_iter().flatten().flatten().max() else {
        return noted.cloned();
    };
    let runs = answer.and_then(|answer| answer.version.as_ref());
    let mut patches = [runs, noted].into_iter().flatten().filter(|it| it.minor == data.minor);
    Some(Version::new(data.major, data.minor, patches.next().map_or(0, |version| version.patch)))
}
