//! How to reach a store: its address and what it asks for, told as a pod needs it.

/// What a client of a store must know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// Reached from pods and from the machine alike.
    pub url: String,
    pub credentials: Credentials,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Credentials {
    S3 {
        access_key: String,
        secret_key: String,
    },
    Gcs {
        /// The key file of a service account, as JSON. It names the store's address too.
        service_account: String,
    },
    /// Either the key or the token will do.
    Azure {
        account: String,
        key: String,
        sas_token: String,
    },
}

impl Credentials {
    /// The environment variables by which clients of the store are told them.
    pub fn environment(&self) -> Vec<(&'static str, &str)> {
        match self {
            Credentials::S3 { access_key, secret_key } => {
                vec![("AWS_ACCESS_KEY_ID", access_key), ("AWS_SECRET_ACCESS_KEY", secret_key)]
            }
            Credentials::Gcs { service_account } => vec![("GOOGLE_SERVICE_ACCOUNT_KEY", service_account)],
            Credentials::Azure { account, key, .. } => {
                vec![("AZURE_STORAGE_ACCOUNT_NAME", account), ("AZURE_STORAGE_ACCOUNT_KEY", key)]
            }
        }
    }
}
