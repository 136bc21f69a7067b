//! What the API server takes and refuses about EtcdBackupSchedules.

use e2e::Namespace;
use serde_json::{Value, json};

use crate::{columns, refuses, refuses_once, set, takes, unset};

/// A schedule for a cluster that is not there, and that is not due before long.
fn schedule() -> Value {
    json!({
        "apiVersion": "etcd.improbable.io/v1alpha1",
        "kind": "EtcdBackupSchedule",
        "metadata": {"name": "s"},
        "spec": {
            "schedule": "@yearly",
            "backupTemplate": {"spec": {"clusterName": "c", "destination": {"objectURL": "s3://b/a.db"}}},
        },
    })
}

fn with(path: &str, value: Value) -> Value {
    set(schedule(), path, value)
}

fn without(path: &str) -> Value {
    unset(schedule(), path)
}

#[test]
fn schedule_must_have_five_fields_or_a_name() {
    let namespace = Namespace::create("api-schedules");
    let sentence = "spec.schedule must have five fields: minute, hour, day of the month, month and day of the week";
    let cron = |text: &str| with("spec/schedule", json!(text));
    let wrong = [
        "",
        "daily",
        "@sometimes",
        "@every 1h",
        "* * * *",
        "* * * * * *",
        "0 3 * * * 2026",
        "TZ=UTC 0 3 * * *",
        "CRON_TZ=UTC 3 * * *",
        " 0 3 * * *",
        "0 3 * * * ",
    ];
    refuses_once(&namespace, wrong.map(|text| (cron(text), sentence)));
    let right =
        ["0 3 * * *", "*/5 1-3,7 1 JAN MON#1", "@hourly", "@daily", "@weekly", "@monthly", "@yearly", "0  3\t* * *"];
    takes(&namespace, right.map(cron));
    refuses_once(&namespace, [(without("spec/schedule"), "spec.schedule is missing; say when backups are taken")]);
    refuses(&namespace, [(cron(&format!("{} * * * *", "1,".repeat(128))), "Too long")]);
}

#[test]
fn time_zone_must_be_a_name() {
    let namespace = Namespace::create("api-time-zones");
    let zone = |name: &str| with("spec/timeZone", json!(name));
    let sentence = "spec.timeZone must be the name of a time zone; write it like UTC or Europe/London";
    refuses_once(
        &namespace,
        ["", "+02:00", "Europe/", "../etc/passwd", "Europe London"].map(|name| (zone(name), sentence)),
    );
    takes(&namespace, ["UTC", "Europe/London", "America/Argentina/Buenos_Aires", "Etc/GMT+5", "EST5EDT"].map(zone));
}

#[test]
fn schedule_numbers_must_be_in_range() {
    let namespace = Namespace::create("api-schedule-numbers");
    let number = |field: &str, value: i64| with(&format!("spec/{field}"), json!(value));
    for limit in ["successfulBackupsHistoryLimit", "failedBackupsHistoryLimit"] {
        let sentence = format!("spec.{limit} must be between 0 and 100");
        refuses_once(&namespace, [-1, 101].map(|value| (number(limit, value), sentence.as_str())));
        takes(&namespace, [0, 3, 100].map(|value| number(limit, value)));
    }
    let sentence = "spec.startingDeadlineSeconds must be at least 10, or backups would be left out for no reason";
    refuses_once(&namespace, [-1, 0, 9].map(|value| (number("startingDeadlineSeconds", value), sentence)));
    takes(&namespace, [10, 86400].map(|value| number("startingDeadlineSeconds", value)));
    refuses(&namespace, [0, -1].map(|value| (number("verifyEvery", value), "spec.verifyEvery")));
    takes(&namespace, [1, 24].map(|value| number("verifyEvery", value)));
    let policy = |value: &str| with("spec/concurrencyPolicy", json!(value));
    refuses(&namespace, [(policy("Perhaps"), "\"Allow\", \"Forbid\", \"Replace\"")]);
    takes(&namespace, ["Allow", "Forbid", "Replace"].map(policy));
    takes(
        &namespace,
        ["onUpgrade", "deleteWithCluster", "suspend"].map(|field| with(&format!("spec/{field}"), json!(true))),
    );
}

#[test]
fn backup_template_must_have_one_form() {
    let namespace = Namespace::create("api-templates");
    let template = |fields: Value| with("spec/backupTemplate", fields);
    let whole = json!({"clusterName": "c", "destination": {"objectURL": "s3://b/a.db"}});
    let and_spec = |field: &str, value: Value| set(schedule(), &format!("spec/backupTemplate/{field}"), value);
    let one = "spec.backupTemplate must have either spec or the fields of an earlier form";
    let missing = "spec.backupTemplate.spec is missing; write the spec of an EtcdBackup there";
    refuses_once(
        &namespace,
        [
            (without("spec/backupTemplate"), "spec.backupTemplate is missing; write the spec of an EtcdBackup into"),
            (and_spec("clusterName", json!("c")), one),
            (and_spec("source", json!({"clusterURL": "http://c:2379"})), one),
            (and_spec("destination", whole["destination"].clone()), one),
            (template(json!({})), missing),
            (template(json!({"metadata": {"labels": {"team": "storage"}}})), missing),
            (template(json!({"clusterName": "c"})), missing),
            (template(json!({"destination": whole["destination"]})), missing),
        ],
    );
    takes(&namespace, [template(whole.clone()), template(json!({"spec": whole}))]);
    let by_address =
        json!({"source": {"clusterURL": "http://c:2379"}, "destination": {"objectURLTemplate": "s3://b/a.db"}});
    takes(&namespace, [template(by_address.clone()), template(json!({"spec": by_address}))]);
}

