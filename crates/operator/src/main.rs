//! The etcd operator: runs etcd clusters on Kubernetes.

mod backups;
mod cli;
mod controller;
mod crds;
mod environment;
mod error_chain;
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
