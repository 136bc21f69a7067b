//! The commands of the operator and their flags, from the definition of the command line.

use clap::{Arg, Command};

use super::{code, table};

pub fn section(program: &Command) -> String {
    let commands = program.get_subcommands().map(|command| subsection(program.get_name(), command));
    format!("## Commands and flags\n\n{}", commands.collect::<Vec<_>>().join("\n\n"))
}

fn subsection(program: &str, command: &Command) -> String {
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    let title = format!("`{program} {}`: {about}", command.get_name());
    let rows: Vec<[String; 4]> = command.get_arguments().map(row_of).collect();
    if rows.is_empty() {
        return title;
    }
    format!("{title}\n\n{}", table(["Flag", "Environment", "Default", "Meaning"], &rows))
}

fn row_of(argument: &Arg) -> [String; 4] {
    let flag = argument.get_long().map(|long| format!("--{long}")).unwrap_or_default();
    let environment = argument.get_env().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let defaults = argument.get_default_values().iter().map(|value| value.to_string_lossy().into_owned());
    let help = argument.get_help().map(ToString::to_string).unwrap_or_default();
    [code(&flag), code(&environment), code(&defaults.collect::<Vec<_>>().join(",")), help]
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::cli::Cli;

    #[test]
    fn flags_have_their_environment_and_default() {
        let page = section(&Cli::command());
        assert!(page.contains("| `--metrics-addr` | `ETCD_OPERATOR_METRICS_ADDR` | `0.0.0.0:8080` | Where"), "{page}");
    }
}
