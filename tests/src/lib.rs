//! What the end-to-end tests share: they use the running lab through `kubectl`, as a person would, and wait for
//! conditions with a deadline.
//!
//! `etcd`, `backup`, `schedule` and `operator` are what is tested, `health`, `hash`, `watch` and `rollout` judge it,
//! `writer` and `gateway` are clients of etcd, `inject` and `outage` inject faults, `stores` are buckets, `release` is
//! an earlier operator. A test itself belongs in `tests/tests`, a fault that the lab injects in `crates/lab`.

pub mod backup;
pub mod etcd;
pub mod gateway;
pub mod hash;
pub mod health;
pub mod inject;
pub mod operator;
pub mod outage;
pub mod random;
pub mod release;
pub mod rollout;
pub mod schedule;
pub mod stores;
pub mod watch;
pub mod writer;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

/// Begins what a test says when something has happened that must never happen: acknowledged writes are lost, members differ,
/// or something was touched that had to be left alone. scripts/run-tests gives other tests that fail a second try.
pub const SAFETY: &str = "SAFETY: ";
/// The same, for acts that were accepted although they had to be refused.
pub const MUST_BE_REFUSED: &str = "SAFETY: this had to be refused";

/// The folder of this checkout.
pub fn checkout() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the tests are in a folder of the checkout").to_owned()
}

/// A `kubectl` of the lab, without what it should do.
fn lab_kubectl() -> Command {
    let lab = checkout().join(".lab");
    let mut command = Command::new(lab.join("bin/kubectl"));
    command.arg("--kubeconfig").arg(lab.join("kubeconfig"));
    command
}

/// Runs `kubectl` against the lab, with something to read on its standard input. What it printed, or its complaint.
pub fn kubectl_with_input(args: &[&str], input: &str) -> Result<String, String> {
    let mut child = lab_kubectl()
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("these tests need the lab: run `make lab-up` and `make deploy` first");
    // If it ends before it has read everything, it says why.
    let _ = child.stdin.take().expect("a pipe").write_all(input.as_bytes());
    let output = child.wait_with_output().expect("kubectl ends");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    if output.status.success() { Ok(text(&output.stdout)) } else { Err(text(&output.stderr)) }
}

/// Runs a `kubectl` that must succeed, given as a person would type it.
pub fn kubectl(line: &str) -> String {
    let words: Vec<&str> = line.split_whitespace().collect();
    kubectl_with_input(&words, "").unwrap_or_else(|complaint| panic!("kubectl {line}: {complaint}"))
}

/// Runs a `kubectl` whose failure is an answer too.
pub fn try_kubectl(line: &str) -> Result<String, String> {
    let words: Vec<&str> = line.split_whitespace().collect();
    kubectl_with_input(&words, "")
}

/// Reads an object, or a list of them.
pub fn get(line: &str) -> Value {
    serde_json::from_str(&kubectl(&format!("get {line} -o json"))).expect("kubectl prints JSON")
}

/// Waits until a question has an answer. If it never comes, says what was waited for and what the last try said.
pub fn eventually<T>(what: &str, limit: Duration, mut ask: impl FnMut() -> Result<T, String>) -> T {
    let deadline = Instant::now() + limit;
    loop {
        match ask() {
            Ok(answer) => return answer,
            Err(reason) if Instant::now() > deadline => panic!("{what}: not within {limit:?}. At last: {reason}"),
            Err(_) => std::thread::sleep(Duration::from_millis(200)),
        }
    }
}

/// Watches that something stays as it is for a while: nothing may be done to it.
pub fn stays(what: &str, time: Duration, mut ask: impl FnMut() -> Result<(), String>) {
    let started = Instant::now();
    while started.elapsed() < time {
        if let Err(reason) = ask() {
            panic!("{SAFETY}{what}: not any more after {:?}: {reason}", started.elapsed());
        }
        std::thread::sleep(Duration::from_millis(500));
    }
}

/// For `eventually`: what was seen must be what is expected.
pub fn is<T: PartialEq + std::fmt::Debug>(seen: T, expected: T) -> Result<(), String> {
    if seen == expected { Ok(()) } else { Err(format!("{seen:?} instead of {expected:?}")) }
}

/// A namespace of a test's own, deleted with all that is in it when the test ends.
pub struct Namespace {
    pub name: String,
    /// Whether it goes when this value does.
    ours: bool,
}

impl Namespace {
    /// A namespace that belongs to another part of the test, which deletes it.
    pub fn borrowed(name: &str) -> Self {
        Namespace { name: name.to_owned(), ours: false }
    }

    pub fn create(name: &str) -> Self {
        // What an interrupted run left would be in the way.
        kubectl(&format!("delete namespace {name} --ignore-not-found"));
        kubectl(&format!("create namespace {name}"));
        Namespace { name: name.to_owned(), ours: true }
    }

    pub fn apply(&self, manifest: &str) -> Result<String, String> {
        kubectl_with_input(&["--namespace", &self.name, "apply", "-f", "-"], manifest)
    }

    /// Asks the API server whether it would take a manifest, without keeping it.
    pub fn try_apply(&self, manifest: &str) -> Result<String, String> {
        kubectl_with_input(&["--namespace", &self.name, "apply", "--dry-run=server", "-f", "-"], manifest)
    }

    pub fn kubectl(&self, line: &str) -> String {
        kubectl(&format!("--namespace {} {line}", self.name))
    }

    pub fn get(&self, line: &str) -> Value {
        get(&format!("--namespace {} {line}", self.name))
    }

    /// Reads an object that may not be there.
    pub fn find(&self, line: &str) -> Option<Value> {
        let found = self.kubectl(&format!("get {line} --ignore-not-found -o json"));
        (!found.is_empty()).then(|| serde_json::from_str(&found).expect("kubectl prints JSON"))
    }

    pub fn wait_for_pod(&self, pod: &str) {
        self.kubectl(&format!("wait --for=condition=Ready pod/{pod} --timeout=60s"));
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        // Nobody needs to wait for it.
        if self.ours {
            let _ = try_kubectl(&format!("delete namespace {} --wait=false", self.name));
        }
    }
}

/// Runs one of the lab library's asynchronous functions to its end.
pub fn finish<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Runtime::new().expect("a runtime").block_on(work)
}
