//! The execution of steps that roll out the spec to members.

use etcd_operator_api::{EtcdPeer, EventReason, PodTemplate};
use etcd_operator_core::ordinal::Ordinal;
use etcd_operator_etcd::Cause;
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, PersistentVolumeClaimSpec, Pod, VolumeResourceRequirements};
use kube::ResourceExt;
use kube::api::Patch;
use semver::Version;

use super::actor::Actor;
use super::errors::{Error, api_error, etcd_error};
use super::patches::{Containers, Difference, MetadataPatch, ObjectPatch, PodTemplateChange, change, strictly};
use super::spec_diff::resources_in_words;
use crate::objects::annotations::{LEAVING, LEAVING_SINCE, RESIZE_REFUSED, ROLE};

/// The status codes with which the API server rejects a request permanently.
const REFUSALS: [u16; 5] = [400, 403, 404, 405, 422];

impl Actor<'_> {
    pub(super) async fn drain_pod(&self, ordinal: Ordinal) -> Result<(), Error> {
        let name = self.name(ordinal);
        let since = self.observation.observed.now.to_string();
        let metadata = MetadataPatch {
            annotations: [(LEAVING_SINCE.to_owned(), Some(since))].into(),
            labels: [(ROLE.to_owned(), Some(LEAVING.to_owned()))].into(),
            ..MetadataPatch::default()
        };
        self.patch::<Pod>(&name, &ObjectPatch::of(metadata)).await?;
        self.tell(EventReason::DrainingMember, &name, format!("Draining clients from {name} before its restart")).await
    }

    /// Deletes an EtcdPeer and its pod. The EtcdPeer first: from then on the pod is garbage-collected, whatever happens
    /// here, and both are recreated.
    pub(super) async fn recreate_peer(&self, ordinal: Ordinal, why: &str) -> Result<(), Error> {
        let name = self.name(ordinal);
        let objects = &self.observation.objects;
        self.delete::<EtcdPeer>(&name, objects.peers.get(&ordinal).and_then(|peer| peer.uid()), None).await?;
        if let Some(pod) = objects.pods.get(&ordinal) {
            self.delete::<Pod>(&name, pod.uid(), None).await?;
        }
        self.tell(EventReason::RecreatingMember, &name, format!("Recreating member {name}: {why}")).await
    }

    pub(super) async fn relabel(&self, ordinal: Ordinal) -> Result<(), Error> {
        let name = self.name(ordinal);
        self.relabel_pod(ordinal).await?;
        let wanted = self.wanted_template();
        self.note_in_peer(ordinal, |template| template.metadata = wanted.metadata).await?;
        self.tell(EventReason::PodRelabelled, &name, format!("Updated labels and annotations of pod {name}")).await
    }

    async fn relabel_pod(&self, ordinal: Ordinal) -> Result<(), Error> {
        let (old, new) = (self.peer(ordinal)?.spec.pod_template(), self.wanted_template());
        let metadata = MetadataPatch {
            labels: change(&old.labels(), new.labels()),
            annotations: change(&old.annotations(), new.annotations()),
            ..MetadataPatch::default()
        };
        self.patch::<Pod>(&self.name(ordinal), &ObjectPatch::of(metadata)).await
    }

    /// A resize that Kubernetes refuses is annotated on the pod, so that a restart is planned instead.
    pub(super) async fn resize(&self, ordinal: Ordinal) -> Result<(), Error> {
        let name = self.name(ordinal);
        let wanted = self.wanted_template();
        let etcd = Containers::etcd_with(wanted.resources.clone().unwrap_or_default());
        let patch = Patch::Strategic(ObjectPatch::of_spec(etcd));
        let resized = self.api::<Pod>().patch_subresource("resize", &name, &strictly(), &patch).await;
        match resized {
            Ok(_) => {}
            Err(kube::Error::Api(refusal)) if REFUSALS.contains(&refusal.code) && !is_our_mistake(&refusal.message) => {
                let refused = [(RESIZE_REFUSED.to_owned(), resources_in_words(self.cluster))].into();
                self.patch::<Pod>(&name, &ObjectPatch::of_annotations(refused)).await?;
                let note = format!("Pod {name} cannot be resized in place: {}", refusal.message);
                return self.tell(EventReason::ResizeRefused, &name, note).await;
            }
            Err(error) => return Err(api_error(format!("resizing the pod {name}"), error)),
        }
        self.relabel_pod(ordinal).await?;
        self.note_in_peer(ordinal, |template| {
            (template.resources, template.metadata) = (wanted.resources, wanted.metadata);
        })
        .await?;
        self.tell(EventReason::PodResized, &name, format!("Resizing pod {name} in place")).await
    }

    pub(super) async fn grow_claim(&self, ordinal: Ordinal) -> Result<(), Error> {
        let name = self.name(ordinal);
        let template = self.cluster.spec.storage.volume_claim_template.as_ref();
        let requests = template.and_then(|template| template.resources.as_ref()?.requests.as_ref());
        let Some(size) = requests.and_then(|requests| requests.get("storage")) else { return Ok(()) };
        let requests = Some([("storage".to_owned(), size.clone())].into());
        let resources = VolumeResourceRequirements { requests, ..VolumeResourceRequirements::default() };
        let spec = PersistentVolumeClaimSpec { resources: Some(resources), ..PersistentVolumeClaimSpec::default() };
        self.patch::<PersistentVolumeClaim>(&name, &ObjectPatch::of_spec(spec)).await?;
        self.tell(EventReason::VolumeExpanded, &name, format!("Expanding volume claim {name} to {}", size.0)).await
    }

    pub(super) async fn accept_version(&self, version: &Version) -> Result<(), Error> {
        let known = self.cluster.status.as_ref().and_then(|status| status.target_version.clone());
        self.record(|status| {
            status.target_version = Some(version.to_string());
            // An earlier version writes to the logs again.
            let oldest = status.oldest_log_version.take();
            status.oldest_log_version = oldest.map(|oldest| older(oldest, version));
        })
        .await?;
        // A cluster whose version was only never recorded is not news.
        if known.is_none() && self.observation.observed.objects.outdated.is_empty() {
            return Ok(());
        }
        let note = format!("Rolling out etcd {version}");
        self.tell(EventReason::VersionAccepted, &self.cluster.name_any(), note).await
    }

    pub(super) async fn enable_downgrade(&self, target: &Version) -> Result<(), Error> {
        let target = &target.to_string();
        let doing = format!("preparing the downgrade to {target}");
        let mut etcd = self.client_of_a_voter()?;
        let validated = match etcd.validate_downgrade(target).await {
            Ok(()) => etcd.enable_downgrade(target).await,
            Err(error) if matches!(error.cause, Cause::DowngradeInProgress) => etcd.enable_downgrade(target).await,
            Err(error) => Err(error),
        };
        validated.map_err(|error| etcd_error(doing, error))?;
        let note = format!("Asked etcd to make its data readable for {target}");
        self.tell(EventReason::DowngradeEnabled, &self.cluster.name_any(), note).await
    }

    pub(super) async fn cancel_downgrade(&self) -> Result<(), Error> {
        let cancelled = self.client_of_a_voter()?.cancel_downgrade().await;
        cancelled.map_err(|error| etcd_error("cancelling the downgrade".to_owned(), error))?;
        let note = "Cancelled the downgrade in etcd".to_owned();
        self.tell(EventReason::DowngradeCancelled, &self.cluster.name_any(), note).await
    }

    fn wanted_template(&self) -> PodTemplate {
        self.cluster.spec.pod_template().unwrap_or_default()
    }

    fn peer(&self, ordinal: Ordinal) -> Result<&EtcdPeer, Error> {
        let peer = self.observation.objects.peers.get(&ordinal);
        peer.map(AsRef::as_ref).ok_or_else(|| Error::OutOfDate(format!("the EtcdPeer {} is gone", self.name(ordinal))))
    }

    /// Records in the EtcdPeer what its pod was changed to.
    async fn note_in_peer(&self, ordinal: Ordinal, change: impl FnOnce(&mut PodTemplate)) -> Result<(), Error> {
        let peer = self.peer(ordinal)?;
        let name = peer.name_any();
        let mut template = peer.spec.pod_template();
        change(&mut template);
        let pod_template = Difference::between(&peer.spec.pod_template, &Some(template));
        let pod_template = pod_template.map_err(|error| Error::Impossible(format!("changing {name}: {error}")))?;
        // Only as it was read: the difference is one to that.
        let patch = ObjectPatch::of_spec_at(peer.resource_version(), PodTemplateChange { pod_template });
        self.patch::<EtcdPeer>(&name, &patch).await
    }
}

/// Whether the API server does not know a field of the request: that says nothing about the resize.
fn is_our_mistake(message: &str) -> bool {
    message.contains("strict decoding error")
}

fn older(one: String, new: &Version) -> String {
    match Version::parse(&one) {
        Ok(known) if *new < known => new.to_string(),
        _ => one,
    }
}
