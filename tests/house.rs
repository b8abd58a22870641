//! The house rules that a compiler does not hold: which room imports which, what is pure, and how
//! long things are. A failure names the file, the line and the cure.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that fails says why")]

#[path = "house/cycles.rs"]
mod cycles;
#[path = "house/finders.rs"]
mod finders;
#[path = "house/flags.rs"]
mod flags;
#[path = "house/measure.rs"]
mod measure;
#[path = "house/names.rs"]
mod names;
#[path = "house/source.rs"]
mod source;
#[path = "house/walks.rs"]
mod walks;

use measure::functions;
use source::{File, SOURCES, all_files, names_after, occurrences, rooms_named, root, sources};

/// The rooms, from the ground up, with those that they may import.
const ROOMS: &[(&str, &[&str])] = &[
    ("diagnostic", &["policy"]),
    ("policy", &[]),
    ("language", &["diagnostic", "policy"]),
    ("syntax", &["diagnostic", "policy", "language"]),
    ("program", &["diagnostic", "policy", "language", "syntax"]),
    ("compile", &["diagnostic", "policy", "language", "syntax", "program"]),
    ("check", &["diagnostic", "policy", "language", "syntax", "program", "compile"]),
    ("project", &["diagnostic", "policy", "language", "syntax", "program", "compile", "check"]),
    ("engine", &["diagnostic", "policy", "language", "program"]),
    ("trace", &["diagnostic", "policy", "engine"]),
    ("journal", &["diagnostic", "policy", "engine"]),
    ("drive", &["diagnostic", "policy", "language", "syntax", "program", "compile", "project", "engine", "journal"]),
    (
        "embed",
        &[
            "diagnostic",
            "policy",
            "language",
            "syntax",
            "program",
            "compile",
            "project",
            "engine",
            "trace",
            "journal",
            "drive",
        ],
    ),
    (
        "serve",
        &[
            "diagnostic",
            "policy",
            "language",
            "syntax",
            "program",
            "compile",
            "check",
            "project",
            "engine",
            "trace",
            "journal",
            "drive",
        ],
    ),
    (
        "restate",
        &[
            "diagnostic",
            "policy",
            "language",
            "syntax",
            "program",
            "compile",
            "check",
            "project",
            "engine",
            "trace",
            "journal",
            "drive",
            "serve",
        ],
    ),
    (
        "scenario",
        &[
            "diagnostic",
            "policy",
            "language",
            "syntax",
            "program",
            "compile",
            "check",
            "project",
            "engine",
            "trace",
            "journal",
            "drive",
        ],
    ),
    ("replay", &["diagnostic", "policy", "language", "program", "engine"]),
    ("estimate", &["diagnostic", "policy", "language", "syntax", "program", "engine"]),
    ("cli", EVERY),
];
const EVERY: &[&str] = &[
    "diagnostic",
    "policy",
    "language",
    "syntax",
    "program",
    "compile",
    "check",
    "project",
    "engine",
    "trace",
    "journal",
    "drive",
    "embed",
    "serve",
    "restate",
    "scenario",
    "replay",
    "estimate",
    "cli",
];

/// The rooms without a clock, a disk, a network, chance or `async`.
const PURE: &[&str] = &[
    "diagnostic",
    "policy",
    "language",
    "syntax",
    "program",
    "compile",
    "check",
    "engine",
    "trace",
    "replay",
    "estimate",
];

/// The room that may read and write files, and is pure otherwise.
const FILES: &str = "project";
/// What that room may use: a new file's name has the process's number in it, and a database is a file too.
const OF_FILES: &[&str] = &["std::fs", "std::process", "rusqlite"];

/// What no pure room says.
const IMPURE: &[&str] = &[
    "tokio",
    "reqwest",
    "rusqlite",
    "fastrand",
    "async",
    "SystemTime",
    "Instant",
    "std::fs",
    "std::env",
    "std::net",
    "std::process",
    "std::thread",
    "Timestamp::now",
    "Zoned::now",
];

/// Names that say nothing of what a file holds.
const EMPTY_NAMES: &[&str] = &["core", "util", "utils", "common", "types", "helpers", "misc"];

const SOURCE_FILE_LINES: usize = 800;
const TEST_FILE_LINES: usize = 1_200;
const FUNCTION_LINES: usize = 80;
const ARGUMENTS: usize = 7;
const CIRCLE_FILES: usize = 3;

/// Types that are defined once for each platform or feature, in a file each.
const TWINS: &[&str] = &["CallGroup", "StartFailure", "Telemetry"];

fn must_be_empty(faults: &[String], cure: &str) {
    assert!(faults.is_empty(), "\n{}\ncure: {cure}\n", faults.join("\n"));
}

#[test]
fn every_file_says_first_what_it_holds() {
    let faults: Vec<String> =
        all_files().filter(|file| !file.text.starts_with("//! ")).map(|file| format!("{}:1", file.name())).collect();
    must_be_empty(&faults, "begin the file with a `//!` sentence that says what it holds");
}

#[test]
fn no_file_is_too_long() {
    let faults: Vec<String> = all_files()
        .map(|file| {
            let is_source = SOURCES.iter().any(|folder| file.path.starts_with(root().join(folder)));
            let limit = if is_source { SOURCE_FILE_LINES } else { TEST_FILE_LINES };
            (file.name(), file.text.lines().count(), limit)
        })
        .filter(|(_, lines, limit)| lines > limit)
        .map(|(name, lines, limit)| format!("{name}: {lines} lines, {limit} at most"))
        .collect();
    must_be_empty(&faults, "split the file where its subject changes");
}

