//! Fails when a generated file is not what would be generated now.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn config() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../config")
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}; run `make generate`", path.display()))
}

/// The paths of the files in a directory, in the order in which a shell lists them.
fn files_in(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).unwrap_or_else(|error| panic!("{}: {error}", dir.display()));
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

#[test]
fn definitions_are_those_of_the_types() {
    let fresh = Path::new(env!("CARGO_TARGET_TMPDIR")).join("crd");
    let _ = fs::remove_dir_all(&fresh);
    fs::create_dir_all(&fresh).unwrap();
    let made =
        Command::new(env!("CARGO_BIN_EXE_etcd-operator")).args(["crds", "--out-dir"]).arg(&fresh).status().unwrap();
    assert!(made.success());

    let names = |dir: &Path| files_in(dir).iter().map(|path| path.file_name().unwrap().to_owned()).collect::<Vec<_>>();
    let committed = config().join("crd");
    assert_eq!(names(&committed), names(&fresh), "config/crd has other files; run `make generate`");
    for name in names(&fresh) {
        let same = read(&committed.join(&name)) == read(&fresh.join(&name));
        assert!(same, "config/crd/{} is stale; run `make generate`", name.display());
    }
}

#[test]
fn the_install_file_is_all_the_others() {
    let parts = ["namespace", "rbac", "deployment"].map(|part| config().join(format!("operator/{part}.yaml")));
    let expected: String = files_in(&config().join("crd")).iter().chain(&parts).map(|path| read(path)).collect();
    let same = read(&config().join("install.yaml")) == expected;
    assert!(same, "config/install.yaml is stale; run `make generate`");
}

#[test]
fn the_reference_is_that_of_the_code() {
    let made = Command::new(env!("CARGO_BIN_EXE_etcd-operator")).arg("reference").output().unwrap();
    assert!(made.status.success());
    let same = read(&config().join("../docs/reference.md")).as_bytes() == made.stdout;
    assert!(same, "docs/reference.md is stale; run `make generate`");
}
