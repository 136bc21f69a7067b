//! Operators with one defect each. The simulation must catch all of them: a rule that no mutant breaks is a rule that
//! is not checked.

use std::borrow::Cow;

use crate::cluster::observed::{Claim, DataState, MemberId, Membership, Observed, Pod};
use crate::cluster::plan::{Model, Plan, Step, plan};
use crate::cluster::quorum::quorum;
use crate::cluster::scaling::next_membership_change;
use crate::cluster::spec_diff::UpdateMethod;
use crate::cluster::step::{ClusterStep, MemberStep};
use crate::cluster::tests::support::version;
use crate::ordinal::Ordinal;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mutant {
    /// Removes voters although the rest is no quorum.
    DropsTheQuorumCheck,
    /// Executes destructive plans without a live observation that bypasses its caches.
    TrustsItsCaches,
    /// Adds new members as voters.
    AddsVoters,
    /// Promotes members that it never added.
    PromotesWithoutAdding,
    /// Lets a member that lost its data start as a new one.
    LetsTheEmptiedReturn,
    /// Mistakes a cluster that does not answer for one that was never bootstrapped.
    ForgetsTheBootstrap,
    /// Assumes that the pod of any node that is down has terminated.
    FencesOnSuspicion,
    /// Mistakes an unreachable member for one that lost its data.
    TakesSilenceForLoss,
    /// Deletes the claims of members that don't answer.
    DeletesClaimsOfUnresponsiveMembers,
    /// Works on paused clusters.
    IgnoresThePause,
    /// Removes the leader without moving the leadership.
    RemovesTheLeader,
    /// Never replaces a member that lost its data.
    NeverReplaces,
    /// Counts time against members without observations, or in which none could have recovered.
    CountsEveryMoment,
    /// Restarts the next member although the last one is not healthy again.
    RestartsTwoAtATime,
    /// Restarts the leader without moving the leadership.
    RestartsTheLeader,
    /// Accepts every version.
    SkipsVersions,
    /// Downgrades without preparing etcd for it.
    GoesBackUnprepared,
    /// Assumes that the members' logs are clean, whichever version wrote them.
    ForgetsWhoWroteTheLogs,
    /// Creates new members from the spec even if that was refused.
    MakesNewMembersAnyway,
    /// Restarts members that keep their data in their pods.
    RestartsWhatKeepsNothing,
    /// Retries forever to create a pod that Kubernetes rejects.
    InsistsOnWhatIsRefused,
    /// Waits for a pod that can't be scheduled before it changes its resources.
    WaitsToResizeThePending,
    /// Restarts healthy initial members because the operator can't reach them.
    RestartsInitialMembersOutOfReach,
    /// Restarts initial members that keep their data in their pods.
    RestartsInitialMembersWithTheirData,
    /// Never changes a PodDisruptionBudget that exists.
    LeavesTheBudgetAsItWas,
    /// Sizes the PodDisruptionBudget for the members that are desired.
    CountsOnWhoIsToCome,
    /// Takes members on a node that is not ready for dead, although their kubelet reports them ready.
    TakesUnreadyNodesForDead,
    /// Resizes a member although another one is not healthy.
    ResizesBesideTheUnhealthy,
    /// Hands the leadership to members whose data is known to be wrong.
    HandsOverToTheCorrupt,
    /// Promotes learners whose data is known to be wrong.
    PromotesTheCorrupt,
    /// Removes members although only those are left whose data is known to be wrong.
    LeavesOnlyTheCorrupt,
    /// Replaces members again and again without a pause.
    NeverBacksOff,
    /// Assumes that the members agree on the desired version before they agree on any.
    GuessesTheVersion,
    /// Bootstraps a cluster whatever volumes of its name exist.
    OverlooksVolumes,
    /// Adopts volumes without a look at whose they are.
    AdoptsTheFirstVolume,
    /// Mistakes any cluster that answers for its own.
    TrustsWhoeverAnswers,
}