#[test]
fn backup_template_is_validated_like_a_backup() {
    let namespace = Namespace::create("api-template-rules");
    let in_spec = |path: &str, value: Value| with(&format!("spec/backupTemplate/spec/{path}"), value);
    let label = |name: &str, value: &str| with("spec/backupTemplate/metadata/labels", json!({name: value}));
    let encrypted = in_spec("encryption/age/recipients", json!(["age1abc"]));
    let identity = json!({"age": {"identitySecretKeyRef": {"name": "s", "key": "k"}}});
    let sometimes = set(encrypted, "spec/verifyEvery", json!(7));
    refuses_once(
        &namespace,
        [
            (in_spec("destination", json!({"objectURL": "http://b/a.db"})), "begin with s3://, gs:// or az://"),
            (in_spec("destination", json!({"local": {}})), "destination.local is not supported"),
            (in_spec("destination", Value::Null), "spec.destination is missing"),
            (in_spec("source/clusterURL", json!("http://c:2379")), "spec must have either clusterName"),
            (in_spec("backoffLimit", json!(11)), "spec.backoffLimit must be between"),
            (sometimes.clone(), "spec.backupTemplate.spec.decryption is missing; an encrypted backup can be verified"),
            (label("etcd.improbable.io/a", "b"), "metadata.labels must not have app.kubernetes.io/name nor names that"),
            (label("team", "the storage team"), "metadata.labels must have names and values that Kubernetes takes"),
            (with("metadata/name", json!("a".repeat(53))), "metadata.name must have at most 52 characters"),
        ],
    );
    takes(
        &namespace,
        [
            set(sometimes, "spec/backupTemplate/spec/decryption", identity),
            label("team", "storage"),
            with("metadata/name", json!("a".repeat(52))),
        ],
    );
}

#[test]
fn retention_rules_are_validated() {
    let namespace = Namespace::create("api-retention");
    let retention = |fields: Value| with("spec/retention", fields);
    for rule in ["keepLast", "keepDays", "keepWeeks", "keepMonths", "keepDaily", "keepWeekly", "keepMonthly"] {
        let field = format!("spec.retention.{rule}");
        refuses(&namespace, [0, -1].map(|value| (retention(json!({rule: value})), field.as_str())));
        takes(&namespace, [retention(json!({rule: 1})), retention(json!({rule: 1000, "dryRun": true}))]);
    }
    let days = |days: Value| retention(json!({"daysOfMonth": {"days": days}}));
    let sentence = "spec.retention.daysOfMonth.days must be between 1 and 31; write them like [1, 15]";
    let wrong = [json!([0]), json!([1, 32]), json!([-1]), json!([300])];
    refuses_once(&namespace, wrong.map(|value| (days(value), sentence)));
    refuses(&namespace, [(days(json!([])), "spec.retention.daysOfMonth.days")]);
    takes(&namespace, [days(json!([1, 15])), days(json!([31])), retention(json!({}))]);
    takes(&namespace, [retention(json!({"daysOfMonth": {"days": [1, 15], "months": 1}}))]);
}

#[test]
fn schedule_can_be_edited() {
    let namespace = Namespace::create("api-schedule-changes");
    namespace.apply(&schedule().to_string()).unwrap();
    let changes = [
        ("spec/schedule", json!("0 3 * * *")),
        ("spec/timeZone", json!("Europe/London")),
        ("spec/suspend", json!(true)),
        ("spec/retention", json!({"keepLast": 1})),
        ("spec/backupTemplate/spec/clusterName", json!("d")),
        ("spec/backupTemplate/spec/destination", json!({"objectURL": "gs://b/a.db"})),
        ("spec/backupTemplate/spec/compression", json!("Zstd")),
    ];
    takes(&namespace, changes.map(|(path, value)| with(path, value)));
}

#[test]
fn kubectl_shows_schedules() {
    let namespace = Namespace::create("api-schedule-columns");
    namespace.apply(&schedule().to_string()).unwrap();
    let expected = ["NAME", "SCHEDULE", "SUSPEND", "LAST-SUCCESS", "NEXT", "FAILURES", "AGE"];
    assert_eq!(columns(&namespace, "get ebs"), expected);
    let category = namespace.kubectl("get etcd");
    assert!(category.contains("etcdbackupschedule.etcd.improbable.io/s"), "the category lists schedules: {category}");
    let stored = namespace.get("etcdbackupschedule s")["spec"].clone();
    for (field, default) in [
        ("timeZone", json!("UTC")),
        ("concurrencyPolicy", json!("Forbid")),
        ("suspend", json!(false)),
        ("successfulBackupsHistoryLimit", json!(3)),
        ("failedBackupsHistoryLimit", json!(3)),
    ] {
        assert_eq!(stored[field], default, "{field}");
    }
}
