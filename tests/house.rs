//! The house rules that a compiler does not hold: which room imports which, what is pure, and how
//! long things are. A failure names the file, the line and the cure.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that fails says why")]

use std::fs;
use std::path::{Path, PathBuf};

/// The rooms, from the ground up, with those that they may import.
const ROOMS: &[(&str, &[&str])] = &[
    ("diagnostic", &[]),
    ("language", &["diagnostic"]),
    ("compile", &["diagnostic", "language"]),
    ("check", &["diagnostic", "language", "compile"]),
    ("engine", &["diagnostic", "language", "compile"]),
    ("trace", &["diagnostic", "engine"]),
    ("journal", &["diagnostic", "engine"]),
    ("drive", &["diagnostic", "language", "compile", "engine", "journal"]),
    ("serve", EVERY),
    ("cli", EVERY),
];
const EVERY: &[&str] =
    &["diagnostic", "language", "compile", "check", "engine", "trace", "journal", "drive", "serve", "cli"];

/// The rooms without a clock, a disk, a network, chance or `async`.
const PURE: &[&str] = &["diagnostic", "language", "compile", "check", "engine", "trace"];

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

const FILE_LINES: usize = 400;
const FUNCTION_LINES: usize = 80;
const ARGUMENTS: usize = 5;

/// A source file: as it stands, and with its comments, strings and characters blanked out.
struct File {
    path: PathBuf,
    text: String,
    code: String,
}

impl File {
    fn name(&self) -> String {
        self.path.strip_prefix(root()).unwrap_or(&self.path).display().to_string()
    }

    /// The folder below `src` that it stands in; none for `main.rs` and `lib.rs`.
    fn room(&self) -> Option<String> {
        let mut parts = self.path.strip_prefix(root().join("src")).ok()?.components();
        let first = parts.next()?.as_os_str().to_str()?.to_owned();
        parts.next().map(|_| first)
    }

    fn is_test(&self) -> bool {
        let stem = self.path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
        stem == "tests"
            || stem.starts_with("tests_")
            || self.path.components().any(|part| part.as_os_str().to_str() == Some("tests"))
    }

    fn line_of(&self, byte: usize) -> usize {
        self.code.bytes().take(byte).filter(|byte| *byte == b'\n').count() + 1
    }
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn sources() -> Vec<File> {
    let mut files = Vec::new();
    gather(&root().join("src"), &mut files);
    assert!(files.len() > 20, "the walk over src found {} files only", files.len());
    files
}

fn gather(folder: &Path, files: &mut Vec<File>) {
    let mut entries: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            gather(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path).unwrap();
            let code = blanked(&text);
            files.push(File { path, text, code });
        }
    }
}

/// The same text, as long in bytes and lines, with blanks for comments, strings and characters.
fn blanked(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let length = not_code(rest, out.chars().next_back());
        if length == 0 {
            out.push(first);
            rest = rest.split_at(first.len_utf8()).1;
        } else {
            let (gone, next) = rest.split_at(length);
            out.extend(gone.bytes().map(|byte| if byte == b'\n' { '\n' } else { ' ' }));
            rest = next;
        }
    }
    out
}

/// How many bytes at the beginning are a comment, a string or a character; 0 when it is code.
fn not_code(rest: &str, before: Option<char>) -> usize {
    let in_word = before.is_some_and(|c| c.is_alphanumeric() || c == '_');
    if rest.starts_with("//") {
        return rest.find('\n').unwrap_or(rest.len());
    }
    if rest.starts_with("/*") {
        return rest.find("*/").map_or(rest.len(), |end| end + 2);
    }
    if rest.starts_with('"') {
        return quoted(rest, '"');
    }
    let raw = rest.strip_prefix('r').map(|after| after.len() - after.trim_start_matches('#').len());
    if let Some(hashes) = raw
        && !in_word
        && rest.chars().nth(1 + hashes) == Some('"')
    {
        let close = format!("\"{}", "#".repeat(hashes));
        let begin = hashes + 2;
        return rest.get(begin..).and_then(|body| body.find(&close)).map_or(rest.len(), |at| begin + at + close.len());
    }
    // A lifetime has no closing quote after one character.
    if rest.starts_with('\'') {
        let mut after = rest.chars().skip(1);
        let is_character = after.next() == Some('\\') || after.next() == Some('\'');
        return if is_character { quoted(rest, '\'') } else { 0 };
    }
    0
}

fn quoted(rest: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in rest.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            _ if c == quote => return at + 1,
            _ => {}
        }
    }
    rest.len()
}