impl Mutant {
    pub const ALL: [Mutant; 36] = [
        Mutant::DropsTheQuorumCheck,
        Mutant::TrustsItsCaches,
        Mutant::AddsVoters,
        Mutant::PromotesWithoutAdding,
        Mutant::LetsTheEmptiedReturn,
        Mutant::ForgetsTheBootstrap,
        Mutant::FencesOnSuspicion,
        Mutant::TakesSilenceForLoss,
        Mutant::DeletesClaimsOfUnresponsiveMembers,
        Mutant::IgnoresThePause,
        Mutant::RemovesTheLeader,
        Mutant::NeverReplaces,
        Mutant::CountsEveryMoment,
        Mutant::RestartsTwoAtATime,
        Mutant::RestartsTheLeader,
        Mutant::SkipsVersions,
        Mutant::GoesBackUnprepared,
        Mutant::ForgetsWhoWroteTheLogs,
        Mutant::MakesNewMembersAnyway,
        Mutant::RestartsWhatKeepsNothing,
        Mutant::InsistsOnWhatIsRefused,
        Mutant::WaitsToResizeThePending,
        Mutant::RestartsInitialMembersOutOfReach,
        Mutant::RestartsInitialMembersWithTheirData,
        Mutant::LeavesTheBudgetAsItWas,
        Mutant::CountsOnWhoIsToCome,
        Mutant::TakesUnreadyNodesForDead,
        Mutant::ResizesBesideTheUnhealthy,
        Mutant::HandsOverToTheCorrupt,
        Mutant::PromotesTheCorrupt,
        Mutant::LeavesOnlyTheCorrupt,
        Mutant::NeverBacksOff,
        Mutant::GuessesTheVersion,
        Mutant::OverlooksVolumes,
        Mutant::AdoptsTheFirstVolume,
        Mutant::TrustsWhoeverAnswers,
    ];

