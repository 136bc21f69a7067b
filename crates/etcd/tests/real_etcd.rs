//! The client and the reader of data dirs against real etcd, of every version that the lab offers.
#![allow(clippy::unwrap_used, reason = "a test that can't go on should stop right there")]

mod downgrade;
mod maintenance;
mod snapshot;
mod support;

use std::net::TcpListener;
use std::time::{Duration, Instant};

use etcd_operator_datadir::archive;
use etcd_operator_datadir::identity::{self, DataDir, Identity};
use etcd_operator_etcd::{Alarm, AlarmKind, Cause, Error, MemberClient, Status};
use support::{Etcd, answers_once, assert_cause, eventually, free_port, led_by_somebody};

#[tokio::test]
async fn cluster_lifecycle_3_5() {
    life_of_a_cluster("3.5.35").await;
}

#[tokio::test]
async fn cluster_lifecycle_3_6() {
    life_of_a_cluster("3.6.16").await;
}

#[tokio::test]
async fn cluster_lifecycle_3_7() {
    life_of_a_cluster("3.7.3").await;
}

async fn life_of_a_cluster(version: &str) {
    let dir = tempfile::tempdir().unwrap();
    let (mut a, mut b) = (Etcd::new(version, "a", dir.path()), Etcd::new(version, "b", dir.path()));
    let (mut ask_a, mut ask_b) = (a.client(), b.client());

    // A client may be older than its member, and finds it once it is there.
    assert_cause(ask_a.status().await, |c| matches!(c, Cause::Unreachable(_)));
    a.start(&[], &[]);
    let status = led_by_somebody(&mut ask_a).await;
    check_a_lone_member(version, &status, &mut ask_a).await;
    assert!(a.etcdctl(&["put", "key", "value"]));
    assert_eq!(ask_a.status().await.unwrap().revision, 2);
    let (id_a, cluster_id) = (status.member_id, status.cluster_id);

    let id_b = grow(&mut ask_a, &mut ask_b, &a, &mut b, id_a).await;
    move_the_leadership(&mut ask_a, &mut ask_b, id_b).await;
    lose_and_regain_the_quorum(&mut a, &b, &mut ask_b).await;

    // etcd wants to have seen all members connected for five seconds. If the first member leads again, its removal also
    // changes the leader, and the answer may get lost on the way.
    eventually("removing the first member", async || match ask_b.remove(id_a).await {
        Ok(()) | Err(Error { cause: Cause::MemberNotFound, .. }) => Some(()),
        Err(Error { cause: Cause::Unhealthy(_) | Cause::NoConsensus(_) | Cause::TimedOut(_), .. }) => None,
        Err(e) => panic!("{e}"),
    })
    .await;
    let membership = eventually("agreement on the members", async || ask_b.members().await.ok()).await;
    assert_eq!(membership.members.iter().map(|m| m.id).collect::<Vec<_>>(), [id_b]);
    assert_cause(ask_b.remove(id_a).await, |c| *c == Cause::MemberNotFound);

    a.stop();
    b.stop();
    for (etcd, member_id) in [(&a, id_a), (&b, id_b)] {
        let found = identity::read(&etcd.data_dir).unwrap();
        assert_eq!(found, DataDir::Member(Identity { member_id, cluster_id }));
        archive(&etcd.data_dir, "test").unwrap();
        assert_eq!(identity::read(&etcd.data_dir).unwrap(), DataDir::Nothing);
    }
}

