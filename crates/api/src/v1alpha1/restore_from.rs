//! Where the data of a new cluster comes from.

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::encryption::Decryption;
use super::object_store::{Credentials, StoreAccess};
use super::validation;

/// How the cluster gets its first data.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClusterBootstrap {
    /// Optional. The backup that the cluster begins with. An EtcdRestore sets it; it is looked at only once, when the
    /// first member is made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[x_kube(
        validation = validation::restore_is_from_one_place(),
        validation = validation::restore_access_fits(),
        validation = validation::restore_has_credentials_once()
    )]
    pub restore: Option<RestoreFrom>,
}

/// A backup: where it is, and how to get at it.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RestoreFrom {
    /// The URL of the backup, for example `s3://bucket/my-cluster.db`. It begins with `s3://`, `gs://` or `az://`.
    #[serde(rename = "objectURL", default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024))]
    #[x_kube(validation = validation::object_url_has_a_scheme())]
    pub object_url: Option<String>,

    /// The same in two parts, a bucket and an object in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bucket: Option<BucketSource>,

    /// A volume: a PersistentVolumeClaim in the same namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub persistent_volume_claim: Option<ClaimSource>,

    /// Optional. How an encrypted backup is read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decryption: Option<Decryption>,

    /// Optional. The SHA-256 that the backup must have, as etcd's own tools read it, in hexadecimal. It is the `sha256` in
    /// the status of an EtcdBackup.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    #[x_kube(validation = validation::sha256_is_one())]
    pub sha256: Option<String>,

    #[serde(flatten)]
    pub access: StoreAccess,
}

impl RestoreFrom {
    /// The URL of the backup, from whichever of its two places it was written in. `None` if it is in a volume.
    pub fn url(&self) -> Option<String> {
        self.object_url.clone().or_else(|| self.bucket.as_ref().map(BucketSource::url))
    }

    /// The credentials, from whichever of their places they were written in.
    pub fn credentials(&self) -> Option<&Credentials> {
        let of_bucket = self.bucket.as_ref().and_then(|bucket| bucket.credentials.as_ref());
        of_bucket.or(self.access.credentials.as_ref())
    }
}

/// An object in a bucket.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BucketSource {
    /// Required. The URL of the bucket, for example `gs://bucket`. It begins with `s3://`, `gs://` or `az://`.
    #[serde(rename = "bucketURL")]
    #[schemars(length(max = 512))]
    #[x_kube(validation = validation::bucket_url_has_a_scheme())]
    pub bucket_url: String,

    /// Required. The name of the object in the bucket, for example `my-cluster.db`.
    #[schemars(length(min = 1, max = 1024))]
    pub object_path: String,

    /// Optional. The credentials for the bucket, from Secrets in the same namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credentials: Option<Credentials>,
}

impl BucketSource {
    /// The URL of the object. What follows a question mark in the URL of the bucket stays at the end.
    fn url(&self) -> String {
        let (bucket, query) = match self.bucket_url.split_once('?') {
            Some((bucket, query)) => (bucket, format!("?{query}")),
            None => (self.bucket_url.as_str(), String::new()),
        };
        format!("{}/{}{query}", bucket.trim_end_matches('/'), self.object_path.trim_start_matches('/'))
    }
}

/// A file in a volume.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClaimSource {
    /// Required. The name of the PersistentVolumeClaim, in the same namespace.
    #[schemars(length(min = 1, max = 253))]
    pub claim_name: String,

    /// Required. The file in the volume, for example `my-namespace/my-backup.db`.
    #[schemars(length(min = 1, max = 1024))]
    #[x_kube(validation = validation::path_stays_in_the_volume())]
    pub path: String,
}

/// A backup: an EtcdBackup of the same namespace, or where it is and how to get at it.
#[derive(JsonSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RestoreSource {
    /// The name of an EtcdBackup in the same namespace. It says where the backup is and how to get at it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub backup_name: Option<String>,

    #[serde(flatten)]
    pub from: RestoreFrom,
}