#[test]
fn no_file_has_an_empty_name() {
    let faults: Vec<String> = sources()
        .iter()
        .filter(|file| file.module().iter().any(|part| EMPTY_NAMES.contains(&part.as_str())))
        .map(File::name)
        .collect();
    must_be_empty(&faults, "name the file after what it holds");
}

#[test]
fn rooms_import_only_what_lies_below_them() {
    let mut faults = Vec::new();
    for file in sources() {
        let Some(room) = file.room() else { continue };
        let Some((_, allowed)) = ROOMS.iter().find(|(name, _)| *name == room) else {
            faults.push(format!("{}: the room `{room}` is not in the table", file.name()));
            continue;
        };
        for (at, name) in rooms_named(file) {
            // A test makes its programs from documents.
            let compiles_in_a_test = name == "compile" && at >= file.code_without_tests().len();
            if name != room
                && EVERY.contains(&name.as_str())
                && !allowed.contains(&name.as_str())
                && !compiles_in_a_test
            {
                faults.push(format!("{}:{}: `{room}` imports `{name}`", file.name(), file.line_of(at)));
            }
        }
    }
    must_be_empty(
        &faults,
        "move the thing to a room below both, or hand it in as an argument (ARCHITECTURE.md, Rooms)",
    );
}

#[test]
fn pure_rooms_touch_nothing_outside() {
    let mut faults = Vec::new();
    for file in sources() {
        let code = file.code_without_tests();
        let Some(room) = file.room().filter(|room| room == FILES || PURE.contains(&room.as_str())) else { continue };
        let allowed: &[&str] = if room == FILES { OF_FILES } else { &[] };
        for word in IMPURE.iter().filter(|word| !allowed.contains(word)) {
            for at in occurrences(code, word) {
                faults.push(format!("{}:{}: `{word}`", file.name(), file.line_of(at)));
            }
        }
        for (at, name) in names_after(code, "std::") {
            let is_impure = ["fs", "env", "net", "process", "thread"].contains(&name.as_str());
            if is_impure && !allowed.contains(&format!("std::{name}").as_str()) {
                faults.push(format!("{}:{}: `std::{name}`", file.name(), file.line_of(at)));
            }
        }
    }
    must_be_empty(&faults, "let the driver do it, and give the engine what came of it as an event");
}

/// The gate at which the digits of a number become a value.
const GATE: &str = "crates/lang/src/policy/json_text.rs";

#[test]
fn json_is_read_at_its_gate() {
    let mut faults = Vec::new();
    let is_for_tests = |name: &str| name.contains("/conformance/") || name.ends_with("/test_server.rs");
    for file in sources().iter().filter(|file| file.name() != GATE && !is_for_tests(&file.name())) {
        let code = file.code_without_tests();
        for word in
            ["serde_json::from_str", "serde_json::from_slice", "serde_json::from_reader", "Deserializer::from_str"]
        {
            for at in occurrences(code, word) {
                faults.push(format!("{}:{}: `{word}`", file.name(), file.line_of(at)));
            }
        }
        for (at, name) in names_after(code, "parse::<") {
            if name == "Number" {
                faults.push(format!("{}:{}: `parse::<Number>`", file.name(), file.line_of(at)));
            }
        }
    }
    must_be_empty(&faults, "use `policy::json_text`, which refuses a number that a build can't hold");
}

#[test]
fn no_function_is_too_long_or_takes_too_much() {
    let mut faults = Vec::new();
    let mut seen = 0;
    for file in sources() {
        for function in functions(file) {
            seen += 1;
            let place = format!("{}:{}: `{}`", file.name(), function.line, function.name);
            if function.lines > FUNCTION_LINES && !function.flat {
                faults.push(format!("{place} has {} lines, {FUNCTION_LINES} at most", function.lines));
            }
            if function.arguments > ARGUMENTS {
                faults.push(format!("{place} takes {} arguments, {ARGUMENTS} at most", function.arguments));
            }
        }
    }
    assert!(seen > 50, "the search found {seen} functions only");
    must_be_empty(
        &faults,
        "split the function, or group its arguments; one flat match says so with `// house: flat match`",
    );
}

#[test]
fn a_type_name_has_one_meaning() {
    let faults: Vec<String> = names::defined_twice(sources())
        .into_iter()
        .filter(|(name, _)| !TWINS.contains(&name.as_str()))
        .map(|(name, files)| format!("`{name}`: {}", files.join(", ")))
        .collect();
    must_be_empty(&faults, "name each after what it is: a reader who searches for the name finds one thing");
}

#[test]
fn no_function_takes_a_tuple_apart_in_its_signature() {
    let mut faults = Vec::new();
    for file in sources().iter().filter(|file| !file.is_test()) {
        faults.extend(names::tuple_parameters(file).into_iter().map(|line| format!("{}:{line}", file.name())));
    }
    must_be_empty(&faults, "give the group a struct when it has a meaning, else pass two parameters");
}

#[test]
fn no_circle_has_more_than_three_files() {
    let circles = cycles::cycles(sources(), CIRCLE_FILES);
    let faults: Vec<String> = circles.iter().map(|circle| circle.join(", ")).collect();
    must_be_empty(&faults, "move what they share to a file below them");
}