async fn check_a_lone_member(version: &str, status: &Status, ask: &mut MemberClient) {
    assert_eq!(status.version, version);
    assert_eq!(status.leader, status.member_id);
    assert!(!status.is_learner && status.raft_term > 0 && status.raft_index > 0 && status.raft_applied_index > 0);
    assert!(status.db_size > 0 && status.db_size_in_use > 0 && status.db_size_in_use <= status.db_size);
    assert_eq!(status.revision, 1);
    assert_eq!((&status.errors[..], &status.alarms[..]), (&[][..], &[][..]));
    if version.starts_with("3.5.") {
        assert_eq!((&status.storage_version, status.db_size_quota), (&None, None));
    } else {
        assert_eq!(status.db_size_quota, Some(2 << 30), "etcd's default");
        // A new member begins with an old schema, and brings it up to date in a moment.
        let minor = &version[.."3.x.".len()];
        let storage = async || ask.status().await.unwrap().storage_version.filter(|v| v.starts_with(minor));
        eventually("the storage version", storage).await;
    }

    let membership = ask.members().await.unwrap();
    assert_eq!(membership.cluster_id, status.cluster_id);
    let [member] = &membership.members[..] else { panic!("{membership:?}") };
    assert_eq!((member.id, member.name.as_str(), member.is_learner), (status.member_id, "a", false));
    assert!(member.has_started() && !member.client_urls.is_empty());
    assert_eq!(ask.members_as_known().await.unwrap(), membership);
    ask.check_linearizable_read().await.unwrap();
    assert_cause(ask.promote(42).await, |c| *c == Cause::MemberNotFound);
    assert_cause(ask.remove(42).await, |c| *c == Cause::MemberNotFound);
}

/// From one member to two. Returns the ID of the second.
async fn grow(ask_a: &mut MemberClient, ask_b: &mut MemberClient, a: &Etcd, b: &mut Etcd, id_a: u64) -> u64 {
    let id_b = ask_a.add_learner(&b.peer_url).await.unwrap();
    assert_cause(ask_a.add_learner(&b.peer_url).await, |c| matches!(c, Cause::ExistsAlready(_)));
    assert_cause(ask_a.add_learner("http://127.0.0.1:1").await, |c| *c == Cause::TooManyLearners);
    let membership = ask_a.members().await.unwrap();
    let added = membership.members.iter().find(|m| m.id == id_b).unwrap();
    assert!(added.is_learner && !added.has_started());
    assert_eq!(added.peer_urls, [b.peer_url.as_str()]);
    assert_cause(ask_a.promote(id_b).await, |c| *c == Cause::NotInSync);

    b.start(&[a], &[]);
    let status = led_by_somebody(ask_b).await;
    assert_eq!((status.member_id, status.leader, status.is_learner), (id_b, id_a, true));
    assert_cause(ask_b.check_linearizable_read().await, |c| *c == Cause::IsLearner);
    assert_cause(ask_b.hash_kv(0).await, |c| *c == Cause::IsLearner);
    assert_cause(ask_b.defragment().await, |c| *c == Cause::IsLearner);
    eventually("promoting the learner", async || match ask_a.promote(id_b).await {
        Ok(()) => Some(()),
        Err(Error { cause: Cause::NotInSync, .. }) => None,
        Err(e) => panic!("{e}"),
    })
    .await;
    assert_cause(ask_a.promote(id_b).await, |c| *c == Cause::NotALearner);
    id_b
}

async fn move_the_leadership(ask_a: &mut MemberClient, ask_b: &mut MemberClient, id_b: u64) {
    assert_cause(ask_b.move_leader(id_b).await, |c| *c == Cause::NotLeader);
    eventually("moving the leadership", async || match ask_a.move_leader(id_b).await {
        // It may also have moved after a call was given up.
        Ok(()) | Err(Error { cause: Cause::NotLeader, .. }) => Some(()),
        Err(Error { cause: Cause::TimedOut(_) | Cause::NoConsensus(_), .. }) => None,
        Err(e) => panic!("{e}"),
    })
    .await;
    for ask in [ask_a, ask_b] {
        eventually("the new leader", async || (ask.status().await.unwrap().leader == id_b).then_some(())).await;
        eventually("agreement on a read", async || ask.check_linearizable_read().await.ok()).await;
    }
}

