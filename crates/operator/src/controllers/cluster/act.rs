//! The third step of a reconcile: execute the plan, one step after another, and publish an event for each.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;

use etcd_operator_api::{
    BootstrapRecord, EtcdCluster, EtcdClusterStatus, EtcdPeer, EventReason, WaitReason, format_id,
};
use etcd_operator_core::cluster::observed::{Bootstrap, ExpectedData, Identity, Replacement};
use etcd_operator_core::cluster::plan::{Model, Start, Step, is_confirmed, plan};
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use kube::api::{DeleteParams, Patch, PostParams, Preconditions};
use kube::core::NamespaceResourceScope;
use kube::{Api, Resource, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::member_objects::MemberObjects;
use super::observe::{CorruptionCheck, Observation, observe};
use super::patches::{self, MetadataPatch, ObjectPatch, PeerRecord, StatusPatch};
use super::report;
use crate::controllers::context::Context;
use crate::objects::annotations::{
    DATA_VERSION, LEAVING_SINCE, ROLE, of_expected_data, of_identity, read_bootstrap, read_identity, role,
};
use crate::objects::peer::Recipe;
use crate::objects::{claim, is_pod_of, member_labels, peer, pod};
use crate::runtime::api_errors::describe;
use crate::runtime::strict;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{doing}: {}", describe(.source))]
    Api { doing: String, source: Box<kube::Error> },
    #[error("{doing}: {source}")]
    Etcd { doing: String, source: Box<etcd_operator_etcd::Error> },
    /// The state has changed since the plan was made. The next reconcile makes another plan.
    #[error("{0}, so the plan is out of date")]
    OutOfDate(String),
    /// etcd reports that it is too early: it requires the members to have been connected for some seconds before a
    /// change.
    #[error("{0}")]
    TooEarly(String),
    #[error("{0}")]
    Impossible(String),
}

/// Everything that steps need to be executed.
pub struct Actor<'a> {
    pub context: &'a Context,
    pub cluster: &'a EtcdCluster,
    pub observation: &'a Observation,
    /// EtcdPeers created by earlier steps of the same plan, which are not in the cache yet.
    made: BTreeMap<u32, Arc<EtcdPeer>>,
}

impl<'a> Actor<'a> {
    pub fn new(context: &'a Context, cluster: &'a EtcdCluster, observation: &'a Observation) -> Self {
        Actor { context, cluster, observation, made: BTreeMap::new() }
    }

