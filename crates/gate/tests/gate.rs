//! The program itself, as the kubelet would start it, with a script in the place of etcd.
#![allow(clippy::unwrap_used, reason = "a test that can't go on should stop right there")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use etcd_operator_protocol::report::{Done, Refusal, RefusalReason, Report};

/// The beginning of a real log, and whose it is.
const LOG: &[u8] = include_bytes!("../../datadir/tests/fixtures/etcd-3.6.16.wal");
const MEMBER_ID: u64 = 16363669548810677506;
const CLUSTER_ID: u64 = 3154201346913400033;
const GATE: &str = env!("CARGO_BIN_EXE_gate");

/// A pod: its volumes, what its annotations say, and where its termination message goes.
struct Pod {
    dir: tempfile::TempDir,
    data: &'static str,
    member_id: String,
    cluster_id: String,
}

impl Pod {
    fn new(data: &'static str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        for folder in ["data", "bin"] {
            fs::create_dir(dir.path().join(folder)).unwrap();
        }
        Self { dir, data, member_id: format!("{MEMBER_ID:x}"), cluster_id: format!("{CLUSTER_ID:x}") }
    }

    fn with_log(self) -> Self {
        fs::create_dir_all(self.path("data/member/wal")).unwrap();
        fs::write(self.path("data/member/wal/0000000000000000-0000000000000000.wal"), LOG).unwrap();
        self
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn command(&self, program: impl AsRef<Path>, arguments: &[&str]) -> Command {
        let mut command = Command::new(program.as_ref());
        command
            .args(arguments)
            .env("GATE_DATA_DIR", self.path("data"))
            .env("GATE_DATA", self.data)
            .env("GATE_MEMBER_ID", &self.member_id)
            .env("GATE_CLUSTER_ID", &self.cluster_id)
            .env("GATE_TERMINATION_LOG", self.path("termination-log"));
        command
    }

    fn install(&self) -> Output {
        self.command(GATE, &["install", self.path("bin").to_str().unwrap()]).output().unwrap()
    }

    /// What is started in the place of etcd tells its arguments and leaves the file `ran`.
    fn run(&self) -> Output {
        let script = format!("printf '<%s>' \"$@\"; touch '{}'; exit 42", self.path("ran").display());
        self.command(GATE, &["run", "--", "/bin/sh", "-c", &script, "etcd", "--name=c-0", "--", "two words", ""])
            .output()
            .unwrap()
    }

    fn etcd_ran(&self) -> bool {
        self.path("ran").exists()
    }

    /// Takes it away, so that nobody takes it for that of the next container.
    fn report(&self) -> Option<Report> {
        let words = fs::read_to_string(self.path("termination-log")).ok()?;
        fs::remove_file(self.path("termination-log")).unwrap();
        Some(serde_json::from_str(&words).unwrap())
    }

    fn refusal(&self) -> Refusal {
        match self.report() {
            Some(Report::Refused(refusal)) => refusal,
            other => panic!("no refusal: {other:?}"),
        }
    }
}

fn data_is_gone() -> Refusal {
    Refusal { reason: RefusalReason::DataLost, message: "refused: its data is gone".to_owned() }
}