/// Without a quorum only what is said to need none is answered, and nothing can be changed.
async fn lose_and_regain_the_quorum(a: &mut Etcd, b: &Etcd, ask_b: &mut MemberClient) {
    let before = ask_b.members().await.unwrap();
    a.stop();
    let did_not_agree = |c: &Cause| matches!(c, Cause::TimedOut(_) | Cause::NoConsensus(_));
    assert_cause(ask_b.check_linearizable_read().await, did_not_agree);
    assert_cause(ask_b.members().await, did_not_agree);
    assert_eq!(ask_b.members_as_known().await.unwrap(), before);
    ask_b.status().await.unwrap();
    ask_b.hash_kv(0).await.unwrap();
    ask_b.defragment().await.unwrap();
    assert_cause(ask_b.disarm(Alarm { member_id: 42, kind: AlarmKind::NoSpace }).await, did_not_agree);
    assert_cause(ask_b.add_learner("http://127.0.0.1:1").await, |c| matches!(c, Cause::Unhealthy(_)));

    a.start(&[b], &[]);
    eventually("the quorum", async || ask_b.check_linearizable_read().await.ok()).await;
    led_by_somebody(ask_b).await;
}

#[tokio::test]
async fn call_to_a_silent_server_ends_at_its_deadline() {
    // The kernel accepts connections for a listener, so this one takes whatever is sent and never answers.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    silent.set_nonblocking(true).unwrap();
    let url = format!("http://{}", silent.local_addr().unwrap());
    let deadline = Duration::from_millis(200);
    let mut client = MemberClient::new(&url, deadline).unwrap();

    let begin = Instant::now();
    let mut failures = vec![
        client.status().await.unwrap_err(),
        client.members().await.unwrap_err(),
        client.members_as_known().await.unwrap_err(),
        client.check_linearizable_read().await.unwrap_err(),
        client.add_learner("http://127.0.0.1:1").await.unwrap_err(),
        client.promote(0x2a).await.unwrap_err(),
        client.remove(0x2a).await.unwrap_err(),
        client.move_leader(0x2a).await.unwrap_err(),
        client.hash_kv(0x2a).await.unwrap_err(),
        client.count_keys(0x2a).await.unwrap_err(),
        client.snapshot().await.unwrap_err(),
        client.disarm(Alarm { member_id: 0x2a, kind: AlarmKind::NoSpace }).await.unwrap_err(),
        client.cluster_version().await.unwrap_err(),
        client.validate_downgrade("3.6.0").await.unwrap_err(),
        client.enable_downgrade("3.6.0").await.unwrap_err(),
        client.cancel_downgrade().await.unwrap_err(),
    ];
    // Also from a task of its own, as an operator would ask many members at once.
    failures.push(tokio::spawn(async move { client.defragment().await.unwrap_err() }).await.unwrap());
    let calls = failures.len();
    assert!(begin.elapsed() < deadline * 2 * u32::try_from(calls).unwrap(), "{:?}", begin.elapsed());
    for failure in &failures {
        assert_eq!(failure.cause, Cause::TimedOut(deadline), "{failure}");
        assert_eq!(failure.endpoint, url);
    }
    for (n, doing) in [(5, "promoting member 2a"), (11, "disarming the alarm NOSPACE of member 2a")] {
        assert!(failures[n].to_string().starts_with(&format!("{doing} at http://127.0.0.1:")), "{}", failures[n]);
    }

    // Silence is not waited for again on the same connection: every call dialled.
    let dialled = std::iter::from_fn(|| silent.accept().ok()).count();
    assert_eq!(dialled, calls);
}

#[tokio::test]
async fn closed_port_is_unreachable_at_once() {
    let mut client = MemberClient::new(&format!("http://127.0.0.1:{}", free_port()), Duration::from_secs(10)).unwrap();
    let begin = Instant::now();
    for error in [client.status().await.unwrap_err(), client.cluster_version().await.unwrap_err()] {
        assert!(matches!(&error.cause, Cause::Unreachable(why) if why.contains("refused")), "{error}");
    }
    assert!(begin.elapsed() < Duration::from_secs(2));
}

#[tokio::test]
async fn server_that_hangs_up_or_speaks_no_grpc_is_unreachable() {
    for answer in ["", "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let server = answers_once(listener, answer.into());
        let mut client = MemberClient::new(&url, Duration::from_secs(10)).unwrap();
        assert_cause(client.status().await, |c| matches!(c, Cause::Unreachable(_)));
        server.join().unwrap();
    }
}

#[tokio::test]
async fn malformed_address_is_refused() {
    let error = MemberClient::new("not an address", Duration::from_secs(1)).unwrap_err();
    assert!(error.to_string().contains("not an address"), "{error}");
}
