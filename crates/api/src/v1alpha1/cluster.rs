//! EtcdCluster: an etcd cluster as its user asks for it. What the operator reports about it is in `cluster_status`.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::core::v1::Affinity;
use kube::{CustomResource, KubeSchema};
use serde::{Deserialize, Serialize};

use super::cluster_status::EtcdClusterStatus;
use super::etcd::{self, EtcdOptions};
use super::image::{self, Image, PullPolicy};
use super::maintenance::{self, Maintenance, Recovery};
use super::pod_template::PodTemplate;
use super::restore_from::ClusterBootstrap;
use super::storage::{DeletionPolicy, Storage};
use super::upgrade::Upgrade;
use super::validation;
use crate::schema;

/// What the etcd cluster should be like.
#[derive(CustomResource, KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "etcd.improbable.io",
    version = "v1alpha1",
    kind = "EtcdCluster",
    plural = "etcdclusters",
    singular = "etcdcluster",
    shortname = "ec",
    category = "etcd",
    namespaced,
    doc = "An etcd cluster. The operator runs its members as pods in the namespace of this object.",
    derive = "PartialEq",
    status = "EtcdClusterStatus",
    validation = validation::name_fits_a_service(),
    validation = validation::name_leaves_room_for_ordinals(),
    validation = validation::name_is_no_client_service(),
    validation = validation::version_is_given(),
    scale(
        spec_replicas_path = ".spec.replicas",
        status_replicas_path = ".status.replicas",
        label_selector_path = ".status.labelSelector"
    ),
    printcolumn(
        name = "Ready",
        type_ = "integer",
        json_path = ".status.readyReplicas",
        description = "How many members are ready to serve"
    ),
    printcolumn(
        name = "Desired",
        type_ = "integer",
        json_path = ".spec.replicas",
        description = "How many members were asked for"
    ),
    printcolumn(
        name = "Version",
        type_ = "string",
        json_path = ".spec.version",
        description = "The version of etcd that was asked for"
    ),
    printcolumn(
        name = "Available",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Available")].status"#,
        description = "Whether the cluster serves reads and writes"
    ),
    printcolumn(
        name = "Reason",
        type_ = "string",
        priority = 1,
        json_path = r#".status.conditions[?(@.type=="Available")].reason"#,
        description = "Why the cluster is or is not available"
    ),
    printcolumn(
        name = "Updated",
        type_ = "integer",
        priority = 1,
        json_path = ".status.updatedReplicas",
        description = "How many members are as the spec asks for"
    ),
    printcolumn(
        name = "Cluster-Version",
        type_ = "string",
        priority = 1,
        json_path = ".status.clusterVersion",
        description = "The version of etcd that all members support"
    ),
    printcolumn(
        name = "Age",
        type_ = "date",
        json_path = ".metadata.creationTimestamp",
        description = "When the cluster was created"
    )
)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = schema::join_wrapped_lines)]
#[schemars(transform = schema::leave_required_to_rules)]
#[x_kube(
    validation = validation::storage_is_given(),
    validation = validation::migration_has_enough_members(),
    validation = validation::affinity_is_given_once(),
    validation = validation::bootstrap_is_not_made_up_later()
)]
pub struct EtcdClusterSpec {
    /// How many members the cluster has. The default is 3, which survives the loss of one member; 5 survives two.
    /// Choose an odd number: an even one is slower and survives no more. Use 1 only for tests. Change it at any time,
    /// here or with `kubectl scale`; members are added and removed one by one and the data is kept.
    #[serde(default = "default_replicas")]
    #[x_kube(validation = validation::replicas_are_positive(), validation = validation::replicas_are_few())]
    pub replicas: i32,

    /// Required. The version of etcd to run, for example `3.6.16`: a semantic version of major version 3, without a
    /// leading `v`, for which there is an image. Raise it to upgrade the cluster, one minor version at a time. Lower it
    /// by one minor version to downgrade the cluster where etcd can do that: from 3.7 to 3.6 and from 3.6 to 3.5. A
    /// lower patch version of the same minor version is always fine.
    // Empty only in the template of an EtcdRestore.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 64))]
    #[x_kube(validation = validation::version_is_semantic(), validation = validation::version_is_major_three())]
    pub version: String,

