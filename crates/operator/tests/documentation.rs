//! Fails when a page for contributors names a file, a folder or a function that is not there.
//!
//! What counts as such a name is what stands between backticks and begins with a folder of this repository
//! (`crates/core/src/plan.rs`), ends like a source file (`plan.rs`, also in tables of files) or is called (`plan()`).

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

const PAGES: [&str; 2] = ["docs/architecture.md", "CONTRIBUTING.md"];
const FOLDERS: [&str; 6] = ["crates/", "tests/", "docs/", "scripts/", "config/", "benches/"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// All files and folders of the repository below `FOLDERS`, as paths from its root.
fn everything() -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut to_visit: Vec<String> = FOLDERS.iter().map(|folder| folder.trim_end_matches('/').to_owned()).collect();
    while let Some(path) = to_visit.pop() {
        if let Ok(entries) = fs::read_dir(root().join(&path)) {
            to_visit.extend(entries.flatten().map(|entry| format!("{path}/{}", entry.file_name().display())));
        }
        found.insert(path);
    }
    found
}

/// What a page has between single backticks, outside of blocks of code, with the number of the line.
fn code_in(page: &str) -> Vec<(usize, &str)> {
    let mut is_block = false;
    let mut found = Vec::new();
    for (number, line) in page.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            is_block = !is_block;
        } else if !is_block {
            found.extend(line.split('`').skip(1).step_by(2).map(|code| (number + 1, code)));
        }
    }
    found
}

/// Whether a path fits a name that may have `*` in it.
fn fits(path: &str, name: &str) -> bool {
    match name.split_once('*') {
        None => path == name,
        Some((before, after)) => path
            .strip_prefix(before)
            .is_some_and(|rest| (0..=rest.len()).any(|at| rest.get(at..).is_some_and(|rest| fits(rest, after)))),
    }
}

/// Why a name is wrong, if it is the name of a file, a folder or a function and there is none.
fn problem_of(name: &str, paths: &BTreeSet<String>, sources: &str) -> Option<&'static str> {
    let is_word = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    let is_path = |text: &str| text.chars().all(|c| c.is_ascii_alphanumeric() || "/._-*".contains(c));
    if let Some(function) = name.strip_suffix("()").filter(|it| is_word(it)) {
        let is_there = ["(", "<"].iter().any(|next| sources.contains(&format!("fn {function}{next}")));
        return (!is_there).then_some("no such function");
    }
    if !is_path(name) {
        return None;
    }
    if FOLDERS.iter().any(|folder| name.starts_with(folder)) {
        let is_there = paths.iter().any(|path| fits(path, name.trim_end_matches('/')));
        return (!is_there).then_some("no such file or folder");
    }
    if name.ends_with(".rs") {
        let is_there = paths.iter().any(|path| path.ends_with(&format!("/{name}")));
        return (!is_there).then_some("no file whose path ends like this");
    }
    None
}

#[test]
fn pages_for_contributors_name_only_what_is_there() {
    let paths = everything();
    // This file has examples of names in it.
    let sources = paths.iter().filter(|path| path.ends_with(".rs") && !path.ends_with("tests/documentation.rs"));
    let sources: String = sources.map(|path| read(&root().join(path))).collect();
    let mut missing = Vec::new();
    for page in PAGES {
        let text = read(&root().join(page));
        for (line, name) in code_in(&text) {
            missing.extend(
                problem_of(name, &paths, &sources).map(|problem| format!("{page}:{line}: `{name}`: {problem}")),
            );
        }
    }
    assert!(missing.is_empty(), "correct these names, or what they name:\n{}", missing.join("\n"));
}

#[test]
fn only_names_of_what_is_there_pass() {
    let paths = ["crates", "crates/a/src/plan.rs", "config/samples/b_full.yaml"].map(str::to_owned).into();
    let wrong = |name: &str| problem_of(name, &paths, "fn plan(x: u8) {}").is_some();
    for right in ["crates/", "crates/a/src/plan.rs", "src/plan.rs", "plan.rs", "config/samples/*_full.yaml", "plan()"] {
        assert!(!wrong(right), "{right}");
    }
    for other in ["Step::Promote", "etcd.improbable.io/role", "make test", "crates/a b"] {
        assert!(!wrong(other), "{other}");
    }
    for gone in ["crates/b", "an.rs", "old.rs", "a/plan.rs", "config/samples/*_empty.yaml", "docs/a.md", "pla()"] {
        assert!(wrong(gone), "{gone}");
    }
}

#[test]
fn blocks_of_code_are_not_read() {
    assert_eq!(code_in("a `b` and `c`\n```\n`d`\n```\n`e`"), [(1, "b"), (1, "c"), (5, "e")]);
}
