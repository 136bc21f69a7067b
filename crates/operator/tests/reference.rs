//! Fails when docs/reference.md lacks a reason, event, condition, label or metric that the code has, or has one that the code lacks.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use etcd_operator_api::{ConditionReason, EventReason, WaitReason};

/// The part that is written by hand, from the root of the repository.
const REASONS: &str = "crates/operator/src/reference/reasons.md";

/// Where the operator decides what to say.
const SOURCES: [&str; 2] = ["crates/core/src", "crates/operator/src"];

/// Enums whose variants are reasons.
const ENUMS: [(&str, &str); 2] =
    [("crates/protocol/src/report.rs", "Reason"), ("crates/api/src/v1alpha1/restore.rs", "RestorePhase")];

/// Words in the code that the operator says to nobody: kinds, values and reasons of Kubernetes, and what is stored.
const NOT_REASONS: [&str; 29] = [
    "AlreadyExists",
    "Always",
    "ClusterIP",
    "ContainerCreating",
    "CreateContainerConfigError",
    "ErrImageNeverPull",
    "ErrImagePull",
    "EtcdBackupSchedule",
    "EtcdCluster",
    "FailJob",
    "FallbackToLogsOnError",
    "False",
    "File",
    "ImageInspectError",
    "ImagePullBackOff",
    "In",
    "Infeasible",
    "InvalidImageName",
    "Job",
    "Never",
    "None",
    "OnRootMismatch",
    "PodInitializing",
    "PodResizePending",
    "PodScheduled",
    "ReadWriteOnce",
    "RuntimeDefault",
    "Succeeded",
    "True",
];

#[test]
fn every_reason_of_the_code_is_in_the_reference() {
    let documented = documented();
    let missing: Vec<String> = reasons_of_the_code()
        .into_iter()
        .filter(|(word, _)| !documented.contains(word))
        .map(|(word, place)| format!("\n  {word} ({place})"))
        .collect();
    assert!(
        missing.is_empty(),
        "{REASONS} lacks:{}\nAdd a row for each and run `make generate`. If one is no reason, event or condition, add it to \
         NOT_REASONS in crates/operator/tests/reference.rs.",
        missing.concat()
    );
}

#[test]
fn every_reason_of_the_reference_is_in_the_code() {
    let said: BTreeSet<String> = reasons_of_the_code().into_keys().collect();
    let unknown: Vec<String> = documented().difference(&said).map(|word| format!("\n  {word}")).collect();
    let unknown = unknown.concat();
    assert!(
        unknown.is_empty(),
        "{REASONS} has what the code does not say:{unknown}\nRename or remove the rows and run `make generate`."
    );
}

#[test]
fn words_that_are_no_reasons_are_still_there() {
    let words = words_of_the_code();
    let gone: Vec<&str> = NOT_REASONS.into_iter().filter(|word| !words.contains_key(*word)).collect();
    assert!(gone.is_empty(), "not in the code any more, remove them from NOT_REASONS: {gone:?}");
}

#[test]
fn labels_and_annotations_are_those_of_the_code() {
    let mut sources = sources();
    sources.extend(sources_in("crates/api/src"));
    let begin = "etcd.improbable.io/";
    let is_name = |literal: &str| literal.starts_with(begin) && literal != begin && !literal.ends_with("/v1alpha1");
    let all = sources.values().flat_map(|text| text.split('"')).filter(|literal| is_name(literal));
    let in_code: BTreeSet<&str> = all.filter(|literal| !literal.contains([' ', '{', '\n'])).collect();
    let page = read(REASONS);
    let rows = page.lines().filter(|line| line.starts_with('|'));
    let cells = rows.filter_map(|row| row.split(" | ").next());
    let documented: BTreeSet<&str> = cells.flat_map(quoted).filter(|name| is_name(name)).collect();
    let (missing, unknown): (Vec<_>, Vec<_>) =
        (in_code.difference(&documented).collect(), documented.difference(&in_code).collect());
    assert!(missing.is_empty(), "{REASONS} lacks labels or annotations: {missing:?}; add rows and run `make generate`");
    assert!(unknown.is_empty(), "{REASONS} has labels or annotations that the code lacks: {unknown:?}; remove them");
}

