//! Rules about an EtcdBackupSchedule.

use kube::core::{Reason, Rule};

pub fn schedule_name_leaves_room() -> Rule {
    Rule::new("size(self.metadata.name) <= 52")
        .message(
            "metadata.name must have at most 52 characters, because the names of EtcdBackups are made from it; choose a \
             shorter name",
        )
        .field_path(".metadata.name")
}

pub fn schedule_is_given() -> Rule {
    Rule::new("has(self.schedule)")
        .message(
            "spec.schedule is missing; say when backups are taken, for example \"0 3 * * *\" for every night at three",
        )
        .field_path(".schedule")
        .reason(Reason::FieldValueRequired)
}

pub fn schedule_has_five_fields() -> Rule {
    Rule::new(r"self.matches(r'^(@(hourly|daily|weekly|monthly|yearly)|[^\s@=]+(\s+[^\s@=]+){4})$')").message(
        "spec.schedule must have five fields: minute, hour, day of the month, month and day of the week; write it like \
         \"0 3 * * *\", or @hourly, @daily, @weekly, @monthly or @yearly, and the time zone into spec.timeZone",
    )
}

pub fn time_zone_is_a_name() -> Rule {
    Rule::new("self.matches('^[A-Za-z]+([-+_/A-Za-z0-9]*[A-Za-z0-9])?$')")
        .message("spec.timeZone must be the name of a time zone; write it like UTC or Europe/London")
}

pub fn starting_deadline_is_long_enough() -> Rule {
    Rule::new("self >= 10").message(
        "spec.startingDeadlineSeconds must be at least 10, or backups would be left out for no reason; raise it or remove it",
    )
}

pub fn successful_history_limit_is_in_range() -> Rule {
    is_history_limit("successfulBackupsHistoryLimit")
}

pub fn failed_history_limit_is_in_range() -> Rule {
    is_history_limit("failedBackupsHistoryLimit")
}

fn is_history_limit(field: &str) -> Rule {
    Rule::new("self >= 0 && self <= 100").message(format!(
        "spec.{field} must be between 0 and 100; it is about EtcdBackup objects, and spec.retention about what is stored"
    ).as_str())
}

pub fn backup_template_is_given() -> Rule {
    Rule::new("has(self.backupTemplate)")
        .message("spec.backupTemplate is missing; write the spec of an EtcdBackup into spec.backupTemplate.spec")
        .field_path(".backupTemplate")
        .reason(Reason::FieldValueRequired)
}

/// The earlier form has no `spec`; then a destination is all that can be missing.
pub fn backup_template_has_one_form() -> Rule {
    Rule::new("!has(self.spec) || !(has(self.clusterName) || has(self.source) || has(self.destination))")
        .message(
            "spec.backupTemplate must have either spec or the fields of an earlier form, clusterName, source and \
             destination; move those into spec.backupTemplate.spec",
        )
        .reason(Reason::FieldValueForbidden)
}

pub fn earlier_template_is_whole() -> Rule {
    Rule::new("has(self.spec) || (has(self.destination) && has(self.clusterName) != has(self.source))").message(
        "spec.backupTemplate.spec is missing; write the spec of an EtcdBackup there: clusterName or source.clusterURL, \
         and destination",
    )
}

pub fn encrypted_backups_can_be_verified() -> Rule {
    Rule::new(
        "!has(self.verifyEvery) || !has(self.backupTemplate) || !has(self.backupTemplate.spec) \
         || !has(self.backupTemplate.spec.encryption) || has(self.backupTemplate.spec.decryption) \
         || self.backupTemplate.spec.verify == 'Restore'",
    )
    .message(
        "spec.backupTemplate.spec.decryption is missing; an encrypted backup can be verified only with a private key, so \
         set spec.backupTemplate.spec.decryption.age.identitySecretKeyRef, or remove spec.verifyEvery",
    )
    .field_path(".backupTemplate")
    .reason(Reason::FieldValueRequired)
}

pub fn days_are_in_a_month() -> Rule {
    Rule::new("self.all(day, day >= 1 && day <= 31)")
        .message("spec.retention.daysOfMonth.days must be between 1 and 31; write them like [1, 15]")
}
