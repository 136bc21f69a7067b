//! Rules about `spec.recovery` and `spec.maintenance`.

use kube::core::Rule;

use super::DURATION;

pub fn replacement_waits_for_a_duration() -> Rule {
    Rule::new(at_least_ten_seconds_or_zero()).message(
        "spec.recovery.memberReplacement.after must be a duration of at least 10s, like 30s or 5m, or 0 to never replace \
         a member that may come back",
    )
}

pub fn comparison_is_not_too_often() -> Rule {
    Rule::new(at_least_ten_seconds_or_zero()).message(
        "spec.maintenance.corruptionCheck.interval must be a duration of at least 10s, like 10m or 1h, or 0 to never \
         compare the members' data",
    )
}

fn at_least_ten_seconds_or_zero() -> String {
    format!(
        "string(self) == '0' || (string(self).matches('{DURATION}') && (duration(string(self)) == duration('0s') \
         || duration(string(self)) >= duration('10s')))"
    )
}