#[test]
fn all_metrics_are_in_the_reference() {
    let page = read("docs/reference.md");
    let code = code_of(&read("crates/operator/src/runtime/metrics.rs")).to_owned();
    let names: Vec<&str> = code.split('"').filter(|literal| literal.starts_with("etcd_operator_")).collect();
    assert!(!names.is_empty());
    for name in names {
        let is_there = [name.to_owned(), format!("{name}_total"), format!("{name}_info")]
            .iter()
            .any(|name| page.contains(&format!("| `{name}` |")));
        assert!(is_there, "docs/reference.md lacks {name}: count it in Metrics::one_of_each and run `make generate`");
    }
}

/// What the code says, and where: the reasons of clusters, words that are literals, and variants of other enums.
fn reasons_of_the_code() -> BTreeMap<String, String> {
    let mut all = words_of_the_code();
    all.retain(|word, _| !NOT_REASONS.contains(&word.as_str()));
    for (path, name) in ENUMS {
        all.extend(variants(path, name).into_iter().map(|variant| (variant, format!("{path}, {name}"))));
    }
    let of_clusters = WaitReason::ALL.iter().map(|it| (it.as_str(), "WaitReason"));
    let of_clusters = of_clusters.chain(ConditionReason::ALL.iter().map(|it| (it.as_str(), "ConditionReason")));
    let of_clusters = of_clusters.chain(EventReason::ALL.iter().map(|it| (it.as_str(), "EventReason")));
    all.extend(of_clusters.map(|(word, name)| (word.to_owned(), format!("crates/api/src/v1alpha1/reasons, {name}"))));
    all
}

/// All literals that are one word in CamelCase, and where each is first.
fn words_of_the_code() -> BTreeMap<String, String> {
    let mut words = BTreeMap::new();
    for (path, text) in sources() {
        for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim_start().starts_with("//")) {
            let place = || format!("{}:{}", path.display(), number + 1);
            for word in line.split('"').filter(|word| is_camel_case(word)) {
                words.entry(word.to_owned()).or_insert_with(place);
            }
        }
    }
    words
}

fn is_camel_case(word: &str) -> bool {
    word.starts_with(|first: char| first.is_ascii_uppercase())
        && word.chars().all(|it| it.is_ascii_alphanumeric())
        && word.contains(|it: char| it.is_ascii_lowercase())
}

/// The conditions and reasons in the tables of the reference: what is code in their first two columns.
fn documented() -> BTreeSet<String> {
    let page = read(REASONS);
    let rows = page.lines().filter(|line| line.starts_with('|'));
    let cells = rows.flat_map(|row| row.split(" | ").take(2));
    cells.flat_map(quoted).filter(|word| is_camel_case(word)).map(str::to_owned).collect()
}

fn quoted(cell: &str) -> impl Iterator<Item = &str> {
    cell.split('`').skip(1).step_by(2)
}

fn variants(path: &str, name: &str) -> Vec<String> {
    let text = read(path);
    let body = text.split_once(&format!("pub enum {name} {{")).and_then(|(_, rest)| rest.split_once("\n}"));
    let (body, _) = body.unwrap_or_else(|| panic!("no enum {name} in {path}"));
    let variants = body.lines().filter_map(|line| line.trim().strip_suffix(','));
    variants.filter(|variant| is_camel_case(variant)).map(str::to_owned).collect()
}

fn sources() -> BTreeMap<PathBuf, String> {
    SOURCES.iter().flat_map(|folder| sources_in(folder)).collect()
}

/// The code in a folder, by path, without its tests and without what writes the reference.
fn sources_in(folder: &str) -> BTreeMap<PathBuf, String> {
    let mut sources = BTreeMap::new();
    let entries = fs::read_dir(root().join(folder)).unwrap_or_else(|error| panic!("{folder}: {error}"));
    for entry in entries.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = format!("{folder}/{name}");
        if ["tests", "tests.rs", "simulation", "reference"].contains(&name.as_str()) {
            continue;
        } else if entry.path().is_dir() {
            sources.extend(sources_in(&path));
        } else if name.ends_with(".rs") {
            sources.insert(path.clone().into(), code_of(&read(&path)).to_owned());
        }
    }
    sources
}

/// A file up to the module with its tests, which is the last thing in it.
fn code_of(text: &str) -> &str {
    text.split_once("\n#[cfg(test)]\nmod tests {").map_or(text, |(code, _)| code)
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}
