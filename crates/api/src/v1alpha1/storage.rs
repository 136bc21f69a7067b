//! The storage of a member, the same for EtcdCluster and EtcdPeer.

use k8s_openapi::api::core::v1::PersistentVolumeClaimSpec;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::validation;
use crate::{quantity, schema};

/// The storage of each member: either `volumeClaimTemplate` or `ephemeral`.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = validation::storage_has_a_kind(), validation = validation::storage_has_one_kind())]
pub struct Storage {
    /// Describes the volume that each member gets. Set its size in `resources.requests.storage`, for example `10Gi`;
    /// production clusters do well with fast disks and some room. `storageClassName` names the storage class; without
    /// it the default class of the Kubernetes cluster serves. `accessModes` is `ReadWriteOnce` unless set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(transform = schema::tidy_quantities)]
    #[x_kube(
        validation = validation::storage_size_is_given(),
        validation = validation::storage_size_is_a_quantity(),
        validation = validation::volumes_are_file_systems(),
        validation = validation::volumes_are_not_shared()
    )]
    pub volume_claim_template: Option<PersistentVolumeClaimSpec>,

    /// For tests only: keeps the data in the pod, without a volume of its own. A member loses its data whenever its pod
    /// is deleted, evicted or moved, and the whole cluster is lost for good when more than half of its members lose
    /// theirs. Write `ephemeral: {}` for the defaults.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ephemeral: Option<Ephemeral>,

    /// Optional. `true` allows `volumeClaimTemplate` to be changed in ways that volumes cannot follow: a smaller size,
    /// another storage class, other access modes and the like. Members are then replaced one by one, each by a new one
    /// on a new volume, which gets its data from the others. It needs at least 3 members, because with fewer the data
    /// would have no second place meanwhile.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub migrate: bool,
}

impl Storage {
    /// Whether the data is lost with the pod.
    pub fn is_ephemeral(&self) -> bool {
        self.volume_claim_template.is_none()
    }

    /// How large the volume of a member should be, in bytes. `None` if it has none.
    pub fn size(&self) -> Option<i64> {
        let resources = self.volume_claim_template.as_ref()?.resources.as_ref()?;
        quantity::rounded_up(resources.requests.as_ref()?.get("storage")?)
    }

    /// The storage class that was asked for. `None` if that was left to the Kubernetes cluster.
    pub fn class(&self) -> Option<&str> {
        self.volume_claim_template.as_ref()?.storage_class_name.as_deref()
    }
}

/// Storage that is lost with the pod.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Ephemeral {
    /// Optional. `Disk`, the default, keeps the data on the disk of the node; `Memory` keeps it in memory, which counts
    /// as memory of the etcd container and is lost when the node restarts as well.
    #[serde(default)]
    pub medium: Medium,

    /// Optional. How much the data of a member may take, for example `1Gi`. A pod that takes more is evicted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = validation::size_limit_is_a_quantity())]
    pub size_limit: Option<Quantity>,
}

/// Where storage that is lost with the pod is.
#[derive(JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Medium {
    #[default]
    Disk,
    Memory,
}

impl Medium {
    /// As the `medium` of an `emptyDir` volume has it: nothing for the disk of the node.
    pub fn of_empty_dir(self) -> Option<String> {
        match self {
            Medium::Disk => None,
            Medium::Memory => Some("Memory".to_owned()),
        }
    }
}

/// What happens to the volumes of the members when their EtcdCluster is deleted.
#[derive(JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum DeletionPolicy {
    #[default]
    KeepVolumes,
    DeleteVolumes,
}
