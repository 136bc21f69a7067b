//! The version of the cluster, and downgrades.

use std::net::TcpListener;
use std::time::Duration;

use etcd_operator_etcd::{Cause, Error, MemberClient, Status};

use crate::support::{Etcd, answers_once, assert_cause, eventually, led_by_somebody};

#[tokio::test]
async fn downgrade_is_enabled_and_cancelled_3_6() {
    a_downgrade_is_enabled_and_cancelled("3.6.16", "3.6.0", "3.5.0", "3.4.0").await;
}

#[tokio::test]
async fn downgrade_is_enabled_and_cancelled_3_7() {
    a_downgrade_is_enabled_and_cancelled("3.7.3", "3.7.0", "3.6.0", "3.5.0").await;
}

async fn a_downgrade_is_enabled_and_cancelled(version: &str, own: &str, below: &str, too_low: &str) {
    let dir = tempfile::tempdir().unwrap();
    let mut etcd = Etcd::new(version, "a", dir.path());
    etcd.start(&[], &[]);
    let mut ask = etcd.client();
    led_by_somebody(&mut ask).await;
    versions_become(own, &mut ask).await;
    assert_eq!(ask.status().await.unwrap().downgrade_target, None);

    let bad_target = |c: &Cause| matches!(c, Cause::BadDowngradeTarget(_));
    let minor = below.strip_suffix(".0").unwrap();
    for target in [below, minor, &format!("{minor}.99")] {
        ask.validate_downgrade(target).await.unwrap();
    }
    for target in [too_low, own, version, "3", "", "latest"] {
        assert_cause(ask.validate_downgrade(target).await, bad_target);
        assert_cause(ask.enable_downgrade(target).await, bad_target);
    }
    ask.cancel_downgrade().await.unwrap();

    ask.enable_downgrade(below).await.unwrap();
    assert_eq!(ask.status().await.unwrap().downgrade_target.as_deref(), Some(below));
    // etcd's reason to refuse another one depends on whether the version of the cluster has followed yet.
    ask.enable_downgrade(below).await.unwrap();
    assert_cause(ask.validate_downgrade(below).await, |c| *c == Cause::DowngradeInProgress || bad_target(c));
    versions_become(below, &mut ask).await;
    for target in [below, minor] {
        ask.enable_downgrade(target).await.unwrap();
    }
    // Now this one is right below the version of the cluster.
    assert_cause(ask.enable_downgrade(too_low).await, |c| *c == Cause::DowngradeInProgress);
    assert_eq!(ask.status().await.unwrap().downgrade_target.as_deref(), Some(below));

    ask.cancel_downgrade().await.unwrap();
    assert_eq!(ask.status().await.unwrap().downgrade_target, None);
    ask.cancel_downgrade().await.unwrap();
    versions_become(own, &mut ask).await;
    ask.validate_downgrade(below).await.unwrap();
}

#[tokio::test]
async fn older_etcd_starts_after_a_downgrade_3_6() {
    an_older_etcd_starts_after_a_downgrade("3.6.16", "3.6.0", "3.5.35", "3.5.0").await;
}

#[tokio::test]
async fn older_etcd_starts_after_a_downgrade_3_7() {
    an_older_etcd_starts_after_a_downgrade("3.7.3", "3.7.0", "3.6.16", "3.6.0").await;
}

async fn an_older_etcd_starts_after_a_downgrade(version: &str, own: &str, older: &str, below: &str) {
    let dir = tempfile::tempdir().unwrap();
    let mut etcd = Etcd::new(version, "a", dir.path());
    etcd.start(&[], &[]);
    let mut ask = etcd.client();
    led_by_somebody(&mut ask).await;
    versions_become(own, &mut ask).await;
    assert!(etcd.etcdctl(&["put", "key", "value"]));

    // Without the downgrade the older one refuses, and does no harm to the data.
    etcd.terminate();
    etcd.become_version(older);
    etcd.start(&[], &[]);
    eventually("the end of the older etcd", async || etcd.has_ended().then_some(())).await;

    etcd.become_version(version);
    etcd.start(&[], &[]);
    led_by_somebody(&mut ask).await;
    ask.enable_downgrade(below).await.unwrap();
    versions_become(below, &mut ask).await;
    // Not as a power failure would: a member shows its storage version a moment before it is on the disk.
    etcd.terminate();
    etcd.become_version(older);
    etcd.start(&[], &[]);
    let status = led_by_somebody(&mut ask).await;
    assert_eq!((status.version.as_str(), status.revision), (older, 2));
    ask.check_linearizable_read().await.unwrap();
    assert_eq!(ask.cluster_version().await.unwrap().as_deref(), Some(below));

    eventually("the end of the downgrade", async || is_over(older, &mut ask).await.then_some(())).await;
    assert!(etcd.etcdctl(&["put", "key", "value"]));

    // And back again, without being asked to.
    etcd.terminate();
    etcd.become_version(version);
    etcd.start(&[], &[]);
    led_by_somebody(&mut ask).await;
    versions_become(own, &mut ask).await;
    assert_eq!(ask.status().await.unwrap().revision, 3);
}

