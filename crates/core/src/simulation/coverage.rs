//! What the runs of a simulation met: how often each fault struck, each step was taken, each rule had something to judge
//! and each reason to wait was given. A rule that never has anything to judge never breaks, whatever the planner does.

use std::cell::Cell;
use std::fmt::Write;

use etcd_operator_api::WaitReason;

use super::faults::WEIGHTS;
use crate::cluster::plan::{ClusterStep, MemberStep, Plan, Step};

/// What must never be broken. Each is counted when a situation arises in which it could be.
#[derive(Clone, Copy, Debug)]
pub enum Rule {
    /// Two processes run, and share no disk and no identity.
    ProcessesShareNothing,
    /// There is a learner, and no second one.
    OneLearner,
    /// A plan changes the membership, once.
    OneMembershipChange,
    /// A step that could do harm is planned from a cache, and the cluster is paused.
    PausedIsUntouched,
    /// A member is to bootstrap a cluster that is recorded as bootstrapped.
    BootstrappedOnce,
    /// A member bootstraps a cluster where there was another one.
    NoDataIsBootstrappedOver,
    /// A member is added, without a vote.
    NewMembersAreLearners,
    /// A voter is restarted that the others can do without.
    RestartKeepsTheQuorum,
    RestartSparesTheLeader,
    /// A member is restarted whose data stays.
    RestartKeepsTheData,
    /// A pod is restarted whose process does not take part.
    RestartSparesTheHealthy,
    /// A pod is given up, and its member does not run.
    FencedPodsDoNotRun,
    /// A claim is deleted, with a quorum and without a member.
    ClaimsOutliveTheirMembers,
    /// A PodDisruptionBudget is applied, and the operator can know the voters.
    BudgetKeepsTheQuorum,
    RemovalSparesTheLeader,
    /// A voter is removed that the others can do without.
    RemovalKeepsTheQuorum,
    /// A voter is removed while the data of one is known to be wrong.
    RemovalKeepsSoundData,
    /// A member of the desired number is removed for a reason.
    RemovalIsNeeded,
    /// A member starts with data.
    DataIsReadable,
    /// A member starts with data and a version that can't read every log.
    LogIsReadable,
    /// A member starts beside others that have agreed on a version.
    VersionsGoStepByStep,
    /// A member starts beside members of an earlier minor version.
    UpgradesStartFromSafePatches,
    /// A member starts without data in a bootstrapped cluster.
    LostDataDoesNotReturn,
    /// etcd has a quorum, and writes were acknowledged.
    AcknowledgedWritesStay,
    /// The faults have stopped, and the cluster rests.
    RestsAsAskedFor,
    /// The faults have stopped, and the cluster does not come to rest.
    OnlyLossPreventsRest,
    /// Too much data is lost, and the status says so.
    LossIsReported,
    /// A member is resized while all the others are up.
    ResizesWaitForTheOthers,
    /// A member takes over the leadership.
    LeadersAreSound,
    /// A member is replaced whose name was replaced before.
    ReplacementsBackOff,
    /// A member starts beside others that have not agreed on a version yet.
    VersionsWaitForAgreement,
    /// What exists can't form one cluster, and the operator sees it.
    ConflictsAreUntouched,
    /// Another etcd cluster answers at the members' addresses.
    OtherClustersAreUntouched,
    /// A learner is promoted.
    VotersAreSound,
}

