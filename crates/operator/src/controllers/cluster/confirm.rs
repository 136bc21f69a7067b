//! Confirms a step with a live observation that bypasses all caches, before it is taken.

use etcd_operator_api::{EtcdCluster, WaitReason};
use etcd_operator_core::cluster::corruption_history::Occasion;
use etcd_operator_core::cluster::observed::MemberId;
use etcd_operator_core::cluster::plan::{Step, Waiting, is_confirmed, plan};
use etcd_operator_core::cluster::step::MemberStep;
use etcd_operator_core::ordinal::Ordinal;
use kube::ResourceExt;

use super::actor::Actor;
use super::errors::{Error, api_error};
use super::member_objects::MemberObjects;
use super::observe::{every_so_often, observe};
use super::remember::remember;

impl Actor<'_> {
    /// A cache may be stale. Checks with a live observation of Kubernetes and etcd whether the step would still be
    /// planned.
    pub(super) async fn confirm(&self, step: &Step) -> Result<(), Error> {
        let cluster = self.live_cluster().await?;
        let cluster = cluster.ok_or_else(|| Error::OutOfDate("the EtcdCluster is gone".into()))?;
        let observed = &self.observation.observed;
        let members = observed.etcd.membership.iter().flat_map(|membership| &membership.members);
        let mut ordinals = self.observation.objects.ordinals();
        ordinals.extend(members.filter_map(|member| member.ordinal));
        ordinals.extend(Ordinal::first(observed.wanted.replicas));
        let objects = MemberObjects::live(&self.context.client, &observed.names, &ordinals).await?;
        let corrupt = |id: &MemberId| observed.remembered.differing.contains(id);
        let occasion = match step {
            Step::Member(_, MemberStep::RemoveMember { member_id, .. }) if corrupt(member_id) => {
                Occasion::BeforeReplacement
            }
            _ => every_so_often(&cluster),
        };
        let mut live = observe(&cluster, observed.names.clone(), objects, self.context, occasion).await;
        remember(&mut live, occasion, &self.memory);
        let mut live = live.observed;
        // It was decided for this reconcile whether this cluster may restart members.
        live.remembered.has_rollout_slot = observed.remembered.has_rollout_slot;
        if is_confirmed(step, &live) {
            return Ok(());
        }
        // Something that the caches don't show is in the way, and only a user can remove it.
        let is_refusal = |waiting: &Waiting| waiting.reason == WaitReason::VolumesConflict;
        if let Some(refusal) = plan(&live).waiting.filter(is_refusal) {
            return Err(Error::Impossible(refusal.message));
        }
        Err(Error::OutOfDate(format!("a live read does not confirm {step:?}")))
    }

    /// Reads the EtcdCluster live from the API server: one that was bootstrapped meanwhile is not bootstrapped again.
    pub(super) async fn confirm_not_bootstrapped(&self) -> Result<(), Error> {
        let not_bootstrapped =
            self.live_cluster().await?.is_some_and(|now| now.status.is_none_or(|status| status.cluster_id.is_none()));
        if not_bootstrapped { Ok(()) } else { Err(Error::OutOfDate("the cluster is bootstrapped or gone".into())) }
    }

    /// The very same EtcdCluster, read live from the API server. `None` if it is gone or being deleted.
    async fn live_cluster(&self) -> Result<Option<EtcdCluster>, Error> {
        let doing = "reading the EtcdCluster once more";
        let now: Option<EtcdCluster> =
            self.api().get_opt(&self.cluster.name_any()).await.map_err(|error| api_error(doing, error))?;
        let uid = self.cluster.uid();
        Ok(now.filter(|now| now.uid() == uid && now.metadata.deletion_timestamp.is_none()))
    }
}