    /// What the simulation reports when it catches the mutant for its own defect.
    pub fn expected_violation(self) -> &'static str {
        match self {
            Mutant::DropsTheQuorumCheck => "that are left are up",
            Mutant::TrustsItsCaches
            | Mutant::TakesSilenceForLoss
            | Mutant::CountsEveryMoment
            | Mutant::TakesUnreadyNodesForDead => "is given up although it has its data",
            Mutant::AddsVoters => "votes before it has caught up",
            Mutant::PromotesWithoutAdding
            | Mutant::NeverReplaces
            | Mutant::InsistsOnWhatIsRefused
            | Mutant::WaitsToResizeThePending => "never comes to rest",
            Mutant::RestartsInitialMembersOutOfReach => "is restarted although it is well",
            Mutant::LetsTheEmptiedReturn => "lost its data and returns",
            Mutant::ForgetsTheBootstrap => "bootstraps a cluster that is bootstrapped already",
            Mutant::FencesOnSuspicion => "is given up while its member may still run",
            Mutant::DeletesClaimsOfUnresponsiveMembers => "claim is deleted",
            Mutant::IgnoresThePause => "although the cluster is paused",
            Mutant::RemovesTheLeader => "is removed while it leads",
            Mutant::RestartsTwoAtATime => "of the other voters are up",
            Mutant::RestartsTheLeader => "is restarted while it leads",
            Mutant::SkipsVersions => "skips a minor version",
            Mutant::GoesBackUnprepared => "cannot read its data",
            Mutant::ForgetsWhoWroteTheLogs => "cannot read its log",
            Mutant::MakesNewMembersAnyway => "starts as",
            Mutant::RestartsWhatKeepsNothing | Mutant::RestartsInitialMembersWithTheirData => {
                "its data goes with its pod"
            }
            Mutant::LeavesTheBudgetAsItWas => "at rest, and the budget is",
            Mutant::CountsOnWhoIsToCome => "the budget keeps",
            Mutant::ResizesBesideTheUnhealthy => "is resized while",
            Mutant::HandsOverToTheCorrupt => "is to lead although its data is known to be wrong",
            Mutant::PromotesTheCorrupt => "is to vote although its data is known to be wrong",
            Mutant::LeavesOnlyTheCorrupt => "only data that is known to be wrong is left",
            Mutant::NeverBacksOff => "is replaced again after",
            Mutant::GuessesTheVersion => "before they agreed on any",
            Mutant::OverlooksVolumes | Mutant::AdoptsTheFirstVolume => "although its volumes are in conflict",
            Mutant::TrustsWhoeverAnswers => "although another cluster answers",
        }
    }

    /// The operator's plan, with the mutant's defect.
    pub fn plan(mutant: Option<Mutant>, observed: &Observed) -> Plan {
        let Some(mutant) = mutant else { return plan(observed) };
        let mut planned = plan(mutant.see(observed).as_ref());
        let refusal = planned.waiting.as_ref().map_or("", |waiting| waiting.reason.as_str());
        let voters = || observed.etcd.membership.iter().flat_map(|membership| membership.voters());
        match mutant {
            Mutant::DropsTheQuorumCheck if refusal == "QuorumAtRisk" => {
                let leaving = voters()
                    .filter(|it| !observed.is_healthy(it) || it.ordinal.is_some_and(|it| !observed.is_desired(it)));
                let leaving = leaving.filter_map(|it| Some((it.ordinal?, it.id))).max();
                planned.steps.extend(leaving.map(|(ordinal, member_id)| removal(ordinal, member_id)));
            }
            Mutant::LeavesTheBudgetAsItWas => {
                let exists = observed.objects.shared.min_available.is_some();
                let is_budget = |it: &Step| matches!(it, Step::Cluster(ClusterStep::ApplyDisruptionBudget { .. }));
                let is_touched = !observed.objects.shared.budget_is_as_applied;
                planned.steps.retain(|it| !(exists && !is_touched && is_budget(it)));
            }
            Mutant::CountsOnWhoIsToCome => {
                for step in &mut planned.steps {
                    if let Step::Cluster(ClusterStep::ApplyDisruptionBudget { min_available }) = step {
                        *min_available = quorum(observed.wanted.replicas as usize);
                    }
                }
            }
            Mutant::PromotesWithoutAdding => {
                for step in &mut planned.steps {
                    if let Step::Member(ordinal, MemberStep::AddLearner) = *step {
                        *step = Step::Member(ordinal, MemberStep::Promote { member_id: MemberId(1) });
                    }
                }
            }
            Mutant::LetsTheEmptiedReturn => {
                for step in &mut planned.steps {
                    match step {
                        Step::Member(_, MemberStep::CreatePod { start, .. }) => start.expected.data = DataState::New,
                        Step::Member(_, MemberStep::AnnotatePod { expected, .. }) => expected.data = DataState::New,
                        _ => {}
                    }
                }
            }
            Mutant::FencesOnSuspicion => {
                let down =
                    observed.objects.pods.iter().filter(|(_, pod)| pod.node.is_some_and(|it| it.down_since.is_some()));
                planned.steps.extend(
                    down.map(|(ordinal, _)| Step::Member(*ordinal, MemberStep::FencePod { why: String::new() })),
                );
            }
            Mutant::TakesSilenceForLoss if planned.steps.is_empty() => {
                let silent =
                    voters().find(|it| !observed.is_healthy(it) && it.started && Some(it.id) != observed.leader());
                let silent = silent.and_then(|it| Some(removal(it.ordinal?, it.id)));
                planned.steps.extend(silent);
            }
            Mutant::DeletesClaimsOfUnresponsiveMembers => {
                let silent =
                    observed.objects.claims.keys().find(|it| !matches!(observed.etcd.answers.get(it), Some(Ok(_))));
                planned.steps.extend(silent.map(|ordinal| Step::Member(*ordinal, MemberStep::DeleteClaim)));
            }
            Mutant::RemovesTheLeader => {
                for step in &mut planned.steps {
                    if let Step::Member(from, MemberStep::MoveLeader { .. }) = *step
                        && let Some(leader) = observed.leader()
                    {
                        *step = removal(from, leader);
                    }
                }
            }
            Mutant::RestartsTwoAtATime if ["RollingOut", "RolloutHalted"].contains(&refusal) => {
                let leader = observed.leader().and_then(|id| observed.etcd.membership.as_ref()?.member(id)?.ordinal);
                let next =
                    observed.objects.outdated.keys().rev().find(|it| observed.is_reached(**it) && Some(**it) != leader);
                planned.steps.extend(next.map(|ordinal| restart(*ordinal)));
            }
            Mutant::RestartsTheLeader => {
                for step in &mut planned.steps {
                    if let Step::Member(from, MemberStep::MoveLeader { .. }) = *step
                        && observed.objects.outdated.contains_key(&from)
                    {
                        *step = restart(from);
                    }
                }
            }
            Mutant::MakesNewMembersAnyway => {
                for step in &mut planned.steps {
                    if let Step::Member(_, MemberStep::CreatePeer { model, .. }) = step {
                        *model = Model::Spec;
                    }
                }
            }
            Mutant::RestartsWhatKeepsNothing if !observed.wanted.durable => {
                for step in &mut planned.steps {
                    if let Step::Member(ordinal, MemberStep::RemoveMember { .. }) = *step
                        && observed.objects.outdated.contains_key(&ordinal)
                    {
                        *step = restart(ordinal);
                    }
                }
            }
            Mutant::InsistsOnWhatIsRefused => {
                let lacks_a_pod = |ordinal: Ordinal| !observed.objects.pods.contains_key(&ordinal);
                planned.steps.retain(|step| !remakes(step, lacks_a_pod));
            }
            Mutant::WaitsToResizeThePending => {
                let resizes = |ordinal: Ordinal| {
                    observed.objects.outdated.get(&ordinal).is_some_and(|it| it.method == UpdateMethod::Resize)
                };
                planned.steps.retain(|step| !remakes(step, resizes));
            }
            Mutant::RestartsInitialMembersOutOfReach if refusal == "Bootstrapping" => {
                let silent = observed.objects.pods.iter().find(|(it, pod)| pod.ready && !observed.is_reached(**it));
                planned.steps.extend(silent.map(|(ordinal, _)| restart_pod(*ordinal)));
            }
            Mutant::RestartsInitialMembersWithTheirData if refusal == "Bootstrapping" => {
                let silent = observed.objects.pods.iter().find(|(it, pod)| pod.began && !observed.is_reached(**it));
                planned.steps.extend(silent.map(|(ordinal, _)| restart_pod(*ordinal)));
            }
            Mutant::ResizesBesideTheUnhealthy if ["RollingOut", "RolloutHalted"].contains(&refusal) => {
                let resized =
                    observed.objects.outdated.iter().find(|(_, change)| change.method == UpdateMethod::Resize);
                planned.steps.extend(resized.map(|(ordinal, _)| Step::Member(*ordinal, MemberStep::Resize)));
            }
            Mutant::HandsOverToTheCorrupt => {
                let corrupt = voters().find(|voter| observed.is_corrupt(voter));
                let corrupt = corrupt.and_then(|voter| Some((voter.ordinal?, voter.id)));
                for step in &mut planned.steps {
                    if let (Step::Member(_, MemberStep::MoveLeader { to, to_id, .. }), Some(corrupt)) = (step, corrupt)
                    {
                        (*to, *to_id) = corrupt;
                    }
                }
            }
            Mutant::PromotesTheCorrupt if refusal == "ReplacementBackoff" => {
                let learner = observed.etcd.membership.as_ref().and_then(Membership::learner);
                let learner =
                    learner.and_then(|it| Some(Step::Member(it.ordinal?, MemberStep::Promote { member_id: it.id })));
                planned.steps.extend(learner);
            }
            Mutant::LeavesOnlyTheCorrupt if refusal == "QuorumAtRisk" && !observed.remembered.differing.is_empty() => {
                let leaving = voters().filter(|it| !observed.is_corrupt(it) && Some(it.id) != observed.leader());
                let leaving = leaving.filter_map(|it| Some((it.ordinal?, it.id))).max();
                planned.steps.extend(leaving.map(|(ordinal, member_id)| removal(ordinal, member_id)));
            }
            Mutant::NeverReplaces => {
                let gives_up = planned
                    .steps
                    .iter()
                    .any(|step| matches!(step, Step::Member(_, MemberStep::RecordReplacement { .. })));
                if let Some(membership) = observed.etcd.membership.as_ref().filter(|_| gives_up) {
                    planned = next_membership_change(observed, membership);
                }
            }
            _ => {}
        }
        planned
    }

    /// The observation as the mutant sees it.
    fn see(self, observed: &Observed) -> Cow<'_, Observed> {
        let mut seen = Cow::Borrowed(observed);
        match self {
            Mutant::ForgetsTheBootstrap if seen.etcd.membership.is_none() => seen.to_mut().recorded.cluster_id = None,
            Mutant::IgnoresThePause => seen.to_mut().wanted.paused = None,
            Mutant::CountsEveryMoment => {
                seen.to_mut().remembered.unhealthy_since = observed.recorded.unhealthy_since.clone()
            }
            Mutant::ForgetsWhoWroteTheLogs => seen.to_mut().recorded.oldest_log = Some(version("3.6.0")),
            Mutant::TakesUnreadyNodesForDead => {
                let is_down = |pod: &Pod| pod.node.is_some_and(|node| node.down_since.is_some());
                seen.to_mut().objects.pods.values_mut().filter(|pod| is_down(pod)).for_each(|pod| pod.ready = false);
            }
            Mutant::NeverBacksOff => seen.to_mut().objects.peers.values_mut().for_each(|peer| peer.replacement = None),
            Mutant::GuessesTheVersion if seen.etcd.cluster_version.is_none() => seen.to_mut().agree_on_what_is_wanted(),
            Mutant::OverlooksVolumes => seen.to_mut().objects.claims.clear(),
            Mutant::AdoptsTheFirstVolume => {
                let first =
                    seen.objects.claims.values().find_map(|claim| claim.identity).map(|identity| identity.cluster_id);
                let is_other = |claim: &Claim| claim.identity.is_some_and(|it| Some(it.cluster_id) != first);
                seen.to_mut().objects.claims.retain(|_, claim| !is_other(claim));
            }
            Mutant::TrustsWhoeverAnswers => {
                let (id, seen) = (seen.recorded.cluster_id, seen.to_mut());
                if let (Some(id), Some(membership)) = (id, &mut seen.etcd.membership) {
                    membership.cluster_id = id;
                }
            }
            Mutant::SkipsVersions | Mutant::GoesBackUnprepared => seen.to_mut().agree_on_what_is_wanted(),
            _ => {}
        }
        seen
    }
}

