//! The command line: one of two orders.

use std::ffi::OsString;
use std::path::PathBuf;

use anyhow::bail;

const USAGE: &str = "usage: gate install DIRECTORY, or gate run -- PROGRAM [ARGUMENT]...";

#[derive(Debug, PartialEq, Eq)]
pub enum Order {
    /// Look, and put a copy of this program into the directory.
    Install { directory: PathBuf },
    /// Look, and become that program.
    Run { program: OsString, arguments: Vec<OsString> },
}

/// Takes the arguments without the name of this program.
pub fn parse(arguments: impl Iterator<Item = OsString>) -> anyhow::Result<Order> {
    let arguments: Vec<OsString> = arguments.collect();
    match arguments.as_slice() {
        [order, directory] if order == "install" && !directory.is_empty() => {
            Ok(Order::Install { directory: directory.into() })
        }
        [order, dashes, program, rest @ ..] if order == "run" && dashes == "--" && !program.is_empty() => {
            Ok(Order::Run { program: program.clone(), arguments: rest.to_vec() })
        }
        _ => bail!(USAGE),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStringExt;

    use super::*;

    fn parsed(arguments: &[&str]) -> Option<Order> {
        parse(arguments.iter().map(OsString::from)).ok()
    }

    #[test]
    fn both_orders_are_understood() {
        assert_eq!(parsed(&["install", "/bin"]), Some(Order::Install { directory: "/bin".into() }));
        let run = |arguments: &[&str]| {
            Some(Order::Run { program: "etcd".into(), arguments: arguments.iter().map(OsString::from).collect() })
        };
        assert_eq!(parsed(&["run", "--", "etcd"]), run(&[]));
        assert_eq!(
            parsed(&["run", "--", "etcd", "--name=a", "--", "", "install"]),
            run(&["--name=a", "--", "", "install"])
        );
    }

    #[test]
    fn arguments_need_not_be_text() {
        let raw = OsString::from_vec(vec![b'-', 0xff]);
        let order = parse(["run".into(), "--".into(), "etcd".into(), raw.clone()].into_iter()).unwrap();
        assert_eq!(order, Order::Run { program: "etcd".into(), arguments: vec![raw] });
    }

    #[test]
    fn anything_else_is_no_order() {
        let wrong: [&[&str]; 9] = [
            &[],
            &["install"],
            &["install", ""],
            &["install", "/a", "/b"],
            &["run"],
            &["run", "--"],
            &["run", "--", ""],
            &["run", "etcd", "--"],
            &["--help"],
        ];
        for arguments in wrong {
            assert_eq!(parsed(arguments), None, "{arguments:?}");
        }
    }
}