    pub async fn carry_out(&mut self, step: &Step) -> Result<(), Error> {
        if step.needs_live_confirmation() {
            self.confirm(step).await?;
        }
        match step {
            Step::RecordBootstrap(bootstrap) => {
                let size = i32::try_from(bootstrap.size).unwrap_or(i32::MAX);
                let bootstrap = BootstrapRecord { token: bootstrap.token.clone(), size };
                let version = self.cluster.spec.version.clone();
                self.record(|status| {
                    status.bootstrap = Some(bootstrap);
                    status.oldest_log_version = Some(version.clone());
                    status.target_version = Some(version);
                })
                .await
            }
            Step::RecordClusterId(id) => {
                let id = format_id(*id);
                self.record(|status| status.cluster_id = Some(id.clone())).await?;
                self.tell(
                    EventReason::ClusterCreated,
                    &self.cluster.name_any(),
                    format!("Members formed etcd cluster {id}"),
                )
                .await
            }
            Step::CreatePeer { ordinal, initial, model } => self.create_peer(*ordinal, *initial, model).await,
            Step::RecordMember { ordinal, identity, started } => {
                self.record_member(*ordinal, *identity, *started).await
            }
            Step::CreateClaim { ordinal, bootstrap, identity } => {
                self.create_claim(*ordinal, bootstrap.as_ref(), *identity).await
            }
            Step::MarkClaim { ordinal, identity, version } => {
                let mut notes = of_identity(Some(*identity));
                notes.extend(version.iter().map(|version| (DATA_VERSION.to_owned(), version.clone())));
                self.patch::<PersistentVolumeClaim>(&self.name(*ordinal), &ObjectPatch::of_annotations(notes)).await
            }
            Step::CreatePod { ordinal, start } => self.create_pod(*ordinal, start).await,
            Step::AnnotatePod { ordinal, expected, serves_clients } => {
                self.annotate_pod(*ordinal, *expected, *serves_clients).await
            }
            Step::DrainPod { ordinal } => self.drain_pod(*ordinal).await,
            Step::RecreatePeer { ordinal, why } => self.recreate_peer(*ordinal, why).await,
            Step::Relabel { ordinal } => self.relabel(*ordinal).await,
            Step::Resize { ordinal } => self.resize(*ordinal).await,
            Step::GrowClaim { ordinal } => self.grow_claim(*ordinal).await,
            Step::AcceptVersion(version) => self.accept_version(version).await,
            Step::TakeBackup => self.take_backup().await,
            Step::RecordLogVersion(version) => {
                self.record(|status| status.oldest_log_version = Some(version.clone())).await
            }
            Step::EnableDowngrade(version) => self.enable_downgrade(version).await,
            Step::CancelDowngrade => self.cancel_downgrade().await,
            Step::DeletePod { ordinal, why } => self.delete_pod(*ordinal, None, EventReason::PodDeleted, why).await,
            // No grace period is needed: the member hangs.
            Step::RestartPod { ordinal, why } => {
                self.delete_pod(*ordinal, Some(1), EventReason::PodRestarted, why).await
            }
            Step::FencePod { ordinal, why } => {
                self.delete_pod(*ordinal, Some(0), EventReason::PodForceDeleted, why).await
            }
            Step::DeleteClaim { ordinal } => self.delete_claim(*ordinal).await,
            Step::DeletePeer { ordinal } => {
                let name = self.name(*ordinal);
                let uid = self.observation.objects.peers.get(ordinal).and_then(|peer| peer.uid());
                self.delete::<EtcdPeer>(&name, uid, None).await?;
                self.tell(EventReason::PeerRemoved, &name, format!("Removed the EtcdPeer {name}")).await
            }
            Step::AddLearner { ordinal } => self.add_learner(*ordinal).await,
            Step::Promote { ordinal, member_id } => self.promote(*ordinal, *member_id).await,
            Step::MoveLeader { from, to, to_id } => self.move_leader(*from, *to, *to_id).await,
            Step::RecordReplacement { ordinal, replacement } => self.record_replacement(*ordinal, replacement).await,
            Step::RemoveMember { ordinal, member_id, why } => self.remove_member(*ordinal, *member_id, why).await,
            Step::RecordDefragmentation { ordinal, defragmentation } => {
                self.record_defragmentation(*ordinal, *defragmentation).await
            }
            Step::Defragment { ordinal } => self.defragment(*ordinal).await,
            Step::Disarm(alarm) => self.disarm(*alarm).await,
        }
    }

    pub(super) fn name(&self, ordinal: u32) -> String {
        self.observation.observed.names.member_name(ordinal)
    }

    pub(super) fn api<K>(&self) -> Api<K>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>,
    {
        Api::namespaced(self.context.client.clone(), &self.observation.observed.names.namespace)
    }

    pub(super) async fn tell(&self, reason: EventReason, about: &str, note: String) -> Result<(), Error> {
        tracing::info!(%reason, note);
        self.context.events.done(self.cluster, reason, about, note).await;
        Ok(())
    }

    /// Records something in the cluster's status before anything else happens. Fails if the cluster has changed since
    /// it was read.
    pub(super) async fn record(&self, change: impl FnOnce(&mut EtcdClusterStatus)) -> Result<(), Error> {
        let mut status = self.cluster.status.clone().unwrap_or_default();
        change(&mut status);
        let written = report::write_status(&self.context.client, self.cluster, &status).await;
        match written.map_err(|error| api_error("recording in the status", error))? {
            report::Written::Yes => Ok(()),
            report::Written::Outdated => Err(Error::OutOfDate("the EtcdCluster has changed".into())),
        }
    }

