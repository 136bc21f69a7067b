//! The command line.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{ArgAction, Args, Parser, Subcommand, ValueEnum};
use etcd_operator_api::PullPolicy;

/// Runs etcd clusters on Kubernetes.
#[derive(Debug, Parser)]
#[command(name = "etcd-operator", version)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run the operator.
    Run(RunOptions),
    /// Print the CustomResourceDefinitions as YAML.
    Crds(CrdsOptions),
    /// Print the reference of fields, reasons, metrics and flags, as docs/reference.md has it.
    Reference(ReferenceOptions),
    /// Print the version of the operator.
    Version,
}

#[derive(Debug, Args)]
pub struct RunOptions {
    /// The namespaces to work in, separated by commas. All namespaces unless set.
    #[arg(long, env = "ETCD_OPERATOR_NAMESPACES", value_delimiter = ',')]
    pub namespaces: Vec<String>,

    /// How to write the log: text for people, json for machines. RUST_LOG chooses what is logged, info unless set.
    #[arg(long, env = "ETCD_OPERATOR_LOG_FORMAT", value_enum, default_value_t = LogFormat::Text)]
    pub log_format: LogFormat,

    /// Where to serve /metrics, /healthz and /readyz. An address such as :8080 means all interfaces.
    #[arg(long, env = "ETCD_OPERATOR_METRICS_ADDR", default_value = "0.0.0.0:8080", value_parser = parse_address)]
    pub metrics_addr: SocketAddr,

    /// Whether to work only while holding the lease `etcd-operator`, so that several operators can run side by side.
    #[arg(
        long,
        env = "ETCD_OPERATOR_ENABLE_LEADER_ELECTION",
        action = ArgAction::Set,
        num_args = 0..=1,
        default_value_t = true,
        default_missing_value = "true"
    )]
    pub enable_leader_election: bool,

    /// Where etcd's images come from, for clusters that don't say: `{repository}:v{version}`.
    #[arg(long, env = "ETCD_OPERATOR_ETCD_REPOSITORY", default_value = "quay.io/coreos/etcd")]
    pub etcd_repository: String,

    /// When nodes pull images, for clusters that don't say: Always, IfNotPresent or Never. Kubernetes' default unless set.
    #[arg(long, env = "ETCD_OPERATOR_IMAGE_PULL_POLICY", value_parser = parse_pull_policy)]
    pub image_pull_policy: Option<PullPolicy>,

    /// The image that holds the gate, for the init container of members. That of the operator's own pod unless set.
    #[arg(long, env = "ETCD_OPERATOR_AGENT_IMAGE")]
    pub agent_image: Option<String>,

    /// How many clusters may restart members at the same time because something changed, so that a fleet never does so
    /// all at once.
    #[arg(long, env = "ETCD_OPERATOR_MAX_ROLLING_CLUSTERS", default_value_t = 10, value_parser = parse_count)]
    pub max_rolling_clusters: usize,

    /// The DNS domain of the Kubernetes cluster. Taken from /etc/resolv.conf unless set.
    #[arg(long, env = "ETCD_OPERATOR_CLUSTER_DOMAIN")]
    pub cluster_domain: Option<String>,
}

#[derive(Debug, Args)]
pub struct CrdsOptions {
    /// Write one file per CustomResourceDefinition into this directory instead of printing them.
    #[arg(long)]
    pub out_dir: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct ReferenceOptions {
    /// Write it into this file instead of printing it.
    #[arg(long)]
    pub out_file: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    Text,
    Json,
}

/// Why the value of a flag is refused.
#[derive(Debug, thiserror::Error)]
enum InvalidValue {
    #[error("not a number greater than zero")]
    Count,
    #[error("not a pull policy; it is one of Always, IfNotPresent and Never")]
    PullPolicy,
    #[error("not an address and port; write it like 0.0.0.0:8080 or :8080")]
    Address,
}

fn parse_count(text: &str) -> Result<usize, InvalidValue> {
    text.parse().ok().filter(|count| *count > 0).ok_or(InvalidValue::Count)
}

fn parse_pull_policy(text: &str) -> Result<PullPolicy, InvalidValue> {
    let known = [PullPolicy::Always, PullPolicy::IfNotPresent, PullPolicy::Never];
    let found = known.into_iter().find(|policy| policy.as_str() == text);
    found.ok_or(InvalidValue::PullPolicy)
}

fn parse_address(text: &str) -> Result<SocketAddr, InvalidValue> {
    let with_host = if text.starts_with(':') { format!("0.0.0.0{text}") } else { text.to_string() };
    with_host.parse().map_err(|_| InvalidValue::Address)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run_options(args: &[&str]) -> RunOptions {
        let cli = Cli::try_parse_from(["etcd-operator", "run"].iter().chain(args)).unwrap();
        let Command::Run(options) = cli.command else { panic!("run expected") };
        options
    }

    #[test]
    fn all_namespaces_and_leader_election_are_the_default() {
        let options = run_options(&[]);
        assert!(options.namespaces.is_empty());
        assert!(options.enable_leader_election);
        assert_eq!(options.log_format, LogFormat::Text);
        assert_eq!(options.metrics_addr, "0.0.0.0:8080".parse().unwrap());
    }

    #[test]
    fn some_cluster_may_always_change() {
        assert_eq!(run_options(&[]).max_rolling_clusters, 10);
        assert_eq!(run_options(&["--max-rolling-clusters", "3"]).max_rolling_clusters, 3);
        assert!(Cli::try_parse_from(["etcd-operator", "run", "--max-rolling-clusters", "0"]).is_err());
    }

    #[test]
    fn namespaces_are_separated_by_commas() {
        assert_eq!(run_options(&["--namespaces", "a,b"]).namespaces, ["a", "b"]);
    }

    #[test]
    fn leader_election_is_switched_with_or_without_a_value() {
        assert!(!run_options(&["--enable-leader-election=false"]).enable_leader_election);
        assert!(!run_options(&["--enable-leader-election", "false"]).enable_leader_election);
        assert!(run_options(&["--enable-leader-election"]).enable_leader_election);
    }

    #[test]
    fn an_address_without_a_host_means_all_interfaces() {
        assert_eq!(run_options(&["--metrics-addr", ":9090"]).metrics_addr, "0.0.0.0:9090".parse().unwrap());
        assert!(Cli::try_parse_from(["etcd-operator", "run", "--metrics-addr", "nonsense"]).is_err());
    }
}
