//! Names and parameters: which types a file defines, and which functions take a tuple apart in their signature.

use std::collections::BTreeMap;

use super::source::{File, occurrences};

/// The types that are defined more than once, with the files.
pub fn defined_twice(files: &[File]) -> Vec<(String, Vec<String>)> {
    let mut places: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for file in files {
        for name in types(file) {
            let places = places.entry(name).or_default();
            // Twins in one file, by the target or a feature, are one type.
            if places.last() != Some(&file.name()) {
                places.push(file.name());
            }
        }
    }
    places.into_iter().filter(|(_, files)| files.len() > 1).collect()
}

/// The types that the code of a file defines, up to its tests.
pub fn types(file: &File) -> Vec<String> {
    let code = file.code_without_tests();
    let mut names = Vec::new();
    for word in ["struct", "enum", "trait", "union"] {
        for at in occurrences(code, word) {
            let rest = code.split_at(at + word.len()).1;
            let name: String = rest.trim_start().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
            if name.chars().next().is_some_and(char::is_uppercase) {
                names.push(name);
            }
        }
    }
    names
}

/// The lines of functions with a tuple for a parameter's name: `fn f((a, b): (A, B))`.
pub fn tuple_parameters(file: &File) -> Vec<usize> {
    let mut lines = Vec::new();
    for at in occurrences(&file.code, "fn") {
        let signature = file.code.split_at(at).1;
        // `fn(A) -> B` is a type, and has no parameters to name.
        if signature.starts_with("fn(") {
            continue;
        }
        let end = signature.find(['{', ';']).unwrap_or(signature.len());
        let signature = signature.split_at(end).0;
        let Some(open) = signature.find('(') else { continue };
        if is_tuple_first(signature.split_at(open + 1).1) {
            lines.push(file.line_of(at));
        }
    }
    lines
}

/// Whether one of the parameters, which begin here, is a tuple pattern.
fn is_tuple_first(parameters: &str) -> bool {
    let (mut depth, mut begins) = (0_usize, true);
    for (at, c) in parameters.char_indices() {
        match c {
            // `(): &()` is nothing that is taken apart.
            '(' if depth == 0 && begins && !parameters.split_at(at).1.starts_with("()") => return true,
            '(' | '[' | '<' => depth += 1,
            ')' if depth == 0 => return false,
            ')' | ']' | '>' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => begins = true,
            _ if c.is_whitespace() => continue,
            _ => {}
        }
        if c != ',' {
            begins = false;
        }
    }
    false
}