    async fn create_peer(&mut self, ordinal: u32, initial: bool, model: &Model) -> Result<(), Error> {
        let name = self.name(ordinal);
        let initial_members =
            self.observation.observed.bootstrap.as_ref().filter(|_| initial).map(|bootstrap| bootstrap.size);
        let recipe = self.recipe(model)?;
        let peer = peer::peer(self.cluster, &self.observation.observed.names, ordinal, initial_members, recipe);
        let created = match self.create(&peer).await? {
            Some(created) => {
                self.tell(EventReason::PeerCreated, &name, format!("Created the EtcdPeer {name}")).await?;
                created
            }
            None => {
                // It exists, but is not in the cache: it lost its labels, or the cache is stale.
                let labels = member_labels(&self.cluster.name_any(), &name);
                self.patch::<EtcdPeer>(&name, &ObjectPatch::of_labels(labels)).await?;
                let doing = || format!("reading the EtcdPeer {name}");
                self.api().get(&name).await.map_err(|error| api_error(doing(), error))?
            }
        };
        self.made.insert(ordinal, Arc::new(created));
        Ok(())
    }

    fn recipe(&self, model: &Model) -> Result<Recipe, Error> {
        let mut recipe = Recipe::of_cluster(self.cluster);
        match model {
            Model::Spec => {}
            Model::SpecWithVersion(version) => recipe.spec.version = version.clone(),
            Model::Member(other) => {
                let peer = self.made.get(other).or_else(|| self.observation.objects.peers.get(other));
                let peer =
                    peer.ok_or_else(|| Error::OutOfDate(format!("the EtcdPeer {} is gone", self.name(*other))))?;
                recipe = Recipe::of_peer(peer);
            }
        }
        Ok(recipe)
    }

    async fn record_member(&self, ordinal: u32, identity: Identity, started: bool) -> Result<(), Error> {
        let (member_id, cluster_id) = (format_id(identity.member_id), format_id(identity.cluster_id));
        self.record_in_peer(ordinal, PeerRecord::Member { member_id, cluster_id, started }).await
    }

    async fn record_replacement(&self, ordinal: u32, replacement: &Replacement) -> Result<(), Error> {
        let replacement = etcd_operator_api::Replacement {
            member_id: format_id(replacement.member_id),
            time: patches::time(replacement.at),
            count: i32::try_from(replacement.count).unwrap_or(i32::MAX),
            reason: replacement.why.clone(),
        };
        self.record_in_peer(ordinal, PeerRecord::Replacement { replacement }).await
    }

    /// Records something in the status of an EtcdPeer.
    pub(super) async fn record_in_peer(&self, ordinal: u32, status: PeerRecord) -> Result<(), Error> {
        let name = self.name(ordinal);
        let patch = Patch::Merge(StatusPatch { status });
        let patched = self.api::<EtcdPeer>().patch_status(&name, &patches::strictly(), &patch).await;
        patched.map(drop).map_err(|error| api_error(format!("recording in the status of {name}"), error))
    }

    async fn create_claim(
        &self,
        ordinal: u32,
        bootstrap: Option<&Bootstrap>,
        identity: Option<Identity>,
    ) -> Result<(), Error> {
        let name = self.name(ordinal);
        let Some(template) = &self.cluster.spec.storage.volume_claim_template else { return Ok(()) };
        let claim = claim::claim(self.cluster, template, &name, bootstrap, identity);
        if self.create(&claim).await?.is_some() {
            return self.tell(EventReason::PVCCreated, &name, format!("Created the volume claim {name}")).await;
        }
        // A claim of this name exists that the cache does not show: repair its labels if it belongs to this cluster.
        let doing = || format!("reading the volume claim {name}");
        let found: PersistentVolumeClaim = self.api().get(&name).await.map_err(|error| api_error(doing(), error))?;
        let notes = found.annotations();
        let ours = (bootstrap.is_some() && read_bootstrap(notes).as_ref() == bootstrap)
            || (identity.is_some() && read_identity(notes) == identity);
        if !ours {
            return Err(Error::Impossible(format!(
                "there is a volume claim {name} already that was not made for this cluster; rename or delete it"
            )));
        }
        let labels = member_labels(&self.cluster.name_any(), &name);
        self.patch::<PersistentVolumeClaim>(&name, &ObjectPatch::of_labels(labels)).await
    }