/// Where a word stands in code, as a whole word.
fn occurrences(code: &str, word: &str) -> Vec<usize> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    code.match_indices(word)
        .map(|(at, _)| at)
        .filter(|at| {
            let (before, after) = code.split_at(*at);
            let after = after.split_at(word.len()).1;
            !before.chars().next_back().is_some_and(is_word) && !after.chars().next().is_some_and(is_word)
        })
        .collect()
}

/// The first names of what stands after `prefix`: one name, or those at the top of a `{...}`.
fn names_after(code: &str, prefix: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for at in occurrences(code, prefix.trim_end_matches("::")) {
        let Some(rest) = code.split_at(at).1.strip_prefix(prefix) else { continue };
        if let Some(group) = rest.strip_prefix('{') {
            let mut depth = 0_usize;
            let mut name = String::new();
            for c in group.chars() {
                match c {
                    '{' => depth += 1,
                    '}' if depth == 0 => break,
                    '}' => depth -= 1,
                    ',' if depth == 0 => found.push((at, std::mem::take(&mut name))),
                    _ if depth == 0 => name.push(c),
                    _ => {}
                }
            }
            found.push((at, name));
        } else {
            found.push((at, rest.to_owned()));
        }
    }
    for (_, name) in &mut found {
        *name = name.trim().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
    }
    found
}

fn must_be_empty(faults: &[String], cure: &str) {
    assert!(faults.is_empty(), "\n{}\ncure: {cure}\n", faults.join("\n"));
}

#[test]
fn every_file_says_first_what_it_holds() {
    let faults: Vec<String> = sources()
        .iter()
        .filter(|file| !file.text.starts_with("//! "))
        .map(|file| format!("{}:1", file.name()))
        .collect();
    must_be_empty(&faults, "begin the file with a `//!` sentence that says what it holds");
}

#[test]
fn no_file_is_too_long() {
    let faults: Vec<String> = sources()
        .iter()
        .map(|file| (file.name(), file.text.lines().count()))
        .filter(|(_, lines)| *lines > FILE_LINES)
        .map(|(name, lines)| format!("{name}: {lines} lines, {FILE_LINES} at most"))
        .collect();
    must_be_empty(&faults, "split the file where its subject changes");
}

#[test]
fn no_file_has_an_empty_name() {
    let faults: Vec<String> = sources()
        .iter()
        .filter(|file| {
            let inside = file.path.strip_prefix(root().join("src")).unwrap().with_extension("");
            inside.components().any(|part| part.as_os_str().to_str().is_some_and(|part| EMPTY_NAMES.contains(&part)))
        })
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
        let mut names = names_after(&file.code, "crate::");
        names.extend(names_after(&file.code, "super::super::"));
        names.extend(names_after(&file.code, "super::super::super::"));
        for (at, name) in names {
            if name != room && EVERY.contains(&name.as_str()) && !allowed.contains(&name.as_str()) {
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
    for file in sources().iter().filter(|file| !file.is_test()) {
        if !file.room().is_some_and(|room| PURE.contains(&room.as_str())) {
            continue;
        }
        for word in IMPURE {
            for at in occurrences(&file.code, word) {
                faults.push(format!("{}:{}: `{word}`", file.name(), file.line_of(at)));
            }
        }
        for (at, name) in names_after(&file.code, "std::") {
            if ["fs", "env", "net", "process", "thread"].contains(&name.as_str()) {
                faults.push(format!("{}:{}: `std::{name}`", file.name(), file.line_of(at)));
            }
        }
    }
    must_be_empty(&faults, "let the driver do it, and give the engine what came of it as an event");
}

/// A function with a body.
struct Function {
    name: String,
    line: usize,
    arguments: usize,
    /// Lines with code on them, the first and the last too.
    lines: usize,
    /// Whether it says that it is one flat match.
    flat: bool,
}

fn functions(file: &File) -> Vec<Function> {
    occurrences(&file.code, "fn").into_iter().filter_map(|at| function(file, at)).collect()
}

fn function(file: &File, at: usize) -> Option<Function> {
    let rest = file.code.split_at(at).1.strip_prefix("fn ")?;
    let name: String = rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
    if name.is_empty() {
        return None;
    }
    let open = at + file.code.split_at(at).1.find('(')?;
    let (arguments, closed) = arguments(file.code.split_at(open).1)?;
    let after = file.code.split_at(open + closed).1;
    let body = after.find('{')?;
    // A declaration without a body ends at its semicolon; `[u8; 4]` as an answer is no such end.
    if after.find(';').is_some_and(|end| end < body && !after.split_at(end).0.contains('[')) {
        return None;
    }
    let begin = open + closed + body;
    let end = begin + closing(file.code.split_at(begin).1)?;
    let code = file.code.get(at..end)?;
    let line = file.line_of(at);
    let above = file.text.lines().take(line).collect::<Vec<_>>();
    let attributes = above.iter().rev().skip(1).take_while(|line| is_above_a_function(line));
    let says_so = |text: &str| text.contains("house: flat match") || text.contains("clippy::too_many_lines");
    let flat = file.text.get(at..end).is_some_and(says_so) || attributes.into_iter().any(|line| says_so(line));
    let lines = code.lines().filter(|line| !line.trim().is_empty()).count();
    Some(Function { name, line, arguments, lines, flat })
}

fn is_above_a_function(line: &str) -> bool {
    let line = line.trim();
    line.starts_with("//") || line.starts_with("#[") || line.ends_with(")]") || line.starts_with("reason")
}

/// How many arguments stand in the parentheses, and how many bytes these take.
fn arguments(code: &str) -> Option<(usize, usize)> {
    let mut depth = 0_usize;
    let mut count = 0_usize;
    let mut filled = false;
    let mut before = ' ';
    for (at, c) in code.char_indices() {
        match c {
            '(' | '[' | '{' | '<' => depth += 1,
            '>' if before == '-' || before == '=' => {}
            ')' | ']' | '}' | '>' => depth = depth.saturating_sub(1),
            ',' if depth == 1 => {
                count += usize::from(filled);
                filled = false;
            }
            _ => {}
        }
        if depth == 0 {
            return Some((count + usize::from(filled), at + 1));
        }
        filled |= depth > 1 || !(c.is_whitespace() || c == ',' || c == '(');
        before = c;
    }
    None
}

/// How many bytes the block takes that begins here.
fn closing(code: &str) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, c) in code.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth = depth.checked_sub(1)?,
            _ => {}
        }
        if depth == 0 {
            return Some(at + 1);
        }
    }
    None
}

