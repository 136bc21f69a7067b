//! What an EtcdCluster waits for, and what kind of wait that is.

use super::severity::{Announced, Severity};

reasons! {
    /// What an EtcdCluster waits for: the reason of its condition `Progressing`, and of the event when the wait begins.
    pub enum WaitReason {
        /// The initial members are being started.
        Bootstrapping,
        /// An earlier cluster of this name is still being deleted.
        WaitingForCleanup,
        /// Volumes of this name exist already and can't be used for this cluster.
        VolumesConflict,
        /// The members belong to another etcd cluster than the one recorded in the status.
        WrongCluster,
        /// The user has paused the cluster.
        Paused,
        /// No quorum answers: pods are restarted, nothing is removed.
        NoQuorum,
        /// A member should be removed, but the others would be no quorum without it.
        QuorumAtRisk,
        /// A member is restarted or removed once there is a leader.
        NoLeader,
        /// The leader should be removed, and no other healthy member can take over.
        NoLeaderCandidate,
        /// Another client added a learner, and etcd allows one at a time.
        UnmanagedLearner,
        /// The membership changes only after every initial member has started once.
        InitialMemberStarting,
        /// A new member has joined as a learner and is starting.
        LearnerStarting,
        /// A learner copies the data before it may vote.
        LearnerCatchingUp,
        /// The pod of a member that is replaced is still terminating.
        OldPodTerminating,
        /// The claim of a member that is replaced is still being deleted.
        OldClaimTerminating,
        /// The EtcdPeer of a member that is replaced is still being deleted.
        OldPeerTerminating,
        /// A member has to be replaced, but was replaced not long ago.
        ReplacementBackoff,
        /// A version change or a migration of volumes begins when all members are healthy.
        WaitingForHealthyMembers,
        /// A rollout waits until a member is healthy, or until another member serves clients.
        RollingOut,
        /// A restarted member's pod can't run, so no other member is restarted.
        RolloutHalted,
        /// As many other clusters as allowed restart members now.
        RolloutQueued,
        /// The last restarted member is not healthy yet.
        MemberStarting,
        /// Clients are sent to other members before a restart.
        Draining,
        /// The backup before an upgrade runs.
        BackingUp,
        /// The backup before an upgrade failed, or no schedule says where it goes.
        UpgradeBackupFailed,
        /// The members write snapshots, or have not agreed on the version in between yet.
        PreparingUpgrade,
        /// etcd makes its data readable for the earlier version.
        PreparingDowngrade,
        /// etcd has not reported yet which version its members agree on.
        VersionUnknown,
        /// etcd can't go to this version or take these flags, or the only member would lose its data.
        ChangeRefused,
        /// A member reports another version than the tag of its image says.
        ImageVersionMismatch,
        /// A volume should grow, and its storage class does not allow it.
        VolumeExpansionUnsupported,
        /// A volume can't become what the spec asks for.
        VolumeMismatch,
    }
}

/// How soon a wait is likely to be over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// By itself, within seconds: it is looked at again within 500 ms.
    Short,
    /// Later, or not before somebody acts.
    Long,
}

impl WaitReason {
    pub const fn pace(self) -> Pace {
        match self {
            WaitReason::Bootstrapping
            | WaitReason::WaitingForCleanup
            | WaitReason::LearnerStarting
            | WaitReason::LearnerCatchingUp
            | WaitReason::OldPodTerminating
            | WaitReason::OldClaimTerminating
            | WaitReason::OldPeerTerminating
            | WaitReason::RollingOut
            | WaitReason::MemberStarting
            | WaitReason::Draining
            | WaitReason::BackingUp
            | WaitReason::PreparingUpgrade
            | WaitReason::PreparingDowngrade => Pace::Short,
            WaitReason::VolumesConflict
            | WaitReason::WrongCluster
            | WaitReason::Paused
            | WaitReason::NoQuorum
            | WaitReason::QuorumAtRisk
            | WaitReason::NoLeader
            | WaitReason::NoLeaderCandidate
            | WaitReason::UnmanagedLearner
            | WaitReason::InitialMemberStarting
            | WaitReason::ReplacementBackoff
            | WaitReason::WaitingForHealthyMembers
            | WaitReason::RolloutHalted
            | WaitReason::RolloutQueued
            | WaitReason::UpgradeBackupFailed
            | WaitReason::VersionUnknown
            | WaitReason::ChangeRefused
            | WaitReason::ImageVersionMismatch
            | WaitReason::VolumeExpansionUnsupported
            | WaitReason::VolumeMismatch => Pace::Long,
        }
    }

