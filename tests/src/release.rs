//! Releases of the operator: the one under test, and an earlier one that takes its place until it is upgraded.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use lab::node::Node;

use crate::operator::{IN_ITS_NAMESPACE, leader, name, running_pods};
use crate::{checkout, eventually, is, kubectl, kubectl_with_input, try_kubectl};

/// What precedes the name of the image in the manifest of the Deployment.
const IMAGE: &str = "image: ";
/// The image that config/install.yaml names. Whoever installs it puts another name in its place.
const PLACEHOLDER: &str = "etcd-operator:";

/// Everything that is installed: CRDs, RBAC and the Deployment.
struct Release {
    manifest: String,
    image: String,
}

impl Release {
    /// What `make deploy` has installed from this checkout.
    fn deployed() -> Self {
        let image = "-o jsonpath={.spec.template.spec.containers[0].image}";
        let image = kubectl(&format!("{IN_ITS_NAMESPACE} get deployment etcd-operator {image}"));
        let manifest = read(&checkout().join("config/install.yaml"));
        Release { manifest: with_image(&manifest, &image), image }
    }

    /// The one of scripts/build-old-operator, with its image on every node.
    fn earlier() -> Self {
        let folder = build_earlier();
        let (manifest, archive) = (read(&folder.join("install.yaml")), folder.join("image.tar"));
        let image = image_of(&manifest).expect("the manifest of the earlier operator names its image");
        let loaded = Node::all().filter(Node::is_on).try_for_each(|node| node.load_image(&archive));
        loaded.unwrap_or_else(|error| panic!("{error:#}"));
        Release { manifest, image }
    }

    /// Installs it over what is there, as docs/install.md says, and waits until its pods run.
    fn install(&self) -> Result<(), String> {
        kubectl_with_input(&["apply", "--server-side", "--force-conflicts", "-f", "-"], &self.manifest)?;
        try_kubectl("wait --for=condition=Established --timeout=60s crd --all")?;
        try_kubectl(&format!("{IN_ITS_NAMESPACE} rollout status deployment/etcd-operator --timeout=120s")).map(drop)
    }

    fn wait_until_it_leads(&self) {
        eventually(&format!("{} leads", self.image), Duration::from_secs(60), || {
            let leader = leader()?;
            let pod = running_pods().into_iter().find(|pod| name(pod) == leader);
            let image = pod.map(|pod| pod["spec"]["containers"][0]["image"].clone()).unwrap_or_default();
            is(image.as_str(), Some(self.image.as_str()))
        });
    }
}

/// An earlier release is installed in place of the one under test, until this is dropped or it is upgraded.
pub struct EarlierRelease {
    deployed: Release,
    over: bool,
}

impl EarlierRelease {
    pub fn install() -> Self {
        let (deployed, earlier) = (Release::deployed(), Release::earlier());
        assert_ne!(deployed.image, earlier.image, "the earlier operator is there already: run `make deploy`");
        let release = EarlierRelease { deployed, over: false };
        earlier.install().expect("the earlier operator is installed");
        earlier.wait_until_it_leads();
        release
    }

    /// Installs the operator under test over the earlier one, and waits until it leads.
    pub fn upgrade(mut self) {
        self.deployed.install().expect("the operator is upgraded");
        self.over = true;
        self.deployed.wait_until_it_leads();
    }
}

impl Drop for EarlierRelease {
    fn drop(&mut self) {
        if self.over {
            return;
        }
        if let Err(complaint) = self.deployed.install() {
            eprintln!("the operator under test could not be brought back: {complaint}");
        }
    }
}

/// Builds the earlier operator unless it is in the cache, and tells the folder that it is in.
fn build_earlier() -> PathBuf {
    let output = Command::new(checkout().join("scripts/build-old-operator"))
        .stderr(Stdio::inherit())
        .output()
        .expect("scripts/build-old-operator runs");
    assert!(output.status.success(), "scripts/build-old-operator ended with {}", output.status);
    let printed = String::from_utf8_lossy(&output.stdout);
    PathBuf::from(printed.lines().last().expect("it prints the folder"))
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// What is behind `image: ` in a line about the operator's image.
fn image_in(line: &str) -> Option<&str> {
    line.trim_start().strip_prefix(IMAGE).filter(|image| image.contains(PLACEHOLDER))
}

fn image_of(manifest: &str) -> Option<String> {
    manifest.lines().find_map(image_in).map(str::to_owned)
}

/// The manifest with another image of the operator.
fn with_image(manifest: &str, image: &str) -> String {
    let line = |line: &str| match image_in(line) {
        Some(placeholder) => format!("{}\n", line.replace(placeholder, image)),
        None => format!("{line}\n"),
    };
    manifest.lines().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_image_of_the_manifest_is_replaced() {
        let manifest = read(&checkout().join("config/install.yaml"));
        let changed = with_image(&manifest, "registry.example/etcd-operator:1");
        assert_eq!(image_of(&changed).as_deref(), Some("registry.example/etcd-operator:1"));
        let differ: Vec<_> = manifest.lines().zip(changed.lines()).filter(|(old, new)| old != new).collect();
        assert_eq!(differ.len(), 1, "{differ:?}");
        assert_eq!(manifest.lines().count(), changed.lines().count());
    }
}
