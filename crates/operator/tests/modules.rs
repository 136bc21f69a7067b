//! Fails when modules of the core or of the operator use each other in a circle: whoever reads one of them should find
//! what it stands on below it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// The folders with the crates' code.
const CRATES: [&str; 2] = ["crates/core/src", "crates/operator/src"];

/// The files of a crate by the path of their module (`cluster::plan`), each with its text.
type Modules = BTreeMap<Vec<String>, (String, String)>;

#[test]
fn no_modules_use_each_other_in_a_circle() {
    let mut found = Vec::new();
    for folder in CRATES {
        let modules = modules_in(folder);
        assert!(!modules.is_empty(), "{folder} has no code");
        let file = |module: &Vec<String>| modules[module].0.as_str();
        let uses = uses_of(&modules);
        for circle in circles_of(&uses) {
            let files: Vec<&str> = circle.iter().chain(circle.first()).map(file).collect();
            found.push(format!("\n  {folder}: {}", files.join(" -> ")));
        }
    }
    let found = found.concat();
    assert!(found.is_empty(), "modules use each other in a circle; move what two of them need into a third:{found}");
}

/// For each module, those whose items it uses, found by its `use` declarations.
fn uses_of(modules: &Modules) -> BTreeMap<Vec<String>, BTreeSet<Vec<String>>> {
    let used = |module: &Vec<String>, text: &str| {
        let resolved = declarations(text).into_iter().flat_map(|(is_public, tree)| {
            let used = expand(&tree).into_iter().filter_map(|path| resolve(module, &path, modules));
            // A folder's own file shows what is below it to others: that is a door, not a use.
            used.filter(|it| !(is_public && it.starts_with(module))).collect::<Vec<_>>()
        });
        resolved.filter(|it| it != module).collect()
    };
    modules.iter().map(|(module, (_, text))| (module.clone(), used(module, text))).collect()
}

/// The trees of all `use` declarations, without `use` and `;`, and whether each is public.
fn declarations(text: &str) -> Vec<(bool, String)> {
    let code: Vec<&str> = text.lines().map(|line| line.split("//").next().unwrap_or_default()).collect();
    let code = code.join("\n");
    let mut trees = Vec::new();
    for (at, _) in code.match_indices("use ") {
        let line = code[..at].rsplit('\n').next().unwrap_or_default().trim();
        let is_declaration = line.is_empty() || (line.starts_with("pub") && !line.contains(' '));
        if let (true, Some((tree, _))) = (is_declaration, code[at + 4..].split_once(';')) {
            trees.push((!line.is_empty(), tree.split_whitespace().collect::<Vec<_>>().join(" ")));
        }
    }
    trees
}

