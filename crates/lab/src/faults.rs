//! Faults that a test can cause beyond those of a whole node: volume data that is lost or wrong, and a container that
//! hangs.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim, Pod};
use kube::{Api, Client};

use crate::cgroup::Signal;
use crate::node::{Node, remove_if_there};
use crate::storage;

/// Empties a volume: it is still there and mounts, but everything on it is gone.
pub async fn wipe_volume(client: &Client, namespace: &str, claim: &str) -> Result<()> {
    let folder = volume_folder(client, namespace, claim).await?;
    for entry in std::fs::read_dir(&folder).with_context(|| format!("reading {}", folder.display()))? {
        let path = entry?.path();
        let removed = if path.is_dir() { std::fs::remove_dir_all(&path) } else { std::fs::remove_file(&path) };
        removed.with_context(|| format!("removing {}", path.display()))?;
    }
    Ok(())
}

/// Deletes a volume's data with the folder itself: a pod that needs it can't start any more.
pub async fn destroy_volume(client: &Client, namespace: &str, claim: &str) -> Result<()> {
    remove_if_there(&volume_folder(client, namespace, claim).await?)
}

/// Changes some bytes wherever they occur in the database of the etcd on a volume, in place. Nothing notices: the database
/// has no checksums of what it holds, and a running etcd sees the change too, because it maps the file into its memory.
pub async fn corrupt_volume(client: &Client, namespace: &str, claim: &str, bytes: &[u8]) -> Result<()> {
    let path = volume_folder(client, namespace, claim).await?.join("data/member/snap/db");
    let content = std::fs::read(&path).with_context(|| format!("reading {}", path.display()))?;
    let places = places_of(bytes, &content);
    if places.is_empty() {
        bail!("{:?} is nowhere in {}", String::from_utf8_lossy(bytes), path.display());
    }
    let file = File::options().write(true).open(&path).with_context(|| format!("opening {}", path.display()))?;
    for place in places {
        // Another letter in place of a letter, so that it can be read as text still.
        file.write_all_at(&[content[place] ^ 1], place as u64)
            .with_context(|| format!("writing {}", path.display()))?;
    }
    Ok(())
}

fn places_of(bytes: &[u8], content: &[u8]) -> Vec<usize> {
    // There are no windows of no size.
    let windows = content.windows(bytes.len().max(1));
    windows.enumerate().filter(|(_, window)| *window == bytes).map(|(place, _)| place).collect()
}

/// Stops every process of a container where it stands: alive, and answering nothing.
pub async fn pause_container(client: &Client, namespace: &str, pod: &str, container: &str) -> Result<()> {
    signal(client, namespace, pod, container, Signal::STOP).await
}

pub async fn resume_container(client: &Client, namespace: &str, pod: &str, container: &str) -> Result<()> {
    signal(client, namespace, pod, container, Signal::CONT).await
}

/// Kills every process of a container without a word, as a crash does. The kubelet starts it again.
pub async fn kill_container(client: &Client, namespace: &str, pod: &str, container: &str) -> Result<()> {
    signal(client, namespace, pod, container, Signal::KILL).await
}

async fn volume_folder(client: &Client, namespace: &str, claim: &str) -> Result<PathBuf> {
    let claims = Api::<PersistentVolumeClaim>::namespaced(client.clone(), namespace);
    let found = claims.get(claim).await.with_context(|| format!("reading the claim {namespace}/{claim}"))?;
    let name = found.spec.and_then(|spec| spec.volume_name);
    let name = name.with_context(|| format!("the claim {namespace}/{claim} has no volume yet"))?;
    let volumes = Api::<PersistentVolume>::all(client.clone());
    let volume = volumes.get(&name).await.with_context(|| format!("reading the volume {name}"))?;
    storage::folder(&volume).with_context(|| format!("the volume {name} is not one of the lab's"))
}

async fn signal(client: &Client, namespace: &str, pod: &str, container: &str, signal: Signal) -> Result<()> {
    let name = format!("{namespace}/{pod}");
    let pods = Api::<Pod>::namespaced(client.clone(), namespace);
    let pod = pods.get(pod).await.with_context(|| format!("reading the pod {name}"))?;
    let node = pod.spec.and_then(|spec| spec.node_name).with_context(|| format!("{name} is on no node yet"))?;
    let statuses = pod.status.and_then(|status| status.container_statuses).unwrap_or_default();
    let status = statuses.into_iter().find(|status| status.name == container);
    let id = status.and_then(|status| status.container_id);
    let id = id.with_context(|| format!("{name} has no running container `{container}`"))?;
    Node::named(&node)?.signal_container(id.rsplit('/').next().unwrap_or_default(), signal)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_occurrences_of_bytes_are_found() {
        assert_eq!(places_of(b"key", b"key and another key"), [0, 16]);
        assert!(places_of(b"lock", b"key and another key").is_empty());
        assert!(places_of(b"", b"key").is_empty());
        assert!(places_of(b"key", b"").is_empty());
    }
}
