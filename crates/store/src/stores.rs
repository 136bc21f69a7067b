//! The clients of the stores, and how long they wait. Credentials come from the environment.

use std::sync::Arc;
use std::time::Duration;

use object_store::aws::{AmazonS3, AmazonS3Builder};
use object_store::azure::{MicrosoftAzure, MicrosoftAzureBuilder};
use object_store::gcp::{GoogleCloudStorage, GoogleCloudStorageBuilder};
use object_store::local::LocalFileSystem;
use object_store::multipart::MultipartStore;
use object_store::{BackoffConfig, Certificate, ClientOptions, ObjectStore, Result, RetryConfig};

use crate::address::{Address, Store};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// For a request with all that it carries, which is never more than a part: a slow link may take long, a dead one not for
/// ever.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(180);
/// A request is tried again for about this time: a store may be restarted.
const RETRY_TIMEOUT: Duration = Duration::from_secs(120);
const MAX_RETRIES: usize = 16;
const MAX_PAUSE: Duration = Duration::from_secs(10);

/// A store, and how large objects are written to it. Files are written in another way.
pub type Opened = (Arc<dyn ObjectStore>, Option<Arc<dyn MultipartStore>>);

/// With the credentials that the environment has: those given to this pod, or else the pod's own identity.
pub fn open(address: &Address) -> Result<Opened> {
    // Fails if there is a provider already, which is as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
    match address.store {
        Store::S3 => open_s3(address).map(with_parts),
        Store::Gcs => open_gcs(address).map(with_parts),
        Store::Azure => open_azure(address).map(with_parts),
        Store::Files => Ok((Arc::new(LocalFileSystem::new().with_fsync(true)), None)),
    }
}

fn with_parts<S: ObjectStore + MultipartStore>(store: S) -> Opened {
    let store = Arc::new(store);
    (Arc::clone(&store) as _, Some(store as _))
}

fn open_s3(address: &Address) -> Result<AmazonS3> {
    let mut builder = AmazonS3Builder::from_env()
        .with_bucket_name(&address.bucket)
        .with_client_options(client_options()?)
        .with_retry(retries())
        .with_virtual_hosted_style_request(address.bucket_in_host)
        // One object at a time, by the request that every server knows.
        .with_disable_bulk_delete(true);
    if let Some(region) = &address.region {
        builder = builder.with_region(region);
    }
    if let Some(endpoint) = &address.endpoint {
        builder = builder.with_endpoint(endpoint_of_bucket(endpoint, address));
    }
    builder.build()
}

/// The client takes the address as it is, so the bucket must be in it if it is to be there.
fn endpoint_of_bucket(endpoint: &str, address: &Address) -> String {
    match (address.bucket_in_host, endpoint.split_once("://")) {
        (true, Some((scheme, host))) => format!("{scheme}://{}.{host}", address.bucket),
        _ => endpoint.to_owned(),
    }
}

fn open_gcs(address: &Address) -> Result<GoogleCloudStorage> {
    let mut builder = GoogleCloudStorageBuilder::from_env()
        .with_bucket_name(&address.bucket)
        .with_client_options(client_options()?)
        .with_retry(retries());
    if let Some(endpoint) = &address.endpoint {
        builder = builder.with_base_url(endpoint);
    }
    builder.build()
}

fn open_azure(address: &Address) -> Result<MicrosoftAzure> {
    let mut builder = MicrosoftAzureBuilder::from_env()
        .with_container_name(&address.bucket)
        .with_client_options(client_options()?)
        .with_retry(retries());
    if let Some(endpoint) = &address.endpoint {
        builder = builder.with_endpoint(endpoint.clone());
    }
    builder.build()
}

/// The image has no certificates, so the usual ones come along. Those of the system count as well, if there are any: that
/// is how a private authority gets in (`SSL_CERT_FILE`).
fn client_options() -> Result<ClientOptions> {
    let options =
        ClientOptions::new().with_allow_http(true).with_connect_timeout(CONNECT_TIMEOUT).with_timeout(REQUEST_TIMEOUT);
    webpki_root_certs::TLS_SERVER_ROOT_CERTS
        .iter()
        .try_fold(options, |options, der| Ok(options.with_root_certificate(Certificate::from_der(der)?)))
}

fn retries() -> RetryConfig {
    let backoff = BackoffConfig { init_backoff: Duration::from_millis(200), max_backoff: MAX_PAUSE, base: 2.5 };
    RetryConfig { backoff, max_retries: MAX_RETRIES, retry_timeout: RETRY_TIMEOUT }
}
