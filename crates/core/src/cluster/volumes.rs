//! How volumes are made to match the spec: they are expanded while in use. A change that a volume can't follow is made
//! by replacing its member, if the user wants that.

use etcd_operator_api::WaitReason;
use etcd_operator_api::quantity::{rounded_up, same_amount};
use k8s_openapi::api::core::v1::PersistentVolumeClaimSpec;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

use crate::cluster::observed::{Claim, Member, Membership, Observed};
use crate::cluster::removal::remove_voter;
use crate::cluster::step::{MemberStep, Plan, Step};
use crate::ordinal::Ordinal;

/// Requests more space where a claim has less than the spec, and it can be expanded.
pub fn grow_claims(observed: &Observed) -> Vec<Step> {
    let growing = observed.objects.claims.iter().filter(|(_, claim)| {
        claim.too_small && !claim.deleting && claim.identity.is_some() && claim.cannot_grow.is_none()
    });
    growing.map(|(ordinal, _)| Step::Member(*ordinal, MemberStep::GrowClaim)).collect()
}

/// Gives claims that lost labels or owners theirs back, if they are this cluster's own. What an earlier cluster of this
/// name left, or another client created, is not: its owner decides what happens to it.
pub fn repair_claims(observed: &Observed) -> Vec<Step> {
    let is_ours = |claim: &Claim| {
        let bootstrapped_here = claim.bootstrap.is_some() && claim.bootstrap == observed.recorded.bootstrap;
        let is_member =
            claim.identity.is_some_and(|identity| Some(identity.cluster_id) == observed.recorded.cluster_id);
        bootstrapped_here || is_member
    };
    let strayed =
        observed.objects.claims.iter().filter(|(_, claim)| claim.strayed && !claim.deleting && is_ours(claim));
    strayed.map(|(ordinal, _)| Step::Member(*ordinal, MemberStep::RepairClaim)).collect()
}

/// The next member to be replaced to get another volume: the leader last, and only while all members are healthy.
pub fn next_migration(observed: &Observed, membership: &Membership) -> Plan {
    let misfits =
        membership.voters().filter_map(|voter| Some((voter.ordinal?, voter, misfit(observed, voter.ordinal?)?)));
    let leader = observed.leader();
    let last = |(ordinal, voter, _): &(Ordinal, &Member, String)| (Some(voter.id) != leader, *ordinal);
    let Some((ordinal, voter, why)) = misfits.max_by_key(last) else { return Plan::default() };
    let name = observed.names.member_name(ordinal);
    if !observed.wanted.migrates {
        let message = format!(
            "the volume of {name} can't become what spec.storage asks for: {why}; set spec.storage.migrate to replace the \
             members one by one onto new volumes"
        );
        let cannot_grow = observed.objects.claims.get(&ordinal).is_some_and(|claim| claim.misfit.is_none());
        let reason = if cannot_grow { WaitReason::VolumeExpansionUnsupported } else { WaitReason::VolumeMismatch };
        return Plan::waiting(reason, message);
    }
    if let Some(unhealthy) = membership.members.iter().find(|member| !observed.is_healthy(member)) {
        let message =
            format!("waiting for {} to become healthy before {name} gets a new volume", observed.name_of(unhealthy));
        return Plan::waiting(WaitReason::WaitingForHealthyMembers, message);
    }
    remove_voter(observed, membership, ordinal, voter, &format!("new volume: {why}"))
}

/// How a member's volume differs from the spec in a way that it can't follow.
fn misfit(observed: &Observed, ordinal: Ordinal) -> Option<String> {
    let claim = observed.objects.claims.get(&ordinal)?;
    let cannot_grow = claim.cannot_grow.as_ref().filter(|_| claim.too_small);
    claim.misfit.as_ref().or(cannot_grow).cloned()
}

/// Whether a claim requests less space than a template.
pub fn is_too_small(claim: &PersistentVolumeClaimSpec, template: &PersistentVolumeClaimSpec) -> bool {
    let sizes = size_of(claim).and_then(rounded_up).zip(size_of(template).and_then(rounded_up));
    sizes.is_some_and(|(has, wants)| has < wants)
}

/// How a claim differs from a template in a way that its volume can't follow. More space than requested is harmless,
/// unless the user wants volumes migrated.
pub fn misfit_of(
    claim: &PersistentVolumeClaimSpec,
    template: &PersistentVolumeClaimSpec,
    migrates: bool,
) -> Option<String> {
    let class = |spec: &PersistentVolumeClaimSpec| spec.storage_class_name.clone();
    if let Some(wanted) = class(template).filter(|wanted| Some(wanted) != class(claim).as_ref()) {
        return Some(format!("its storage class is {}, not {wanted}", class(claim).unwrap_or_default()));
    }
    if template.access_modes.is_some() && claim.access_modes != template.access_modes {
        return Some("its access modes differ".to_owned());
    }
    let (has, wants) = (size_of(claim)?, size_of(template)?);
    let is_larger = migrates && !same_amount(has, wants) && rounded_up(has) > rounded_up(wants);
    is_larger.then(|| format!("it is larger ({}) than asked for ({})", has.0, wants.0))
}

fn size_of(claim: &PersistentVolumeClaimSpec) -> Option<&Quantity> {
    claim.resources.as_ref()?.requests.as_ref()?.get("storage")
}
