//! A node of the lab: its own network namespace, containerd, kubelet and kube-proxy. It can be powered off and on, and
//! its cable can be pulled and plugged.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::process::Daemon;
use crate::{cgroup, images, mounts, network, packages, parts, paths, pki, process};

pub const COUNT: u8 = 3;

/// What must be running for a node to be whole.
pub const PROGRAMS: [&str; 3] = ["containerd", "kube-proxy", "kubelet"];

/// Node 1, 2 or 3.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Node(u8);

impl Node {
    pub fn all() -> impl Iterator<Item = Node> {
        (1..=COUNT).map(Node)
    }

    /// Finds a node by its name, as `kubectl get nodes` shows it.
    pub fn named(name: &str) -> Result<Node> {
        let known: Vec<String> = Node::all().map(|node| node.name()).collect();
        match Node::all().find(|node| node.name() == name) {
            Some(node) => Ok(node),
            None => bail!("There is no node `{name}`; the nodes are {}.", known.join(", ")),
        }
    }

    pub fn name(&self) -> String {
        format!("node{}", self.0)
    }

    pub fn address(&self) -> String {
        format!("10.199.0.1{}", self.0)
    }

    /// The addresses of this node's pods.
    pub fn pods(&self) -> String {
        format!("10.200.{}.0/22", u16::from(self.0) * 4)
    }

    fn group(&self) -> String {
        format!("{}/{}", cgroup::LAB, self.name())
    }

    fn data(&self, path: &str) -> PathBuf {
        paths::data(&self.name()).join(path)
    }

    fn run(&self, path: &str) -> PathBuf {
        paths::run(&self.name()).join(path)
    }

    fn socket(&self) -> PathBuf {
        self.run("containerd.sock")
    }

    pub fn is_on(&self) -> bool {
        network::namespace(&self.name()).exists()
    }