    async fn create_pod(&self, ordinal: u32, start: &Start) -> Result<(), Error> {
        let name = self.name(ordinal);
        if start.bootstrap_token.is_some() {
            self.confirm_not_bootstrapped().await?;
        }
        let peer = self.made.get(&ordinal).or_else(|| self.observation.objects.peers.get(&ordinal));
        let peer = peer.ok_or_else(|| Error::OutOfDate(format!("the EtcdPeer {name} is gone")))?;
        let role = self.role(ordinal, start.serves_clients);
        let pod = pod::pod(peer, &self.observation.observed.names, ordinal, start, role, &self.context.settings);
        if self.create(&pod).await?.is_some() {
            return self.tell(EventReason::PodCreated, &name, format!("Created the pod {name}")).await;
        }
        // A pod of this name exists that the cache does not show: repair its labels if it belongs to this EtcdPeer.
        let doing = || format!("reading the pod {name}");
        let found: Pod = self.api().get(&name).await.map_err(|error| api_error(doing(), error))?;
        if found.metadata.deletion_timestamp.is_some() {
            return Err(Error::OutOfDate(format!("the old pod {name} is still stopping")));
        }
        if !is_pod_of(&found, peer) {
            return Err(Error::Impossible(format!(
                "there is a pod {name} already, and it is not owned by this cluster"
            )));
        }
        let labels = member_labels(&self.cluster.name_any(), &name);
        self.patch::<Pod>(&name, &ObjectPatch::of_labels(labels)).await?;
        // Its expected data and initial cluster are not those that this pod would have got.
        Err(Error::OutOfDate(format!("there is a pod {name} already")))
    }

    async fn annotate_pod(&self, ordinal: u32, expected: ExpectedData, serves_clients: bool) -> Result<(), Error> {
        let mut annotations = patches::set(of_expected_data(expected));
        if serves_clients {
            annotations.insert(LEAVING_SINCE.to_owned(), None);
        }
        let labels = [(ROLE.to_owned(), Some(self.role(ordinal, serves_clients).to_owned()))].into();
        let metadata = MetadataPatch { labels, annotations, ..MetadataPatch::default() };
        self.patch::<Pod>(&self.name(ordinal), &ObjectPatch::of(metadata)).await
    }

