//! The lab as a whole: `up`, `down`, and whether it is whole.

use std::fs::File;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use futures::future::try_join_all;
use kube::Client;

use crate::node::{Node, remove_if_there};
use crate::say::{Step, seconds};
use crate::{
    api, cgroup, command, control, images, mounts, network, packages, parts, paths, pki, preflight, process, storage,
};

/// Brings the lab up, or finds that it is up, and links its tools and kubeconfig into `<checkout>/.lab`.
pub async fn up(checkout: &Path) -> Result<()> {
    let started = Instant::now();
    preflight::check_root()?;
    let _lock = lock()?;
    if is_whole().await {
        link_into(checkout)?;
        println!("The lab is up already.");
        return Ok(());
    }
    let step = Step::start("leftovers of an earlier run");
    step.done(if sweep()? { "swept" } else { "none" });
    preflight::check()?;
    packages::install_missing()?;
    parts::build_missing()?;
    images::build_missing()?;
    if let Err(error) = start().await {
        // Logs are kept: they are the only witness.
        return Err(error.context(format!("The lab did not come up; its logs are in {}", paths::data("log").display())));
    }
    link_into(checkout)?;
    println!("The lab is up: {} nodes Ready after {}.", Node::all().count(), seconds(started.elapsed()));
    println!("  export KUBECONFIG={}", checkout.join(".lab/kubeconfig").display());
    Ok(())
}

/// Takes the lab down and leaves nothing behind but the cache.
pub fn down(checkout: &Path) -> Result<()> {
    preflight::check_root()?;
    let _lock = lock()?;
    let step = Step::start("lab");
    let found = sweep()?;
    remove_if_there(&checkout.join(".lab"))?;
    step.done(if found { "taken down" } else { "was not up" });
    Ok(())
}

/// Whether everything that should run does, and the API server answers.
pub async fn is_whole() -> bool {
    let programs = |group: &str, expected: &[&str]| {
        let running = process::programs(group).unwrap_or_default();
        expected.iter().all(|program| running.iter().any(|name| name == program))
    };
    let fingerprint = std::fs::read_to_string(paths::data("fingerprint")).unwrap_or_default();
    let nodes_whole = Node::all().all(|node| node.missing_programs().is_ok_and(|missing| missing.is_empty()));
    fingerprint == own_fingerprint()
        && nodes_whole
        && programs(control::GROUP, &control::PROGRAMS)
        && api::is_ready().await
}

/// Refuses with a sentence when there is no lab to act on.
pub fn require() -> Result<()> {
    preflight::check_root()?;
    if !paths::data("fingerprint").exists() {
        bail!("The lab is not up: run `make lab-up` first.");
    }
    Ok(())
}

/// Held by whoever changes the lab. Waits for another to finish.
pub fn lock() -> Result<File> {
    let file = File::create(paths::LOCK).with_context(|| format!("opening {}", paths::LOCK))?;
    if file.try_lock().is_err() {
        println!("Another command is changing the lab; waiting for it.");
        file.lock().with_context(|| format!("locking {}", paths::LOCK))?;
    }
    Ok(file)
}

/// What the lab is made of. A lab of another make is not ours to use.
fn own_fingerprint() -> String {
    parts::all().map(|part| part.key()).collect::<Vec<_>>().join("\n")
}

async fn start() -> Result<()> {
    let step = Step::start("keys and network");
    let data = Path::new(paths::DATA);
    std::fs::create_dir_all(paths::data("log"))?;
    std::fs::create_dir_all(paths::data("control"))?;
    // Shared, as Kubernetes wants it: mounts that a pod makes for others are seen by them. Only this folder, so that
    // the machine's own mounts stay as they are.
    command::run("mount", [Path::new("--bind"), data, data])?;
    command::run("mount", [Path::new("--make-rshared"), data])?;
    pki::create().context("making certificates")?;
    network::create().context("making the network")?;
    step.done("made");

    let step = Step::start("control plane");
    control::start().await?;
    let client = api::client().await?;
    storage::create_classes(&client).await?;
    step.done("answers");

    let step = Step::start("nodes");
    let archives = images::archives()?;
    let nodes = Node::all().map(|node| {
        let archives = archives.clone();
        async move { node.start_new(archives).await.with_context(|| format!("starting {}", node.name())) }
    });
    let all: Vec<Node> = Node::all().collect();
    let ready = wait_for_ready_nodes(&client, &all);
    let loaded = try_join_all(nodes);
    futures::try_join!(ready, loaded)?;
    step.done("Ready, with the images loaded");
    // Written last: a lab without it never came up whole.
    std::fs::write(paths::data("fingerprint"), own_fingerprint()).context("recording what the lab is made of")
}

/// Waits until nodes are Ready. A kubelet that has brought nothing about in a while is started again, once.
pub async fn wait_for_ready_nodes(client: &Client, nodes: &[Node]) -> Result<()> {
    let (begin, patience, limit) = (Instant::now(), Duration::from_secs(45), Duration::from_secs(120));
    let mut tried_again = false;
    loop {
        let seen = api::nodes(client).await?;
        let is_ready = |node: &Node| seen.iter().any(|(name, ready)| *ready && *name == node.name());
        let missing: Vec<Node> = nodes.iter().copied().filter(|node| !is_ready(node)).collect();
        if missing.is_empty() {
            return Ok(());
        }
        if begin.elapsed() > limit {
            let logs: Vec<String> = missing.iter().map(Node::end_of_kubelet_log).collect();
            bail!("not Ready within {limit:?}:\n{}", logs.join("\n"));
        }
        if begin.elapsed() > patience && !tried_again {
            tried_again = true;
            for node in &missing {
                println!(
                    "      {} is not Ready; starting its kubelet again.\n{}",
                    node.name(),
                    node.end_of_kubelet_log()
                );
                node.restart_kubelet()?;
            }
        }
        tokio::time::sleep(Duration::from_millis(250)).await;
    }
}

/// Removes every trace of a lab, whole or broken. Tells whether there was one.
fn sweep() -> Result<bool> {
    let folders = [PathBuf::from(paths::DATA), PathBuf::from(paths::RUN)];
    let found = folders.iter().any(|folder| folder.exists());
    let killed = cgroup::destroy(cgroup::LAB)?;
    network::sweep()?;
    for folder in &folders {
        mounts::sweep(folder)?;
        remove_if_there(folder)?;
    }
    cgroup::wait_until_collected(&killed);
    Ok(found)
}

/// Puts the kubeconfig and the tools where a person in this checkout finds them.
fn link_into(checkout: &Path) -> Result<()> {
    let bin = checkout.join(".lab/bin");
    remove_if_there(&bin)?;
    std::fs::create_dir_all(&bin).with_context(|| format!("creating {}", bin.display()))?;
    let tools = [(&parts::KUBERNETES, "kubectl"), (&parts::ETCD_3_6_16, "etcdctl"), (&parts::ETCD_3_6_16, "etcdutl")];
    for (part, tool) in tools {
        symlink(part.bin()?.join(tool), bin.join(tool)).with_context(|| format!("linking {tool}"))?;
    }
    let kubeconfig = checkout.join(".lab/kubeconfig");
    std::fs::copy(pki::kubeconfig("admin"), &kubeconfig)
        .with_context(|| format!("writing {}", kubeconfig.display()))?;
    Ok(())
}
