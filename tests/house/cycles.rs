//! Circles of files that import each other. What a file takes from the module that it is a part of does not count.

use std::collections::{BTreeMap, BTreeSet};

use super::source::{File, in_engine, occurrences};

/// What is before the `use` of names that a module hands on.
const HANDING_ON: [&str; 3] = ["pub", "pub(crate)", "pub(super)"];

/// The circles of more than `most` files.
pub fn cycles(files: &[File], most: usize) -> Vec<Vec<String>> {
    let modules: BTreeMap<Vec<String>, usize> =
        files.iter().enumerate().filter(|(_, file)| !file.is_test()).map(|(at, file)| (file.module(), at)).collect();
    let imports: Vec<BTreeSet<usize>> =
        files.iter().enumerate().map(|(at, file)| imports(file, at, files, &modules)).collect();
    let reached: Vec<BTreeSet<usize>> = (0..files.len()).map(|from| reach(from, &imports)).collect();
    let mut found: BTreeSet<Vec<usize>> = BTreeSet::new();
    for (from, reach) in reached.iter().enumerate() {
        let circle: Vec<usize> =
            reach.iter().copied().filter(|to| reached.get(*to).is_some_and(|back| back.contains(&from))).collect();
        if circle.len() > most {
            found.insert(circle);
        }
    }
    found
        .into_iter()
        .map(|circle| circle.into_iter().filter_map(|at| files.get(at)).map(File::name).collect())
        .collect()
}

fn reach(from: usize, imports: &[BTreeSet<usize>]) -> BTreeSet<usize> {
    let (mut seen, mut open) = (BTreeSet::new(), vec![from]);
    while let Some(at) = open.pop() {
        for to in imports.get(at).into_iter().flatten() {
            if seen.insert(*to) {
                open.push(*to);
            }
        }
    }
    seen
}

/// The files whose names a file imports. What a `mod.rs` only hands on from a file below it is that file's.
fn imports(file: &File, own: usize, files: &[File], modules: &BTreeMap<Vec<String>, usize>) -> BTreeSet<usize> {
    let (mut found, here) = (BTreeSet::new(), file.module());
    let below = modules_below(file);
    for statement in file.code_without_tests().split(';') {
        let import = statement.rfind("use ").filter(|at| is_import(statement, *at));
        let (code, import) = statement.split_at(import.unwrap_or(statement.len()));
        let mut named = paths(code, &below);
        // What a module hands on is no need of its own.
        if !HANDING_ON.iter().any(|public| code.trim_end().ends_with(public)) {
            named.extend(import.strip_prefix("use ").into_iter().flat_map(|tree| leaves(tree.trim())));
        }
        for path in named {
            let Some(path) = absolute(&path, file) else { continue };
            // A module and the files below it are one subject: they may know each other.
            let is_below = |target: &usize| files.get(*target).is_some_and(|target| here.starts_with(&target.module()));
            if let Some(target) = owner(&path, files, modules).filter(|target| *target != own && !is_below(target)) {
                found.insert(target);
            }
        }
    }
    found
}

/// The names of the modules that a file declares.
fn modules_below(file: &File) -> Vec<String> {
    let declared = |at: usize| file.code.split_at(at).1.strip_prefix("mod ")?.split_once(';').map(|(name, _)| name);
    let names = occurrences(&file.code, "mod").into_iter().filter_map(declared);
    names.filter(|name| name.chars().all(|c| c.is_alphanumeric() || c == '_')).map(str::to_owned).collect()
}

/// The paths in code that begin at a crate, at a module above or at one of those `below`: those in expressions, types and
/// patterns.
fn paths(code: &str, below: &[String]) -> Vec<String> {
    let mut found = Vec::new();
    let above = ["crate", "super", "loopctl_lang", "loopctl_engine", "loopctl_runtime"];
    for begin in above.into_iter().chain(below.iter().map(String::as_str)) {
        for at in occurrences(code, begin) {
            let (before, path) = code.split_at(at);
            let end = path.find(|c: char| !(c.is_alphanumeric() || c == '_' || c == ':')).unwrap_or(path.len());
            let path = path.split_at(end).0.trim_end_matches(':');
            if !before.ends_with("::") && path.contains("::") {
                found.push(path.to_owned());
            }
        }
    }
    found
}

fn is_import(statement: &str, at: usize) -> bool {
    let before = statement.split_at(at).0;
    before.is_empty() || before.ends_with(['\n', ' ', '}', ')'])
}

/// The paths of a `use`, one for each name.
fn leaves(tree: &str) -> Vec<String> {
    let Some((head, rest)) = tree.split_once('{') else {
        return vec![tree.split(" as ").next().unwrap_or_default().trim().to_owned()];
    };
    let body = rest.rsplit_once('}').map_or(rest, |(body, _)| body);
    let (mut depth, mut part, mut parts) = (0_usize, String::new(), Vec::new());
    for c in body.chars() {
        match c {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                parts.push(std::mem::take(&mut part));
                continue;
            }
            _ => {}
        }
        part.push(c);
    }
    parts.push(part);
    let parts = parts.iter().map(|part| part.trim()).filter(|part| !part.is_empty());
    parts.flat_map(|part| leaves(part).into_iter().map(|leaf| format!("{}{leaf}", head.trim()))).collect()
}

/// What a path in a file names, from its room on.
fn absolute(path: &str, file: &File) -> Option<Vec<String>> {
    let here = file.module();
    let parts: Vec<&str> = path.split("::").map(str::trim).filter(|part| *part != "self" || here.is_empty()).collect();
    let first = *parts.first()?;
    let mut base: Vec<String> = match first {
        "crate" if file.is_of_engine() => return Some(in_engine(owned(parts.get(1..)?))),
        "crate" | "loopctl_lang" | "loopctl_runtime" => return Some(owned(parts.get(1..)?)),
        "loopctl_engine" => return Some(in_engine(owned(parts.get(1..)?))),
        "super" => here,
        _ if path.starts_with("self::") => here,
        // A module below this one, named without `self::`.
        _ if first.starts_with(char::is_lowercase) => here,
        _ => return None,
    };
    for part in parts {
        if part == "super" {
            base.pop();
        } else {
            base.push(part.to_owned());
        }
    }
    Some(base)
}

fn owned(parts: &[&str]) -> Vec<String> {
    parts.iter().map(|part| (*part).to_owned()).collect()
}

/// The file that defines what a path names: the longest module, then through what it hands on.
fn owner(path: &[String], files: &[File], modules: &BTreeMap<Vec<String>, usize>) -> Option<usize> {
    let longest = (1..=path.len()).rev().find_map(|length| {
        let module = path.get(..length)?;
        Some((modules.get(module).copied()?, path.get(length)))
    });
    let (at, name) = longest?;
    let (file, Some(name)) = (files.get(at)?, name) else { return Some(at) };
    let here = file.module();
    for statement in file.code.split(';') {
        let handed_on = |public: &&str| statement.rsplit_once(&format!("{public} use ")).map(|(_, tree)| tree);
        let Some(tree) = HANDING_ON.iter().find_map(handed_on) else { continue };
        for leaf in leaves(tree.trim()) {
            if leaf.rsplit("::").next() == Some(name.as_str())
                && let Some(path) = absolute(&leaf, file)
                && path != here
                && let Some(length) =
                    (1..path.len()).rev().find(|length| path.get(..*length).is_some_and(|m| modules.contains_key(m)))
                && let Some(target) = path.get(..length).and_then(|module| modules.get(module))
            {
                return Some(*target);
            }
        }
    }
    Some(at)
}