    fn role(&self, ordinal: u32, serves_clients: bool) -> &'static str {
        let is_learner = self.observation.observed.member(ordinal).is_some_and(|member| member.learner);
        role(is_learner, serves_clients)
    }

    async fn delete_pod(&self, ordinal: u32, grace: Option<u32>, reason: EventReason, why: &str) -> Result<(), Error> {
        let name = self.name(ordinal);
        let uid = self.observation.objects.pods.get(&ordinal).and_then(|pod| pod.uid());
        self.delete::<Pod>(&name, uid, grace).await?;
        self.tell(reason, &name, format!("Deleted the pod {name}: {why}")).await
    }

    async fn delete_claim(&self, ordinal: u32) -> Result<(), Error> {
        let name = self.name(ordinal);
        let uid = self.observation.objects.claims.get(&ordinal).and_then(|claim| claim.uid());
        self.delete::<PersistentVolumeClaim>(&name, uid, None).await?;
        self.tell(EventReason::PVCDeleted, &name, format!("Deleted the volume claim {name}: its member was removed"))
            .await
    }

    /// A cache may be stale. Checks with a live observation of Kubernetes and etcd whether the step would still be
    /// planned.
    async fn confirm(&self, step: &Step) -> Result<(), Error> {
        let cluster = self.live_cluster().await?;
        let cluster = cluster.ok_or_else(|| Error::OutOfDate("the EtcdCluster is gone".into()))?;
        let observed = &self.observation.observed;
        let members = observed.membership.iter().flat_map(|membership| &membership.members);
        let mut ordinals = self.observation.objects.ordinals();
        ordinals.extend(members.filter_map(|member| member.ordinal));
        ordinals.extend(0..observed.replicas);
        let objects = MemberObjects::live(&self.context.client, &observed.names, &ordinals).await?;
        let corrupt = |id: &u64| observed.differing.contains(id);
        let comparing = match step {
            Step::RemoveMember { member_id, .. } if corrupt(member_id) => CorruptionCheck::Now,
            _ => CorruptionCheck::WhenDue,
        };
        let live = observe(&cluster, observed.names.clone(), objects, self.context, comparing).await;
        if is_confirmed(step, &live.observed) {
            return Ok(());
        }
        // Something that the caches don't show is in the way, and only a user can remove it.
        if let Some(refusal) =
            plan(&live.observed).waiting.filter(|waiting| waiting.reason == WaitReason::VolumesConflict)
        {
            return Err(Error::Impossible(refusal.message));
        }
        Err(Error::OutOfDate(format!("a live read does not confirm {step:?}")))
    }

    /// Reads the EtcdCluster live from the API server: one that was bootstrapped meanwhile is not bootstrapped again.
    async fn confirm_not_bootstrapped(&self) -> Result<(), Error> {
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

    /// Creates an object. `None` if one of that name already exists.
    async fn create<K>(&self, object: &K) -> Result<Option<K>, Error>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()> + Clone + Debug + Serialize + DeserializeOwned,
    {
        match strict::create(&self.context.client, &PostParams::default(), object).await {
            Ok(created) => Ok(Some(created)),
            Err(kube::Error::Api(answer)) if answer.code == 409 => Ok(None),
            Err(error) => Err(api_error(format!("creating the {} {}", K::kind(&()), object.name_any()), error)),
        }
    }

    pub(super) async fn patch<K>(&self, name: &str, patch: &ObjectPatch<impl Serialize + Debug>) -> Result<(), Error>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()> + Clone + Debug + DeserializeOwned,
    {
        let doing = || format!("changing the {} {name}", K::kind(&()));
        let patched = self.api::<K>().patch(name, &patches::strictly(), &Patch::Merge(patch)).await;
        patched.map(drop).map_err(|error| api_error(doing(), error))
    }

    /// Deletes an object, but only the very one that was observed.
    pub(super) async fn delete<K>(&self, name: &str, uid: Option<String>, grace: Option<u32>) -> Result<(), Error>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()> + Clone + Debug + DeserializeOwned,
    {
        let only = Preconditions { uid, resource_version: None };
        let parameters =
            DeleteParams { preconditions: Some(only), grace_period_seconds: grace, ..DeleteParams::background() };
        match self.api::<K>().delete(name, &parameters).await {
            Ok(_) => Ok(()),
            Err(kube::Error::Api(answer)) if answer.code == 404 => Ok(()),
            // Another object has this name by now.
            Err(kube::Error::Api(answer)) if answer.code == 409 => Err(Error::OutOfDate(format!("{name} has changed"))),
            Err(error) => Err(api_error(format!("deleting the {} {name}", K::kind(&())), error)),
        }
    }
}

pub fn moment(seconds: i64) -> String {
    jiff::Timestamp::from_second(seconds).unwrap_or_default().to_string()
}

pub fn api_error(doing: impl Into<String>, error: kube::Error) -> Error {
    Error::Api { doing: doing.into(), source: Box::new(error) }
}
