//! The source files, and what is found in them: words of code, imports.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

/// A source file: its text, and the same with comments, strings and characters blanked out.
pub struct File {
    pub path: PathBuf,
    pub text: String,
    pub code: String,
}

impl File {
    pub fn name(&self) -> String {
        self.path.strip_prefix(root()).unwrap_or(&self.path).display().to_string()
    }

    /// The path of the module that it is, from its room on, whatever crate the room is in: `crates/lang/src/check/mod.rs` is
    /// `check`, `crates/engine/src/turn.rs` is `engine::turn`, `src/cli/run.rs` is `cli::run`. Empty for the files that
    /// begin a crate of several rooms.
    pub fn module(&self) -> Vec<String> {
        let name = self.name();
        let parts: Vec<&str> = name.trim_end_matches(".rs").split('/').collect();
        let below: Vec<String> = match parts.as_slice() {
            ["crates", _, "src", below @ ..] | ["src", below @ ..] => below,
            all => all,
        }
        .iter()
        .filter(|part| !matches!(**part, "mod" | "lib" | "main"))
        .map(|part| (*part).to_owned())
        .collect();
        if self.is_of_engine() { in_engine(below) } else { below }
    }

    /// The room that it is in; none for the files that begin a crate of several rooms.
    pub fn room(&self) -> Option<String> {
        self.module().into_iter().next().filter(|_| !self.is_of_root_modules())
    }

    /// Whether it is in the crate whose first modules are those of the room `engine`.
    pub fn is_of_engine(&self) -> bool {
        self.name().starts_with("crates/engine/")
    }

    /// A file of the façade: `src/embed.rs`.
    fn is_of_root_modules(&self) -> bool {
        self.name().strip_prefix("src/").is_some_and(|below| !below.contains('/'))
    }

    pub fn is_test(&self) -> bool {
        let stem = self.path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
        stem == "tests"
            || stem.starts_with("tests_")
            || self.path.components().any(|part| part.as_os_str().to_str() == Some("tests"))
    }

    /// Its code up to the tests that it ends with; nothing of a file of tests.
    pub fn code_without_tests(&self) -> &str {
        if self.is_test() {
            return "";
        }
        self.code.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default()
    }

    pub fn line_of(&self, byte: usize) -> usize {
        self.code.bytes().take(byte).filter(|byte| *byte == b'\n').count() + 1
    }
}

/// The path of a module of the engine's crate from its room on: `trace`, `replay` and `estimate` are rooms beside `engine`.
pub fn in_engine(below: Vec<String>) -> Vec<String> {
    let is_room = below.first().is_some_and(|first| matches!(first.as_str(), "trace" | "replay" | "estimate"));
    if is_room { below } else { std::iter::once("engine".to_owned()).chain(below).collect() }
}

/// The repository.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The folders of the crates' sources.
pub const SOURCES: [&str; 4] = ["crates/lang/src", "crates/engine/src", "crates/runtime/src", "src"];

/// The sources of all crates. They are read once: to blank out what is no code takes most of the time of these tests.
pub fn sources() -> &'static [File] {
    static FILES: LazyLock<Vec<File>> = LazyLock::new(|| {
        let files = in_folders(&SOURCES);
        assert!(files.len() > 20, "the walk over src found {} files only", files.len());
        files
    });
    &FILES
}

/// The same with tests, benches and examples.
pub fn all_files() -> impl Iterator<Item = &'static File> {
    static OTHERS: LazyLock<Vec<File>> = LazyLock::new(|| in_folders(&["tests", "benches", "examples"]));
    sources().iter().chain(OTHERS.iter())
}

fn in_folders(folders: &[&str]) -> Vec<File> {
    let mut files = Vec::new();
    for folder in folders {
        gather(&root().join(folder), &mut files);
    }
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
pub fn blanked(text: &str) -> String {
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

/// Where a word occurs in code, as a whole word.
pub fn occurrences(code: &str, word: &str) -> Vec<usize> {
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

/// The rooms that a file names: by `crate::`, by the name of another crate, or by modules above its own.
pub fn rooms_named(file: &File) -> Vec<(usize, String)> {
    let of_engine = |(at, name): (usize, String)| (at, in_engine(vec![name]).swap_remove(0));
    let mut names = names_after(&file.code, "crate::");
    if file.is_of_engine() {
        names = names.into_iter().map(of_engine).collect();
    }
    names.extend(names_after(&file.code, "loopctl_engine::").into_iter().map(of_engine));
    for prefix in ["loopctl_lang::", "loopctl_runtime::", "super::super::", "super::super::super::"] {
        names.extend(names_after(&file.code, prefix));
    }
    names
}

/// The first names of what follows `prefix`: one name, or those at the top of a `{...}`.
pub fn names_after(code: &str, prefix: &str) -> Vec<(usize, String)> {
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
