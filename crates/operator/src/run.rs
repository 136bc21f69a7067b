//! The command `run`: from the start of the process to its graceful shutdown.

use std::sync::Arc;

use anyhow::{Context, anyhow};
use kube::Client;
use tracing::info;

use crate::cli::RunOptions;
use crate::controllers::start::{self, Work};
use crate::environment;
use crate::http::{self, Sources};
use crate::logging;
use crate::objects::containers::Settings;
use crate::runtime::leader::{self, Candidate};
use crate::runtime::metrics::Metrics;
use crate::runtime::readiness::Readiness;
use crate::runtime::scope::Scope;
use crate::runtime::shutdown::Shutdown;

pub async fn run(options: RunOptions) -> anyhow::Result<()> {
    logging::start(options.log_format)?;
    info!(version = env!("CARGO_PKG_VERSION"), "starting the etcd operator");
    rustls::crypto::ring::default_provider()
        .install_default()
        .map_err(|_| anyhow!("another cryptography provider than ring was installed before"))?;

    let shutdown = Shutdown::on_signals()?;
    let metrics = Arc::new(Metrics::new());
    let readiness = Arc::new(Readiness::waiting_for("the first answer of the API server"));
    let sources = Sources { metrics: metrics.clone(), readiness: readiness.clone(), shutdown: shutdown.clone() };
    let server = http::serve(options.metrics_addr, sources).await?;

    let client = Client::try_default().await.context("finding out how to reach the API server")?;
    let settings = Settings {
        agent_image: environment::agent_image(&client, options.agent_image).await?,
        etcd_repository: options.etcd_repository,
        pull_policy: options.image_pull_policy,
    };
    let domain = environment::cluster_domain(options.cluster_domain);
    info!(agent_image = settings.agent_image, domain, "detected environment");
    let work = Work {
        client: client.clone(),
        scopes: Scope::of_namespaces(&options.namespaces),
        settings,
        domain,
        max_rolling_clusters: options.max_rolling_clusters,
        metrics,
        readiness,
        shutdown,
    };
    if options.enable_leader_election {
        work_while_leading(Candidate::new(client, leader::own_namespace()?), &work).await;
    } else {
        work_on_everything(&work).await;
    }

    server.abort();
    info!("stopped");
    Ok(())
}

async fn work_on_everything(work: &Work) {
    start::run(work).await;
}

/// Runs the controllers from when this process becomes the leader until it should stop, then releases the leadership.
async fn work_while_leading(candidate: Candidate, work: &Work) {
    let elected = tokio::select! {
        leadership = candidate.win(|| work.readiness.set_ready()) => Some(leadership),
        () = work.shutdown.begun() => None,
    };
    let Some(mut leadership) = elected else { return };
    work.metrics.leader.set(1);
    tokio::select! {
        () = work_on_everything(work) => {}
        never = leadership.keep() => match never {},
    }
    leadership.release().await;
    work.metrics.leader.set(0);
}
