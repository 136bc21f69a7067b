//! What has to precede any change to a member: the desired version is found possible and accepted, after a backup if
//! that may be irreversible.

use etcd_operator_api::WaitReason;

use crate::cluster::observed::{BackupFirst, Observed};
use crate::cluster::step::{ClusterStep, Plan, Step};
use crate::cluster::versions::{VersionDecision, decide_version};

/// What has to precede any change to a member: nothing if the desired version is possible and accepted.
pub fn before_any_change(observed: &Observed) -> Plan {
    match decide_version(observed) {
        VersionDecision::Possible if observed.is_version_accepted() => Plan::default(),
        VersionDecision::Possible => back_up_first(observed).or_else(|| {
            let accept = observed.wanted.version.clone().map(ClusterStep::AcceptVersion);
            Plan::steps(accept.map(Step::Cluster).into_iter().collect())
        }),
        VersionDecision::Prepare(step) => Plan::steps(vec![step]),
        VersionDecision::Wait(waiting) => Plan { steps: Vec::new(), waiting: Some(waiting) },
        VersionDecision::Refused(why) => Plan::waiting(WaitReason::ChangeRefused, why),
    }
}

/// What has to precede accepting another minor version, which may be irreversible.
fn back_up_first(observed: &Observed) -> Plan {
    match &observed.objects.backup_first {
        BackupFirst::NotRequired | BackupFirst::Taken => Plan::default(),
        BackupFirst::ToTake => Plan::steps(vec![Step::Cluster(ClusterStep::TakeBackup)]),
        BackupFirst::Running(name) => {
            Plan::waiting(WaitReason::BackingUp, format!("waiting for EtcdBackup {name} before the upgrade"))
        }
        BackupFirst::Failed { name, message } => Plan::waiting(
            WaitReason::UpgradeBackupFailed,
            format!(
                "upgrade held: EtcdBackup {name} failed: {message}. Delete the EtcdBackup to retry, or set spec.upgrade.backupFirst to false to upgrade without a backup"
            ),
        ),
        BackupFirst::InvalidSchedule { name, why } => Plan::waiting(
            WaitReason::UpgradeBackupFailed,
            format!(
                "upgrade held: EtcdBackupSchedule {name} is invalid: {why}. Correct it, or set spec.upgrade.backupFirst to false to upgrade without a backup"
            ),
        ),
        BackupFirst::NoSchedule => Plan::waiting(
            WaitReason::UpgradeBackupFailed,
            "upgrade held: spec.upgrade.backupFirst is true, but no EtcdBackupSchedule backs up this cluster. Create one, or set spec.upgrade.backupFirst to false to upgrade without a backup",
        ),
    }
}

/// What has to precede creating the first member of a new EtcdCluster. A recreated one continues with the data that it
/// finds, if the version in its spec can read it.
pub fn adopt_version(observed: &Observed) -> Option<Plan> {
    let is_not_bootstrapped = observed.recorded.cluster_id.is_none() && !observed.is_version_accepted();
    let is_new = observed.objects.peers.is_empty() && (observed.recorded.version.is_none() || is_not_bootstrapped);
    let plan = before_any_change(observed);
    // A bootstrap that has started continues with the version that it started with.
    let goes_on = observed.recorded.version.is_some() && plan.steps.is_empty();
    Some(plan).filter(|plan| is_new && !goes_on && *plan != Plan::default())
}
