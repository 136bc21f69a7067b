//! When to look at a cluster again. Kubernetes objects are watched; this is for what only etcd knows.

use std::time::Duration;

use etcd_operator_api::Pace;

use crate::cluster::observed::Observed;
use crate::cluster::step::{Blocked, Plan, Step, Waiting};

const WHILE_CHANGING: Duration = Duration::from_millis(500);
const WHILE_UNHEALTHY: Duration = Duration::from_secs(3);
const WHILE_HEALTHY: Duration = Duration::from_secs(10);

/// How long to wait after a plan was carried out.
pub fn when_to_look_again(plan: &Plan, observed: &Observed) -> Duration {
    let all_answer = observed.etcd.answers.len() == observed.objects.peers.len()
        && observed.etcd.answers.values().all(Result::is_ok);
    let is_short = |waiting: &Waiting| waiting.reason.pace() == Pace::Short;
    // What nothing else depends on may never succeed, or be undone by somebody again and again.
    let is_progress = |step: &Step| step.blocked_by_failure() != Blocked::Nothing;
    match plan {
        Plan { steps, waiting } if steps.iter().any(is_progress) || waiting.as_ref().is_some_and(is_short) => {
            WHILE_CHANGING
        }
        Plan { waiting: None, .. } if all_answer => WHILE_HEALTHY,
        _ => WHILE_UNHEALTHY,
    }
}

#[cfg(test)]
mod tests {
    use etcd_operator_api::WaitReason;

    use super::*;
    use crate::cluster::observed::NoAnswer;
    use crate::cluster::step::MemberStep;
    use crate::cluster::tests::support::cluster_of;
    use crate::ordinal::Ordinal;

    #[test]
    fn the_more_happens_the_sooner_a_cluster_is_looked_at_again() {
        let mut observed = cluster_of(3);
        observed.be_ready();
        let after = |plan: Plan, observed: &Observed| when_to_look_again(&plan, observed);
        assert_eq!(after(Plan::default(), &observed), WHILE_HEALTHY);
        assert_eq!(
            after(Plan::steps(vec![Step::Member(Ordinal(3), MemberStep::AddLearner)]), &observed),
            WHILE_CHANGING
        );
        let repair = Plan::steps(vec![Step::Member(Ordinal(1), MemberStep::RepairClaim)]);
        assert_eq!(after(repair, &observed), WHILE_HEALTHY, "somebody may undo it again and again");
        assert_eq!(after(Plan::waiting(WaitReason::Draining, "short"), &observed), WHILE_CHANGING);
        assert_eq!(after(Plan::waiting(WaitReason::QuorumAtRisk, "long"), &observed), WHILE_UNHEALTHY);
        observed.etcd.answers.insert(Ordinal(2), Err(NoAnswer("timed out".to_owned())));
        assert_eq!(after(Plan::default(), &observed), WHILE_UNHEALTHY);
        observed.etcd.answers.remove(&Ordinal(2));
        assert_eq!(after(Plan::default(), &observed), WHILE_UNHEALTHY, "one was not even asked");
    }
}