    /// The programs of this node that should run and don't.
    pub fn missing_programs(&self) -> Result<Vec<&'static str>> {
        let running = process::programs(&self.group())?;
        Ok(PROGRAMS.into_iter().filter(|program| !running.iter().any(|name| name == program)).collect())
    }

    /// Powers the node on: network, containerd, kubelet and kube-proxy.
    pub async fn start(&self) -> Result<()> {
        if self.is_on() {
            bail!("{} is on already.", self.name());
        }
        self.prepare()?;
        self.start_containerd().await?;
        self.start_kubelet()?;
        self.start_kube_proxy()
    }

    /// Powers a new node on and gives it the lab's images.
    pub async fn start_new(&self, archives: Vec<PathBuf>) -> Result<()> {
        self.prepare()?;
        self.start_containerd().await?;
        // The pause image comes first and lets the node be Ready; the others follow while it registers.
        let node = *self;
        let load =
            tokio::task::spawn_blocking(move || archives.iter().try_for_each(|archive| node.load_image(archive)));
        self.start_kubelet()?;
        self.start_kube_proxy()?;
        load.await.context("loading images")?
    }

    /// Powers the node off: every process dies at once, and what a reboot would clear is cleared.
    pub fn stop(&self) -> Result<()> {
        let name = self.name();
        cgroup::destroy(&self.group()).with_context(|| format!("powering off {name}"))?;
        mounts::sweep(&paths::data(&name))?;
        mounts::sweep(&paths::run(&name))?;
        network::remove_node(self)?;
        remove_if_there(&paths::run(&name))
    }

    /// Pulls the node's network cable.
    pub fn cut(&self) -> Result<()> {
        network::set_connected(self, false)
    }

    /// Plugs the node's network cable in again.
    pub fn heal(&self) -> Result<()> {
        network::set_connected(self, true)
    }

    /// Imports an image archive into the node's containerd.
    pub fn load_image(&self, archive: &Path) -> Result<()> {
        let archive = archive.display().to_string();
        self.ctr(&["--namespace", "k8s.io", "images", "import", &archive])
            .with_context(|| format!("loading {archive} on {}", self.name()))
    }

    fn ctr(&self, args: &[&str]) -> Result<()> {
        let socket = self.socket().display().to_string();
        let args: Vec<&str> = ["--address", &socket].into_iter().chain(args.iter().copied()).collect();
        process::run_in_group(&self.system_group(), "ctr", &args).map(drop)
    }

    /// Sends a signal to every process of one container.
    pub fn signal_container(&self, container: &str, signal: cgroup::Signal) -> Result<()> {
        let name = self.name();
        let group = cgroup::of_container(&self.group(), container);
        let group = group.with_context(|| format!("there is no container {container} on {name}"))?;
        let processes = cgroup::processes(&group)?;
        if processes.is_empty() {
            bail!("the container {container} on {name} has no processes");
        }
        cgroup::signal(&processes, signal)
    }

    fn daemon<'a>(&self, name: &'a str, group: &'a str) -> Daemon<'a> {
        Daemon { name, group, namespace: network::namespace(&self.name()) }
    }

    fn prepare(&self) -> Result<()> {
        for folder in [self.data("cni"), self.data("manifests"), self.run("")] {
            std::fs::create_dir_all(&folder).with_context(|| format!("creating {}", folder.display()))?;
        }
        cgroup::create(&self.system_group())?;
        network::add_node(self)?;
        write(&self.data("cni/10-lab.conflist"), &self.cni_config())?;
        write(&self.data("containerd.toml"), &self.containerd_config())?;
        write(&self.data("kubelet.yaml"), &self.kubelet_config())?;
        write(&self.data("resolv.conf"), "")
    }

    /// The node's own daemons; its pods are in groups beside this one.
    fn system_group(&self) -> String {
        format!("{}/system", self.group())
    }

    async fn start_containerd(&self) -> Result<()> {
        let (name, group) = (format!("{}-containerd", self.name()), self.system_group());
        let containerd = self.daemon(&name, &group);
        let config = self.data("containerd.toml");
        containerd.start(Path::new("containerd"), [Path::new("--config"), &config])?;
        let answers = || async { self.ctr(&["version"]).is_ok() };
        containerd.wait_until("containerd answers", Duration::from_secs(30), answers).await
    }

    fn start_kubelet(&self) -> Result<()> {
        let (name, group) = (format!("{}-kubelet", self.name()), self.system_group());
        self.daemon(&name, &group).start(
            &parts::KUBERNETES.bin()?.join("kubelet"),
            [
                format!("--config={}", self.data("kubelet.yaml").display()),
                format!("--kubeconfig={}", pki::kubeconfig(&self.name()).display()),
                format!("--hostname-override={}", self.name()),
                format!("--node-ip={}", self.address()),
                format!("--root-dir={}", self.data("kubelet").display()),
                format!("--cert-dir={}", self.data("kubelet/pki").display()),
            ],
        )
    }

    /// Kills the node's kubelet; its keeper starts another.
    pub fn restart_kubelet(&self) -> Result<()> {
        process::restart(&self.group(), "kubelet")
    }

    /// The node's name and the end of its kubelet's log, for a message.
    pub fn end_of_kubelet_log(&self) -> String {
        let (name, group) = (format!("{}-kubelet", self.name()), self.system_group());
        format!("{}, the end of its kubelet's log:\n{}", self.name(), self.daemon(&name, &group).end_of_log())
    }

    fn start_kube_proxy(&self) -> Result<()> {
        let (name, group) = (format!("{}-kube-proxy", self.name()), self.system_group());
        self.daemon(&name, &group).start(
            &parts::KUBERNETES.bin()?.join("kube-proxy"),
            [
                format!("--kubeconfig={}", pki::kubeconfig("kube-proxy").display()),
                format!("--hostname-override={}", self.name()),
                format!("--cluster-cidr={}", network::PODS),
                "--proxy-mode=iptables".to_owned(),
                // The machine's own connection-tracking limits are not ours to change.
                "--conntrack-max-per-core=0".to_owned(),
            ],
        )
    }

    /// Each pod has a cable of its own to its node, and the node routes: translation of service addresses then works
    /// between pods of one node too, with no help from a bridge.
    fn cni_config(&self) -> String {
        let ipam = serde_json::json!({
            "type": "host-local",
            // Cleared by a power cut, as the pods are: addresses of pods that died would be lost for ever otherwise.
            "dataDir": self.run("ipam"),
            "ranges": [[{"subnet": self.pods()}]],
            "routes": [{"dst": "0.0.0.0/0"}],
        });
        let plugins = serde_json::json!([
            {"type": "ptp", "ipMasq": false, "ipam": ipam},
            {"type": "portmap", "capabilities": {"portMappings": true}},
        ]);
        serde_json::json!({"cniVersion": "0.4.0", "name": "lab", "plugins": plugins}).to_string()
    }

    fn containerd_config(&self) -> String {
        format!(
            r#"version = 2
root = "{root}"
state = "{state}"
disabled_plugins = ["io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.zfs", "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.aufs"]

[grpc]
address = "{socket}"

[plugins."io.containerd.internal.v1.opt"]
path = "{opt}"

[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = "{pause}"
# Where root may not lower a process's badness (no CAP_SYS_RESOURCE), every pod would fail to start.
restrict_oom_score_adj = true
# Not under /run/netns, where nobody would know them for the lab's.
netns_mounts_under_state_dir = true

[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = "{plugins}"
conf_dir = "{cni}"
"#,
            root = self.data("containerd").display(),
            state = self.run("containerd").display(),
            socket = self.socket().display(),
            opt = self.data("opt").display(),
            pause = images::PAUSE,
            plugins = packages::CNI_PLUGINS,
            cni = self.data("cni").display(),
        )
    }

    fn kubelet_config(&self) -> String {
        let pki = paths::data("pki");
        serde_json::json!({
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "authentication": {
                "anonymous": {"enabled": false},
                "webhook": {"enabled": true},
                "x509": {"clientCAFile": pki.join("ca.crt")},
            },
            "authorization": {"mode": "Webhook"},
            "tlsCertFile": pki.join(format!("{}.crt", self.name())),
            "tlsPrivateKeyFile": pki.join(format!("{}.key", self.name())),
            "failCgroupV1": false,
            "failSwapOn": false,
            "cgroupDriver": "cgroupfs",
            "cgroupRoot": format!("/{}", self.group()),
            "enforceNodeAllocatable": [],
            "clusterDNS": [network::CONTROL_ADDRESS],
            "clusterDomain": "cluster.local",
            "resolvConf": self.data("resolv.conf"),
            "containerRuntimeEndpoint": format!("unix://{}", self.socket().display()),
            "staticPodPath": self.data("manifests"),
            "podLogsDir": self.data("pod-logs"),
            "maxPods": 500,
            // Images can't be pulled again, and the machine's disk is shared: neither may cost a pod its life.
            "imageGCHighThresholdPercent": 100,
            "evictionHard": {"memory.available": "100Mi", "nodefs.available": "1%", "imagefs.available": "1%"},
            // The kubelet says that it lives every quarter of this, so that a lost node is noticed soon.
            "nodeLeaseDurationSeconds": 16,
            "nodeStatusUpdateFrequency": "4s",
        })
        .to_string()
    }
}

fn write(path: &Path, text: &str) -> Result<()> {
    std::fs::write(path, text).with_context(|| format!("writing {}", path.display()))
}

/// Removes a folder that may be gone already.
pub fn remove_if_there(folder: &Path) -> Result<()> {
    match std::fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("removing {}", folder.display()))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_are_found_by_name() {
        assert_eq!(Node::named("node2").unwrap(), Node(2));
        let error = Node::named("node4").unwrap_err().to_string();
        assert_eq!(error, "There is no node `node4`; the nodes are node1, node2, node3.");
    }

    #[test]
    fn every_node_has_addresses_of_its_own() {
        let pods: std::collections::BTreeSet<String> = Node::all().map(|node| node.pods()).collect();
        assert_eq!(pods.into_iter().collect::<Vec<_>>(), ["10.200.12.0/22", "10.200.4.0/22", "10.200.8.0/22"]);
    }
}
