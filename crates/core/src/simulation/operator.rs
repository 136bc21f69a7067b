//! The operator at work: it observes through its caches, plans, and takes one step after another; anything may happen
//! between two of them.

use std::collections::BTreeSet;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::effects::Effect;
use super::mutants::Mutant;
use super::rules::{check_plan, check_status};
use super::shared::Shared;
use super::trace::{all_of, brief};
use super::world::{Api, Broken, World};
use crate::cluster::diagnosis::unhealthy_since;
use crate::cluster::health_history::HealthHistory;
use crate::cluster::observed::{MemberId, Observed, Peer};
use crate::cluster::plan::{MemberStep, Plan, Step, is_confirmed};
use crate::cluster::status::status_to_report;
use crate::cluster::step::Blocked;
use crate::ordinal::Ordinal;

pub struct Operator {
    /// What its caches hold: each kind of object, possibly stale.
    pub cache: Api,
    pub mutant: Option<Mutant>,
    /// What it remembers of earlier observations, until it crashes.
    history: HealthHistory,
    /// The members whose data was found to differ, until a comparison clears them.
    pub findings: BTreeSet<MemberId>,
    work: Option<Work>,
}

/// A reconcile in progress.
struct Work {
    /// What its caches held when it started.
    seen: Api,
    observed: Observed,
    plan: Plan,
    taken: usize,
    /// The members for which a step failed.
    failed: Vec<Ordinal>,
}

impl Operator {
    pub fn new(world: &World, mutant: Option<Mutant>) -> Self {
        Operator {
            cache: world.api.clone(),
            mutant,
            history: HealthHistory::default(),
            findings: BTreeSet::new(),
            work: None,
        }
    }

    pub fn is_working(&self) -> bool {
        self.work.is_some()
    }

    /// Whether it was at work.
    pub fn crash(&mut self, world: &mut World) -> bool {
        (self.history, self.findings) = (HealthHistory::default(), BTreeSet::new());
        // Nor does it know any more what it applied.
        world.api.shared.services.clear();
        world.api.shared.budget_is_as_applied = false;
        let was_working = self.work.take().is_some();
        if was_working {
            world.note(|| "the operator crashes".to_owned());
        }
        was_working
    }

    pub fn plan(&self, world: &World) -> Plan {
        Mutant::plan(self.mutant, &self.look(world, &self.cache))
    }

    /// What it observes through these objects, together with what it remembers.
    fn look(&self, world: &World, seen: &Api) -> Observed {
        let mut observed = world.observe(seen);
        self.history.clone().keep(&mut observed);
        observed.remembered.differing = world.differing(&self.findings).unwrap_or_else(|| self.findings.clone());
        observed
    }

    /// What it observes when it confirms a step. No member is replaced because of an earlier comparison.
    pub fn look_again(&self, world: &World, step: &Step) -> Observed {
        let mut observed = self.look(world, &world.api);
        if matches!(step, Step::Member(_, MemberStep::RemoveMember { member_id, .. }) if self.findings.contains(member_id))
        {
            observed.remembered.differing = world.differing(&self.findings).unwrap_or_default();
        }
        observed
    }

    pub fn begin(&mut self, world: &mut World) -> Result<(), Broken> {
        let mut observed = world.observe(&self.cache);
        self.history.keep(&mut observed);
        // An inconclusive comparison keeps the earlier findings, except about members that have left.
        let is_member = |id: &MemberId| observed.etcd.membership.as_ref().is_none_or(|it| it.member(*id).is_some());
        self.findings.retain(is_member);
        self.findings = world.differing(&self.findings).unwrap_or_else(|| self.findings.clone());
        observed.remembered.differing = self.findings.clone();
        world.note_who_is_away(&observed);
        let plan = Mutant::plan(self.mutant, &observed);
        world.coverage.wait(&plan);
        world.note(|| match &plan.waiting {
            Some(waiting) => format!("the operator plans {} and waits: {}", all_of(&plan.steps), waiting.message),
            None => format!("the operator plans {}", all_of(&plan.steps)),
        });
        check_plan(world, &self.cache, &observed, &plan)?;
        self.work = Some(Work { seen: self.cache.clone(), observed, plan, taken: 0, failed: Vec::new() });
        Ok(())
    }

