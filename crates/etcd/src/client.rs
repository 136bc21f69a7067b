//! A client of one member.
//!
//! One client per member on purpose: whether *this* member is healthy cannot be learned from a client that may ask
//! another one.

use std::future::Future;
use std::time::Duration;

use etcd_operator_errors::with_causes;
use tonic::client::Grpc;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::transport::{Channel, Endpoint};
use tonic::{Request, Response, Streaming};
use tonic_prost::ProstCodec;

use crate::error::{Cause, Error, cause_of};
use crate::model::{Alarm, AlarmKind, KvHash, Membership, Status, unsigned};
use crate::snapshot::{self, SnapshotStream};
use crate::version;
use crate::wire::{
    AlarmRequest, DefragmentRequest, Done, DowngradeRequest, HashKvRequest, HashKvResponse, MemberAddRequest,
    MemberAddResponse, MemberIdRequest, MemberListRequest, MemberListResponse, RangeRequest, RangeResponse,
    SnapshotRequest, SnapshotResponse, StatusRequest, StatusResponse,
};

// The methods that are called in more than one place.
const RANGE: &str = "/etcdserverpb.KV/Range";
const STATUS: &str = "/etcdserverpb.Maintenance/Status";
const DOWNGRADE: &str = "/etcdserverpb.Maintenance/Downgrade";

/// Asks one member. Every call, dialling included, ends within the deadline given at the beginning.
#[derive(Debug)]
pub struct MemberClient {
    url: String,
    endpoint: Endpoint,
    deadline: Duration,
    /// Dialled by the first call that needs it, and anew after a call that got no answer.
    connection: Option<Channel>,
}

impl MemberClient {
    /// Nothing is dialled yet. `url` is like `http://10.0.0.1:2379`.
    pub fn new(url: &str, deadline: Duration) -> Result<Self, Error> {
        let endpoint = Endpoint::from_shared(url.to_owned()).map_err(|e| Error {
            endpoint: url.into(),
            doing: "reading the address".into(),
            cause: Cause::Other(with_causes(&e)),
        })?;
        Ok(Self { url: url.into(), endpoint: limited(endpoint, deadline), deadline, connection: None })
    }

    /// Another client of the same member, over the same connection if there is one: behind an address that stands for
    /// several members another connection might lead to another of them.
    pub fn with_deadline(&self, deadline: Duration) -> Self {
        Self {
            url: self.url.clone(),
            endpoint: limited(self.endpoint.clone(), deadline),
            deadline,
            connection: self.connection.clone(),
        }
    }

    /// What the member says of itself. Learners answer this too, and it needs no quorum.
    pub async fn status(&mut self) -> Result<Status, Error> {
        let doing = || "asking for the status".to_owned();
        let answer: StatusResponse = self.call(doing, STATUS, StatusRequest {}).await?;
        Status::from_answer(answer).ok_or_else(|| self.incomplete(doing()))
    }

    /// The members that the cluster agrees on at this moment. Needs a quorum.
    pub async fn members(&mut self) -> Result<Membership, Error> {
        self.list_members(true).await
    }

    /// The members that this member knows of. It answers without a quorum, and may be behind.
    pub async fn members_as_known(&mut self) -> Result<Membership, Error> {
        self.list_members(false).await
    }

    /// Can this member serve a read that the cluster agrees on? This is what being healthy means.
    pub async fn check_linearizable_read(&mut self) -> Result<(), Error> {
        let Done {} = self.call(|| "reading with a quorum".into(), RANGE, read_with_quorum()).await?;
        Ok(())
    }

    /// The revision up to which this member's history was compacted away, 1 if it never was; `newest` is the newest that
    /// it has. etcd tells it only to watchers, so it is found by trying which revisions can still be read.
    pub async fn compacted_revision(&mut self, newest: u64) -> Result<u64, Error> {
        let (mut lost, mut kept) = (0, newest.max(1));
        while kept - lost > 1 {
            let middle = lost + (kept - lost) / 2;
            if self.has_revision(middle).await? {
                kept = middle;
            } else {
                lost = middle;
            }
        }
        Ok(kept)
    }

