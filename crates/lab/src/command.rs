//! Runs a program to its end and turns a failure into an error that says what was tried and what it answered.

use std::ffi::OsStr;
use std::process::{Command, Output, Stdio};

use anyhow::{Context, Result, bail};

/// Runs `program` and returns what it printed.
pub fn run<S: AsRef<OsStr>>(program: impl AsRef<OsStr>, args: impl IntoIterator<Item = S>) -> Result<String> {
    let mut command = Command::new(program);
    command.args(args);
    finish(&mut command)
}

/// Runs a command line that is written as a person would type it. Only for words without spaces or quotes.
pub fn run_line(line: &str) -> Result<String> {
    let mut words = line.split_whitespace();
    let program = words.next().context("an empty command line")?;
    run(program, words)
}

/// Runs a prepared command and returns what it printed.
pub fn finish(command: &mut Command) -> Result<String> {
    let output =
        command.stdin(Stdio::null()).output().with_context(|| format!("could not start `{}`", line_of(command)))?;
    if !output.status.success() {
        bail!("`{}` failed ({}): {}", line_of(command), output.status, complaint(&output));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Whether a program of this name is on the PATH.
pub fn exists(program: &str) -> bool {
    std::env::var_os("PATH")
        .is_some_and(|path| std::env::split_paths(&path).any(|folder| folder.join(program).is_file()))
}

fn line_of(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}

fn complaint(output: &Output) -> String {
    let text = if output.stderr.is_empty() { &output.stdout } else { &output.stderr };
    let text = String::from_utf8_lossy(text);
    let lines: Vec<&str> = text.trim().lines().collect();
    lines[lines.len().saturating_sub(15)..].join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failed_command_is_reported_with_its_stderr() {
        let error = run("sh", ["-c", "echo no such thing >&2; exit 3"]).unwrap_err().to_string();
        assert!(error.contains("sh -c"), "{error}");
        assert!(error.contains("no such thing"), "{error}");
        assert!(error.contains('3'), "{error}");
    }

    #[test]
    fn missing_program_is_named() {
        let error = run_line("no-such-program-here --flag").unwrap_err().to_string();
        assert!(error.contains("no-such-program-here --flag"), "{error}");
        assert!(!exists("no-such-program-here"));
        assert!(exists("sh"));
    }
}
