//! Where a backup goes.

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::object_store::{Credentials, StoreAccess};
use super::validation;

const FILE_OF_BACKUP: &str = "{{ .Namespace }}/{{ .Name }}.db";

/// Where a backup goes: to one of several kinds of place.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = validation::destination_is_one_place(),
    validation = validation::local_destination_is_gone(),
    validation = validation::destination_access_fits(),
    validation = validation::destination_has_credentials_once()
)]
pub struct Destination {
    /// The URL of the object to write, with variables, for example
    /// `s3://bucket/{{ .Namespace }}/{{ .Name }}-{{ .UID }}.db`. The variables are those of the EtcdBackup: `.Name`,
    /// `.Namespace`, `.UID` and `.CreationTimestamp`, written like `20261115T224205Z`; and `.ClusterName`. The URL begins
    /// with `s3://`, `gs://` or `az://`.
    #[serde(rename = "objectURLTemplate", default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024))]
    #[x_kube(
        validation = validation::object_url_template_has_a_scheme(),
        validation = validation::object_url_template_has_known_variables()
    )]
    pub object_url_template: Option<String>,

    /// The URL of the object to write, without variables, for example `gs://bucket/before-the-upgrade.db`. The URL begins
    /// with `s3://`, `gs://` or `az://`.
    #[serde(rename = "objectURL", default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024))]
    #[x_kube(validation = validation::object_url_has_a_scheme(), validation = validation::object_url_has_no_variables())]
    pub object_url: Option<String>,

    /// A bucket of Google Cloud Storage. The object is named after the EtcdBackup: its namespace, a slash, its name and
    /// `.db`. It is an earlier form of `objectURLTemplate: gs://bucket/{{ .Namespace }}/{{ .Name }}.db`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gcs_bucket: Option<GcsBucket>,

    /// A volume: a PersistentVolumeClaim in the same namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub persistent_volume_claim: Option<ClaimDestination>,

    /// An earlier form that wrote into the operator's own pod, where backups were lost with it. It is refused: use
    /// `persistentVolumeClaim`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub local: Option<LocalDestination>,

    #[serde(flatten)]
    pub access: StoreAccess,
}

impl Destination {
    /// The URL of the object, with variables. `None` if it goes to a volume.
    pub fn url_template(&self) -> Option<String> {
        let in_bucket = || self.gcs_bucket.as_ref().map(|gcs| format!("gs://{}/{FILE_OF_BACKUP}", gcs.bucket_name));
        self.object_url_template.clone().or_else(|| self.object_url.clone()).or_else(in_bucket)
    }

    /// The credentials, from whichever of their places they were written in.
    pub fn credentials(&self) -> Option<&Credentials> {
        let of_bucket = self.gcs_bucket.as_ref().and_then(|gcs| gcs.credentials.as_ref());
        of_bucket.or(self.access.credentials.as_ref())
    }
}

/// A bucket of Google Cloud Storage.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GcsBucket {
    /// Required. The name of the bucket.
    #[schemars(length(max = 222))]
    #[x_kube(validation = validation::bucket_name_is_a_name())]
    pub bucket_name: String,

    /// Optional. The credentials for the bucket, from Secrets in the same namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credentials: Option<Credentials>,
}

/// A file in a volume.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClaimDestination {
    /// Required. The name of the PersistentVolumeClaim, in the same namespace.
    #[schemars(length(min = 1, max = 253))]
    pub claim_name: String,

    /// Optional. The file in the volume, with the variables of `objectURLTemplate`. The default is
    /// `{{ .Namespace }}/{{ .Name }}.db`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1024))]
    #[x_kube(validation = validation::path_stays_in_the_volume(), validation = validation::path_has_known_variables())]
    pub path: Option<String>,
}

impl ClaimDestination {
    /// The file in the volume, with variables.
    pub fn path(&self) -> &str {
        self.path.as_deref().unwrap_or(FILE_OF_BACKUP)
    }
}

/// A file in the operator's own pod.
#[derive(JsonSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LocalDestination {
    /// The file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
}