impl Rule {
    const ALL: [Rule; 34] = [
        Rule::ProcessesShareNothing,
        Rule::OneLearner,
        Rule::OneMembershipChange,
        Rule::PausedIsUntouched,
        Rule::BootstrappedOnce,
        Rule::NoDataIsBootstrappedOver,
        Rule::NewMembersAreLearners,
        Rule::RestartKeepsTheQuorum,
        Rule::RestartSparesTheLeader,
        Rule::RestartKeepsTheData,
        Rule::RestartSparesTheHealthy,
        Rule::FencedPodsDoNotRun,
        Rule::ClaimsOutliveTheirMembers,
        Rule::BudgetKeepsTheQuorum,
        Rule::RemovalSparesTheLeader,
        Rule::RemovalKeepsTheQuorum,
        Rule::RemovalKeepsSoundData,
        Rule::RemovalIsNeeded,
        Rule::DataIsReadable,
        Rule::LogIsReadable,
        Rule::VersionsGoStepByStep,
        Rule::UpgradesStartFromSafePatches,
        Rule::LostDataDoesNotReturn,
        Rule::AcknowledgedWritesStay,
        Rule::RestsAsAskedFor,
        Rule::OnlyLossPreventsRest,
        Rule::LossIsReported,
        Rule::ResizesWaitForTheOthers,
        Rule::LeadersAreSound,
        Rule::ReplacementsBackOff,
        Rule::VersionsWaitForAgreement,
        Rule::ConflictsAreUntouched,
        Rule::OtherClustersAreUntouched,
        Rule::VotersAreSound,
    ];
}

/// Numbers the steps; it does not compile while one is missing.
macro_rules! steps {
    (ClusterStep: $($cluster:ident),* ; MemberStep: $($member:ident),* $(,)?) => {
        enum Number { $($cluster,)* $($member),* }
        const STEPS: &[&str] = &[$(stringify!($cluster),)* $(stringify!($member)),*];
        fn number_of(step: &Step) -> usize {
            match step {
                $(Step::Cluster(ClusterStep::$cluster { .. }) => Number::$cluster as usize,)*
                $(Step::Member(_, MemberStep::$member { .. }) => Number::$member as usize),*
            }
        }
    };
}

steps![
    ClusterStep:
    RecordBootstrap,
    RecordClusterId,
    AcceptVersion,
    TakeBackup,
    RecordLogVersion,
    EnableDowngrade,
    CancelDowngrade,
    Disarm,
    ApplyService,
    ApplyDisruptionBudget;
    MemberStep:
    CreatePeer,
    RecordMember,
    CreateClaim,
    MarkClaim,
    RepairClaim,
    CreatePod,
    AnnotatePod,
    DrainPod,
    RecreatePeer,
    Relabel,
    Resize,
    GrowClaim,
    DeletePod,
    RestartPod,
    FencePod,
    DeleteClaim,
    DeletePeer,
    AddLearner,
    Promote,
    MoveLeader,
    RecordReplacement,
    RemoveMember,
    RecordDefragmentation,
    Defragment,
];

/// What can't happen in the simulated world, and why.
const IMPOSSIBLE: &[(&str, &str)] = &[
    ("TakeBackup", "backups are not simulated"),
    ("RecordDefragmentation", "sizes of databases are not simulated"),
    ("Defragment", "sizes of databases are not simulated"),
    ("Disarm", "alarms are not simulated"),
    ("BackingUp", "backups are not simulated"),
    ("UpgradeBackupFailed", "backups are not simulated"),
    ("ImageVersionMismatch", "an image is always what its tag says"),
    ("NoLeaderCandidate", "of those that stay, one always has sound data and answers"),
    ("OldPeerTerminating", "an EtcdPeer is gone as soon as it is deleted"),
    ("RolloutQueued", "there is only one cluster"),
    ("UnmanagedLearner", "no other client adds members"),
    ("VolumeExpansionUnsupported", "every volume can be expanded"),
    ("VolumeMismatch", "other storage classes are not simulated"),
];

type Counts = Vec<Cell<u64>>;

pub struct Coverage {
    /// How often all rules about every moment were checked.
    checked: Cell<u64>,
    faults: Counts,
    done: Counts,
    failed: Counts,
    rules: Counts,
    waits: Counts,
}

