//! Who can read a backup, and with which key it is read again.

use k8s_openapi::api::core::v1::{EnvVar, SecretKeySelector};
use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::object_store::from_secret;
use super::validation;

/// How a backup is encrypted.
#[derive(JsonSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Encryption {
    /// Required. Encrypts in the format of `age`, so that the private key need not be in Kubernetes.
    pub age: AgeEncryption,
}

/// Encryption in the format of `age`.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgeEncryption {
    /// Required. The public keys of those who may read the backup, as `age-keygen` prints them: they begin with `age1`.
    /// Any one of the private keys is enough to read it. Without one of those it is lost.
    #[schemars(length(min = 1, max = 16), inner(length(max = 128)))]
    #[x_kube(validation = validation::recipients_are_public_keys())]
    pub recipients: Vec<String>,
}

/// How an encrypted backup is read.
#[derive(JsonSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Decryption {
    /// Required. Reads what was encrypted in the format of `age`.
    pub age: AgeDecryption,
}

impl Decryption {
    /// The environment variable of a pod that is to read an encrypted backup.
    pub fn variable(&self, name: &str) -> EnvVar {
        from_secret(name, self.age.identity_secret_key_ref.clone())
    }
}

/// Decryption of the format of `age`.
#[derive(JsonSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgeDecryption {
    /// Required. The key of a Secret, in the same namespace, that holds a private key which opens the backup, as
    /// `age-keygen` prints it: it begins with `AGE-SECRET-KEY-`.
    pub identity_secret_key_ref: SecretKeySelector,
}
