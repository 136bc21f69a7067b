//! The lifecycle of the lab: `up` after a clean end, a crash and an interruption; `down` that leaves nothing; and one
//! clear sentence for each thing that a machine may lack. There is one lab per machine, so these run one by one, and
//! they take a running lab down.

#![allow(clippy::unwrap_used, reason = "a test that can't go on should stop right there")]

use std::collections::BTreeSet;
use std::net::TcpListener;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use lab::stores::{Store, s3};

const LAB: &str = env!("CARGO_BIN_EXE_lab");
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A checkout of its own for a test, so that the real one's `.lab` is left alone.
fn checkout(name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

fn lab(folder: &Path, command: &str) -> Command {
    let mut lab = Command::new(LAB);
    lab.current_dir(folder).arg(command);
    lab
}

fn succeeds(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let text = text_of(&output);
    assert!(output.status.success(), "{command:?} failed:\n{text}");
    println!("{text}");
    text
}

fn text_of(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// The one sentence on the last line of a command that must fail.
fn refusal(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(!output.status.success(), "{command:?} should have failed:\n{}", text_of(&output));
    let complaint = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    assert_eq!(complaint.lines().count(), 1, "one sentence, please: {complaint}");
    complaint
}

fn kubectl(folder: &Path, line: &str) -> String {
    let mut kubectl = Command::new(folder.join(".lab/bin/kubectl"));
    succeeds(kubectl.arg("--kubeconfig").arg(folder.join(".lab/kubeconfig")).args(line.split(' ')))
}

fn ready_nodes(folder: &Path) -> usize {
    let nodes = kubectl(folder, "get nodes --no-headers");
    nodes.lines().filter(|line| line.split_whitespace().nth(1) == Some("Ready")).count()
}

/// All that a lab could leave on a machine.
fn traces() -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut add = |kind: &str, text: String| found.extend(text.lines().map(|line| format!("{kind}: {line}")));
    for question in ["ip netns list", "ip -brief link show", "ip route show table all", "ip rule show"] {
        let words: Vec<&str> = question.split(' ').collect();
        let output = Command::new(words[0]).args(&words[1..]).output().unwrap();
        add(question, String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    add("mount", mounts.lines().map(|line| line.split(' ').skip(3).collect::<Vec<_>>().join(" ") + "\n").collect());
    for hierarchy in std::fs::read_dir("/sys/fs/cgroup").unwrap().flatten().filter(|entry| entry.path().is_dir()) {
        let groups = std::fs::read_dir(hierarchy.path()).unwrap().flatten().filter(|entry| entry.path().is_dir());
        add("cgroup", groups.map(|group| format!("{}\n", group.path().display())).collect());
    }
    for folder in ["/run", "/var/lib"] {
        let entries = std::fs::read_dir(folder).unwrap().flatten();
        add("folder", entries.map(|entry| format!("{}\n", entry.path().display())).collect());
    }
    add("process", lab_processes().join("\n"));
    found
}

/// Every process of the lab: in its control group, told about its folders, or dead by such a name and not yet
/// collected. A kubelet or an etcd that belongs to somebody else is none of them.
fn lab_processes() -> Vec<String> {
    let programs = ["containerd", "kubelet", "kube-", "etcd", "coredns", "pause"];
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Ok(id) = entry.file_name().to_string_lossy().parse::<u32>() else {
            continue;
        };
        let read = |file: &str| std::fs::read_to_string(entry.path().join(file)).unwrap_or_default();
        let (name, line) = (read("comm"), read("cmdline").replace('\0', " "));
        let dead = read("status").contains("State:\tZ") && programs.iter().any(|program| name.starts_with(program));
        if dead || read("cgroup").contains("/etcd-lab") || line.contains("/etcd-lab") {
            found.push(format!("{id} {} {line}", name.trim()));
        }
    }
    found
}

#[test]
fn up_and_down_leave_the_machine_as_it_was() {
    let _alone = alone();
    let folder = checkout("up-and-down");
    // The lab lives in its own network namespaces, so a port that is taken on the machine is no hindrance to it.
    let _taken: Vec<TcpListener> =
        [6443, 10250].iter().filter_map(|port| TcpListener::bind(("0.0.0.0", *port)).ok()).collect();
    let before = traces_without_a_lab(&folder);

    succeeds(&mut lab(&folder, "up"));
    assert_eq!(ready_nodes(&folder), 3);
    for tool in ["kubectl", "etcdctl", "etcdutl"] {
        assert!(folder.join(".lab/bin").join(tool).exists(), "{tool} is missing");
    }
    let status = succeeds(&mut lab(&folder, "status"));
    assert!(status.contains("node3          Ready") && !status.contains("store"), "{status}");
    assert!(succeeds(&mut lab(&folder, "up")).contains("up already"));
    object_stores_run_when_asked_for(&folder);

    // Something that leaves container mounts and addresses behind when it dies with its node.
    kubectl(&folder, "create deployment busy --image=busybox:lab --replicas=6 -- sleep 3600");
    kubectl(&folder, "rollout status deployment/busy --timeout=60s");
    let sleeping = lab_processes().iter().filter(|process| process.contains("sleep 3600")).count();
    assert_eq!(sleeping, 6, "the test must see the processes that it looks for");

    // A crash: everything dies where it stands, and nobody cleans up.
    let processes = lab_processes();
    let ids: Vec<&str> = processes.iter().filter_map(|line| line.split(' ').next()).collect();
    succeeds(Command::new("kill").arg("-KILL").args(&ids));
    let again = succeeds(&mut lab(&folder, "up"));
    assert!(again.contains("leftovers of an earlier run: swept"), "{again}");
    assert_eq!(ready_nodes(&folder), 3);

    succeeds(&mut lab(&folder, "down"));
    assert!(!folder.join(".lab").exists());
    assert_same(&before, &traces());
    assert!(succeeds(&mut lab(&folder, "down")).contains("was not up"));
}

/// Leaves processes and a mount behind, for the lab to sweep.
fn object_stores_run_when_asked_for(folder: &Path) {
    let asks = || lab(folder, "stores").arg("up").spawn().unwrap();
    for mut ask in [asks(), asks()] {
        assert!(ask.wait().unwrap().success(), "two who ask at once are both served");
    }
    for store in Store::ALL {
        assert!(store.is_running().unwrap(), "{store:?}");
    }
    s3::create_small_bucket("small", 1 << 20).unwrap();
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    assert!(mounts.contains("/buckets/small "), "the test must see the mount that it looks for");

    succeeds(lab(folder, "stores").args(["kill", "gcs"]));
    assert!(!Store::Gcs.is_running().unwrap() && Store::S3.is_running().unwrap());
    let status = succeeds(&mut lab(folder, "status"));
    assert!(status.contains("store gcs      stopped") && status.contains("store s3       runs"), "{status}");
}

#[test]
fn interrupted_up_is_cleaned_up() {
    let _alone = alone();
    let folder = checkout("interrupted");
    let before = traces_without_a_lab(&folder);
    let mut up = lab(&folder, "up").spawn().unwrap();
    let deadline = Instant::now() + Duration::from_secs(120);
    while !lab_processes().iter().any(|process| process.contains(" kubelet ")) {
        assert!(Instant::now() < deadline, "no kubelet was started within two minutes");
        std::thread::sleep(Duration::from_millis(50));
    }
    up.kill().unwrap();
    up.wait().unwrap();
    assert!(refusal(&mut lab(&folder, "status")).contains("The lab is not up"));

    succeeds(&mut lab(&folder, "down"));
    assert_same(&before, &traces());
}

/// Takes a running lab down, and returns what is on the machine without one.
fn traces_without_a_lab(folder: &Path) -> BTreeSet<String> {
    succeeds(&mut lab(folder, "down"));
    traces()
}

fn assert_same(before: &BTreeSet<String>, after: &BTreeSet<String>) {
    let left: Vec<_> = after.difference(before).collect();
    let lost: Vec<_> = before.difference(after).collect();
    assert!(left.is_empty() && lost.is_empty(), "left behind: {left:#?}\ntaken away: {lost:#?}");
}

#[test]
fn missing_requirement_of_the_machine_is_reported_in_one_sentence() {
    let _alone = alone();
    let folder = checkout("refusals");
    let before = traces_without_a_lab(&folder);

    let copy = std::env::temp_dir().join(format!("lab-for-nobody-{}", std::process::id()));
    std::fs::copy(LAB, &copy).unwrap();
    let says = refusal(&mut as_nobody(&copy));
    std::fs::remove_file(&copy).unwrap();
    assert!(says.ends_with("run it as root."), "{says}");

    let says =
        refusal(lab(&folder, "up").env("XDG_CACHE_HOME", folder.join("empty")).env("PATH", path_without_go(&folder)));
    assert!(says.starts_with("Go is not installed"), "{says}");

    let small = folder.join("small");
    std::fs::create_dir(&small).unwrap();
    succeeds(Command::new("mount").args(["-t", "tmpfs", "-o", "size=64m", "tmpfs"]).arg(&small));
    let says = refusal(lab(&folder, "up").env("XDG_CACHE_HOME", &small));
    succeeds(Command::new("umount").arg(&small));
    assert!(says.starts_with("The lab needs 8.0 GiB of free disk in "), "{says}");
    assert!(says.contains(&small.display().to_string()), "{says}");

    succeeds(Command::new("ip").args(["link", "add", "not-the-lab", "type", "bridge"]));
    succeeds(Command::new("ip").args(["address", "add", "10.200.3.1/24", "dev", "not-the-lab"]));
    succeeds(Command::new("ip").args(["link", "set", "not-the-lab", "up"]));
    let says = refusal(&mut lab(&folder, "up"));
    succeeds(Command::new("ip").args(["link", "delete", "not-the-lab"]));
    assert!(says.starts_with("The lab needs the addresses 10.200.0.0/16"), "{says}");
    assert!(says.contains("not-the-lab"), "{says}");

    let says = refusal(lab(&folder, "node").args(["stop", "node1"]));
    assert_eq!(says, "The lab is not up: run `make lab-up` first.");

    assert_same(&before, &traces());
}

/// `lab up` as a user without rights, from a copy of the program that such a user may read.
fn as_nobody(program: &Path) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(program).arg("up").current_dir("/");
    command
}

/// A PATH with everything the system has, except Go.
fn path_without_go(folder: &Path) -> PathBuf {
    let bin = folder.join("bin-without-go");
    std::fs::create_dir(&bin).unwrap();
    for system in ["/usr/sbin", "/usr/bin", "/sbin", "/bin"] {
        for entry in std::fs::read_dir(system).unwrap().flatten().filter(|entry| entry.file_name() != "go") {
            // The same name may be in two of them; the first one wins, as in a PATH.
            let _ = symlink(entry.path(), bin.join(entry.file_name()));
        }
    }
    bin
}