/// The paths in a tree: `a::{b, c::d}` is `a::b` and `a::c::d`.
fn expand(tree: &str) -> Vec<Vec<String>> {
    let tree = tree.trim();
    let segments = |path: &str| -> Vec<String> {
        let path = path.split(" as ").next().unwrap_or_default();
        path.split("::").map(|it| it.trim().to_owned()).filter(|it| !it.is_empty()).collect()
    };
    let Some((before, group)) = tree.split_once('{') else { return vec![segments(tree)] };
    let group = group.rsplit_once('}').map_or(group, |(group, _)| group);
    let (mut depth, mut start, mut parts) = (0, 0, Vec::new());
    for (at, letter) in group.char_indices() {
        match letter {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(&group[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&group[start..]);
    let inner = parts.into_iter().filter(|part| !part.trim().is_empty()).flat_map(expand);
    inner.map(|path| segments(before).into_iter().chain(path).filter(|it| it != "self").collect()).collect()
}

/// The module of this crate that has what a path names, if any has.
fn resolve(from: &[String], path: &[String], modules: &Modules) -> Option<Vec<String>> {
    let mut at = match path.first()?.as_str() {
        "crate" => Vec::new(),
        "super" => from[..from.len().checked_sub(1)?].to_vec(),
        "self" => from.to_vec(),
        child => {
            let child: Vec<String> = from.iter().cloned().chain([child.to_owned()]).collect();
            return modules.contains_key(&child).then(|| descend(child, &path[1..], modules));
        }
    };
    let mut rest = &path[1..];
    while rest.first().is_some_and(|segment| segment == "super") {
        at.pop()?;
        rest = &rest[1..];
    }
    Some(descend(at, rest, modules))
}

fn descend(mut at: Vec<String>, rest: &[String], modules: &Modules) -> Vec<String> {
    for segment in rest {
        let below: Vec<String> = at.iter().cloned().chain([segment.clone()]).collect();
        if !modules.contains_key(&below) {
            break;
        }
        at = below;
    }
    at
}

/// For each set of modules that all use each other, directly or through others: a shortest circle of them.
fn circles_of<T: Ord + Clone>(uses: &BTreeMap<T, BTreeSet<T>>) -> Vec<Vec<T>> {
    let mut circles: Vec<Vec<T>> = Vec::new();
    for start in uses.keys() {
        if circles.iter().any(|circle| circle.contains(start)) {
            continue;
        }
        // Breadth first, so the first way back is a shortest one.
        let mut ways = vec![vec![start.clone()]];
        let mut seen = BTreeSet::new();
        let mut next = 0;
        while let Some(way) = ways.get(next).cloned() {
            next += 1;
            let last = &way[way.len() - 1];
            let used: Vec<T> = uses.get(last).into_iter().flatten().cloned().collect();
            if used.contains(start) {
                circles.push(way);
                break;
            }
            for module in used.into_iter().filter(|module| seen.insert(module.clone())) {
                ways.push(way.iter().cloned().chain([module]).collect());
            }
        }
    }
    circles
}

/// The code of a crate, without tests.
fn modules_in(folder: &str) -> Modules {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(folder);
    let mut modules = Modules::new();
    let mut to_visit = vec![Vec::<String>::new()];
    while let Some(at) = to_visit.pop() {
        let folder = at.iter().fold(root.clone(), |path, part| path.join(part));
        for entry in fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display())).flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let with = |last: &str| -> Vec<String> { at.iter().cloned().chain([last.to_owned()]).collect() };
            if ["tests", "tests.rs", "simulation"].contains(&name.as_str()) {
                continue;
            } else if entry.path().is_dir() {
                to_visit.push(with(&name));
            } else if let Some(stem) = name.strip_suffix(".rs") {
                let module = if ["mod", "lib", "main"].contains(&stem) { at.clone() } else { with(stem) };
                let text = fs::read_to_string(entry.path()).unwrap_or_else(|error| panic!("{name}: {error}"));
                let code = text.split_once("\n#[cfg(test)]\nmod tests {").map_or(text.as_str(), |(code, _)| code);
                modules.insert(module, (with(&name).join("/"), code.to_owned()));
            }
        }
    }
    modules
}

#[cfg(test)]
mod how_it_reads {
    use super::*;

    fn modules(files: &[(&str, &str)]) -> Modules {
        let module = |name: &str| name.split("::").filter(|it| !it.is_empty()).map(str::to_owned).collect();
        files.iter().map(|(name, text)| (module(name), ((*name).to_owned(), (*text).to_owned()))).collect()
    }

    #[test]
    fn circle_through_several_modules_is_found() {
        let modules = modules(&[
            ("", "mod a;"),
            ("a", "use crate::b::{\n    self, // why\n    c::Deep,\n};"),
            ("b", "use std::fmt;"),
            ("b::c", "pub(crate) use super::super::d::Thing;"),
            ("d", "    use super::a::run as walk;"),
        ]);
        let circles = circles_of(&uses_of(&modules));
        let names: Vec<String> = circles.concat().iter().map(|it| it.join("::")).collect();
        assert_eq!(names, ["a", "b::c", "d"]);
    }

    #[test]
    fn what_a_folder_shows_of_its_files_is_no_circle() {
        let modules = modules(&[("a", "pub use b::Thing;\npub const LIMIT: u8 = 1;"), ("a::b", "use super::LIMIT;")]);
        assert!(circles_of(&uses_of(&modules)).is_empty());
    }

    #[test]
    fn modules_in_one_direction_have_no_circle() {
        let modules = modules(&[
            ("top", "use crate::middle::x;\nuse crate::bottom;"),
            ("middle", "use super::bottom::y;"),
            ("bottom", "// use crate::top::z;\nlet reuse = because top;"),
        ]);
        assert_eq!(circles_of(&uses_of(&modules)), Vec::<Vec<Vec<String>>>::new());
    }
}
