//! What the operator says in events about an EtcdCluster.

use super::severity::{Announced, Severity};

reasons! {
    /// What an event about an EtcdCluster says was done, or failed. That it waits is an event with a
    /// [`WaitReason`](super::WaitReason), that it is not available one with a
    /// [`ConditionReason`](super::ConditionReason).
    pub enum EventReason {
        /// The initial members formed the etcd cluster.
        ClusterCreated,
        /// A Service of the cluster was created.
        ServiceCreated,
        /// The PodDisruptionBudget was created.
        PodDisruptionBudgetCreated,
        /// An EtcdPeer was created.
        PeerCreated,
        /// An EtcdPeer was deleted.
        PeerRemoved,
        /// A volume claim was created.
        PVCCreated,
        /// The volume claim of a removed member was deleted.
        PVCDeleted,
        /// A pod was created.
        PodCreated,
        /// A pod was deleted; the note says why.
        PodDeleted,
        /// The pod of a member that does not answer was deleted, to start again.
        PodRestarted,
        /// A pod on a node that is down or out of service was deleted without waiting for the node.
        PodForceDeleted,
        /// A running pod got its new labels and annotations.
        PodRelabelled,
        /// Kubernetes was asked to resize a running pod.
        PodResized,
        /// Kubernetes does not resize this pod as it runs, so its member is restarted.
        ResizeRefused,
        /// A volume claim was asked to grow.
        VolumeExpanded,
        /// A member was added to etcd as a learner.
        MemberAdded,
        /// A learner has caught up and votes.
        MemberPromoted,
        /// A member was removed from etcd; the note says why.
        MemberRemoved,
        /// A member runs this version of etcd now.
        MemberRunning,
        /// Clients are sent to other members before a restart.
        DrainingMember,
        /// The EtcdPeer and pod of a member were deleted, to be recreated as the spec asks for.
        RecreatingMember,
        /// Leadership was moved to another member.
        LeaderMoved,
        /// The version in the spec is possible and rolls out.
        VersionAccepted,
        /// Etcd was asked to make its data readable for the earlier version.
        DowngradeEnabled,
        /// Etcd was told that there is no downgrade for now.
        DowngradeCancelled,
        /// All members match the spec.
        UpToDate,
        /// The EtcdBackup before the upgrade was created.
        BackingUp,
        /// A database was defragmented.
        Defragmented,
        /// An alarm of etcd was disarmed.
        AlarmDisarmed,
        /// Etcd refused a change of the members for now. It is tried again.
        EtcdNotReady,
        /// A reconcile failed; the note says at what. It is tried again, later each time.
        ReconcileFailed,
        /// A database is being defragmented, which takes longer than 15 s.
        Defragmenting,
    }
}

impl Announced for EventReason {
    fn severity(&self) -> Severity {
        match self {
            EventReason::EtcdNotReady | EventReason::ReconcileFailed => Severity::Warning,
            EventReason::ClusterCreated
            | EventReason::ServiceCreated
            | EventReason::PodDisruptionBudgetCreated
            | EventReason::PeerCreated
            | EventReason::PeerRemoved
            | EventReason::PVCCreated
            | EventReason::PVCDeleted
            | EventReason::PodCreated
            | EventReason::PodDeleted
            | EventReason::PodRestarted
            | EventReason::PodForceDeleted
            | EventReason::PodRelabelled
            | EventReason::PodResized
            | EventReason::ResizeRefused
            | EventReason::VolumeExpanded
            | EventReason::MemberAdded
            | EventReason::MemberPromoted
            | EventReason::MemberRemoved
            | EventReason::MemberRunning
            | EventReason::DrainingMember
            | EventReason::RecreatingMember
            | EventReason::LeaderMoved
            | EventReason::VersionAccepted
            | EventReason::DowngradeEnabled
            | EventReason::DowngradeCancelled
            | EventReason::UpToDate
            | EventReason::BackingUp
            | EventReason::Defragmented
            | EventReason::AlarmDisarmed
            | EventReason::Defragmenting => Severity::Normal,
        }
    }
}
