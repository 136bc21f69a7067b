//! A test's own bucket in one of the lab's object stores, and what an EtcdBackup or an EtcdRestore is told to get at it.

use std::sync::OnceLock;
use std::time::{SystemTime, UNIX_EPOCH};

pub use lab::stores::Store;
use lab::stores::{Credentials, Endpoint, s3};
use serde_json::{Value, json};

use crate::{Namespace, SAFETY, finish};

const MANIFEST: &str = ".manifest.json";
const PROOF: &str = ".proof.json";

pub struct Bucket {
    pub store: Store,
    pub name: String,
    endpoint: Endpoint,
}

impl Bucket {
    /// A bucket that no earlier run has used: what a store holds outlives the test. The namespace gets a Secret with the
    /// credentials, named after the store.
    pub fn create(store: Store, name: &str, namespace: &Namespace) -> Self {
        Self::named(store, &unused(name), namespace)
    }

    /// A bucket of S3 that is full once it holds so many bytes.
    pub fn create_small(name: &str, size: u64, namespace: &Namespace) -> Self {
        let bucket = Self::create(Store::S3, name, namespace);
        bucket.resize(size);
        bucket
    }

    /// A bucket with just this name, which may be there already, with all that is in it.
    pub fn named(store: Store, name: &str, namespace: &Namespace) -> Self {
        let up = async {
            let endpoint = store.ensure_up().await?;
            store.create_bucket(name).await.map(|()| endpoint)
        };
        let endpoint = finish(up).unwrap_or_else(|error| panic!("the bucket {name} of {}: {error:#}", store.name()));
        let bucket = Bucket { store, name: name.to_owned(), endpoint };
        bucket.write_secret(store.name(), namespace);
        bucket
    }

    /// Gives one of the small buckets another size.
    pub fn resize(&self, size: u64) {
        s3::create_small_bucket(&self.name, size).expect("the bucket gets its size");
    }

    /// The credentials as users have them in Secrets.
    pub fn write_secret(&self, name: &str, namespace: &Namespace) {
        let environment = self.endpoint.credentials.environment();
        let data: Value = match &self.endpoint.credentials {
            Credentials::Gcs { service_account } => json!({"gcp.json": service_account}),
            _ => environment.into_iter().map(|(variable, value)| (variable.to_owned(), json!(value))).collect(),
        };
        write_secret(namespace, name, &data);
    }

    /// The address of the store.
    pub fn endpoint(&self) -> &str {
        &self.endpoint.url
    }

    pub fn url(&self, object: &str) -> String {
        let scheme = match self.store {
            Store::S3 => "s3",
            Store::Gcs => "gs",
            Store::Azure => "az",
        };
        format!("{scheme}://{}/{object}", self.name)
    }

    /// How to get at what is in it. The key of the GCS store tells its address.
    fn access(&self) -> Value {
        let secret = self.store.name();
        match self.store {
            Store::S3 => json!({
                "credentials": {"s3": {"secretName": secret}},
                "s3": {"endpoint": self.endpoint(), "forcePathStyle": true},
            }),
            Store::Gcs => {
                json!({"credentials": {"googleCloud": {"secretKeyRef": {"name": secret, "key": "gcp.json"}}}})
            }
            Store::Azure => json!({
                "credentials": {"azure": {"secretName": secret}},
                "azure": {"endpoint": self.endpoint()},
            }),
        }
    }

    /// The destination of an EtcdBackup: an object whose name may have variables.
    pub fn destination(&self, template: &str) -> Value {
        let mut destination = self.access();
        destination["objectURLTemplate"] = json!(self.url(template));
        destination
    }

    /// The source of an EtcdRestore.
    pub fn source(&self, object: &str) -> Value {
        let mut source = self.access();
        source["objectURL"] = json!(self.url(object));
        source
    }

    pub fn objects(&self) -> Vec<String> {
        let objects = finish(self.store.objects(&self.name)).expect("the bucket is read");
        objects.into_iter().map(|(name, _)| name).collect()
    }

    /// The objects of which only parts were uploaded.
    pub fn unfinished(&self) -> Vec<String> {
        finish(self.store.unfinished_uploads(&self.name)).expect("the bucket is read")
    }

    pub fn read(&self, object: &str) -> Vec<u8> {
        finish(self.store.read(&self.name, object)).unwrap_or_else(|error| panic!("{}: {error:#}", self.url(object)))
    }

    /// What is written beside a backup about it.
    pub fn manifest_of(&self, object: &str) -> Value {
        serde_json::from_slice(&self.read(&format!("{object}{MANIFEST}"))).expect("a manifest is JSON")
    }

    pub fn corrupt_byte(&self, object: &str, offset: u64) {
        finish(self.store.corrupt_byte(&self.name, object, offset)).expect("a byte is changed");
    }

    /// There are these backups, each with its manifest and perhaps its proof, and nothing else: nothing unfinished either.
    pub fn assert_holds(&self, backups: &[&str]) {
        let mut expected: Vec<String> =
            backups.iter().flat_map(|name| [(*name).to_owned(), format!("{name}{MANIFEST}")]).collect();
        expected.sort();
        let is_proof = |object: &String| object.strip_suffix(PROOF).is_some_and(|backup| backups.contains(&backup));
        let mut objects: Vec<String> = self.objects().into_iter().filter(|object| !is_proof(object)).collect();
        objects.sort();
        let lost: Vec<&String> = expected.iter().filter(|name| !objects.contains(name)).collect();
        assert!(lost.is_empty(), "{SAFETY}these are gone from {}: {lost:?}", self.url(""));
        assert_eq!(objects, expected, "what is in {}", self.url(""));
        assert_eq!(self.unfinished(), Vec::<String>::new(), "what is unfinished in {}", self.url(""));
    }
}

pub fn write_secret(namespace: &Namespace, name: &str, data: &Value) {
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": data});
    namespace.apply(&secret.to_string()).expect("a Secret is accepted");
}

/// A name that no earlier run has used.
fn unused(name: &str) -> String {
    static RUN: OnceLock<u64> = OnceLock::new();
    let run = RUN.get_or_init(|| SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs()));
    format!("{name}-{run:x}")
}
