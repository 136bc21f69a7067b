//! Rules about `spec.etcd`, the options of etcd itself.

use kube::core::{Reason, Rule};

use super::DURATION;

/// Flags that the operator sets, or that would keep it from knowing the member that it started.
const OWNED_FLAGS: [&str; 14] = [
    "name",
    "data-dir",
    "wal-dir",
    "config-file",
    "strict-reconfig-check",
    "cert-file",
    "key-file",
    "trusted-ca-file",
    "auto-tls",
    "cipher-suites",
    "self-signed-cert-validity",
    "version",
    "help",
    "h",
];

/// Beginnings of more such flags.
const OWNED_PREFIXES: [&str; 9] =
    ["listen-", "advertise-", "initial-", "discovery", "force-new-cluster", "client-", "peer-", "tls-", "proxy"];

/// Flags that have a field of their own.
pub const FLAGS_WITH_FIELDS: [&str; 6] = [
    "quota-backend-bytes",
    "auto-compaction-mode",
    "auto-compaction-retention",
    "heartbeat-interval",
    "election-timeout",
    "snapshot-count",
];

pub fn quota_is_a_size() -> Rule {
    Rule::new(
        "isQuantity(string(self)) && quantity(string(self)).compareTo(quantity('1Mi')) >= 0 \
         && quantity(string(self)).compareTo(quantity('1Ti')) <= 0",
    )
    .message("spec.etcd.quotaBackendBytes must be a size between 1Mi and 1Ti; write it with its unit, like 4Gi")
}

/// The bounds of two lengths of time, in milliseconds.
const HEARTBEAT: (u32, u32) = (10, 10_000);
const ELECTION: (u32, u32) = (50, 50_000);

/// A length of time in milliseconds. A number without a unit is one already.
fn milliseconds(path: &str) -> String {
    let text = format!("string({path})");
    format!("duration({text}.matches('^[0-9]+$') ? {text} + 'ms' : {text}).getMilliseconds()")
}

/// The condition that there is a length of time within these bounds.
fn is_between(path: &str, (least, most): (u32, u32)) -> String {
    let milliseconds = milliseconds(path);
    format!(
        "string({path}).matches('^([0-9]{{1,6}}|([0-9]{{1,6}}(h|ms|m|s))+)$') \
         && {milliseconds} >= {least} && {milliseconds} <= {most}"
    )
}

pub fn heartbeat_is_in_range() -> Rule {
    Rule::new(is_between("self", HEARTBEAT)).message(
        "spec.etcd.heartbeatInterval must be between 10ms and 10s; write it like 500ms, which is enough for slow networks \
         and disks; etcd's own default is 100ms",
    )
}

pub fn election_timeout_is_in_range() -> Rule {
    Rule::new(is_between("self", ELECTION)).message(
        "spec.etcd.electionTimeout must be between 50ms and 50s; write it like 2500ms, which is enough for slow networks and \
         disks; etcd's own default is 1s",
    )
}

/// Says nothing about numbers that are out of range. What is absent counts with etcd's default.
pub fn election_waits_for_heartbeats() -> Rule {
    let (heartbeat, election) = ("self.heartbeatInterval", "self.electionTimeout");
    Rule::new(format!(
        "(has({heartbeat}) && !({})) || (has({election}) && !({})) \
         || (has({election}) ? {} : 1000) >= 5 * (has({heartbeat}) ? {} : 100)",
        is_between(heartbeat, HEARTBEAT),
        is_between(election, ELECTION),
        milliseconds(election),
        milliseconds(heartbeat),
    ))
    .message(
        "spec.etcd.electionTimeout (1s unless set) must be at least 5 times spec.etcd.heartbeatInterval (100ms unless set); \
         raise the first or lower the second",
    )
    .field_path(".electionTimeout")
}

pub fn snapshot_count_is_in_range() -> Rule {
    Rule::new("self >= 1 && self <= 10000000").message(
        "spec.etcd.snapshotCount must be between 1 and 10000000; leave it out unless you know why, or choose a number \
         such as 10000",
    )
}

pub fn retention_is_given() -> Rule {
    Rule::new("has(self.retention)")
        .message(
            "spec.etcd.autoCompaction.retention is missing; say how much history to keep, for example \"1h\", or \
             \"1000\" with mode Revision",
        )
        .field_path(".retention")
        .reason(Reason::FieldValueRequired)
}

pub fn periodic_retention_is_a_duration() -> Rule {
    Rule::new(format!(
        "self.mode != 'Periodic' || !has(self.retention) \
         || (self.retention.matches('{DURATION}') && duration(self.retention) > duration('0s'))"
    ))
    .message(
        "spec.etcd.autoCompaction.retention must be a duration greater than zero with mode Periodic; write it like \
         \"1h\" or \"30m\", or set spec.etcd.autoCompaction.mode to Revision",
    )
    .field_path(".retention")
}

pub fn revision_retention_is_a_number() -> Rule {
    Rule::new("self.mode != 'Revision' || !has(self.retention) || self.retention.matches('^[1-9][0-9]{0,11}$')")
        .message(
            "spec.etcd.autoCompaction.retention must be a number of revisions greater than zero with mode Revision; \
             write it like \"1000\", or set spec.etcd.autoCompaction.mode to Periodic",
        )
        .field_path(".retention")
}

pub fn extra_args_are_named_like_flags() -> Rule {
    Rule::new("self.all(name, name.matches('^[a-z][a-z0-9-]*$'))").message(
        "spec.etcd.extraArgs must have the names of flags without leading dashes and without =, in lower case; write \
         them like max-txn-ops: \"256\"",
    )
}

pub fn extra_args_are_not_owned() -> Rule {
    let prefixes = OWNED_PREFIXES.map(|prefix| format!(" && !name.startsWith('{prefix}')")).concat();
    let sentence = format!(
        "spec.etcd.extraArgs must not have flags that the operator sets itself or that would make etcd another member \
         than the one that was started: {}, and all that begin with {}; remove them",
        OWNED_FLAGS.join(", "),
        OWNED_PREFIXES.join(", ")
    );
    Rule::new(format!("self.all(name, !(name in [{}]){prefixes})", quoted(&OWNED_FLAGS)))
        .message(sentence.as_str())
        .reason(Reason::FieldValueForbidden)
}

pub fn extra_args_have_no_field() -> Rule {
    Rule::new(format!("self.all(name, !(name in [{}]))", quoted(&FLAGS_WITH_FIELDS)))
        .message(
            "spec.etcd.extraArgs must not have flags that have a field of their own; set spec.etcd.quotaBackendBytes, \
             spec.etcd.autoCompaction, spec.etcd.heartbeatInterval, spec.etcd.electionTimeout or \
             spec.etcd.snapshotCount instead",
        )
        .reason(Reason::FieldValueForbidden)
}

fn quoted(flags: &[&str]) -> String {
    flags.iter().map(|flag| format!("'{flag}'")).collect::<Vec<_>>().join(", ")
}
