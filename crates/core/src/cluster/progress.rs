//! How far a rollout has come.

use crate::cluster::observed::{Member, Observed};

/// The progress of a rollout: how many members are up to date, and which fields changed for the others.
pub fn progress(observed: &Observed) -> String {
    let mut fields: Vec<&String> = observed.objects.outdated.values().flat_map(|change| &change.fields).collect();
    fields.sort();
    fields.dedup();
    let fields: Vec<&str> = fields.into_iter().map(String::as_str).collect();
    let why = if fields.is_empty() { String::new() } else { format!(" ({} changed)", fields.join(", ")) };
    format!("{} of {} members up to date{why}", updated(observed), observed.wanted.replicas)
}

/// How many members match the spec and are healthy.
pub fn updated(observed: &Observed) -> usize {
    let members = observed.etcd.membership.iter().flat_map(|membership| &membership.members);
    let is_updated = |member: &&Member| {
        let Some(ordinal) = member.ordinal else { return false };
        let is_made = observed.objects.peers.contains_key(&ordinal) && !observed.is_stopping(member);
        let claim = observed.objects.claims.get(&ordinal);
        let fits = claim.is_none_or(|claim| claim.misfit.is_none() && claim.cannot_grow.is_none());
        let is_as_made = is_made && fits && !observed.objects.outdated.contains_key(&ordinal);
        observed.is_healthy(member) && is_as_made && observed.is_desired(ordinal)
    };
    members.filter(is_updated).count()
}
