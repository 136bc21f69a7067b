//! Conditions as Kubernetes defines them: statements about an object, with the time since which they hold.

use etcd_operator_api::Reason;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

/// A statement about an object, not yet dated.
pub struct Statement {
    type_: &'static str,
    holds: bool,
    reason: Reason,
    message: String,
}

impl Statement {
    pub fn yes(type_: &'static str, reason: impl Into<Reason>, message: impl Into<String>) -> Self {
        Statement { type_, holds: true, reason: reason.into(), message: message.into() }
    }

    pub fn no(type_: &'static str, reason: impl Into<Reason>, message: impl Into<String>) -> Self {
        Statement { type_, holds: false, reason: reason.into(), message: message.into() }
    }
}

/// The conditions that follow from the current statements, keeping the time since which a statement has held or not
/// held.
pub fn conditions_after(
    previous: &[Condition],
    statements: &[Statement],
    generation: Option<i64>,
    now: &Time,
) -> Vec<Condition> {
    statements.iter().map(|statement| condition_after(previous, statement, generation, now)).collect()
}

fn condition_after(previous: &[Condition], statement: &Statement, generation: Option<i64>, now: &Time) -> Condition {
    let status = if statement.holds { "True" } else { "False" };
    let unchanged = previous.iter().find(|old| old.type_ == statement.type_ && old.status == status);
    Condition {
        type_: statement.type_.into(),
        status: status.into(),
        reason: statement.reason.to_string(),
        message: statement.message.clone(),
        observed_generation: generation,
        last_transition_time: unchanged.map_or_else(|| now.clone(), |old| old.last_transition_time.clone()),
    }
}