    /// Required. The storage of each member: `volumeClaimTemplate`, or for tests `ephemeral`. Which of the two it is
    /// cannot be changed after the cluster has been created, nor anything in `ephemeral`. The size in
    /// `volumeClaimTemplate` may grow at any time; a smaller one, and any other change of `volumeClaimTemplate`, needs
    /// `migrate: true`.
    #[x_kube(
        validation = validation::storage_keeps_its_kind(),
        validation = validation::ephemeral_storage_stays(),
        validation = validation::volumes_do_not_shrink(),
        validation = validation::volumes_stay()
    )]
    pub storage: Storage,

    /// Optional. How the cluster gets its first data. It can be removed at any time, but neither added nor changed after
    /// the cluster has been created.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bootstrap: Option<ClusterBootstrap>,

    /// Optional. What happens to the volumes of the members when this EtcdCluster is deleted. `KeepVolumes`, the
    /// default, keeps them: an EtcdCluster that is created again with the same name finds its data. `DeleteVolumes`
    /// deletes them and the data with them. Change it at any time.
    #[serde(default)]
    pub deletion_policy: DeletionPolicy,

    /// Optional. `true` stops everything that the operator does to this cluster; it goes on reporting. Members that run
    /// go on running. The annotation `etcd.improbable.io/paused: "true"` on the EtcdCluster or on any EtcdPeer, pod or
    /// volume claim of it does the same.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub paused: bool,

    /// Optional. What is done about members that do not come back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recovery: Option<Recovery>,

    /// Optional. What is done to keep members fit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub maintenance: Option<Maintenance>,

    /// Optional. How the cluster is upgraded to another version of etcd.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upgrade: Option<Upgrade>,

    /// Optional. Where the container image of etcd comes from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<Image>,

    /// Optional. Options of etcd itself: the size of its database, compaction, timeouts and other flags.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub etcd: Option<EtcdOptions>,

    /// Optional. What to add to the pods of the members: labels, annotations, resources, and where they may run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod_template: Option<PodTemplate>,

    /// Optional. The same as `podTemplate.affinity`, in another place. Set one of the two, not both.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub affinity: Option<Affinity>,
}

impl EtcdClusterSpec {
    /// The affinity of the members' pods, from whichever of its two places it was written in.
    pub fn affinity(&self) -> Option<&Affinity> {
        let in_pod_template = self.pod_template.as_ref().and_then(|template| template.affinity.as_ref());
        in_pod_template.or(self.affinity.as_ref())
    }

    /// What to add to the members' pods, with the affinity from whichever place it was written in. `None` if that is
    /// nothing.
    pub fn pod_template(&self) -> Option<PodTemplate> {
        let template =
            PodTemplate { affinity: self.affinity().cloned(), ..self.pod_template.clone().unwrap_or_default() };
        (template != PodTemplate::default()).then_some(template)
    }

    /// The container image of etcd, from the operator's own repository if this says nothing about it.
    pub fn image(&self, default_repository: &str) -> String {
        image::name(self.image.as_ref(), &self.version, default_repository)
    }

    /// When a node pulls the image.
    pub fn pull_policy(&self) -> Option<PullPolicy> {
        self.image.as_ref().and_then(|image| image.pull_policy)
    }

    /// After how long a member that is out of reach is replaced. `None`: never.
    pub fn replace_after(&self) -> Option<Duration> {
        maintenance::replace_after(self.recovery.as_ref())
    }

    /// Whether databases are defragmented.
    pub fn defragments(&self) -> bool {
        self.maintenance.as_ref().and_then(|maintenance| maintenance.auto_defragment).unwrap_or(true)
    }

    /// How often the members' data is compared. `None`: never.
    pub fn compare_every(&self) -> Option<Duration> {
        maintenance::compare_every(self.maintenance.as_ref())
    }

    /// How large the database of a member may become, in bytes.
    pub fn quota(&self) -> i64 {
        etcd::quota(self.etcd.as_ref())
    }

    /// The flags of etcd that were asked for: names without leading dashes, and values.
    pub fn etcd_flags(&self) -> BTreeMap<String, String> {
        self.etcd.as_ref().map(EtcdOptions::flags).unwrap_or_default()
    }
}

fn default_replicas() -> i32 {
    3
}
