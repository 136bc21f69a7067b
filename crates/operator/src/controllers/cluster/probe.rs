//! Probes the health of all members of a cluster concurrently, each with its own deadline.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use etcd_operator_core::cluster::observed::{
    Alarm, AlarmKind, Answer, ClusterId, Identity, Member, MemberId, Membership, NoAnswer,
};
use etcd_operator_core::names::ClusterNames;
use etcd_operator_core::ordinal::Ordinal;
use etcd_operator_etcd::{self as etcd, Error, MemberClient, Status};
use futures::future::join_all;
use semver::Version;

/// How long a member may take for one response. A healthy one takes milliseconds.
pub const PATIENCE: Duration = Duration::from_secs(2);

/// The addresses of the members, by ordinal: pod IPs, since DNS lags behind restarts.
pub type Endpoints = BTreeMap<Ordinal, String>;

pub struct Probe {
    pub answers: BTreeMap<Ordinal, Result<Answer, NoAnswer>>,
    /// The full status of each member that answered.
    pub statuses: BTreeMap<Ordinal, Status>,
    pub membership: Option<Membership>,
    pub local_membership: Option<Membership>,
    pub alarms: BTreeSet<Alarm>,
    pub compacted: Option<i64>,
}

pub async fn probe_members(endpoints: &Endpoints, names: &ClusterNames) -> Probe {
    let probed = endpoints.iter().map(async |(ordinal, url)| (*ordinal, probe_member(url).await));
    let (mut answers, mut statuses) = (BTreeMap::new(), BTreeMap::new());
    for (ordinal, outcome) in join_all(probed).await {
        let answer = outcome.map(|(answer, status)| {
            statuses.insert(ordinal, status);
            answer
        });
        answers.insert(ordinal, answer.map_err(|error| NoAnswer(error.cause.to_string())));
    }
    let mut membership = None;
    for (ordinal, answer) in &answers {
        if membership.is_none() && matches!(answer, Ok(answer) if answer.reads) {
            let listed = list_members(&endpoints[ordinal], names, MemberClient::members).await;
            membership = listed.inspect_err(|error| tracing::debug!(%error, "no list of members")).ok();
        }
    }
    // The member with the latest term and index has the most recent membership.
    let furthest = statuses.iter().max_by_key(|(_, status)| (status.raft_term, status.raft_applied_index));
    let local_membership = match furthest.filter(|_| membership.is_none()) {
        Some((ordinal, _)) => list_members(&endpoints[ordinal], names, MemberClient::members_as_known).await.ok(),
        None => None,
    };
    let alarms: BTreeSet<Alarm> = statuses.values().flat_map(|status| &status.alarms).map(observe_alarm).collect();
    let short_of_space = alarms.iter().any(|alarm| alarm.kind == AlarmKind::NoSpace);
    let compacted = match furthest.filter(|_| short_of_space) {
        Some((ordinal, status)) => compacted_revision(&endpoints[ordinal], status).await.ok(),
        None => None,
    };
    Probe { answers, statuses, membership, local_membership, alarms, compacted }
}

/// The version that the members have agreed on. A cluster that is bootstrapping reports 3.0.0 before they have.
pub async fn cluster_version(
    endpoints: &Endpoints,
    answers: &BTreeMap<Ordinal, Result<Answer, NoAnswer>>,
) -> Option<String> {
    let probed = answers.iter().find(|(_, answer)| matches!(answer, Ok(answer) if answer.reads))?;
    let said = MemberClient::new(endpoints.get(probed.0)?, PATIENCE).ok()?.cluster_version().await;
    said.inspect_err(|error| tracing::debug!(%error, "no cluster version")).ok()?.filter(|version| version != "3.0.0")
}

async fn compacted_revision(url: &str, status: &Status) -> Result<i64, Error> {
    let revision = MemberClient::new(url, PATIENCE)?.compacted_revision(status.revision).await?;
    Ok(i64::try_from(revision).unwrap_or(i64::MAX))
}

fn observe_alarm(alarm: &etcd::Alarm) -> Alarm {
    let kind = match alarm.kind {
        etcd::AlarmKind::NoSpace => AlarmKind::NoSpace,
        etcd::AlarmKind::Corrupt => AlarmKind::Corrupt,
    };
    Alarm { member_id: MemberId(alarm.member_id), kind }
}

/// The members as one member lists them, with a quorum or without.
async fn list_members(
    url: &str,
    names: &ClusterNames,
    list: impl AsyncFnOnce(&mut MemberClient) -> Result<etcd::Membership, Error>,
) -> Result<Membership, Error> {
    let listed = list(&mut MemberClient::new(url, PATIENCE)?).await?;
    let members = listed.members.into_iter().map(|member| {
        let peer_url = member.peer_urls.first().cloned().unwrap_or_default();
        Member {
            id: MemberId(member.id),
            ordinal: names.ordinal_of_url(&peer_url),
            started: member.has_started(),
            learner: member.is_learner,
            peer_url,
        }
    });
    Ok(Membership { cluster_id: ClusterId(listed.cluster_id), members: members.collect() })
}

async fn probe_member(url: &str) -> Result<(Answer, Status), Error> {
    let mut member = MemberClient::new(url, PATIENCE)?;
    let status = member.status().await?;
    let reads = !status.is_learner && member.check_linearizable_read().await.is_ok();
    let bytes = |size: u64| i64::try_from(size).unwrap_or(i64::MAX);
    let answer = Answer {
        identity: Identity { member_id: MemberId(status.member_id), cluster_id: ClusterId(status.cluster_id) },
        leader: Some(status.leader).filter(|leader| *leader != 0).map(MemberId),
        learner: status.is_learner,
        version: Version::parse(&status.version).ok(),
        storage_version: status.storage_version.as_deref().and_then(|version| Version::parse(version).ok()),
        db_size: bytes(status.db_size),
        db_in_use: bytes(status.db_size_in_use),
        reads,
    };
    Ok((answer, status))
}
