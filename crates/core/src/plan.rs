//! What to do next. `plan` answers with steps that can be taken now, in this order, of which at most one changes the
//! membership of etcd; or with what has to be waited for. It is asked again after every change, so a plan never looks
//! further ahead, and whoever carries it out may stop after any step.

use crate::birth::{Stage, stage_of};
use crate::founders;
use crate::members::{keep_members_running, remove_leftovers, restart_known_members};
use crate::observed::{Birth, Identity, Observed, Told};
use crate::resize::next_membership_change;

/// Something to do. Each is safe to do twice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Record how the cluster will be born, before anything is started.
    RecordBirth(Birth),
    /// Record that the cluster is born. From then on nothing bootstraps again.
    RecordClusterId(u64),
    CreatePeer {
        ordinal: u32,
        founding: bool,
    },
    /// Record in the EtcdPeer who the member is, and whether it was seen running.
    RecordMember {
        ordinal: u32,
        identity: Identity,
        started: bool,
    },
    CreateClaim {
        ordinal: u32,
        birth: Option<Birth>,
        identity: Option<Identity>,
    },
    /// Write on the claim whose data it holds, so that the data is known when nothing else is left.
    MarkClaim {
        ordinal: u32,
        identity: Identity,
    },
    CreatePod {
        ordinal: u32,
        start: Start,
    },
    /// Tell a running pod what it is to find in its volume if it starts again, and whether clients may come.
    TellPod {
        ordinal: u32,
        told: Told,
        serves_clients: bool,
    },
    DeletePod {
        ordinal: u32,
        why: String,
    },
    DeleteClaim {
        ordinal: u32,
    },
    DeletePeer {
        ordinal: u32,
    },
    AddLearner {
        ordinal: u32,
    },
    Promote {
        ordinal: u32,
        member_id: u64,
    },
    MoveLeader {
        from: u32,
        to: u32,
        to_id: u64,
    },
    RemoveMember {
        ordinal: u32,
        member_id: u64,
    },
}

/// How a member starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Start {
    /// The token, if the member founds the cluster together with the others; if not, it joins one.
    pub founding: Option<String>,
    /// Name and peer URL of each member at this time. etcd ignores it if there is data.
    pub initial_cluster: Vec<(String, String)>,
    pub told: Told,
    pub serves_clients: bool,
}

/// Why nothing more can be done now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// One word, for conditions and events.
    pub reason: &'static str,
    /// A sentence for a person.
    pub message: String,
}

impl Waiting {
    /// Whether it passes within seconds by itself. What does not is looked at less often.
    pub fn is_short(&self) -> bool {
        ["Founding", "LearnerStarting", "LearnerCatchingUp", "OldPodGoing", "OldPeerGoing", "EarlierLifeGoing"]
            .contains(&self.reason)
    }

    /// Whether it needs a person's attention.
    pub fn is_trouble(&self) -> bool {
        ["Refused", "WrongCluster", "QuorumAtRisk", "NoQuorum", "ForeignLearner", "NoHeir"].contains(&self.reason)
    }

    pub fn new(reason: &'static str, message: impl Into<String>) -> Self {
        Waiting { reason, message: message.into() }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    pub steps: Vec<Step>,
    pub waiting: Option<Waiting>,
}

impl Plan {
    fn steps(steps: Vec<Step>) -> Self {
        Plan { steps, waiting: None }
    }

    fn waiting(reason: &'static str, message: impl Into<String>) -> Self {
        Plan { steps: Vec::new(), waiting: Some(Waiting::new(reason, message)) }
    }
}

pub fn plan(observed: &Observed) -> Plan {
    // Kubernetes collects what the cluster owns. The claims are not owned, unless the user wants them gone.
    if observed.deleting {
        return Plan::default();
    }
    match stage_of(observed) {
        Stage::Refused(message) => Plan::waiting("Refused", message),
        Stage::ToWait(message) => Plan::waiting("EarlierLifeGoing", message),
        Stage::ToRecord(birth) => Plan::steps(vec![Step::RecordBirth(birth)]),
        Stage::ToAdopt(cluster_id) => Plan::steps(vec![Step::RecordClusterId(cluster_id)]),
        Stage::Founding(birth) => found(observed, &birth),
        Stage::Born(cluster_id) => keep(observed, cluster_id),
    }
}

/// The founding members are started all at once. The cluster is born when a quorum of them answers.
fn found(observed: &Observed, birth: &Birth) -> Plan {
    let expected = founders::cluster_id(&observed.place, birth);
    match &observed.membership {
        Some(membership) if membership.cluster_id == expected => {
            return Plan::steps(vec![Step::RecordClusterId(expected)]);
        }
        Some(membership) => return wrong_cluster(membership.cluster_id, expected),
        None => {}
    }
    let steps = crate::members::start_founders(observed, birth);
    let answering = observed.answers.values().filter(|answer| answer.is_ok()).count();
    let message = format!("{answering} of the {} founding members answer", birth.size);
    Plan { steps, waiting: Some(Waiting::new("Founding", message)) }
}

fn keep(observed: &Observed, cluster_id: u64) -> Plan {
    let Some(membership) = &observed.membership else {
        let steps = restart_known_members(observed, cluster_id);
        return Plan { steps, waiting: Some(Waiting::new("NoQuorum", "no quorum of the members answers")) };
    };
    if membership.cluster_id != cluster_id {
        return wrong_cluster(membership.cluster_id, cluster_id);
    }
    let mut steps = keep_members_running(observed, membership);
    steps.extend(remove_leftovers(observed, membership));
    let change = next_membership_change(observed, membership);
    steps.extend(change.steps);
    Plan { steps, waiting: change.waiting }
}

fn wrong_cluster(found: u64, expected: u64) -> Plan {
    let message =
        format!("the members belong to the etcd cluster {found:x}, and not to {expected:x}; nothing is changed");
    Plan::waiting("WrongCluster", message)
}