#[test]
fn no_function_is_too_long_or_takes_too_much() {
    let mut faults = Vec::new();
    let mut seen = 0;
    for file in sources() {
        for function in functions(&file) {
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

/// The finders themselves: what each must see, and what it must leave alone.
mod finders {
    use super::{File, blanked, functions, names_after, occurrences};
    use std::path::PathBuf;

    #[test]
    fn comments_strings_and_characters_are_no_code() {
        let text =
            "let a = \"tokio\"; // tokio\n/* tokio */ let b = 'a'; let c = r#\"tokio\"#; fn f<'a>(x: &'a str) {}";
        let code = blanked(text);
        assert_eq!(code.len(), text.len());
        assert_eq!(code.lines().count(), text.lines().count());
        assert!(!code.contains("tokio"));
        assert!(code.contains("fn f<'a>(x: &'a str) {}"));
        assert!(blanked("let quote = '\"'; tokio();").contains("tokio"));
        assert!(blanked("let quote = '\\''; tokio();").contains("tokio"));
    }

    #[test]
    fn words_are_found_whole() {
        assert_eq!(occurrences("tokio::spawn; mytokio; tokio_util", "tokio"), vec![0]);
    }

    #[test]
    fn grouped_imports_are_seen() {
        let names = |code: &str| -> Vec<String> { names_after(code, "crate::").into_iter().map(|(_, n)| n).collect() };
        assert_eq!(names("use crate::{engine::{a, b}, journal};"), vec!["engine", "journal"]);
        assert_eq!(names("pub(crate) fn f() -> crate::drive::X {}"), vec!["drive"]);
    }

    #[test]
    fn functions_are_measured() {
        let text = "fn f(a: &str, b: Vec<(u8, u8)>, c: impl Fn(u8) -> u8,) -> [u8; 2] {\n\n    // why\n    [1, 2]\n}\ntrait T { fn g(&self); }\n// house: flat match\nfn h() {\n}\n";
        let file = File { path: PathBuf::from("x.rs"), text: text.to_owned(), code: blanked(text) };
        let found = functions(&file);
        let told: Vec<_> = found.iter().map(|f| (f.name.as_str(), f.line, f.arguments, f.lines, f.flat)).collect();
        assert_eq!(told, vec![("f", 1, 3, 3, false), ("h", 8, 0, 2, true)]);
    }
}
