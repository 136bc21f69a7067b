//! Starts the lab's long-running programs: each in its network namespace and control group, detached from whoever
//! started it, with a log file of its own, and most of them started again when they end, as systemd does on a real node.

use std::ffi::OsStr;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::{cgroup, command, paths};

/// Starts a program again whenever it ends: kubelet gives up for good when its container runtime is slow to come up.
const KEEPER: &str = r#"while :; do "$@"; echo "The lab: ended with code $?; starting it again."; sleep 1; done"#;

/// A long-running program: what it is called in messages and logs, and where it runs.
pub struct Daemon<'a> {
    pub name: &'a str,
    pub group: &'a str,
    pub namespace: PathBuf,
}

impl Daemon<'_> {
    /// Starts the program, and again whenever it ends.
    pub fn start<S: AsRef<OsStr>>(&self, program: &Path, args: impl IntoIterator<Item = S>) -> Result<()> {
        self.launch(&["sh", "-c", KEEPER, "keeper"], program, args)
    }

    /// Starts the program, and leaves it dead when it ends.
    pub fn start_once<S: AsRef<OsStr>>(&self, program: &Path, args: impl IntoIterator<Item = S>) -> Result<()> {
        self.launch(&[], program, args)
    }

    fn launch<S: AsRef<OsStr>>(
        &self,
        keeper: &[&str],
        program: &Path,
        args: impl IntoIterator<Item = S>,
    ) -> Result<()> {
        let path = paths::log(self.name);
        let log = File::options().create(true).append(true).open(&path);
        let log = log.with_context(|| format!("opening the log {}", path.display()))?;
        let mut command = Command::new("sh");
        // The shell enters the group first, so that whatever follows starts in it. `setsid --fork` makes what it starts
        // a child of init: it outlives us, and somebody collects it when it ends.
        command.args(["-c", "echo $$ > \"$0\" && exec setsid --fork \"$@\""]).arg(cgroup::entrance(self.group));
        command.args(keeper).arg("nsenter").arg(format!("--net={}", self.namespace.display())).arg(program).args(args);
        command.current_dir("/").stdout(log.try_clone()?).stderr(log);
        let status = command.status().with_context(|| format!("starting {}", self.name))?;
        if !status.success() {
            bail!("starting {} failed ({status}):\n{}", self.name, self.end_of_log());
        }
        Ok(())
    }

    /// Waits until a condition holds, and gives up early if the log has nothing more to say because the program died.
    pub async fn wait_until<F: Future<Output = bool>>(
        &self,
        condition: &str,
        limit: Duration,
        mut holds: impl FnMut() -> F,
    ) -> Result<()> {
        let deadline = Instant::now() + limit;
        while !holds().await {
            if Instant::now() > deadline {
                bail!("{} within {limit:?}: no. The end of its log:\n{}", condition, self.end_of_log());
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        Ok(())
    }

    pub fn end_of_log(&self) -> String {
        let text = std::fs::read_to_string(paths::log(self.name)).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(12)..].join("\n")
    }
}

/// Runs a program to its end inside a group, so that it dies with the lab if whoever waits for it is killed.
pub fn run_in_group(group: &str, program: &str, args: &[&str]) -> Result<String> {
    let mut command = Command::new("sh");
    command.args(["-c", "echo $$ > \"$0\" && exec \"$@\""]).arg(cgroup::entrance(group)).arg(program).args(args);
    command::finish(&mut command)
}

/// Kills a program that runs in a group. Its keeper starts it again.
pub fn restart(group: &str, program: &str) -> Result<()> {
    let mut processes = cgroup::processes(group)?;
    processes.retain(|process| program_of(*process).is_some_and(|name| name == program));
    cgroup::signal(&processes, cgroup::Signal::KILL)
}

/// The programs that run in a group, by the name of their executable.
pub fn programs(group: &str) -> Result<Vec<String>> {
    let mut found: Vec<String> = cgroup::processes(group)?.into_iter().filter_map(program_of).collect();
    found.sort();
    found.dedup();
    Ok(found)
}

fn program_of(process: i32) -> Option<String> {
    let line = std::fs::read(format!("/proc/{process}/cmdline")).ok()?;
    let first = line.split(|byte| *byte == 0).next()?;
    let name = Path::new(std::str::from_utf8(first).ok()?).file_name()?;
    Some(name.to_string_lossy().into_owned())
}