/// A 3.5 does not say whether a downgrade is in progress, but refuses to begin another one.
async fn is_over(version: &str, ask: &mut MemberClient) -> bool {
    if !version.starts_with("3.5.") {
        return ask.status().await.unwrap().downgrade_target.is_none();
    }
    match ask.validate_downgrade("3.4.0").await {
        Ok(()) => true,
        Err(Error { cause: Cause::DowngradeInProgress, .. }) => false,
        Err(e) => panic!("{e}"),
    }
}

/// A 3.5 has nothing to tell about downgrades, but takes one back all the same.
#[tokio::test]
async fn oldest_supported_etcd_reports_a_cluster_version() {
    let dir = tempfile::tempdir().unwrap();
    let mut etcd = Etcd::new("3.5.35", "a", dir.path());
    etcd.start(&[], &[]);
    let mut ask = etcd.client();
    led_by_somebody(&mut ask).await;
    versions_become("3.5.0", &mut ask).await;
    assert_eq!(ask.status().await.unwrap().downgrade_target, None);
    ask.cancel_downgrade().await.unwrap();

    // It does what it is asked to, but the answer is never on time.
    let did_not_answer = |c: &Cause| matches!(c, Cause::TimedOut(_));
    assert_cause(ask.enable_downgrade("3.4.0").await, did_not_answer);
    let refused = |c: &Cause| matches!(c, Cause::DowngradeInProgress | Cause::BadDowngradeTarget(_));
    assert_cause(ask.enable_downgrade("3.4.0").await, refused);
    assert_cause(ask.cancel_downgrade().await, did_not_answer);
    ask.cancel_downgrade().await.unwrap();
}

#[tokio::test]
async fn downgrade_without_a_quorum_fails() {
    let dir = tempfile::tempdir().unwrap();
    let mut members = ["a", "b"].map(|name| Etcd::new("3.7.3", name, dir.path()));
    Etcd::found(&mut members, &[]);
    let mut ask = members[0].client();
    led_by_somebody(&mut ask).await;
    versions_become("3.7.0", &mut ask).await;
    ask.enable_downgrade("3.6.0").await.unwrap();
    members[1].stop();
    let did_not_agree = |c: &Cause| matches!(c, Cause::TimedOut(_) | Cause::NoConsensus(_));
    assert_cause(ask.validate_downgrade("3.6.0").await, did_not_agree);
    assert_cause(ask.enable_downgrade("3.6.0").await, did_not_agree);
    // A client with a longer deadline hears etcd's own answer, which says that it was cancelled.
    let mut unhurried = MemberClient::new(&members[0].client_url, Duration::from_secs(12)).unwrap();
    for ask in [&mut ask, &mut unhurried] {
        assert_cause(ask.cancel_downgrade().await, did_not_agree);
    }
    assert_eq!(ask.status().await.unwrap().downgrade_target.as_deref(), Some("3.6.0"));
    assert!(ask.cluster_version().await.unwrap().is_some());
}

#[tokio::test]
async fn malformed_cluster_version_is_mapped_to_its_cause() {
    let answer = |head: &str, body: &str| format!("HTTP/1.1 {head}\r\nContent-Length: {}\r\n\r\n{body}", body.len());
    let too_long = format!(r#"{{"etcdcluster":"{}"}}"#, "3".repeat(100_000));
    for (answer, is_unreachable) in [
        (answer("404 Not DataDir", "{}"), false),
        (answer("200 OK", "3.6.0"), false),
        (answer("200 OK", &too_long), true),
        ("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{".into(), true),
        (String::new(), true),
    ] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let server = answers_once(listener, answer);
        let mut client = MemberClient::new(&url, Duration::from_secs(10)).unwrap();
        let expected =
            |c: &Cause| if is_unreachable { matches!(c, Cause::Unreachable(_)) } else { matches!(c, Cause::Other(_)) };
        assert_cause(client.cluster_version().await, expected);
        server.join().unwrap();
    }
}

/// The version of the cluster, and the storage version if the member tells it.
async fn versions_become(version: &str, ask: &mut MemberClient) -> Status {
    eventually(&format!("version {version}"), async || {
        let status = ask.status().await.unwrap();
        let storage = status.storage_version.as_deref().is_none_or(|v| v == version);
        let cluster = ask.cluster_version().await.unwrap();
        (storage && cluster.as_deref() == Some(version)).then_some(status)
    })
    .await
}
