//! Which options of etcd the API server takes, and which it refuses.

use e2e::Namespace;
use serde_json::{Value, json};

use crate::{refuses, takes, with};

#[test]
fn options_that_etcd_would_not_start_with_are_refused() {
    let namespace = Namespace::create("api-etcd");
    let etcd = |options: Value| with("spec/etcd", options);
    let compaction =
        |mode: &str, retention: &str| with("spec/etcd/autoCompaction", json!({"mode": mode, "retention": retention}));
    let quota = "spec.etcd.quotaBackendBytes must be a size between 1Mi and 1Ti";
    let five_times = "must be at least 5 times spec.etcd.heartbeatInterval";
    let duration = "spec.etcd.autoCompaction.retention must be a duration";
    let revisions = "spec.etcd.autoCompaction.retention must be a number of revisions";
    refuses(
        &namespace,
        [
            (etcd(json!({"quotaBackendBytes": "4"})), quota),
            (etcd(json!({"quotaBackendBytes": -1})), quota),
            (etcd(json!({"quotaBackendBytes": "4 GB"})), quota),
            (etcd(json!({"quotaBackendBytes": "1e30"})), quota),
            (etcd(json!({"heartbeatInterval": 9})), "spec.etcd.heartbeatInterval must be between"),
            (etcd(json!({"heartbeatInterval": 10001})), "spec.etcd.heartbeatInterval must be between"),
            (etcd(json!({"heartbeatInterval": "9ms"})), "spec.etcd.heartbeatInterval must be between"),
            (etcd(json!({"heartbeatInterval": "fast"})), "spec.etcd.heartbeatInterval must be between"),
            (etcd(json!({"electionTimeout": "51s"})), "spec.etcd.electionTimeout must be between"),
            (etcd(json!({"heartbeatInterval": "500ms", "electionTimeout": "2s499ms"})), five_times),
            (etcd(json!({"heartbeatInterval": "201ms"})), five_times),
            (etcd(json!({"heartbeatInterval": 500, "electionTimeout": "2499ms"})), five_times),
            (etcd(json!({"electionTimeout": 49})), "spec.etcd.electionTimeout must be between"),
            (etcd(json!({"electionTimeout": 50001})), "spec.etcd.electionTimeout must be between"),
            (etcd(json!({"heartbeatInterval": 500, "electionTimeout": 2499})), five_times),
            (etcd(json!({"heartbeatInterval": 201})), five_times),
            (etcd(json!({"electionTimeout": 499})), five_times),
            (etcd(json!({"snapshotCount": 0})), "spec.etcd.snapshotCount must be between"),
            (etcd(json!({"snapshotCount": 10000000000_i64})), "spec.etcd.snapshotCount must be between"),
            (etcd(json!({"autoCompaction": {}})), "spec.etcd.autoCompaction.retention is missing"),
            (etcd(json!({"autoCompaction": {"retention": "1000"}})), duration),
            (compaction("Periodic", "0h"), duration),
            (compaction("Periodic", "soon"), duration),
            (compaction("Periodic", ""), duration),
            (compaction("Revision", "1h"), revisions),
            (compaction("Revision", "0"), revisions),
            (compaction("Never", "1h"), "\"Periodic\", \"Revision\""),
        ],
    );
    takes(
        &namespace,
        [
            etcd(json!({})),
            etcd(json!({"quotaBackendBytes": "1.5Gi"})),
            etcd(json!({"quotaBackendBytes": 2147483648_i64})),
            etcd(json!({"heartbeatInterval": 500, "electionTimeout": 2500, "snapshotCount": 50})),
            etcd(json!({"heartbeatInterval": 10000, "electionTimeout": 50000})),
            etcd(json!({"heartbeatInterval": "500ms", "electionTimeout": "2s500ms"})),
            etcd(json!({"heartbeatInterval": "10s", "electionTimeout": 50000})),
            etcd(json!({"autoCompaction": {"retention": "1h30m"}})),
            compaction("Periodic", "999999h999999h"),
            compaction("Revision", "1000"),
        ],
    );
}

#[test]
fn flags_that_the_operator_sets_are_refused() {
    let namespace = Namespace::create("api-extra-args");
    let flag = |name: &str| with("spec/etcd/extraArgs", json!({name: "x"}));
    let refused_with = |sentence, flags: &[&str]| {
        refuses(&namespace, flags.iter().map(|name| (flag(name), sentence)));
    };
    refused_with(
        "spec.etcd.extraArgs must not have flags that the operator sets itself",
        &[
            "name",
            "data-dir",
            "wal-dir",
            "listen-client-urls",
            "listen-peer-urls",
            "listen-metrics-urls",
            "advertise-client-urls",
            "initial-cluster",
            "initial-cluster-token",
            "force-new-cluster",
            "discovery",
            "discovery-srv",
            "cert-file",
            "key-file",
            "trusted-ca-file",
            "client-cert-auth",
            "auto-tls",
            "peer-auto-tls",
            "tls-min-version",
            "config-file",
            "strict-reconfig-check",
            "version",
        ],
    );
    refused_with(
        "spec.etcd.extraArgs must not have flags that have a field of their own",
        &[
            "quota-backend-bytes",
            "auto-compaction-mode",
            "auto-compaction-retention",
            "heartbeat-interval",
            "election-timeout",
            "snapshot-count",
        ],
    );
    refused_with(
        "spec.etcd.extraArgs must have the names of flags without leading dashes",
        &["--log-level", "-log-level", "log-level=warn", "Log-Level", "log level", ""],
    );
    takes(&namespace, ["log-level", "max-txn-ops", "experimental-initial-corrupt-check", "feature-gates"].map(flag));
    let many: serde_json::Map<String, Value> = (0..65).map(|n| (format!("flag-{n}"), json!("x"))).collect();
    refuses(&namespace, [(with("spec/etcd/extraArgs", many.into()), "spec.etcd.extraArgs: Too many")]);
}
