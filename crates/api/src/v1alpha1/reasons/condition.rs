//! The reasons of an EtcdCluster's conditions, other than those of waiting.

reasons! {
    /// A reason of the conditions `Available`, `Degraded` and `Progressing` of an EtcdCluster. While the cluster waits,
    /// `Progressing` has a [`WaitReason`](super::WaitReason) instead.
    pub enum ConditionReason {
        /// Available: a quorum of the voters answers.
        QuorumAvailable,
        /// Not available: the initial members have not formed the etcd cluster yet. Also progressing: they are about to.
        Bootstrapping,
        /// Not available: no quorum answers, but enough members still have their data.
        NoQuorum,
        /// Not available: too many members lost their data for the rest to ever be a quorum again.
        QuorumLost,
        /// Not available, and degraded: a database has reached its quota, and etcd refuses writes.
        NoSpace,
        /// Not available: the members' data differs, and etcd refuses writes.
        Corrupt,
        /// Not degraded: no member is known to be unhealthy.
        AllMembersHealthy,
        /// Degraded: the message lists the unhealthy members.
        MembersUnhealthy,
        /// Not progressing: all members match the spec.
        UpToDate,
        /// Progressing: the initial members formed the etcd cluster.
        Bootstrapped,
        /// Progressing: an EtcdPeer, claim or pod is being created.
        StartingMember,
        /// Progressing: a member is being added as a learner.
        AddingMember,
        /// Progressing: a learner is being promoted to voter.
        PromotingMember,
        /// Progressing: the leadership moves to another member.
        MovingLeader,
        /// Progressing: a member is being removed from etcd.
        RemovingMember,
        /// Progressing: a member is drained, or its pod is recreated, because something changed.
        RecreatingMember,
        /// Progressing: the pod of a member that does not answer is being restarted.
        RestartingPod,
        /// Progressing: a pod that ended, or whose member was removed, is being deleted.
        StoppingPod,
        /// Progressing: a running pod gets other labels, annotations or resources.
        UpdatingPod,
        /// Progressing: a claim requests more space.
        ExpandingVolume,
        /// Progressing: the claim or the EtcdPeer of a removed member is being deleted.
        CleaningUp,
        /// Progressing: the backup before an upgrade is being taken.
        BackingUp,
        /// Progressing: the version in the spec was found possible and is rolled out next.
        ChangingVersion,
        /// Progressing: etcd is asked to make its data readable for an earlier version.
        EnablingDowngrade,
        /// Progressing: etcd is told that there is no downgrade for now.
        CancellingDowngrade,
        /// Progressing: a database is being defragmented.
        Defragmenting,
        /// Progressing: an alarm of etcd whose cause is gone is being disarmed.
        DisarmingAlarm,
    }
}
