//! The command line: one of a few subcommands.

use std::ffi::OsString;
use std::path::PathBuf;

use anyhow::bail;

const USAGE: &str = "usage: gate install DIRECTORY, or gate run|fetch|restore -- PROGRAM [ARGUMENT]...";

#[derive(Debug, PartialEq, Eq)]
pub enum Subcommand {
    /// Check the data dir, and copy this program into the directory.
    Install { directory: PathBuf },
    /// Check the data dir, and exec the program.
    Run(Program),
    /// Exec the program, which fetches a backup, unless it was restored already.
    Fetch(Program),
    /// Run the program, which restores the backup that was fetched, unless that was done already.
    Restore(Program),
}

#[derive(Debug, PartialEq, Eq)]
pub struct Program {
    pub path: OsString,
    pub arguments: Vec<OsString>,
}

/// Takes the arguments without the name of this program.
pub fn parse(arguments: impl Iterator<Item = OsString>) -> anyhow::Result<Subcommand> {
    let arguments: Vec<OsString> = arguments.collect();
    match arguments.as_slice() {
        [task, directory] if task == "install" && !directory.is_empty() => {
            Ok(Subcommand::Install { directory: directory.into() })
        }
        [task, dashes, path, rest @ ..] if dashes == "--" && !path.is_empty() => {
            let program = Program { path: path.clone(), arguments: rest.to_vec() };
            match task.to_str() {
                Some("run") => Ok(Subcommand::Run(program)),
                Some("fetch") => Ok(Subcommand::Fetch(program)),
                Some("restore") => Ok(Subcommand::Restore(program)),
                _ => bail!(USAGE),
            }
        }
        _ => bail!(USAGE),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStringExt;

    use super::*;

    fn parsed(arguments: &[&str]) -> Option<Subcommand> {
        parse(arguments.iter().map(OsString::from)).ok()
    }

    #[test]
    fn gate_arguments_of_every_command_are_parsed() {
        assert_eq!(parsed(&["install", "/bin"]), Some(Subcommand::Install { directory: "/bin".into() }));
        let etcd = |arguments: &[&str]| {
            let arguments = arguments.iter().map(OsString::from).collect();
            Program { path: "etcd".into(), arguments }
        };
        let run = |arguments: &[&str]| Some(Subcommand::Run(etcd(arguments)));
        assert_eq!(parsed(&["fetch", "--", "etcd", "a"]), Some(Subcommand::Fetch(etcd(&["a"]))));
        assert_eq!(parsed(&["restore", "--", "etcd"]), Some(Subcommand::Restore(etcd(&[]))));
        assert_eq!(parsed(&["run", "--", "etcd"]), run(&[]));
        assert_eq!(
            parsed(&["run", "--", "etcd", "--name=a", "--", "", "install"]),
            run(&["--name=a", "--", "", "install"])
        );
    }

    #[test]
    fn gate_arguments_need_not_be_utf8() {
        let raw = OsString::from_vec(vec![b'-', 0xff]);
        let task = parse(["run".into(), "--".into(), "etcd".into(), raw.clone()].into_iter()).unwrap();
        assert_eq!(task, Subcommand::Run(Program { path: "etcd".into(), arguments: vec![raw] }));
    }

    #[test]
    fn gate_arguments_that_make_no_command_are_refused() {
        let wrong: [&[&str]; 10] = [
            &[],
            &["install"],
            &["install", ""],
            &["install", "/a", "/b"],
            &["run"],
            &["run", "--"],
            &["run", "--", ""],
            &["run", "etcd", "--"],
            &["--help"],
            &["stop", "--", "etcd"],
        ];
        for arguments in wrong {
            assert_eq!(parsed(arguments), None, "{arguments:?}");
        }
    }
}
