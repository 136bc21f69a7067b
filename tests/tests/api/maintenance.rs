//! What the API server takes and refuses about pausing, recovery and maintenance, and how `kubectl` explains it.

use e2e::{Namespace, kubectl};
use serde_json::{Value, json};

use crate::{refuses, takes, with};

#[test]
fn paused_is_validated() {
    let namespace = Namespace::create("api-paused");
    let paused = |value: Value| with("spec/paused", value);
    refuses(&namespace, [json!("true"), json!("yes"), json!(1)].map(|value| (paused(value), "spec.paused")));
    takes(&namespace, [true, false].map(|value| paused(json!(value))));
    for value in [true, false] {
        namespace.apply(&paused(json!(value)).to_string()).unwrap();
        assert_eq!(namespace.get("etcdcluster c")["spec"]["paused"], value);
    }
}

#[test]
fn member_replacement_is_validated() {
    let namespace = Namespace::create("api-recovery");
    let after = |value: Value| with("spec/recovery/memberReplacement/after", value);
    let sentence =
        "spec.recovery.memberReplacement.after must be a duration of at least 10s, like 30s or 5m, or 0 to never";
    let wrong = [
        json!(30),
        json!(-1),
        json!("9s"),
        json!("30"),
        json!("-5m"),
        json!("soon"),
        json!(""),
        json!("5 minutes"),
        json!("5M"),
        json!("1d"),
        json!("1.5h"),
        json!("100ms"),
        json!("5m "),
        json!("00"),
    ];
    refuses(&namespace, wrong.map(|value| (after(value), sentence)));
    let long = json!("1h1h1h1h1h1h1h1h1h");
    refuses(&namespace, [(after(long), "spec.recovery.memberReplacement.after")]);
    let right = ["10s", "30s", "5m", "1h30m", "0", "0s", "999999h999999h"].map(|text| json!(text));
    takes(&namespace, right.into_iter().chain([json!(0)]).map(after));
    takes(&namespace, [with("spec/recovery", json!({})), with("spec/recovery/memberReplacement", json!({}))]);
    refuses(&namespace, [(with("spec/recovery/memberReplacement/before", json!("5m")), "unknown field")]);
}

#[test]
fn defragmentation_is_validated() {
    let namespace = Namespace::create("api-defragment");
    let defragment = |value: Value| with("spec/maintenance/autoDefragment", value);
    let wrong = [json!("true"), json!("no"), json!(0)];
    refuses(&namespace, wrong.map(|value| (defragment(value), "spec.maintenance.autoDefragment")));
    takes(&namespace, [true, false].map(|value| defragment(json!(value))));
    takes(&namespace, [with("spec/maintenance", json!({}))]);
}

#[test]
fn corruption_check_interval_is_validated() {
    let namespace = Namespace::create("api-comparison");
    let interval = |value: Value| with("spec/maintenance/corruptionCheck/interval", value);
    let sentence =
        "spec.maintenance.corruptionCheck.interval must be a duration of at least 10s, like 10m or 1h, or 0 to never";
    let wrong = [json!("9s"), json!("1s"), json!(5), json!(10), json!("10"), json!("1.5h"), json!("often"), json!("")];
    refuses(&namespace, wrong.map(|value| (interval(value), sentence)));
    let right = [
        json!("10s"),
        json!("10m"),
        json!("1h30m"),
        json!("4s6s"),
        json!(0),
        json!("0"),
        json!("0s"),
        json!("999999h999999h"),
    ];
    takes(&namespace, right.map(interval));
    takes(&namespace, [with("spec/maintenance/corruptionCheck", json!({}))]);
}

#[test]
fn kubectl_explains_recovery_and_maintenance() {
    for (field, says) in [
        ("etcdcluster.spec.paused", "The annotation `etcd.improbable.io/paused: \"true\"` on the EtcdCluster"),
        ("etcdcluster.spec.recovery", "What is done about members that do not come back"),
        ("etcdcluster.spec.recovery.memberReplacement", "When a member is replaced by a new one"),
        ("etcdcluster.spec.recovery.memberReplacement.after", "The default is `5m`, the least `10s`; `0` never"),
        ("etcdcluster.spec.maintenance", "What is done to keep members fit"),
        ("etcdcluster.spec.maintenance.autoDefragment", "The default is `true`"),
        ("etcdcluster.spec.maintenance.corruptionCheck", "How the members' data is compared"),
        (
            "etcdcluster.spec.maintenance.corruptionCheck.interval",
            "`10m` unless set, at least `10s`, and `0` for never",
        ),
        ("etcdcluster.status.members.unhealthySince", "Since when the member has not answered"),
        ("etcdpeer.status.replacement", "given up for a new one of the same name"),
        ("etcdpeer.status.replacement.memberID", "The ID of the member that was given up"),
        ("etcdpeer.status.replacement.time", "When it was given up"),
        ("etcdpeer.status.replacement.count", "Each next one waits twice as long"),
        ("etcdpeer.status.replacement.reason", "Why it was given up"),
        ("etcdpeer.status.lastDefragmentation", "the database of the member was defragmented"),
        ("etcdpeer.status.lastDefragmentation.time", "When it was begun"),
        ("etcdpeer.status.lastDefragmentation.compactedRevision", "up to which history was compacted"),
    ] {
        let text = kubectl(&format!("explain {field}"));
        // It is wrapped to the width of a terminal.
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains(says), "{field} does not say: {says}\n{text}");
    }
}