    async fn has_revision(&mut self, revision: u64) -> Result<bool, Error> {
        let doing = || format!("reading revision {revision}");
        let revision = i64::try_from(revision).unwrap_or(i64::MAX);
        let key = b"health".to_vec();
        let request = RangeRequest { key, revision, serializable: true, count_only: true, ..RangeRequest::default() };
        match self.call(doing, RANGE, request).await {
            Ok(Done {}) => Ok(true),
            Err(error) if matches!(error.cause, Cause::Compacted) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Adds a member that does not vote yet, and returns its ID. Look at the members first rather than count on a
    /// refusal: etcd writes most additions to its log before it refuses them, and a 3.7.3 that restarts was seen to dial
    /// the members that were refused.
    pub async fn add_learner(&mut self, peer_url: &str) -> Result<u64, Error> {
        let doing = || format!("adding learner {peer_url}");
        let request = MemberAddRequest { peer_urls: vec![peer_url.into()], is_learner: true };
        let answer: MemberAddResponse = self.call(doing, "/etcdserverpb.Cluster/MemberAdd", request).await?;
        answer.member.map(|m| m.id).ok_or_else(|| self.incomplete(doing()))
    }

    /// Makes a learner a voter. Best sent to the leader: from a follower, which forwards it, some refusals come back as
    /// [`Cause::Other`].
    pub async fn promote(&mut self, id: u64) -> Result<(), Error> {
        self.change(|| format!("promoting member {id:x}"), "/etcdserverpb.Cluster/MemberPromote", id).await
    }

    /// Removes a member for good: its ID never comes back.
    pub async fn remove(&mut self, id: u64) -> Result<(), Error> {
        self.change(|| format!("removing member {id:x}"), "/etcdserverpb.Cluster/MemberRemove", id).await
    }

    /// Makes another member the leader. Only the leader can do this. Nothing comes of it, and the call is not answered in
    /// time, if the other one is still busy with a change of the membership: try again.
    pub async fn move_leader(&mut self, to: u64) -> Result<(), Error> {
        self.change(|| format!("moving the leadership to member {to:x}"), "/etcdserverpb.Maintenance/MoveLeader", to)
            .await
    }

    /// Hashes the data that this member has up to and including `revision`; 0 stands for its newest one. All of it is
    /// read for that. Needs no quorum, but learners refuse it.
    pub async fn hash_kv(&mut self, revision: u64) -> Result<KvHash, Error> {
        let doing = || format!("hashing revision {revision}");
        // Too large for etcd's signed numbers is far in the future, and so is the largest of them.
        let request = HashKvRequest { revision: i64::try_from(revision).unwrap_or(i64::MAX) };
        let answer: HashKvResponse = self.call(doing, "/etcdserverpb.Maintenance/HashKV", request).await?;
        Ok(answer.into())
    }

    /// How many keys this member had at that revision; 0 stands for its newest one. Learners answer this too, and it needs
    /// no quorum.
    pub async fn count_keys(&mut self, revision: u64) -> Result<u64, Error> {
        let doing = || format!("counting the keys at revision {revision}");
        let (key, range_end) = (vec![0], vec![0]);
        let revision = i64::try_from(revision).unwrap_or(i64::MAX);
        let request = RangeRequest { key, range_end, revision, serializable: true, count_only: true };
        let answer: RangeResponse = self.call(doing, RANGE, request).await?;
        Ok(unsigned(answer.count))
    }

    /// Takes a snapshot of all that this member has at this moment. As a whole it may take as long as it takes; the
    /// deadline counts for each piece. Whoever reads it slowly can ask other things meanwhile. Learners answer this too,
    /// and it needs no quorum.
    pub async fn snapshot(&mut self) -> Result<SnapshotStream, Error> {
        let outcome = within(self.deadline, self.begin_snapshot()).await;
        let answers = self.concluded(|| snapshot::DOING.into(), outcome)?;
        Ok(SnapshotStream::new(self.url.clone(), self.deadline, answers))
    }

    async fn begin_snapshot(&mut self) -> Result<Streaming<SnapshotResponse>, Cause> {
        let deadline = self.deadline;
        let mut grpc = Grpc::new(self.dialled().await?).max_decoding_message_size(snapshot::LARGEST_PIECE);
        grpc.ready().await.map_err(|e| Cause::Unreachable(with_causes(&e)))?;
        let path = PathAndQuery::from_static("/etcdserverpb.Maintenance/Snapshot");
        let answers = grpc.server_streaming(Request::new(SnapshotRequest {}), path, ProstCodec::default()).await;
        answers.map(Response::into_inner).map_err(|status| cause_of(&status, deadline))
    }

    /// Gives the part of `db_size` that is not in use back to the file system. The member serves neither reads nor
    /// writes meanwhile. That can take long, and a call that runs into its deadline does not end it. Needs no quorum, but
    /// learners refuse it.
    pub async fn defragment(&mut self) -> Result<(), Error> {
        let doing = || "defragmenting".to_owned();
        let Done {} = self.call(doing, "/etcdserverpb.Maintenance/Defragment", DefragmentRequest {}).await?;
        Ok(())
    }

    /// Takes an alarm back, whichever member raised it; that it is not raised is no error. Needs a quorum. End the cause
    /// first: etcd does not look at it here. A 3.5 takes writes again as soon as one of several alarms is disarmed.
    pub async fn disarm(&mut self, alarm: Alarm) -> Result<(), Error> {
        let doing = || format!("disarming the alarm {} of member {:x}", alarm.kind, alarm.member_id);
        let kind = match alarm.kind {
            AlarmKind::NoSpace => AlarmRequest::NO_SPACE,
            AlarmKind::Corrupt => AlarmRequest::CORRUPT,
        };
        let request = AlarmRequest { action: AlarmRequest::DEACTIVATE, member_id: alarm.member_id, alarm: kind };
        let Done {} = self.call(doing, "/etcdserverpb.Maintenance/Alarm", request).await?;
        Ok(())
    }

    /// The version whose features all members may use, as `major.minor.0`, as far as this member knows; `None` until
    /// there is one. It rises by itself some seconds after the last member was upgraded. It is `3.0.0` while a new
    /// cluster waits for its members. Learners answer this too, and it needs no quorum.
    pub async fn cluster_version(&mut self) -> Result<Option<String>, Error> {
        let outcome = within(self.deadline, version::ask(self.endpoint.uri())).await;
        self.concluded(|| "asking for the cluster version".into(), outcome)
    }

    /// Could the cluster be downgraded to this version now? Only to the minor version right below its own; the patch
    /// version of `target` makes no difference. etcd looks at nothing else, not even at the data. Needs a quorum.
    pub async fn validate_downgrade(&mut self, target: &str) -> Result<(), Error> {
        let request = DowngradeRequest { action: DowngradeRequest::VALIDATE, version: target.into() };
        let Done {} = self.call(|| format!("validating the downgrade to {target}"), DOWNGRADE, request).await?;
        Ok(())
    }

    /// Begins a downgrade; that this very one is in progress already is no error. Some seconds later the version of the
    /// cluster follows, and with it the storage version of each member. Before that, the older etcd refuses to start
    /// with the data, and so it may after a member that was killed right then: a storage version is told a moment before
    /// it is on the disk. No new member can start, of either version, while a downgrade is in progress. It ends by
    /// itself some seconds after all members run the older version. Needs a quorum.
    pub async fn enable_downgrade(&mut self, target: &str) -> Result<(), Error> {
        let outcome = within(self.deadline, self.enable(target)).await;
        self.concluded(|| format!("enabling the downgrade to {target}"), outcome)
    }

    async fn enable(&mut self, target: &str) -> Result<(), Cause> {
        let request = DowngradeRequest { action: DowngradeRequest::ENABLE, version: target.into() };
        match self.ask(DOWNGRADE, request).await {
            Ok(Done {}) => Ok(()),
            // Once the version of the cluster has followed, the target is not below it any more, and that is what etcd
            // says rather than that a downgrade is in progress. It made sure to be up to date before it said either.
            Err(refusal @ (Cause::DowngradeInProgress | Cause::BadDowngradeTarget(_))) => {
                let status: StatusResponse = self.ask(STATUS, StatusRequest {}).await?;
                let is_this_one = status.downgrade_target().is_some_and(|v| same_minor(v, target));
                if is_this_one { Ok(()) } else { Err(refusal) }
            }
            Err(cause) => Err(cause),
        }
    }

    /// Ends a downgrade; that none is in progress is no error. If no member runs the older version, the version of the
    /// cluster and the storage versions rise again some seconds later. Needs a quorum. A 3.5 that cancels one does so,
    /// but does not answer in time: try again.
    pub async fn cancel_downgrade(&mut self) -> Result<(), Error> {
        let outcome = within(self.deadline, self.cancel()).await;
        self.concluded(|| "cancelling the downgrade".into(), outcome)
    }

    async fn cancel(&mut self) -> Result<(), Cause> {
        let request = DowngradeRequest { action: DowngradeRequest::CANCEL, version: String::new() };
        match self.ask(DOWNGRADE, request).await {
            Ok(Done {}) => {}
            Err(Cause::NoDowngrade) => return Ok(()),
            Err(cause) => return Err(cause),
        }
        // From 3.6 on etcd answers as if it had worked whatever came of it, so look. Reading with a quorum first makes
        // sure that the member is up to date.
        let Done {} = self.ask(RANGE, read_with_quorum()).await?;
        let status: StatusResponse = self.ask(STATUS, StatusRequest {}).await?;
        match status.downgrade_target() {
            None => Ok(()),
            Some(target) => Err(Cause::NoConsensus(format!("the downgrade to {target} is still in progress"))),
        }
    }

    async fn list_members(&mut self, linearizable: bool) -> Result<Membership, Error> {
        let doing = || "listing the members".to_owned();
        let request = MemberListRequest { linearizable };
        let answer: MemberListResponse = self.call(doing, "/etcdserverpb.Cluster/MemberList", request).await?;
        Membership::from_answer(answer).ok_or_else(|| self.incomplete(doing()))
    }

    async fn change(&mut self, doing: impl Fn() -> String, method: &'static str, id: u64) -> Result<(), Error> {
        let Done {} = self.call(doing, method, MemberIdRequest { id }).await?;
        Ok(())
    }

    async fn call<Q, A>(&mut self, doing: impl Fn() -> String, method: &'static str, request: Q) -> Result<A, Error>
    where
        Q: prost::Message + 'static,
        A: prost::Message + Default + 'static,
    {
        let outcome = within(self.deadline, self.ask(method, request)).await;
        self.concluded(doing, outcome)
    }

    fn concluded<A>(&mut self, doing: impl Fn() -> String, outcome: Result<A, Cause>) -> Result<A, Error> {
        outcome.map_err(|cause| {
            // A connection to a machine that vanished stays silent for minutes. The next call had better dial.
            if matches!(cause, Cause::TimedOut(_) | Cause::Unreachable(_)) {
                self.connection = None;
            }
            Error { endpoint: self.url.clone(), doing: doing(), cause }
        })
    }

    async fn ask<Q, A>(&mut self, method: &'static str, request: Q) -> Result<A, Cause>
    where
        Q: prost::Message + 'static,
        A: prost::Message + Default + 'static,
    {
        let deadline = self.deadline;
        let mut grpc = Grpc::new(self.dialled().await?);
        grpc.ready().await.map_err(|e| Cause::Unreachable(with_causes(&e)))?;
        let path = PathAndQuery::from_static(method);
        let answer = grpc.unary(Request::new(request), path, ProstCodec::<Q, A>::default()).await;
        answer.map(Response::into_inner).map_err(|status| cause_of(&status, deadline))
    }

    async fn dialled(&mut self) -> Result<Channel, Cause> {
        if let Some(connection) = &self.connection {
            return Ok(connection.clone());
        }
        let connection = self.endpoint.connect().await.map_err(|e| Cause::Unreachable(with_causes(&e)))?;
        Ok(self.connection.insert(connection).clone())
    }

    fn incomplete(&self, doing: String) -> Error {
        Error { endpoint: self.url.clone(), doing, cause: Cause::Other("the answer lacks what was asked for".into()) }
    }
}

fn limited(endpoint: Endpoint, deadline: Duration) -> Endpoint {
    // A connection reconnects by itself, in a task of its own that the deadline of a call does not end, so dialling
    // needs a limit too. It is longer than the deadline, so that it is always the deadline that a call runs into.
    let endpoint = endpoint.connect_timeout(deadline * 2);
    endpoint
        .initial_stream_window_size(snapshot::STREAM_WINDOW)
        .initial_connection_window_size(snapshot::CONNECTION_WINDOW)
}

async fn within<A>(deadline: Duration, asking: impl Future<Output = Result<A, Cause>>) -> Result<A, Cause> {
    tokio::time::timeout(deadline, asking).await.unwrap_or(Err(Cause::TimedOut(deadline)))
}

fn read_with_quorum() -> RangeRequest {
    // Any key will do, whether it exists or not.
    RangeRequest { key: b"health".to_vec(), count_only: true, ..RangeRequest::default() }
}

/// Are these the same to etcd, which downgrades from minor version to minor version?
fn same_minor(one: &str, other: &str) -> bool {
    one.split('.').take(2).eq(other.split('.').take(2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn same_minor_ignores_the_patch_version() {
        for other in ["3.6.0", "3.6", "3.6.16"] {
            assert!(same_minor("3.6.0", other), "{other}");
        }
        for other in ["3.5.0", "4.6.0", "3", "3.60", ""] {
            assert!(!same_minor("3.6.0", other), "{other}");
        }
    }
}
