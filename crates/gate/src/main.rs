//! The gate: runs in the pods of members and lets etcd start only on data that is its own.
//!
//! It is there twice. In the init container it looks at the data when the pod starts, and puts a copy of itself where
//! the etcd container finds it. There it looks again whenever that container starts, which a crash of etcd is enough
//! for, and then becomes etcd.

mod arguments;
mod check;
mod install;
mod last_words;

use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

use anyhow::Context;

use crate::arguments::Order;
use crate::check::Settings;
use crate::last_words::last_words;

fn main() -> ExitCode {
    let order = arguments::parse(std::env::args_os().skip(1));
    match order.and_then(obey) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let message = format!("{error:#}");
            eprintln!("{message}");
            last_words(&message);
            ExitCode::FAILURE
        }
    }
}

fn obey(order: Order) -> anyhow::Result<()> {
    let found = check::check(&Settings::from_env()?)?;
    println!("{found}");
    match order {
        Order::Install { directory } => {
            install::install(&directory)?;
            last_words(&found);
            Ok(())
        }
        // Nothing is left as last words: they would be taken for those of etcd when it ends.
        Order::Run { program, arguments } => {
            let failure = Command::new(&program).args(arguments).exec();
            Err(failure).with_context(|| format!("starting {}", program.display()))
        }
    }
}
