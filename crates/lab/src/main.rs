//! The `lab` command: its arguments, and which function of the library each of them calls. What those do is in the
//! library.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::{Parser, Subcommand};
use lab::node::Node;
use lab::stores::Store;
use lab::{lifecycle, status, storage};

/// A real three-node Kubernetes on this machine.
#[derive(Parser)]
#[command(name = "lab")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Start the lab, after sweeping what an earlier one left; its kubeconfig and tools appear in ./.lab
    Up,
    /// Stop the lab and remove everything of it but the cache
    Down,
    /// Show what runs
    Status,
    /// Load an image archive (docker save, buildah push docker-archive:) on every node
    LoadImage { archive: PathBuf },
    /// Power a node off or on, cut or heal its network
    Node { what: NodeChange, node: String },
    /// Start, stop or kill the object stores
    Stores {
        what: StoreChange,
        /// All of them if none is named
        store: Option<Store>,
    },
    /// Serve the storage classes; started by `up`
    #[command(hide = true)]
    ProvisionVolumes,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum NodeChange {
    /// Power off: every process of the node dies
    Stop,
    /// Power on again
    Start,
    /// Pull the network cable
    Cut,
    /// Plug it in again
    Heal,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum StoreChange {
    /// Start it, and tell how to reach it; the first time ever it is built
    Up,
    /// Ask it to end; what it holds stays
    Stop,
    /// Kill it in the middle of whatever it does; what it holds stays
    Kill,
}

#[tokio::main]
async fn main() -> ExitCode {
    match carry_out(Cli::parse().command).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn carry_out(command: Command) -> Result<()> {
    let checkout = std::env::current_dir().context("finding the current folder")?;
    match command {
        Command::Up => lifecycle::up(&checkout).await,
        Command::Down => lifecycle::down(&checkout),
        Command::Status => status::print().await,
        Command::LoadImage { archive } => {
            lifecycle::require()?;
            Node::all().filter(Node::is_on).try_for_each(|node| node.load_image(&archive))
        }
        Command::Node { what, node } => {
            lifecycle::require()?;
            let _lock = lifecycle::lock()?;
            change_node(Node::named(&node)?, what).await
        }
        Command::Stores { what, store } => {
            lifecycle::require()?;
            for store in Store::ALL.into_iter().filter(|each| store.is_none_or(|only| only == *each)) {
                change_store(store, what).await?;
            }
            Ok(())
        }
        Command::ProvisionVolumes => storage::provision().await,
    }
}

async fn change_node(node: Node, what: NodeChange) -> Result<()> {
    match what {
        NodeChange::Stop => node.stop(),
        NodeChange::Start => node.start().await,
        NodeChange::Cut => node.cut(),
        NodeChange::Heal => node.heal(),
    }
}

async fn change_store(store: Store, what: StoreChange) -> Result<()> {
    match what {
        StoreChange::Up => {
            let endpoint = store.ensure_up().await?;
            println!("The store {} answers at {}:", store.name(), endpoint.url);
            for (variable, value) in endpoint.credentials.environment() {
                println!("  export {variable}='{value}'");
            }
            Ok(())
        }
        StoreChange::Stop => store.stop(),
        StoreChange::Kill => store.kill(),
    }
}