impl Observed {
    /// As if the members had agreed on the desired version.
    fn agree_on_what_is_wanted(&mut self) {
        let wanted = self.wanted.version.clone();
        self.etcd.cluster_version = wanted.clone();
        for answer in self.etcd.answers.values_mut().flatten() {
            answer.storage_version = None;
            if answer.version > wanted {
                answer.version = wanted.clone();
            }
        }
    }
}

/// Whether a step recreates or removes one of these members.
fn remakes(step: &Step, is_one: impl Fn(Ordinal) -> bool) -> bool {
    matches!(step, Step::Member(ordinal, MemberStep::RecreatePeer { .. }) | Step::Member(ordinal, MemberStep::RemoveMember { .. }) if is_one(*ordinal))
}

fn restart_pod(ordinal: Ordinal) -> Step {
    Step::Member(ordinal, MemberStep::RestartPod { why: "a mutant wants it".to_owned() })
}

fn restart(ordinal: Ordinal) -> Step {
    Step::Member(ordinal, MemberStep::RecreatePeer { why: "a mutant wants it".to_owned() })
}

fn removal(ordinal: Ordinal, member_id: MemberId) -> Step {
    Step::Member(ordinal, MemberStep::RemoveMember { member_id, why: "a mutant wants it".to_owned() })
}
