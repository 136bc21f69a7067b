//! Real etcd processes on loopback, for tests. A process ends with the value that stands for it.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use etcd_operator_etcd::{Cause, Error, MemberClient, Status};

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
        let [client, peer] = [free_port(), free_port()];
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
        let everybody: Vec<String> = others.iter().copied().chain([&*self]).map(Self::as_peer).collect();
        self.run(&everybody.join(","), if others.is_empty() { "new" } else { "existing" }, more_flags);
    }

    /// Starts them as the initial members of a cluster.
    pub fn found(members: &mut [Self], more_flags: &[&str]) {
        let everybody: Vec<String> = members.iter().map(Self::as_peer).collect();
        for member in members {
            member.run(&everybody.join(","), "new", more_flags);
        }
    }

    fn as_peer(&self) -> String {
        format!("{}={}", self.name, self.peer_url)
    }

    fn run(&mut self, initial_cluster: &str, state: &str, more_flags: &[&str]) {
        let log = File::options().create(true).append(true).open(self.data_dir.with_extension("log")).unwrap();
        let process = Command::new(self.binaries.join("etcd"))
            .args(["--name", &self.name])
            .arg("--data-dir")
            .arg(&self.data_dir)
            .args(["--listen-client-urls", &self.client_url, "--advertise-client-urls", &self.client_url])
            .args(["--listen-peer-urls", &self.peer_url, "--initial-advertise-peer-urls", &self.peer_url])
            .args(["--initial-cluster", initial_cluster, "--initial-cluster-state", state])
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

    /// Stops it as somebody would who can wait until it is ready.
    pub fn terminate(&mut self) {
        if self.process.is_some() {
            self.signal("-TERM");
        }
        if let Some(mut process) = self.process.take() {
            process.wait().unwrap();
        }
    }

    /// It stays there, and does nothing any more until it is thawed.
    pub fn freeze(&self) {
        self.signal("-STOP");
    }

    pub fn thaw(&self) {
        self.signal("-CONT");
    }

    fn signal(&self, signal: &str) {
        let process = self.process.as_ref().unwrap().id().to_string();
        assert!(Command::new("kill").args([signal, &process]).status().unwrap().success());
    }

    /// Has it ended by itself?
    pub fn has_ended(&mut self) -> bool {
        self.process.as_mut().is_none_or(|p| p.try_wait().unwrap().is_some())
    }

    /// The next time it starts, it is of this version.
    pub fn become_version(&mut self, version: &str) {
        self.binaries = binaries(version);
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
            eprintln!(
                "The end of the log of etcd {}:\n{}",
                self.name,
                lines[lines.len().saturating_sub(15)..].join("\n")
            );
        }
    }
}

/// A port that was free a moment ago. It is given to nobody else: not to another test, for each port is tried once per
/// process, and not to a connection, for the kernel takes the ports of those from a range above 32768.
pub fn free_port() -> u16 {
    static TRIED: AtomicU32 = AtomicU32::new(0);
    loop {
        // Processes begin at different places, so that two that run at the same time try different ports.
        let number = std::process::id().wrapping_mul(97).wrapping_add(TRIED.fetch_add(1, Ordering::Relaxed));
        let port = u16::try_from(10_000 + number % 20_000).unwrap();
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
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

pub async fn led_by_somebody(ask: &mut MemberClient) -> Status {
    eventually("a leader", async || ask.status().await.ok().filter(|s| s.leader != 0)).await
}

/// A server that gives one answer to whatever is sent, and hangs up.
pub fn answers_once(listener: TcpListener, answer: String) -> JoinHandle<()> {
    std::thread::spawn(move || {
        let (mut connection, _) = listener.accept().unwrap();
        // What was sent is read first, or closing would reset the connection before the answer is seen.
        let _some = connection.read(&mut [0; 4096]).unwrap();
        // Whoever has heard enough may hang up first.
        let _ = connection.write_all(answer.as_bytes());
    })
}

#[track_caller]
pub fn assert_cause<T: std::fmt::Debug>(outcome: Result<T, Error>, expected: impl Fn(&Cause) -> bool) {
    match outcome {
        Err(e) if expected(&e.cause) => {}
        other => panic!("not the expected failure: {other:?}"),
    }
}
