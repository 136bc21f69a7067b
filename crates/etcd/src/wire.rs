//! The part of etcd's wire protocol that is spoken here, field for field.
//!
//! Written by hand rather than generated, because the few messages needed are small, and a generated client would want
//! a `protoc` and its include files on every machine that builds this. Fields that nobody here reads are left out;
//! protobuf skips what it does not know.

use prost::Message;
use prost::bytes::Bytes;

#[derive(Clone, PartialEq, Message)]
pub struct Header {
    #[prost(uint64, tag = "1")]
    pub cluster_id: u64,
    #[prost(uint64, tag = "2")]
    pub member_id: u64,
    #[prost(int64, tag = "3")]
    pub revision: i64,
}

/// The answer to every change whose details nobody here reads.
#[derive(Clone, PartialEq, Message)]
pub struct Done {}

#[derive(Clone, PartialEq, Message)]
pub struct RangeRequest {
    #[prost(bytes = "vec", tag = "1")]
    pub key: Vec<u8>,
    /// Empty if it is about just `key`. A zero byte here and there stands for all keys.
    #[prost(bytes = "vec", tag = "2")]
    pub range_end: Vec<u8>,
    /// 0 stands for the newest.
    #[prost(int64, tag = "4")]
    pub revision: i64,
    #[prost(bool, tag = "7")]
    pub serializable: bool,
    #[prost(bool, tag = "9")]
    pub count_only: bool,
}

#[derive(Clone, PartialEq, Message)]
pub struct RangeResponse {
    #[prost(int64, tag = "4")]
    pub count: i64,
}

#[derive(Clone, PartialEq, Message)]
pub struct Member {
    #[prost(uint64, tag = "1")]
    pub id: u64,
    #[prost(string, tag = "2")]
    pub name: String,
    #[prost(string, repeated, tag = "3")]
    pub peer_urls: Vec<String>,
    #[prost(string, repeated, tag = "4")]
    pub client_urls: Vec<String>,
    #[prost(bool, tag = "5")]
    pub is_learner: bool,
}

#[derive(Clone, PartialEq, Message)]
pub struct MemberListRequest {
    #[prost(bool, tag = "1")]
    pub linearizable: bool,
}

#[derive(Clone, PartialEq, Message)]
pub struct MemberListResponse {
    #[prost(message, optional, tag = "1")]
    pub header: Option<Header>,
    #[prost(message, repeated, tag = "2")]
    pub members: Vec<Member>,
}

#[derive(Clone, PartialEq, Message)]
pub struct MemberAddRequest {
    #[prost(string, repeated, tag = "1")]
    pub peer_urls: Vec<String>,
    #[prost(bool, tag = "2")]
    pub is_learner: bool,
}

#[derive(Clone, PartialEq, Message)]
pub struct MemberAddResponse {
    #[prost(message, optional, tag = "2")]
    pub member: Option<Member>,
}

/// The request to promote a member, to remove one, and to move the leadership to one: each is just its ID.
#[derive(Clone, PartialEq, Message)]
pub struct MemberIdRequest {
    #[prost(uint64, tag = "1")]
    pub id: u64,
}

#[derive(Clone, PartialEq, Message)]
pub struct StatusRequest {}

#[derive(Clone, PartialEq, Message)]
pub struct StatusResponse {
    #[prost(message, optional, tag = "1")]
    pub header: Option<Header>,
    #[prost(string, tag = "2")]
    pub version: String,
    #[prost(int64, tag = "3")]
    pub db_size: i64,
    #[prost(uint64, tag = "4")]
    pub leader: u64,
    #[prost(uint64, tag = "5")]
    pub raft_index: u64,
    #[prost(uint64, tag = "6")]
    pub raft_term: u64,
    #[prost(uint64, tag = "7")]
    pub raft_applied_index: u64,
    #[prost(string, repeated, tag = "8")]
    pub errors: Vec<String>,
    #[prost(int64, tag = "9")]
    pub db_size_in_use: i64,
    #[prost(bool, tag = "10")]
    pub is_learner: bool,
    #[prost(string, tag = "11")]
    pub storage_version: String,
    #[prost(int64, tag = "12")]
    pub db_size_quota: i64,
    /// From etcd 3.6 on it is always there.
    #[prost(message, optional, tag = "13")]
    pub downgrade_info: Option<DowngradeInfo>,
}

#[derive(Clone, PartialEq, Message)]
pub struct DowngradeInfo {
    #[prost(bool, tag = "1")]
    pub enabled: bool,
    #[prost(string, tag = "2")]
    pub target_version: String,
}

impl StatusResponse {
    /// What the cluster is being downgraded to.
    pub fn downgrade_target(&self) -> Option<&str> {
        self.downgrade_info.as_ref().filter(|d| d.enabled).map(|d| d.target_version.as_str())
    }
}

#[derive(Clone, PartialEq, Message)]
pub struct DowngradeRequest {
    #[prost(int32, tag = "1")]
    pub action: i32,
    #[prost(string, tag = "2")]
    pub version: String,
}

impl DowngradeRequest {
    pub const VALIDATE: i32 = 0;
    pub const ENABLE: i32 = 1;
    pub const CANCEL: i32 = 2;
}

#[derive(Clone, PartialEq, Message)]
pub struct HashKvRequest {
    #[prost(int64, tag = "1")]
    pub revision: i64,
}

#[derive(Clone, PartialEq, Message)]
pub struct HashKvResponse {
    #[prost(uint32, tag = "2")]
    pub hash: u32,
    #[prost(int64, tag = "3")]
    pub compact_revision: i64,
    #[prost(int64, tag = "4")]
    pub hash_revision: i64,
}

#[derive(Clone, PartialEq, Message)]
pub struct DefragmentRequest {}

#[derive(Clone, PartialEq, Message)]
pub struct SnapshotRequest {}

/// One of many.
#[derive(Clone, PartialEq, Message)]
pub struct SnapshotResponse {
    #[prost(bytes = "bytes", tag = "3")]
    pub blob: Bytes,
}

#[derive(Clone, PartialEq, Message)]
pub struct AlarmRequest {
    #[prost(int32, tag = "1")]
    pub action: i32,
    #[prost(uint64, tag = "2")]
    pub member_id: u64,
    #[prost(int32, tag = "3")]
    pub alarm: i32,
}

impl AlarmRequest {
    pub const DEACTIVATE: i32 = 2;
    pub const NO_SPACE: i32 = 1;
    pub const CORRUPT: i32 = 2;
}