impl Default for Coverage {
    fn default() -> Self {
        let zeros = |number: usize| vec![Cell::new(0); number];
        Coverage {
            checked: Cell::new(0),
            faults: zeros(WEIGHTS.len()),
            done: zeros(STEPS.len()),
            failed: zeros(STEPS.len()),
            rules: zeros(Rule::ALL.len()),
            waits: zeros(WaitReason::ALL.len()),
        }
    }
}

fn add(count: &Cell<u64>, more: u64) {
    count.set(count.get() + more);
}

impl Coverage {
    pub fn check(&self) {
        add(&self.checked, 1);
    }

    pub fn checked(&self) -> u64 {
        self.checked.get()
    }

    /// The fault at this place in `WEIGHTS` has changed something.
    pub fn strike(&self, fault: usize) {
        add(&self.faults[fault], 1);
    }

    pub fn take(&self, step: &Step, is_done: bool) {
        add(if is_done { &self.done[number_of(step)] } else { &self.failed[number_of(step)] }, 1);
    }

    pub fn judge(&self, rule: Rule) {
        add(&self.rules[rule as usize], 1);
    }

    pub fn wait(&self, plan: &Plan) {
        let Some(waiting) = &plan.waiting else { return };
        add(&self.waits[waiting.reason as usize], 1);
    }

    pub fn add(&self, other: &Coverage) {
        add(&self.checked, other.checked.get());
        for (ours, theirs) in self.tables().into_iter().zip(other.tables()) {
            ours.iter().zip(theirs).for_each(|(ours, theirs)| add(ours, theirs.get()));
        }
    }

    fn tables(&self) -> [&Counts; 5] {
        [&self.faults, &self.done, &self.failed, &self.rules, &self.waits]
    }

    /// What was never met although it should be.
    pub fn missing(&self) -> Vec<String> {
        let attempted = self.done.iter().zip(&self.failed).map(|(done, failed)| done.get() + failed.get());
        let steps = step_names().into_iter().zip(attempted);
        let all = counted(fault_names(), &self.faults).into_iter().chain(steps);
        let all = all.chain(counted(rule_names(), &self.rules)).chain(counted(wait_names(), &self.waits));
        let is_possible = |name: &String| IMPOSSIBLE.iter().all(|(it, _)| it != name);
        all.filter(|(name, count)| *count == 0 && is_possible(name)).map(|(name, _)| name).collect()
    }
}

fn counted(names: Vec<String>, counts: &Counts) -> Vec<(String, u64)> {
    names.into_iter().zip(counts.iter().map(Cell::get)).collect()
}

fn fault_names() -> Vec<String> {
    WEIGHTS.iter().map(|(_, event)| format!("{event:?}")).collect()
}

fn step_names() -> Vec<String> {
    STEPS.iter().map(|name| name.to_string()).collect()
}

fn rule_names() -> Vec<String> {
    Rule::ALL.iter().map(|rule| format!("{rule:?}")).collect()
}

fn wait_names() -> Vec<String> {
    WaitReason::ALL.iter().map(|reason| reason.to_string()).collect()
}

impl std::fmt::Display for Coverage {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let reason = |name: &str| IMPOSSIBLE.iter().find(|(it, _)| *it == name).map_or("", |(_, why)| why);
        let mut section = |title: &str, rows: Vec<(String, u64)>| {
            writeln!(formatter, "{title}")?;
            rows.into_iter().try_for_each(|(name, count)| {
                let mut line = format!("  {name:<30}{count:>13}");
                if count == 0 {
                    write!(line, "  {}", reason(&name))?;
                }
                writeln!(formatter, "{}", line.trim_end())
            })
        };
        section("events, and faults that changed something", counted(fault_names(), &self.faults))?;
        section("steps taken", counted(step_names(), &self.done))?;
        let mut failed = counted(step_names(), &self.failed);
        failed.retain(|(_, count)| *count > 0);
        section("steps that failed, or were not confirmed", failed)?;
        section("rules that had something to judge", counted(rule_names(), &self.rules))?;
        section("reconciles that waited", counted(wait_names(), &self.waits))
    }
}