    /// Whether no progress is made until a user changes something. `Progressing` is False then.
    pub const fn needs_user_action(self) -> bool {
        match self {
            WaitReason::VolumesConflict
            | WaitReason::WrongCluster
            | WaitReason::Paused
            | WaitReason::RolloutHalted
            | WaitReason::UpgradeBackupFailed
            | WaitReason::ChangeRefused
            | WaitReason::ImageVersionMismatch
            | WaitReason::VolumeExpansionUnsupported
            | WaitReason::VolumeMismatch => true,
            WaitReason::Bootstrapping
            | WaitReason::WaitingForCleanup
            | WaitReason::NoQuorum
            | WaitReason::QuorumAtRisk
            | WaitReason::NoLeader
            | WaitReason::NoLeaderCandidate
            | WaitReason::UnmanagedLearner
            | WaitReason::InitialMemberStarting
            | WaitReason::LearnerStarting
            | WaitReason::LearnerCatchingUp
            | WaitReason::OldPodTerminating
            | WaitReason::OldClaimTerminating
            | WaitReason::OldPeerTerminating
            | WaitReason::ReplacementBackoff
            | WaitReason::WaitingForHealthyMembers
            | WaitReason::RollingOut
            | WaitReason::RolloutQueued
            | WaitReason::MemberStarting
            | WaitReason::Draining
            | WaitReason::BackingUp
            | WaitReason::PreparingUpgrade
            | WaitReason::PreparingDowngrade
            | WaitReason::VersionUnknown => false,
        }
    }

    /// Whether the event of the step before it has already reported it.
    pub const fn is_reported_by_its_step(self) -> bool {
        matches!(self, WaitReason::Draining)
    }
}

impl Announced for WaitReason {
    fn severity(&self) -> Severity {
        match self {
            WaitReason::VolumesConflict
            | WaitReason::WrongCluster
            | WaitReason::NoQuorum
            | WaitReason::QuorumAtRisk
            | WaitReason::NoLeaderCandidate
            | WaitReason::UnmanagedLearner
            | WaitReason::RolloutHalted
            | WaitReason::UpgradeBackupFailed
            | WaitReason::ChangeRefused
            | WaitReason::ImageVersionMismatch
            | WaitReason::VolumeExpansionUnsupported
            | WaitReason::VolumeMismatch => Severity::Warning,
            WaitReason::Bootstrapping
            | WaitReason::WaitingForCleanup
            | WaitReason::Paused
            | WaitReason::NoLeader
            | WaitReason::InitialMemberStarting
            | WaitReason::LearnerStarting
            | WaitReason::LearnerCatchingUp
            | WaitReason::OldPodTerminating
            | WaitReason::OldClaimTerminating
            | WaitReason::OldPeerTerminating
            | WaitReason::ReplacementBackoff
            | WaitReason::WaitingForHealthyMembers
            | WaitReason::RollingOut
            | WaitReason::RolloutQueued
            | WaitReason::MemberStarting
            | WaitReason::Draining
            | WaitReason::BackingUp
            | WaitReason::PreparingUpgrade
            | WaitReason::PreparingDowngrade
            | WaitReason::VersionUnknown => Severity::Normal,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_must_act_is_not_asked_twice_a_second_and_warned_unless_they_paused_it() {
        for reason in WaitReason::ALL.iter().filter(|reason| reason.needs_user_action()) {
            assert_eq!(reason.pace(), Pace::Long, "{reason}");
            let expected = if *reason == WaitReason::Paused { Severity::Normal } else { Severity::Warning };
            assert_eq!(reason.severity(), expected, "{reason}");
        }
    }

    #[test]
    fn nobody_is_warned_of_what_is_over_within_seconds() {
        for reason in WaitReason::ALL.iter().filter(|reason| reason.pace() == Pace::Short) {
            assert_eq!(reason.severity(), Severity::Normal, "{reason}");
        }
    }

    #[test]
    fn reasons_read_as_they_are_spelled() {
        assert_eq!(WaitReason::OldPodTerminating.to_string(), "OldPodTerminating");
        assert_eq!(WaitReason::NoQuorum.as_ref(), "NoQuorum");
    }
}
