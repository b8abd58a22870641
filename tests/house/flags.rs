//! What other rooms than the command line say is read by programs and over HTTP too, where nothing has flags.

use crate::source::{File, sources};

/// The rooms whose texts only the command line shows.
const OF_THE_COMMAND_LINE: [&str; 4] = ["cli", "scenario", "replay", "restate"];

/// Where a flag is meant: what the command line says of the flags of a decision, the names of two schemas, a page that only
/// the command line makes, a name of a script that no text shows, and the programs that tests start.
const MEANT: [(&str, &str); 10] = [
    ("crates/engine/src/decision/written_decision.rs", "--retry"),
    ("crates/engine/src/trace/events.rs", "--output"),
    ("src/serve/openapi.rs", "--format"),
    ("crates/engine/src/trace/html/steps.rs", "--at"),
    ("crates/runtime/src/drive/model/mod.rs", "--script"),
    ("crates/runtime/src/journal/postgres/test_server.rs", "--no-sync"),
    ("crates/runtime/src/journal/postgres/test_server.rs", "--locale"),
    ("crates/runtime/src/journal/postgres/test_server.rs", "--reuid"),
    ("crates/runtime/src/journal/postgres/test_server.rs", "--regid"),
    ("crates/runtime/src/journal/postgres/test_server.rs", "--clear-groups"),
];

/// The flags in the strings of a file, with their lines.
fn flags(file: &File) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let tests = file.text.find("#[cfg(test)]\nmod tests {").unwrap_or(file.text.len());
    for (at, _) in file.text.match_indices("--").filter(|(at, _)| *at < tests) {
        let (before, after) = file.text.split_at(at);
        let letters = after.chars().skip(2);
        let word: String = letters.take_while(|c| c.is_ascii_lowercase() || *c == '-').collect();
        let is_flag = word.starts_with(|c: char| c.is_ascii_lowercase())
            && before.chars().next_back().is_none_or(|c| " `(\"".contains(c));
        // Of a string, and of no comment: comments are not shown.
        let line = before.rsplit('\n').next().unwrap_or_default();
        if is_flag && !line.trim_start().starts_with("//") && !line.contains(" // ") {
            found.push((file.line_of(at), format!("--{word}")));
        }
    }
    found
}

#[test]
fn no_text_that_http_or_a_program_may_show_names_a_flag() {
    let mut wrong = Vec::new();
    for file in sources().iter().filter(|file| !file.is_test()) {
        if file.room().is_none_or(|room| OF_THE_COMMAND_LINE.contains(&room.as_str())) {
            continue;
        }
        let found = flags(file).into_iter().filter(|(_, flag)| !MEANT.contains(&(&file.name(), flag)));
        wrong.extend(found.map(|(line, flag)| format!("{}:{line}: {flag}", file.name())));
    }
    assert!(wrong.is_empty(), "name a `Remedy`, which `cli` and `serve` say in their own words:\n{}", wrong.join("\n"));
}
