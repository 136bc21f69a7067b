//! The storage of a member, the same for EtcdCluster and EtcdPeer.

use k8s_openapi::api::core::v1::PersistentVolumeClaimSpec;
use kube::KubeSchema;
use serde::{Deserialize, Serialize};

use crate::{rules, schema};

/// The storage of each member.
#[derive(KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = schema::leave_required_to_rules)]
#[x_kube(validation = rules::volume_claim_template_is_given())]
pub struct Storage {
    /// Required. Describes the volume that each member gets. Set its size in `resources.requests.storage`, for
    /// example `10Gi`; production clusters do well with fast disks and some room. `storageClassName` names the
    /// storage class; without it the default class of the Kubernetes cluster serves. `accessModes` is
    /// `ReadWriteOnce` unless set.
    #[schemars(transform = schema::tidy_quantities)]
    #[x_kube(validation = rules::storage_size_is_given(), validation = rules::storage_size_is_a_quantity())]
    pub volume_claim_template: PersistentVolumeClaimSpec,
}
