//! The gate: runs in the pods of members and lets etcd start only on data that is its own.
//!
//! It is there twice. In the init container it looks at the data when the pod starts, and puts a copy of itself where
//! the etcd container finds it (`install`). There it looks again whenever that container starts, which a crash of etcd
//! is enough for, and then becomes etcd. In the first pod of a cluster that begins with a backup it also sees to it
//! that the backup is restored once, and completely (`restore`).
//!
//! `check` looks at the data. Whether etcd may start is decided in `etcd_operator_protocol::gate`, and the data dir is read
//! by `etcd_operator_datadir`. The gate never talks to Kubernetes or to etcd: annotations of the pod tell it
//! what to expect, and its `termination_message` tells the operator what it found.

mod arguments;
mod check;
mod install;
mod restore;
mod termination_message;

use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

use anyhow::Context;
use etcd_operator_protocol::report::{Done, Refusal, Report};

use crate::arguments::{Program, Subcommand};
use crate::check::Settings;
use crate::termination_message::write_termination_message;

fn main() -> ExitCode {
    let subcommand = arguments::parse(std::env::args_os().skip(1));
    match subcommand.and_then(run) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let message = format!("{error:#}");
            eprintln!("{message}");
            write_termination_message(Report::Refused(Refusal::new(message)));
            ExitCode::FAILURE
        }
    }
}

fn run(subcommand: Subcommand) -> anyhow::Result<()> {
    let settings = Settings::from_env()?;
    match subcommand {
        Subcommand::Install { directory } => {
            let found = check::check(&settings)?;
            println!("{found}");
            install::install(&directory)?;
            write_termination_message(Report::Done(Box::new(Done { remark: Some(found), ..Done::default() })));
            Ok(())
        }
        // No termination message is left: it would be taken for that of etcd when it ends.
        Subcommand::Run(program) => {
            println!("{}", check::check_before_start(&settings)?);
            become_program(program)
        }
        Subcommand::Fetch(program) if restore::is_to_do(&settings)? => {
            restore::make_room(&settings)?;
            become_program(program)
        }
        Subcommand::Restore(program) if restore::is_to_do(&settings)? => restore::restore(&settings, &program),
        Subcommand::Fetch(_) | Subcommand::Restore(_) => {
            println!("there is nothing to restore");
            Ok(())
        }
    }
}

fn become_program(program: Program) -> anyhow::Result<()> {
    let failure = Command::new(&program.path).args(program.arguments).exec();
    Err(failure).with_context(|| format!("starting {}", program.path.display()))
}
