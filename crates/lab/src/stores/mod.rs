//! Object stores for backups, one for each protocol: S3, Google's and Azure's. They run beside the API server, where pods and the
//! machine itself reach them, and start only when somebody asks. What a store holds outlives its process, as a store's
//! data does, and goes with the lab.
//!
//! Whoever kills a store takes it from everybody who uses the lab at that moment.

mod azure;
mod azurite;
mod endpoint;
mod files;
mod gcs;
pub mod s3;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use tokio::net::TcpStream;

pub use self::endpoint::{Credentials, Endpoint};
use crate::cgroup::{self, Signal};
use crate::process::Daemon;
use crate::{lifecycle, network, paths};

/// Every name below it is the stores' address, for pods: `s3.lab.internal`, and `bucket.s3.lab.internal` too.
pub const DOMAIN: &str = "lab.internal";

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Store {
    S3,
    Gcs,
    Azure,
}

impl Store {
    pub const ALL: [Store; 3] = [Store::S3, Store::Gcs, Store::Azure];

    pub fn name(self) -> &'static str {
        match self {
            Store::S3 => "s3",
            Store::Gcs => "gcs",
            Store::Azure => "azure",
        }
    }

    /// Starts the store unless it runs, and tells how to reach it. The first time ever it is built, which takes a minute or two.
    pub async fn ensure_up(self) -> Result<Endpoint> {
        self.start().await?;
        self.endpoint()
    }

    /// Starts the store unless it runs, with all that it held before.
    pub async fn start(self) -> Result<()> {
        lifecycle::require()?;
        match self {
            Store::S3 => s3::build_if_missing(),
            Store::Gcs => gcs::build_if_missing(),
            Store::Azure => azurite::install_if_missing(),
        }
        .with_context(|| format!("building the store {}", self.name()))?;
        self.launch().with_context(|| format!("starting the store {}", self.name()))?;
        self.wait_until_it_answers().await
    }

    /// Asks the store to end and waits until it has.
    pub fn stop(self) -> Result<()> {
        cgroup::signal(&cgroup::processes(&self.group())?, Signal::TERM)?;
        let deadline = Instant::now() + Duration::from_secs(10);
        while self.is_running()? {
            if Instant::now() > deadline {
                // It waits for a request that doesn't end.
                return self.kill();
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    /// Kills the store in the middle of whatever it does. It stays dead until somebody starts it.
    pub fn kill(self) -> Result<()> {
        cgroup::destroy(&self.group()).map(drop).with_context(|| format!("killing the store {}", self.name()))
    }

    pub fn is_running(self) -> Result<bool> {
        Ok(!cgroup::processes(&self.group())?.is_empty())
    }

    /// Whether somebody has asked for it since the lab came up.
    pub fn was_ever_up(self) -> bool {
        self.folder().exists()
    }

    /// Makes a bucket (Azure calls it a container), unless it is there.
    pub async fn create_bucket(self, name: &str) -> Result<()> {
        match self {
            Store::S3 => files::create_bucket(&s3::buckets(), name),
            Store::Gcs => files::create_bucket(&gcs::buckets(), name),
            Store::Azure => azure::create_container(name).await,
        }
    }

    /// The names and sizes of the objects in a bucket, in the order of their names.
    pub async fn objects(self, bucket: &str) -> Result<Vec<(String, u64)>> {
        match self {
            Store::S3 => files::objects(&s3::buckets(), bucket),
            Store::Gcs => files::objects(&gcs::buckets(), bucket),
            Store::Azure => azure::objects(bucket).await,
        }
    }

    /// The objects of which parts were uploaded that nobody has put together or thrown away, one name for each upload.
    pub async fn unfinished_uploads(self, bucket: &str) -> Result<Vec<String>> {
        match self {
            Store::S3 => s3::unfinished_uploads(bucket),
            Store::Gcs => gcs::unfinished_uploads(bucket),
            Store::Azure => azure::unfinished_uploads(bucket).await,
        }
    }

    /// The bytes of an object as they are stored.
    pub async fn read(self, bucket: &str, object: &str) -> Result<Vec<u8>> {
        match self {
            Store::S3 => files::read(&s3::buckets(), bucket, object),
            Store::Gcs => files::read(&gcs::buckets(), bucket, object),
            Store::Azure => azure::read(bucket, object).await,
        }
    }

    /// Changes one byte of an object as a failing disk does: the store doesn't notice.
    pub async fn corrupt_byte(self, bucket: &str, object: &str, offset: u64) -> Result<()> {
        match self {
            Store::S3 => files::corrupt_byte(&s3::buckets(), bucket, object, offset),
            Store::Gcs => files::corrupt_byte(&gcs::buckets(), bucket, object, offset),
            Store::Azure => azure::corrupt_byte(bucket, object, offset).await,
        }
    }

    fn endpoint(self) -> Result<Endpoint> {
        let credentials = match self {
            Store::S3 => s3::credentials(),
            Store::Gcs => gcs::credentials()?,
            Store::Azure => azure::credentials(),
        };
        let url = match self {
            Store::S3 | Store::Gcs => format!("http://{}", self.address()),
            Store::Azure => azure::url(),
        };
        Ok(Endpoint { url, credentials })
    }

    fn address(self) -> String {
        format!("{}:{}", network::CONTROL_ADDRESS, self.port())
    }

    /// Nothing else in the control plane's namespace listens there.
    fn port(self) -> u16 {
        match self {
            Store::S3 => 9000,
            Store::Gcs => 4443,
            Store::Azure => 10000,
        }
    }

    fn folder(self) -> PathBuf {
        paths::data("stores").join(self.name())
    }

    fn group(self) -> String {
        format!("{}/stores/{}", cgroup::LAB, self.name())
    }

    fn launch(self) -> Result<()> {
        // Two who ask at once must not both start it, and nobody may while the lab goes down.
        let _lock = lifecycle::lock()?;
        lifecycle::require()?;
        if self.is_running()? {
            return Ok(());
        }
        let (name, group) = (self.log_name(), self.group());
        cgroup::create(&group)?;
        let daemon = Daemon { name: &name, group: &group, namespace: network::control_namespace() };
        match self {
            Store::S3 => s3::launch(&daemon),
            Store::Gcs => gcs::launch(&daemon),
            Store::Azure => azurite::launch(&daemon),
        }
    }

    async fn wait_until_it_answers(self) -> Result<()> {
        let (name, group) = (self.log_name(), self.group());
        let daemon = Daemon { name: &name, group: &group, namespace: network::control_namespace() };
        let ended = || !self.is_running().unwrap_or(true);
        let condition = format!("the store {} answers", self.name());
        let answers_or_ended = || async { TcpStream::connect(self.address()).await.is_ok() || ended() };
        daemon.wait_until(&condition, Duration::from_secs(30), answers_or_ended).await?;
        if ended() {
            bail!("The store {} ended right away. The end of its log:\n{}", self.name(), daemon.end_of_log());
        }
        Ok(())
    }

    fn log_name(self) -> String {
        format!("store-{}", self.name())
    }
}
