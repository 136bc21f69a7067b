//! How to get at objects in S3, Google Cloud Storage and Azure: with which credentials, and at which address.

use k8s_openapi::api::core::v1::{EnvVar, EnvVarSource, SecretKeySelector};
use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::validation;

/// How to get at an object. It is written beside the URL.
#[derive(JsonSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StoreAccess {
    /// Optional. The credentials for the object's store, taken from Secrets in the same namespace. Without them the
    /// pod's own identity counts, which is that of its service account or of its node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credentials: Option<Credentials>,

    /// Optional. Settings for URLs that begin with `s3://`. Without them the region comes from the URL or from the
    /// environment of the pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub s3: Option<S3Options>,

    /// Optional. Settings for URLs that begin with `az://`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub azure: Option<AzureOptions>,

    /// Optional. Settings for URLs that begin with `gs://`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub google_cloud: Option<GoogleCloudOptions>,
}

impl StoreAccess {
    /// The address of the server, if it is not the provider's own.
    pub fn endpoint(&self) -> Option<&str> {
        let s3 = self.s3.as_ref().and_then(|options| options.endpoint.as_deref());
        let azure = self.azure.as_ref().and_then(|options| options.endpoint.as_deref());
        let google_cloud = self.google_cloud.as_ref().and_then(|options| options.endpoint.as_deref());
        s3.or(azure).or(google_cloud)
    }

    /// The region of the bucket, if it was said.
    pub fn region(&self) -> Option<&str> {
        self.s3.as_ref()?.region.as_deref()
    }

    /// Whether the bucket is to be in the path of an address rather than in the name of its server.
    pub fn force_path_style(&self) -> bool {
        self.s3.as_ref().is_some_and(|options| options.force_path_style)
    }
}

/// The credentials for an object's store: those of the provider that the URL is of, or a service account that needs none.
#[derive(JsonSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Credentials {
    /// Optional. The key of a Google Cloud service account, for URLs that begin with `gs://`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub google_cloud: Option<GoogleCloudCredentials>,

    /// Optional. An access key, for URLs that begin with `s3://`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub s3: Option<S3Credentials>,

    /// Optional. The key of a storage account or a shared access signature, for URLs that begin with `az://`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub azure: Option<AzureCredentials>,

    /// Optional. The service account, in the same namespace, that the pod runs as. It needs no rights in Kubernetes; give
    /// it an identity at the provider, and no Secret is needed. The default is `default`, without a token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub service_account_name: Option<String>,
}

impl Credentials {
    /// The environment variables of a pod that is to have these credentials.
    pub fn variables(&self) -> Vec<EnvVar> {
        let mut variables = Vec::new();
        if let Some(key) = &self.google_cloud {
            variables.push(from_secret("GOOGLE_SERVICE_ACCOUNT_KEY", key.secret_key_ref.clone()));
        }
        if let Some(keys) = &self.s3 {
            let key = |variable, key: &str, optional| from_secret(variable, selector(&keys.secret_name, key, optional));
            variables.extend([
                key("AWS_ACCESS_KEY_ID", &keys.access_key_id_key, false),
                key("AWS_SECRET_ACCESS_KEY", &keys.secret_access_key_key, false),
                key("AWS_SESSION_TOKEN", &keys.session_token_key, true),
            ]);
        }
        if let Some(keys) = &self.azure {
            let key = |variable, key: &str| from_secret(variable, selector(&keys.secret_name, key, true));
            variables.extend([
                key("AZURE_STORAGE_ACCOUNT_NAME", &keys.account_name_key),
                key("AZURE_STORAGE_ACCOUNT_KEY", &keys.account_key_key),
                key("AZURE_STORAGE_SAS_TOKEN", &keys.sas_token_key),
            ]);
        }
        variables
    }
}

fn selector(secret: &str, key: &str, optional: bool) -> SecretKeySelector {
    SecretKeySelector { name: secret.to_owned(), key: key.to_owned(), optional: Some(optional) }
}