fn printed(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

#[test]
fn member_with_its_data_starts_etcd() {
    let pod = Pod::new("Kept").with_log();
    let output = pod.run();
    assert_eq!(output.status.code(), Some(42), "etcd's own: {output:?}");
    let expected = format!("may start: the data is that of member {MEMBER_ID:x}\n<--name=c-0><--><two words><>");
    assert_eq!(printed(&output), expected);
    assert_eq!(pod.report(), None, "it is etcd's, should it ever have one");
}

#[test]
fn gate_execs_etcd_in_its_own_process() {
    let pod = Pod::new("Fresh");
    let mut command = pod.command(GATE, &["run", "--", "/bin/sh", "-c", "echo $$"]);
    let child = command.stdout(Stdio::piped()).spawn().unwrap();
    let id = child.id();
    let output = child.wait_with_output().unwrap();
    assert_eq!(printed(&output).lines().last(), Some(id.to_string().as_str()));
}

#[test]
fn member_with_emptied_data_dir_is_refused() {
    let pod = Pod::new("Kept");
    for task in [Pod::install, Pod::run] {
        let output = task(&pod);
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        assert_eq!(pod.refusal(), data_is_gone());
    }
    assert!(!pod.etcd_ran());
    assert!(!pod.path("bin/gate").exists());
}

/// The annotations may have changed and the volume may have been emptied since the pod started.
#[test]
fn gate_checks_data_at_every_start() {
    let mut pod = Pod::new("Fresh").with_log();
    assert!(pod.install().status.success());
    assert_eq!(pod.run().status.code(), Some(42));
    fs::remove_file(pod.path("ran")).unwrap();
    pod.data = "Kept";
    fs::remove_dir_all(pod.path("data/member")).unwrap();
    assert_eq!(pod.run().status.code(), Some(1));
    assert_eq!(pod.refusal(), data_is_gone());
    assert!(!pod.etcd_ran());
}

#[test]
fn database_without_wal_counts_as_lost_data() {
    let pod = Pod::new("Kept").with_log();
    fs::create_dir(pod.path("data/member/snap")).unwrap();
    fs::write(pod.path("data/member/snap/db"), "a database").unwrap();
    fs::remove_dir_all(pod.path("data/member/wal")).unwrap();
    assert_eq!(pod.run().status.code(), Some(1));
    assert_eq!(pod.refusal(), data_is_gone());
    assert!(!pod.etcd_ran());
    assert!(pod.path("data/member/snap/db").exists(), "it stays where it is");
}

#[test]
fn data_of_another_member_is_refused_or_archived() {
    let mut pod = Pod::new("Kept").with_log();
    pod.member_id = "a".into();
    assert_eq!(pod.run().status.code(), Some(1));
    let Refusal { reason, message } = pod.refusal();
    assert_eq!(reason, RefusalReason::DataLost);
    assert!(message.starts_with(&format!("refused: the data is that of member {MEMBER_ID:x} ")), "{message}");
    assert!(!pod.etcd_ran());

    pod.data = "Fresh";
    assert_eq!(pod.run().status.code(), Some(42));
    assert!(!pod.path("data/member").exists());
    assert!(pod.path("data/stale-before-a/wal").exists());
}

#[test]
fn leftovers_of_an_interrupted_start_are_archived() {
    let pod = Pod::new("Fresh");
    fs::create_dir_all(pod.path("data/member/snap")).unwrap();
    assert_eq!(pod.run().status.code(), Some(42));
    assert!(!pod.path("data/member").exists());
    assert!(pod.path("data/stale-half-made/snap").exists());
}

#[test]
fn gate_with_incomplete_settings_reports_misconfiguration() {
    let mut unknown = Pod::new("Kept").with_log();
    unknown.member_id = String::new();
    let mut garbled = Pod::new("Kept").with_log();
    garbled.cluster_id = "what".into();
    for pod in [unknown, garbled, Pod::new("").with_log(), Pod::new("Maybe").with_log()] {
        for task in [Pod::install, Pod::run] {
            let output = task(&pod);
            assert_eq!(output.status.code(), Some(1), "{output:?}");
            let Refusal { reason, message } = pod.refusal();
            assert_eq!(reason, RefusalReason::Misconfigured);
            assert!(message.starts_with("misconfigured: "), "{message}");
        }
        assert!(!pod.etcd_ran());
    }
}

#[test]
fn gate_without_required_variables_starts_nothing() {
    let pod = Pod::new("Fresh");
    for missing in ["GATE_DATA", "GATE_DATA_DIR"] {
        let mut command = pod.command(GATE, &["run", "--", "/bin/true"]);
        assert_eq!(command.env_remove(missing).status().unwrap().code(), Some(1), "{missing}");
        assert!(pod.refusal().message.contains("does not say"), "{missing}");
    }
}

/// The same pod may start many times over, and may have been cut short in between. What is installed works.
#[test]
fn install_can_be_repeated() {
    let pod = Pod::new("Kept").with_log();
    fs::write(pod.path("bin/.gate.unfinished"), "half of it").unwrap();
    fs::write(pod.path("bin/gate"), "an earlier one").unwrap();
    fs::hard_link(pod.path("bin/gate"), pod.path("earlier")).unwrap();
    for _ in 0..2 {
        let output = pod.install();
        assert!(output.status.success(), "{output:?}");
        let remark = Some(format!("may start: the data is that of member {MEMBER_ID:x}"));
        assert_eq!(pod.report(), Some(Report::Done(Box::new(Done { remark, ..Done::default() }))));
        let there: Vec<_> = fs::read_dir(pod.path("bin")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(there, ["gate"]);
        assert_eq!(fs::read(pod.path("bin/gate")).unwrap(), fs::read(GATE).unwrap());
    }
    assert_eq!(fs::read(pod.path("earlier")).unwrap(), b"an earlier one", "it is replaced, not written over");
    let installed = pod.command(pod.path("bin/gate"), &["run", "--", "/bin/sh", "-c", "exit 7"]).status().unwrap();
    assert_eq!(installed.code(), Some(7));
}

#[test]
fn gate_reports_commands_that_fail() {
    let pod = Pod::new("Fresh");
    let expected = |arguments: &[&str]| {
        assert_eq!(pod.command(GATE, arguments).status().unwrap().code(), Some(1), "{arguments:?}");
        let Refusal { reason, message } = pod.refusal();
        assert_eq!(reason, RefusalReason::Failed, "{message}");
        message
    };
    assert!(expected(&["run", "--", "/no/such/etcd"]).starts_with("starting /no/such/etcd: "));
    assert!(expected(&["install", "/no/such/directory"]).starts_with("copying "));
    assert!(expected(&["walk"]).starts_with("usage: "));
}

/// The message is for people; what counts is whether etcd starts.
#[test]
fn unwritable_termination_log_changes_nothing() {
    for (pod, code) in [(Pod::new("Kept"), 1), (Pod::new("Kept").with_log(), 42)] {
        fs::create_dir(pod.path("termination-log")).unwrap();
        assert_eq!(pod.run().status.code(), Some(code));
        assert_eq!(pod.etcd_ran(), code == 42);
    }
}

/// What a pod that begins with a backup runs one after the other, with scripts in the place of the agent and of etcdutl.
struct Restoring(Pod);

impl Restoring {
    fn new(data: &'static str) -> Self {
        let pod = Pod::new(data);
        let log = pod.path("log");
        fs::write(log, LOG).unwrap();
        Self(pod)
    }

    fn gate(&self, task: &str, script: &str) -> Output {
        let mut command = self.0.command(GATE, &[task, "--", "/bin/sh", "-ec", script]);
        command.env("GATE_RESTORE_DIR", self.0.path("restore")).current_dir(self.0.dir.path()).output().unwrap()
    }

    fn fetch(&self) -> Output {
        self.gate("fetch", "touch restore/snapshot.db fetched")
    }

    /// Makes the data as etcdutl does, which refuses a folder that is there already.
    fn restore(&self) -> Output {
        let make = "test -f restore/snapshot.db; mkdir restore/data; mkdir -p restore/data/member/wal; \
                    cp log restore/data/member/wal/0000000000000000-0000000000000000.wal; echo done >> restored";
        self.gate("restore", make)
    }

    fn has(&self, name: &str) -> bool {
        self.0.path(name).exists()
    }
}

#[test]
fn backup_is_fetched_restored_and_started_once() {
    let pod = Restoring::new("Fresh");
    for _ in 0..2 {
        assert!(pod.fetch().status.success());
        assert!(pod.restore().status.success(), "{:?}", pod.restore());
    }
    assert!(pod.has("data/member/wal") && !pod.has("restore"), "it is in its place, and nothing is left beside");
    assert_eq!(fs::read_to_string(pod.0.path("restored")).unwrap(), "done\n", "once");
    assert!(pod.gate("run", "touch ran").status.success());
    assert!(pod.has("ran"));
}

#[test]
fn interrupted_restore_is_repeated() {
    let pod = Restoring::new("Fresh");
    assert!(pod.fetch().status.success());
    assert!(!pod.gate("restore", "mkdir -p restore/data/member; exit 3").status.success());
    assert!(!pod.has("data/member"), "half of it is in nobody's way");
    assert!(pod.restore().status.success());
    assert!(pod.has("data/member/wal"));
}

#[test]
fn failed_restore_reports_the_last_line_of_etcdutl() {
    let pod = Restoring::new("Fresh");
    assert!(!pod.gate("restore", "echo 'first' >&2; echo 'expected sha256 [1], got [2]' >&2; exit 1").status.success());
    let words = pod.0.refusal().message;
    assert!(
        words.contains("could not restore the backup") && words.ends_with("expected sha256 [1], got [2]"),
        "{words}"
    );
}

#[test]
fn member_that_has_run_is_never_restored_again() {
    let pod = Restoring::new("Kept");
    assert!(pod.fetch().status.success());
    assert!(pod.restore().status.success());
    assert!(!pod.has("fetched") && !pod.has("data/member"), "its data is gone, and the backup is not what it was");
    assert!(!pod.gate("run", "touch ran").status.success());
    assert!(!pod.has("ran"));
}

#[test]
fn etcd_does_not_start_without_the_backup() {
    let pod = Restoring::new("Fresh");
    assert!(!pod.gate("run", "touch ran").status.success());
    assert!(!pod.has("ran"));
}

#[test]
fn data_of_another_member_than_expected_is_not_put_in_place() {
    let mut pod = Restoring::new("Fresh");
    pod.0.member_id = "1".to_owned();
    assert!(pod.fetch().status.success());
    assert!(!pod.restore().status.success());
    assert!(!pod.has("data/member"));
}
