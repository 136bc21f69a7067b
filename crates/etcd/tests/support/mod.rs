//! Real etcd processes on loopback, for tests. A process ends with the value that stands for it.

use std::fs::{self, File};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use etcd_operator_etcd::MemberClient;

/// The folder with the binaries of one version of etcd.
pub fn binaries(version: &str) -> PathBuf {
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let cache = cache.unwrap_or_else(|| PathBuf::from(std::env::var_os("HOME").unwrap()).join(".cache"));
    let parts = cache.join("etcd-operator-lab/parts");
    let prefix = format!("etcd-{version}-");
    let mut found = fs::read_dir(&parts).into_iter().flatten().flatten().map(|e| e.path());
    let folder = found
        .find(|p| p.file_name().is_some_and(|n| n.to_string_lossy().starts_with(&prefix)) && p.join("etcd").is_file());
    folder.unwrap_or_else(|| panic!("There is no etcd {version} in {}: run `make lab-up` first.", parts.display()))
}

/// A member: where it lives, whether it runs or not.
pub struct Etcd {
    binaries: PathBuf,
    name: String,
    pub data_dir: PathBuf,
    pub client_url: String,
    pub peer_url: String,
    process: Option<Child>,
}

impl Etcd {
    pub fn new(version: &str, name: &str, dir: &Path) -> Self {
        let [client, peer] = free_ports();
        Self {
            binaries: binaries(version),
            name: name.into(),
            data_dir: dir.join(name),
            client_url: format!("http://127.0.0.1:{client}"),
            peer_url: format!("http://127.0.0.1:{peer}"),
            process: None,
        }
    }

    pub fn client(&self) -> MemberClient {
        MemberClient::new(&self.client_url, Duration::from_secs(2)).unwrap()
    }

    /// Starts it as a cluster of its own, or as one that joins `others`.
    pub fn start(&mut self, others: &[&Etcd], more_flags: &[&str]) {
        let everybody = others.iter().copied().chain([&*self]);
        let everybody: Vec<String> = everybody.map(|e| format!("{}={}", e.name, e.peer_url)).collect();
        let log = File::options().create(true).append(true).open(self.data_dir.with_extension("log")).unwrap();
        let process = Command::new(self.binaries.join("etcd"))
            .args(["--name", &self.name])
            .arg("--data-dir")
            .arg(&self.data_dir)
            .args(["--listen-client-urls", &self.client_url, "--advertise-client-urls", &self.client_url])
            .args(["--listen-peer-urls", &self.peer_url, "--initial-advertise-peer-urls", &self.peer_url])
            .args(["--initial-cluster", &everybody.join(",")])
            .args(["--initial-cluster-state", if others.is_empty() { "new" } else { "existing" }])
            .args(more_flags)
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap();
        self.process = Some(process);
    }

    /// Stops it as a power failure would.
    pub fn stop(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.kill().unwrap();
            process.wait().unwrap();
        }
    }

    /// Runs etcdctl against it and says whether that succeeded.
    pub fn etcdctl(&self, args: &[&str]) -> bool {
        let mut command = Command::new(self.binaries.join("etcdctl"));
        command.args(["--endpoints", &self.client_url]).args(args).output().unwrap().status.success()
    }
}

impl Drop for Etcd {
    fn drop(&mut self) {
        self.stop();
        if std::thread::panicking() {
            let log = fs::read_to_string(self.data_dir.with_extension("log")).unwrap_or_default();
            let lines: Vec<&str> = log.lines().collect();
            eprintln!("The last words of etcd {}:\n{}", self.name, lines[lines.len().saturating_sub(15)..].join("\n"));
        }
    }
}

/// Ports that were free a moment ago. Both are held until both are known, so they differ.
pub fn free_ports() -> [u16; 2] {
    let held = [TcpListener::bind("127.0.0.1:0").unwrap(), TcpListener::bind("127.0.0.1:0").unwrap()];
    held.map(|listener| listener.local_addr().unwrap().port())
}

/// Tries until `attempt` returns something, or fails after half a minute with what was waited for.
pub async fn eventually<T>(what: &str, mut attempt: impl AsyncFnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(outcome) = attempt().await {
            return outcome;
        }
        assert!(start.elapsed() < Duration::from_secs(30), "waited too long for: {what}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}