/// An environment variable with the value of a Secret's key.
pub(crate) fn from_secret(variable: &str, selector: SecretKeySelector) -> EnvVar {
    let source = EnvVarSource { secret_key_ref: Some(selector), ..Default::default() };
    EnvVar { name: variable.to_owned(), value: None, value_from: Some(source) }
}

/// The key of a Google Cloud service account.
#[derive(JsonSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GoogleCloudCredentials {
    /// Required. The key of a Secret, in the same namespace, that holds the service account's key file, a JSON text.
    pub secret_key_ref: SecretKeySelector,
}

/// An access key for S3, or for a server that speaks like it.
#[derive(JsonSchema, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct S3Credentials {
    /// Required. The name of the Secret, in the same namespace, that holds the access key.
    #[schemars(length(min = 1, max = 253))]
    pub secret_name: String,

    /// Optional. Which key of the Secret holds the ID of the access key.
    #[serde(rename = "accessKeyIDKey", default = "access_key_id")]
    #[schemars(length(min = 1, max = 253))]
    pub access_key_id_key: String,

    /// Optional. Which key of the Secret holds the secret access key.
    #[serde(default = "secret_access_key")]
    #[schemars(length(min = 1, max = 253))]
    pub secret_access_key_key: String,

    /// Optional. Which key of the Secret holds the session token. The Secret need not have it.
    #[serde(default = "session_token")]
    #[schemars(length(min = 1, max = 253))]
    pub session_token_key: String,
}

fn access_key_id() -> String {
    "AWS_ACCESS_KEY_ID".to_owned()
}

fn secret_access_key() -> String {
    "AWS_SECRET_ACCESS_KEY".to_owned()
}

fn session_token() -> String {
    "AWS_SESSION_TOKEN".to_owned()
}

/// The key of an Azure storage account, or a shared access signature.
#[derive(JsonSchema, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AzureCredentials {
    /// Required. The name of the Secret, in the same namespace, that holds the keys below. It need not have all of them:
    /// the name of the account goes with its key or with a signature.
    #[schemars(length(min = 1, max = 253))]
    pub secret_name: String,

    /// Optional. Which key of the Secret holds the name of the storage account.
    #[serde(default = "account_name")]
    #[schemars(length(min = 1, max = 253))]
    pub account_name_key: String,

    /// Optional. Which key of the Secret holds the key of the storage account.
    #[serde(default = "account_key")]
    #[schemars(length(min = 1, max = 253))]
    pub account_key_key: String,

    /// Optional. Which key of the Secret holds a shared access signature.
    #[serde(default = "sas_token")]
    #[schemars(length(min = 1, max = 253))]
    pub sas_token_key: String,
}

fn account_name() -> String {
    "AZURE_STORAGE_ACCOUNT_NAME".to_owned()
}

fn account_key() -> String {
    "AZURE_STORAGE_ACCOUNT_KEY".to_owned()
}

fn sas_token() -> String {
    "AZURE_STORAGE_SAS_TOKEN".to_owned()
}

/// Settings for S3, or for a server that speaks like it.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct S3Options {
    /// Optional. The address of the server, for example `https://minio.example.com:9000`, if it is not Amazon's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 512))]
    #[x_kube(validation = validation::endpoint_is_an_address())]
    pub endpoint: Option<String>,

    /// Optional. The region of the bucket, for example `eu-west-1`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub region: Option<String>,

    /// Optional. `true` writes the bucket into the path of an address, `https://server/bucket`, rather than into the name
    /// of the server, `https://bucket.server`. Servers other than Amazon's often need it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub force_path_style: bool,
}

/// Settings for Azure.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AzureOptions {
    /// Optional. The address of the server, for example `https://account.blob.core.windows.net`, if it does not follow
    /// from the name of the storage account.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 512))]
    #[x_kube(validation = validation::endpoint_is_an_address())]
    pub endpoint: Option<String>,
}

/// Settings for Google Cloud Storage.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GoogleCloudOptions {
    /// Optional. The address of the server, for example `https://storage.example.com`, if it is not Google's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 512))]
    #[x_kube(validation = validation::endpoint_is_an_address())]
    pub endpoint: Option<String>,
}
