//! Asking the members of a cluster how they are, all at once and each with a deadline of its own.

use std::collections::BTreeMap;
use std::time::Duration;

use etcd_operator_core::names::Place;
use etcd_operator_core::observed::{Answer, Identity, Member, Membership};
use etcd_operator_etcd::{Error, MemberClient};
use futures::future::join_all;

/// How long a member may take for one answer. A healthy one takes milliseconds.
pub const PATIENCE: Duration = Duration::from_secs(2);

/// The addresses at which members are reached, by ordinal: those of their pods, since names lag behind restarts.
pub type Endpoints = BTreeMap<u32, String>;

pub struct Asked {
    pub answers: BTreeMap<u32, Result<Answer, String>>,
    pub membership: Option<Membership>,
}

pub async fn ask_members(endpoints: &Endpoints, place: &Place) -> Asked {
    let answers = endpoints
        .iter()
        .map(async |(ordinal, url)| (*ordinal, ask_member(url).await.map_err(|error| error.cause.to_string())));
    let answers: BTreeMap<u32, Result<Answer, String>> = join_all(answers).await.into_iter().collect();
    let mut membership = None;
    for (ordinal, answer) in &answers {
        if membership.is_none() && matches!(answer, Ok(answer) if answer.reads) {
            let listed = list_members(&endpoints[ordinal], place).await;
            membership = listed.inspect_err(|error| tracing::debug!(%error, "no list of members")).ok();
        }
    }
    Asked { answers, membership }
}

/// The members as a quorum knows them at this moment.
pub async fn list_members(url: &str, place: &Place) -> Result<Membership, Error> {
    let listed = MemberClient::new(url, PATIENCE)?.members().await?;
    let members = listed.members.into_iter().map(|member| {
        let peer_url = member.peer_urls.first().cloned().unwrap_or_default();
        Member {
            id: member.id,
            ordinal: place.ordinal_of_url(&peer_url),
            started: member.has_started(),
            learner: member.is_learner,
            peer_url,
        }
    });
    Ok(Membership { cluster_id: listed.cluster_id, members: members.collect() })
}

async fn ask_member(url: &str) -> Result<Answer, Error> {
    let mut member = MemberClient::new(url, PATIENCE)?;
    let status = member.status().await?;
    let reads = !status.is_learner && member.check_linearizable_read().await.is_ok();
    Ok(Answer {
        identity: Identity { member_id: status.member_id, cluster_id: status.cluster_id },
        leader: Some(status.leader).filter(|leader| *leader != 0),
        learner: status.is_learner,
        version: status.version,
        db_size: i64::try_from(status.db_size).unwrap_or(i64::MAX),
        reads,
    })
}
