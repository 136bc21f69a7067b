//! How the operator looks after a cluster by itself: when it replaces members, and what it does to keep them fit.

use std::time::Duration;

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::validation;
use crate::{duration, schema};

const REPLACE_AFTER: Duration = Duration::from_secs(5 * 60);
const COMPARE_EVERY: Duration = Duration::from_secs(10 * 60);

/// What is done about members that do not come back.
#[derive(JsonSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Recovery {
    /// Optional. When a member is replaced by a new one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub member_replacement: Option<MemberReplacement>,
}

/// When a member is replaced by a new one.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MemberReplacement {
    /// Optional. How long a member may be out of reach before a new one takes its place, for example `30s` or `10m`: its
    /// node is down, or it does not answer although its pod was restarted. The default is `5m`, the least `10s`; `0` never gives up a
    /// member that may still have its data. It happens only while the other members have a quorum. A member whose data
    /// is known to be lost is replaced at once, whatever this says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(transform = schema::bound_duration)]
    #[x_kube(validation = validation::replacement_waits_for_a_duration())]
    pub after: Option<IntOrString>,
}

/// What is done to keep members fit.
#[derive(JsonSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Maintenance {
    /// Optional. Whether databases that are mostly empty space are defragmented, one member after the other and the
    /// leader last, while all of them are healthy; and whether etcd may write again once that has made room after the
    /// quota was used up. The default is `true`. A member does not serve while it is defragmented.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auto_defragment: Option<bool>,

    /// Optional. How the members' data is compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub corruption_check: Option<CorruptionCheck>,
}

/// How the members' data is compared.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CorruptionCheck {
    /// Optional. How often the members' data is compared, for example `1h`: `10m` unless set, at least `10s`, and `0` for
    /// never. A member that differs from a majority of the others is replaced. Databases of more than 512Mi are not
    /// compared, because reading them would slow the members.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(transform = schema::bound_duration)]
    #[x_kube(validation = validation::comparison_is_not_too_often())]
    pub interval: Option<IntOrString>,
}

/// After how long a member that is out of reach is replaced. `None`: never.
pub fn replace_after(recovery: Option<&Recovery>) -> Option<Duration> {
    let after = recovery.and_then(|recovery| recovery.member_replacement.as_ref()?.after.as_ref());
    time_or_never(after, REPLACE_AFTER)
}

/// How often the members' data is compared. `None`: never.
pub fn compare_every(maintenance: Option<&Maintenance>) -> Option<Duration> {
    let interval = maintenance.and_then(|maintenance| maintenance.corruption_check.as_ref()?.interval.as_ref());
    time_or_never(interval, COMPARE_EVERY)
}

fn time_or_never(written: Option<&IntOrString>, default: Duration) -> Option<Duration> {
    let time = written.map_or(Some(default), duration::parse).unwrap_or(default);
    Some(time).filter(|time| !time.is_zero())
}
