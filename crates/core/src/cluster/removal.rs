//! Whether a voter may be removed now. Everybody who removes one asks here: scaling down, recovery, a volume that can't
//! follow the spec, and a change while the data is in the pod.

use etcd_operator_api::WaitReason;

use crate::cluster::observed::{Member, Membership, Observed};
use crate::cluster::quorum::may_remove;
use crate::cluster::step::{MemberStep, Plan, Step};
use crate::ordinal::Ordinal;

/// Removes a voter, if the others keep a quorum without it; not before it has transferred the leadership.
pub fn remove_voter(
    observed: &Observed,
    membership: &Membership,
    ordinal: Ordinal,
    leaving: &Member,
    why: &str,
) -> Plan {
    let name = observed.names.member_name(ordinal);
    let voters = membership.voters().count();
    // A voter whose pod is terminating does not count as healthy.
    let is_fit = |voter: &Member| observed.is_healthy(voter) && !observed.is_stopping(voter);
    let others = membership.voters().filter(|it| it.id != leaving.id && is_fit(it));
    let (sound, corrupt): (Vec<&Member>, Vec<&Member>) = others.partition(|voter| !observed.is_corrupt(voter));
    // Voters with corrupt data still count for a quorum when one that does not answer is replaced: they may not be
    // replaced before. They don't count when it is decided whose data is corrupt, and no healthy voter leaves its data
    // to them.
    let counts_corrupt = !observed.is_healthy(leaving) && !observed.is_corrupt(leaving) && !sound.is_empty();
    let fit = if counts_corrupt { sound.len() + corrupt.len() } else { sound.len() };
    if !may_remove(voters, fit) {
        let message = format!("removing {name} would leave {fit} of {} voters healthy: no quorum ({why})", voters - 1);
        return Plan::waiting(WaitReason::QuorumAtRisk, message);
    }
    match observed.leader() {
        None => Plan::waiting(WaitReason::NoLeader, format!("no leader: {name} is removed once there is one")),
        Some(leader) if leader == leaving.id => {
            let candidate = sound.iter().filter_map(|voter| Some((voter.ordinal?, voter.id))).min();
            match candidate {
                Some((to, to_id)) => Plan::steps(vec![Step::Member(ordinal, MemberStep::MoveLeader { to, to_id })]),
                None => Plan::waiting(
                    WaitReason::NoLeaderCandidate,
                    format!("{name} leads, and no other member can take over"),
                ),
            }
        }
        Some(_) => Plan::steps(vec![Step::Member(
            ordinal,
            MemberStep::RemoveMember { member_id: leaving.id, why: why.to_owned() },
        )]),
    }
}
