//! Fails when docs/reference.md lacks a reason, event, condition, label or metric that the code has, or has one that the code lacks.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use etcd_operator_api::{
    BackupEventReason, BackupReason, ConditionReason, EventReason, JobFailureReason, RestoreEventReason, RestoreReason,
    ScheduleEventReason, ScheduleReason, WaitReason,
};

/// The part that is written by hand, from the root of the repository.
const REASONS: &str = "crates/operator/src/reference/reasons.md";

/// Where the operator decides what to say.
const SOURCES: [&str; 2] = ["crates/core/src", "crates/operator/src"];

/// Words in the code that are no conditions: kinds, values and reasons of Kubernetes, and what is stored.
const NOT_CONDITIONS: [&str; 29] = [
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

/// All reasons of a kind, by its name in the titles of the reference.
fn reasons() -> [(&'static str, BTreeSet<&'static str>); 5] {
    let of_cluster = WaitReason::ALL.iter().map(|it| it.as_str());
    let of_cluster = of_cluster.chain(ConditionReason::ALL.iter().map(|it| it.as_str()));
    let of_cluster = of_cluster.chain(EventReason::ALL.iter().map(|it| it.as_str()));
    let of_backup = BackupReason::ALL.iter().map(|it| it.as_str());
    let of_backup = of_backup.chain(BackupEventReason::ALL.iter().map(|it| it.as_str()));
    let of_schedule = ScheduleReason::ALL.iter().map(|it| it.as_str());
    let of_schedule = of_schedule.chain(ScheduleEventReason::ALL.iter().map(|it| it.as_str()));
    let of_restore = RestoreReason::ALL.iter().map(|it| it.as_str());
    let of_restore = of_restore.chain(RestoreEventReason::ALL.iter().map(|it| it.as_str()));
    [
        ("EtcdCluster", of_cluster.collect()),
        ("EtcdBackup", of_backup.collect()),
        ("EtcdBackupSchedule", of_schedule.collect()),
        ("EtcdRestore", of_restore.collect()),
        ("Failures of the work", JobFailureReason::ALL.iter().map(|it| it.as_str()).collect()),
    ]
}

#[test]
fn reasons_of_each_kind_are_those_of_its_enums() {
    let page = read(REASONS);
    for (kind, said) in reasons() {
        let documented: BTreeSet<&str> = cells(&page, kind, 1).collect();
        let missing: Vec<&&str> = said.difference(&documented).collect();
        assert!(missing.is_empty(), "{REASONS}, {kind} lacks {missing:?}: add a row for each and run `make generate`");
        let unknown: Vec<&&str> = documented.difference(&said).collect();
        let advice = "rename or remove the rows and run `make generate`";
        assert!(unknown.is_empty(), "{REASONS}, {kind} has {unknown:?}, which are in no enum: {advice}");
    }
}

/// What is a word in CamelCase and no condition may be a reason that is missing in the enums.
#[test]
fn words_in_the_code_are_conditions_of_the_reference_and_no_reasons() {
    let page = read(REASONS);
    let documented: BTreeSet<&str> = reasons().into_iter().flat_map(|(kind, _)| cells(&page, kind, 0)).collect();
    let words = words_of_the_code();
    let said: BTreeSet<&str> = words.keys().map(String::as_str).filter(|it| !NOT_CONDITIONS.contains(it)).collect();
    let missing: Vec<String> =
        said.difference(&documented).map(|word| format!("\n  {word} ({})", words[*word])).collect();
    assert!(
        missing.is_empty(),
        "{REASONS} has no such conditions:{}\nA reason belongs in an enum in crates/api/src/v1alpha1/reasons. If one is \
         neither, add it to NOT_CONDITIONS in crates/operator/tests/reference.rs.",
        missing.concat()
    );
    let unknown: Vec<&&str> = documented.difference(&said).collect();
    assert!(unknown.is_empty(), "{REASONS} has conditions that the code does not have: {unknown:?}");
}

#[test]
fn words_that_are_no_conditions_are_still_there() {
    let words = words_of_the_code();
    let gone: Vec<&str> = NOT_CONDITIONS.into_iter().filter(|word| !words.contains_key(*word)).collect();
    assert!(gone.is_empty(), "not in the code any more, remove them from NOT_CONDITIONS: {gone:?}");
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

/// What is code in a column of the tables of a kind, whose titles are its name, alone or before a colon.
fn cells<'a>(page: &'a str, kind: &'a str, column: usize) -> impl Iterator<Item = &'a str> {
    let parts = page.split("\n#").filter(move |part| {
        let title = part.lines().next().unwrap_or_default().trim_start_matches(['#', ' ']);
        title.split(':').next() == Some(kind)
    });
    let rows = parts.flat_map(|part| part.lines().filter(|line| line.starts_with('|')));
    rows.filter_map(move |row| row.split(" | ").nth(column)).flat_map(quoted)
}

fn quoted(cell: &str) -> impl Iterator<Item = &str> {
    cell.split('`').skip(1).step_by(2)
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
