//! The execution of steps about the objects of one member: its EtcdPeer, its claim and its pod.

use std::sync::Arc;

use etcd_operator_api::{EtcdPeer, EventReason};
use etcd_operator_core::cluster::observed::{Bootstrap, ExpectedData, Identity, Replacement};
use etcd_operator_core::cluster::plan::{Model, Start};
use etcd_operator_core::ordinal::Ordinal;
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt;
use semver::Version;

use super::actor::Actor;
use super::errors::{Error, api_error};
use super::patches::{self, MetadataPatch, ObjectPatch, PeerRecord};
use crate::objects::annotations::{
    DATA_VERSION, LEAVING_SINCE, ROLE, of_expected_data, of_identity, read_bootstrap, read_identity, role,
};
use crate::objects::peer::Recipe;
use crate::objects::{claim, is_pod_of, member_labels, peer, pod};

impl Actor<'_> {
    pub(super) async fn create_peer(&mut self, ordinal: Ordinal, initial: bool, model: &Model) -> Result<(), Error> {
        let name = self.name(ordinal);
        let initial_members =
            self.observation.observed.recorded.bootstrap.as_ref().filter(|_| initial).map(|bootstrap| bootstrap.size);
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
            Model::SpecWithVersion(version) => recipe.spec.version = version.to_string(),
            Model::Member(other) => {
                let peer = self.made.get(other).or_else(|| self.observation.objects.peers.get(other));
                let peer =
                    peer.ok_or_else(|| Error::OutOfDate(format!("the EtcdPeer {} is gone", self.name(*other))))?;
                recipe = Recipe::of_peer(peer);
            }
        }
        Ok(recipe)
    }

    pub(super) async fn record_member(&self, ordinal: Ordinal, identity: Identity, started: bool) -> Result<(), Error> {
        let (member_id, cluster_id) = (identity.member_id.to_string(), identity.cluster_id.to_string());
        self.record_in_peer(ordinal, PeerRecord::Member { member_id, cluster_id, started }).await
    }

    pub(super) async fn record_replacement(&self, ordinal: Ordinal, replacement: &Replacement) -> Result<(), Error> {
        let replacement = etcd_operator_api::Replacement {
            member_id: replacement.member_id.to_string(),
            time: Time(replacement.at),
            count: i32::try_from(replacement.count).unwrap_or(i32::MAX),
            reason: replacement.why.clone(),
        };
        self.record_in_peer(ordinal, PeerRecord::Replacement { replacement }).await
    }

    pub(super) async fn create_claim(
        &self,
        ordinal: Ordinal,
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

    /// Gives a claim back its labels and owners.
    pub(super) async fn repair_claim(&self, ordinal: Ordinal) -> Result<(), Error> {
        let name = self.name(ordinal);
        let wanted = claim::claim_metadata(self.cluster, &name);
        let labels = patches::set(wanted.labels.unwrap_or_default());
        let patch = MetadataPatch { labels, owner_references: wanted.owner_references, ..MetadataPatch::default() };
        self.patch::<PersistentVolumeClaim>(&name, &ObjectPatch::of(patch)).await
    }

    pub(super) async fn create_pod(&self, ordinal: Ordinal, start: &Start) -> Result<(), Error> {
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

    pub(super) async fn annotate_pod(
        &self,
        ordinal: Ordinal,
        expected: ExpectedData,
        serves_clients: bool,
    ) -> Result<(), Error> {
        let mut annotations = patches::set(of_expected_data(expected));
        if serves_clients {
            annotations.insert(LEAVING_SINCE.to_owned(), None);
        }
        let labels = [(ROLE.to_owned(), Some(self.role(ordinal, serves_clients).to_owned()))].into();
        let metadata = MetadataPatch { labels, annotations, ..MetadataPatch::default() };
        self.patch::<Pod>(&self.name(ordinal), &ObjectPatch::of(metadata)).await
    }

    fn role(&self, ordinal: Ordinal, serves_clients: bool) -> &'static str {
        let is_learner = self.observation.observed.member(ordinal).is_some_and(|member| member.learner);
        role(is_learner, serves_clients)
    }

    pub(super) async fn delete_pod(
        &self,
        ordinal: Ordinal,
        grace: Option<u32>,
        reason: EventReason,
        why: &str,
    ) -> Result<(), Error> {
        let name = self.name(ordinal);
        let uid = self.observation.objects.pods.get(&ordinal).and_then(|pod| pod.uid());
        self.delete::<Pod>(&name, uid, grace).await?;
        self.tell(reason, &name, format!("Deleted the pod {name}: {why}")).await
    }

    pub(super) async fn delete_claim(&self, ordinal: Ordinal) -> Result<(), Error> {
        let name = self.name(ordinal);
        let uid = self.observation.objects.claims.get(&ordinal).and_then(|claim| claim.uid());
        self.delete::<PersistentVolumeClaim>(&name, uid, None).await?;
        self.tell(EventReason::PVCDeleted, &name, format!("Deleted the volume claim {name}: its member was removed"))
            .await
    }

    pub(super) async fn delete_peer(&self, ordinal: Ordinal) -> Result<(), Error> {
        let name = self.name(ordinal);
        let uid = self.observation.objects.peers.get(&ordinal).and_then(|peer| peer.uid());
        self.delete::<EtcdPeer>(&name, uid, None).await?;
        self.tell(EventReason::PeerRemoved, &name, format!("Removed the EtcdPeer {name}")).await
    }

    /// Annotates a claim with the member whose data it holds and the version that can read it.
    pub(super) async fn mark_claim(
        &self,
        ordinal: Ordinal,
        identity: Identity,
        version: Option<&Version>,
    ) -> Result<(), Error> {
        let mut notes = of_identity(Some(identity));
        notes.extend(version.map(|version| (DATA_VERSION.to_owned(), version.to_string())));
        self.patch::<PersistentVolumeClaim>(&self.name(ordinal), &ObjectPatch::of_annotations(notes)).await
    }
}