    /// Takes the next step, or reports if there is none. Whether it was at work.
    pub fn go_on(&mut self, world: &mut World) -> Result<bool, Broken> {
        let Some(mut work) = self.work.take() else { return Ok(false) };
        let Some(step) = work.plan.steps.get(work.taken) else {
            return report(world, &work).map(|()| true);
        };
        work.taken += 1;
        // A failed step for one member does not block the others.
        if step.ordinal().is_some_and(|ordinal| work.failed.contains(&ordinal)) {
            self.work = Some(work);
            return Ok(true);
        }
        let effect = self.carry_out(world, &work.seen, step)?;
        world.coverage.take(step, effect == Effect::Done);
        world.note(|| format!("  {} {}", if effect == Effect::Done { "did" } else { "could not" }, brief(step)));
        match (effect, step.blocked_by_failure()) {
            (Effect::Failed, Blocked::Everything) => {
                return report(world, &work).map(|()| true);
            }
            (Effect::Failed, Blocked::Member(ordinal)) => work.failed.push(ordinal),
            (Effect::Failed, Blocked::Nothing) | (Effect::Done, _) => {}
        }
        self.work = Some(work);
        Ok(true)
    }

    /// What the reconcile in progress does.
    pub fn planned(&self) -> Option<&Plan> {
        self.work.as_ref().map(|work| &work.plan)
    }

    /// Whether the reconcile in progress has nothing to do or to wait for, and found all members healthy.
    pub fn sees_nothing_to_do(&self) -> bool {
        self.work.as_ref().is_some_and(|Work { observed, plan, .. }| {
            let mut members = observed.etcd.membership.iter().flat_map(|membership| &membership.members);
            let nothing_goes = observed.objects.pods.values().all(|pod| !pod.deleting);
            *plan == Plan::default() && nothing_goes && members.all(|member| observed.is_healthy(member))
        })
    }

    /// Reconciles without interruption.
    pub fn reconcile(&mut self, world: &mut World) -> Result<(), Broken> {
        self.begin(world)?;
        self.finish(world)
    }

    /// Takes all remaining steps of the reconcile in progress.
    pub fn finish(&mut self, world: &mut World) -> Result<(), Broken> {
        while self.is_working() {
            self.go_on(world)?;
        }
        Ok(())
    }
}

/// Writes the status, unless the EtcdCluster has changed since it was read.
fn report(world: &mut World, work: &Work) -> Result<(), Broken> {
    for ordinal in work.observed.etcd.answers.iter().filter(|(_, answer)| answer.is_ok()).map(|(ordinal, _)| ordinal) {
        // The pod of an earlier EtcdPeer may be the one that answers.
        let made_from = work.seen.pods.get(ordinal).map(|pod| (Some(&pod.version), pod.template));
        let template = world.api.templates.get(ordinal).copied().unwrap_or_default();
        let is_same = |peer: &Peer| Some((peer.version.as_ref(), template)) == made_from;
        if world.api.peers.get(ordinal).is_some_and(|peer| !peer.proven && is_same(peer))
            && let Some(peer) = world.api.peers.get_mut(ordinal)
        {
            peer.proven = true;
        }
    }
    let cluster = &mut world.api.cluster;
    if cluster.version != work.seen.cluster.version {
        return Ok(());
    }
    let now = Time(world.now);
    let status = status_to_report(&work.observed, &work.plan, &cluster.status, None, &now);
    check_status(&work.observed, &work.plan, &status)?;
    let unhealthy = unhealthy_since(&work.observed);
    if *cluster.status != status || cluster.unhealthy_since != unhealthy {
        (cluster.status, cluster.unhealthy_since) = (Shared::new(status), unhealthy);
        cluster.version += 1;
    }
    Ok(())
}

pub fn is_confirmed_by(mutant: Option<Mutant>, step: &Step, live: &Observed) -> bool {
    match mutant {
        // The defect of its plans is in the live confirmation as well.
        Some(_) => Mutant::plan(mutant, live).steps.iter().any(|planned| planned.is_same_act(step)),
        None => is_confirmed(step, live),
    }
}
