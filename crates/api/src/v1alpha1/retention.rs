//! Which backups of a schedule are kept in the place where they are.

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::validation;
use crate::schema;

/// Which backups are kept: those that any of the rules keeps.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Retention {
    /// Optional. Keeps the newest ones: so many.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 100_000), transform = schema::plain_number)]
    pub keep_last: Option<u32>,

    /// Optional. Keeps all that are not older than so many days, to the hour and minute.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 36_500), transform = schema::plain_number)]
    pub keep_days: Option<u32>,

    /// Optional. Keeps all that are not older than so many weeks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 5_200), transform = schema::plain_number)]
    pub keep_weeks: Option<u32>,

    /// Optional. Keeps all that are not older than so many months.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1_200), transform = schema::plain_number)]
    pub keep_months: Option<u32>,

    /// Optional. Keeps the last one of each day, for the last so many days that have one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 36_500), transform = schema::plain_number)]
    pub keep_daily: Option<u32>,

    /// Optional. Keeps the last one of each week, for the last so many weeks that have one. A week begins on Monday.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 5_200), transform = schema::plain_number)]
    pub keep_weekly: Option<u32>,

    /// Optional. Keeps the last one of each month, for the last so many months that have one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1_200), transform = schema::plain_number)]
    pub keep_monthly: Option<u32>,

    /// Optional. Keeps the last one of each of some days, in this month and in some months before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub days_of_month: Option<DaysOfMonth>,

    /// Optional. `true` deletes nothing and says in the status of each EtcdBackup what would have been deleted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dry_run: bool,
}

/// Some days of the month.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DaysOfMonth {
    /// Required. The days, for example `[1, 15]`. A month that has no such day has no backup of it.
    #[schemars(length(min = 1, max = 31), transform = schema::plain_numbers)]
    #[x_kube(validation = validation::days_are_in_a_month())]
    pub days: Vec<u8>,

    /// Optional. How many months before this one it is about as well.
    #[serde(default)]
    #[schemars(range(max = 1_200), transform = schema::plain_number)]
    pub months: u32,
}

/// What retention did with earlier backups once one was taken.
#[derive(JsonSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RetentionResult {
    /// How many backups of the schedule there are now.
    pub kept: i32,

    /// How many were deleted.
    pub deleted: i32,

    /// In a dry run: which would have been deleted, as far as there is room to say so.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub would_delete: Vec<String>,
}
