//! The etcd operator: the program that runs etcd clusters on Kubernetes.
//!
//! `cli` parses the command line, `run` is the command that runs the `controllers`, a folder for each kind. They stand
//! on `runtime` (watches, caches, leader election and the like), and `objects` builds what they create. The rest is
//! small: `crds` and `reference` write files, `environment`, `http`, `logging`.
//!
//! Here is what talks to Kubernetes. Decisions belong in `etcd_operator_core`, talking to etcd in `etcd_operator_etcd`,
//! moving backups in `etcd_operator_store` and the agent.

mod cli;
mod controllers;
mod crds;
mod environment;
mod http;
mod logging;
mod objects;
mod reference;
mod run;
mod runtime;

use clap::Parser;

use crate::cli::{Cli, Command};

// Memory of a burst (a list of all pods, say) is given back to the system, which the allocator of glibc does not do.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

// As many threads as the operator can use: by default there would be one for each core of the node.
#[tokio::main(worker_threads = 2)]
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
