//! The etcd operator: the program that runs etcd clusters on Kubernetes.
//!
//! `cli` parses the command line, `run` is the command that runs the controllers; `leader` makes sure that only one
//! process does. `controller` is for EtcdClusters, `backups` for the other kinds, `objects` builds the objects that
//! they create. The rest is small: `crds`, `environment`, `http`, `metrics`, `readiness`, `shutdown`, `logging`,
//! `api_errors`.
//!
//! Here is what talks to Kubernetes. Decisions belong in `etcd_operator_core`, talking to etcd in `etcd_operator_etcd`,
//! moving backups in `etcd_operator_store` and the agent.

mod api_errors;
mod backups;
mod cli;
mod controller;
mod crds;
mod environment;
mod http;
mod leader;
mod logging;
mod metrics;
mod objects;
mod readiness;
mod reference;
mod run;
mod shutdown;

use clap::Parser;

use crate::cli::{Cli, Command};

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    match Cli::parse().command {
        Command::Run(options) => run::run(options).await,
        Command::Crds(options) => crds::write(options.out_dir.as_deref()),
        Command::Reference(options) => reference::write(options.out_file.as_deref()),
        Command::Version => {
            println!("{}", env!("CARGO_PKG_VERSION"));
            Ok(())
        }
    }
}
