//! A pod: the agent with a task, and where its termination message goes.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use etcd_operator_protocol::manifest::{Manifest, Origin};
use etcd_operator_protocol::report::{Done, Failure, MAX_BYTES, Report};
use etcd_operator_protocol::task::{Backup, Fetch, Find, Location, Task, Verify};

/// How a pod ended.
#[derive(Debug)]
pub struct Ended {
    pub code: Option<i32>,
    pub report: Report,
    pub log: String,
}

impl Ended {
    #[track_caller]
    pub fn done(self) -> Done {
        match self.report {
            Report::Done(done) if self.code == Some(0) => *done,
            other => panic!("code {:?}, {other:?}\n{}", self.code, self.log),
        }
    }

    #[track_caller]
    pub fn failed(self, code: i32) -> Failure {
        match self.report {
            Report::Failed(failure) if self.code == Some(code) => failure,
            other => panic!("code {:?}, {other:?}\n{}", self.code, self.log),
        }
    }
}

/// A pod that runs.
pub struct Pod {
    process: Option<Child>,
    words: PathBuf,
    // Its volume goes when it does.
    _volume: tempfile::TempDir,
}

impl Pod {
    pub fn start(task: &Task) -> Self {
        Self::start_with(&serde_json::to_string(task).unwrap(), None)
    }

    pub fn start_with(task: &str, identity: Option<&str>) -> Self {
        let volume = tempfile::tempdir().unwrap();
        let words = volume.path().join("termination-log");
        let mut command = Command::new(env!("CARGO_BIN_EXE_agent"));
        command.env("AGENT_TASK", task).env("AGENT_TERMINATION_LOG", &words).env("RUST_LOG", "info");
        if let Some(identity) = identity {
            command.env("AGENT_AGE_IDENTITY", identity);
        }
        let process = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        Self { process: Some(process), words, _volume: volume }
    }

    pub fn terminate(&self) {
        let id = self.process.as_ref().unwrap().id().to_string();
        assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
    }

    /// Ends it as a node that loses its power would.
    pub fn kill(mut self) {
        let mut process = self.process.take().unwrap();
        process.kill().unwrap();
        process.wait().unwrap();
    }

    pub fn end(mut self) -> Ended {
        let output = self.process.take().unwrap().wait_with_output().unwrap();
        let log = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        let words = fs::read(&self.words).unwrap_or_else(|e| panic!("no termination message: {e}\n{log}"));
        assert!(words.len() <= MAX_BYTES);
        Ended { code: output.status.code(), report: serde_json::from_slice(&words).unwrap(), log }
    }
}

impl Drop for Pod {
    fn drop(&mut self) {
        if let Some(process) = &mut self.process {
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

pub fn run(task: &Task) -> Ended {
    Pod::start(task).end()
}

pub fn run_with_identity(task: &Task, identity: &str) -> Ended {
    Pod::start_with(&serde_json::to_string(task).unwrap(), Some(identity)).end()
}

/// A backup of these members into that file.
pub fn backup(endpoints: &[&str], to: &Path) -> Backup {
    Backup {
        to: location(to),
        endpoints: endpoints.iter().map(|url| (*url).to_owned()).collect(),
        compress: false,
        recipients: Vec::new(),
        hash_keys: false,
        origin: Origin { backup: "team/nightly".into(), uid: "1".into(), ..Origin::default() },
        retention: None,
        all_below: None,
    }
}

pub fn take(backup: &Backup) -> Ended {
    run(&Task::Backup(Box::new(backup.clone())))
}

pub fn location(file: &Path) -> Location {
    Location { url: format!("file://{}", file.display()), ..Location::default() }
}

pub fn find(file: &Path) -> Find {
    Find { from: location(file), sha256: None }
}

pub fn check(file: &Path) -> Task {
    Task::Check(find(file))
}

pub fn fetch(file: &Path, into: &Path) -> Task {
    Task::Fetch(Fetch { from: find(file), file: into.display().to_string(), for_version: None })
}

pub fn verify(file: &Path, endpoint: &str) -> Task {
    Task::Verify(Verify { from: find(file), endpoint: endpoint.into() })
}

pub fn manifest_file(object: &Path) -> PathBuf {
    PathBuf::from(format!("{}.manifest.json", object.display()))
}

pub fn manifest_of(object: &Path) -> Manifest {
    serde_json::from_slice(&fs::read(manifest_file(object)).unwrap()).unwrap()
}

/// The names of all files in a directory.
pub fn names_in(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).into_iter().flatten();
    let mut names: Vec<String> = entries.map(|e| e.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}
