//! The etcd operator: runs etcd clusters on Kubernetes.

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
mod run;
mod shutdown;

use clap::Parser;

use crate::cli::{Cli, Command};

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    match Cli::parse().command {
        Command::Run(options) => run::run(options).await,
        Command::Crds(options) => crds::write(options.out_dir.as_deref()),
        Command::Version => {
            println!("{}", env!("CARGO_PKG_VERSION"));
            Ok(())
        }
    }
}
