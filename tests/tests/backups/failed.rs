//! Backups that fail: they say why, leave nothing behind, and the next one works.

use std::time::{Duration, Instant};

use e2e::backup::{Order, backup_manifest};
use e2e::stores::{Bucket, Store, write_secret};
use e2e::{Namespace, SAFETY, eventually};
use serde_json::{Value, json};

use crate::small_cluster;

/// The same destination with other credentials.
fn with_secret(mut destination: Value, store: &str, secret: &str) -> Value {
    destination["credentials"] = json!({store: {"secretName": secret}});
    destination
}

/// The same destination in a bucket that is not there.
fn in_no_bucket(mut destination: Value, scheme: &str) -> Value {
    destination["objectURLTemplate"] = json!(format!("{scheme}://no-such-bucket/a.db"));
    destination
}

/// Secrets that look like credentials, and with which nobody is let in.
fn write_wrong_secrets(namespace: &Namespace) {
    let s3 = |id: &str, key: &str| json!({"AWS_ACCESS_KEY_ID": id, "AWS_SECRET_ACCESS_KEY": key});
    let azure = json!({"AZURE_STORAGE_ACCOUNT_NAME": "devstoreaccount1", "AZURE_STORAGE_ACCOUNT_KEY": "d3Jvbmc="});
    write_secret(namespace, "wrong-key", &s3("lab-access-key", "wrong"));
    write_secret(namespace, "wrong-id", &s3("nobody", "lab-secret-key"));
    write_secret(namespace, "wrong-gcs", &json!({"gcp.json": "this is no key file"}));
    write_secret(namespace, "wrong-azure", &azure);
}

#[test]
fn backup_that_cannot_succeed_fails_without_retry_and_with_its_cause() {
    let namespace = Namespace::create("backups-failed");
    let [s3, gcs, azure] = Store::ALL.map(|store| Bucket::create(store, "failed", &namespace));
    write_wrong_secrets(&namespace);
    let _etcd = small_cluster(&namespace);
    Order::place(&namespace, &backup_manifest("first", "c", s3.destination("taken.db"))).complete();
    let taken = s3.read("taken.db");
    let wrong_s3 = |secret: &str| with_secret(s3.destination("a.db"), "s3", secret);
    let wrong_azure = with_secret(azure.destination("a.db"), "azure", "wrong-azure");
    let mut wrong_gcs = gcs.destination("a.db");
    wrong_gcs["credentials"]["googleCloud"]["secretKeyRef"]["name"] = json!("wrong-gcs");
    let mut elsewhere = s3.destination("a.db");
    elsewhere["s3"]["region"] = json!("eu-west-1");

    let cases: [(&str, Value, &str, &[&str]); 9] = [
        ("wrong-key", wrong_s3("wrong-key"), "AccessDenied", &["a.db", "access denied"]),
        ("wrong-id", wrong_s3("wrong-id"), "AccessDenied", &["a.db", "access denied"]),
        ("wrong-gcs", wrong_gcs, "AccessDenied", &["a.db", "credentials"]),
        ("wrong-azure", wrong_azure, "AccessDenied", &["a.db", "access denied"]),
        ("no-s3", in_no_bucket(s3.destination(""), "s3"), "NoSuchBucket", &["no-such-bucket"]),
        ("no-gcs", in_no_bucket(gcs.destination(""), "gs"), "NoSuchBucket", &["no-such-bucket"]),
        ("no-azure", in_no_bucket(azure.destination(""), "az"), "NoSuchBucket", &["no-such-bucket"]),
        ("elsewhere", elsewhere, "InvalidRequest", &["another region", "eu-west-1"]),
        ("taken", s3.destination("taken.db"), "ObjectExists", &["taken.db", "backups-failed/first"]),
    ];
    let began = Instant::now();
    let place = |(name, destination, ..): &(&str, Value, &str, &[&str])| {
        Order::place(&namespace, &backup_manifest(name, "c", destination.clone()))
    };
    let orders: Vec<Order> = cases.iter().map(place).collect();
    for (order, (_, _, reason, mentions)) in orders.iter().zip(&cases) {
        let status = order.fail(reason, mentions);
        assert_eq!(status["attempts"], 1, "it is not tried again: {status}");
    }
    assert!(began.elapsed() < Duration::from_secs(60), "it took {:?}", began.elapsed());
    let told = "get events --field-selector reason=BackupFailed -o jsonpath={.items[*].involvedObject.name}";
    let told = namespace.kubectl(told);
    assert!(cases.iter().all(|(name, ..)| told.contains(name)), "{told}");
    s3.assert_holds(&["taken.db"]);
    assert_eq!(s3.read("taken.db"), taken, "{SAFETY}what was there is as it was");
    gcs.assert_holds(&[]);
    azure.assert_holds(&[]);

    Order::place(&namespace, &backup_manifest("next", "c", s3.destination("next.db"))).complete();
    s3.assert_holds(&["next.db", "taken.db"]);
}

#[test]
fn missing_secret_is_named_and_waited_for() {
    let namespace = Namespace::create("backups-secret");
    let bucket = Bucket::create(Store::S3, "secret", &namespace);
    let _etcd = small_cluster(&namespace);
    let destination = with_secret(bucket.destination("a.db"), "s3", "not-there-yet");
    let backup = Order::place(&namespace, &backup_manifest("b", "c", destination));
    let told = eventually("the status names the Secret", Duration::from_secs(30), || {
        let status = backup.status();
        let message = status["message"].as_str().filter(|message| message.contains("not-there-yet"));
        message.map(str::to_owned).ok_or_else(|| status.to_string())
    });
    println!("{told}");
    assert_eq!(backup.status()["phase"], "Running");
    bucket.write_secret("not-there-yet", &namespace);
    let status = backup.complete();
    assert_eq!(status["message"], Value::Null, "what is over is not told any more: {status}");
    bucket.assert_holds(&["a.db"]);
}

/// Both may pass, so both are tried again for a while; these two have no more than one try.
#[test]
fn backup_to_a_down_or_full_store_fails_and_leaves_nothing() {
    let namespace = Namespace::create("backups-store");
    let full = Bucket::create_small("full", 12 << 20, &namespace);
    let etcd = small_cluster(&namespace);
    etcd.enlarge(32);
    let order = |name: &str, destination: Value| {
        let mut manifest = backup_manifest(name, "c", destination);
        manifest["spec"]["backoffLimit"] = json!(0);
        Order::place(&namespace, &manifest)
    };
    let mut nobody_there = full.destination("down.db");
    let address = full.endpoint().rsplit_once(':').expect("a port").0.to_owned();
    nobody_there["s3"]["endpoint"] = json!(format!("{address}:9"));
    let (down, filled) = (order("down", nobody_there), order("full", full.destination("full.db")));
    let status = filled.fail("NoSpace", &["full.db", &full.name, "full"]);
    assert_eq!(status["attempts"], 1, "{status}");
    full.assert_holds(&[]);
    let status = down.fail("StoreUnreachable", &["down.db", "does not answer"]);
    assert_eq!(status["attempts"], 1, "{status}");

    // The store has every part twice for a moment when it puts them together.
    full.resize(128 << 20);
    order("next", full.destination("next.db")).complete();
    full.assert_holds(&["next.db"]);
}
