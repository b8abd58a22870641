//! The walks of ARCHITECTURE.md: "Add a provider of models" and "Add a kind of tool" name every file that such a change
//! touches, and no other file of the code knows one provider or one kind.

use std::collections::BTreeSet;
use std::fs;

use super::source::{File, occurrences, root, sources};

/// The files that a section of ARCHITECTURE.md names, with `KIND` for the name of the kind.
fn walked(heading: &str, kind: &str) -> BTreeSet<String> {
    let text = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let section = text.split_once(&format!("\n## {heading}\n")).expect("the section is there").1;
    let section = section.split_once("\n## ").map_or(section, |(section, _)| section);
    let lines = section.lines().filter(|line| line.starts_with("| `src/") || line.starts_with("| `crates/"));
    lines.map(|line| line.split('`').nth(1).unwrap().replace("KIND", kind)).collect()
}

/// The files of code, without tests, in which one of the words occurs; those of the rooms in `left_out` do not count.
fn naming(words: &[&str], left_out: &[&str]) -> BTreeSet<String> {
    let is_counted = |file: &&File| {
        let room = file.room().unwrap_or_default();
        !left_out.contains(&room.as_str())
    };
    let has_word = |file: &&File| {
        let code = file.code_without_tests();
        words.iter().any(|word| !occurrences(code, word).is_empty())
    };
    sources().iter().filter(is_counted).filter(has_word).map(File::name).collect()
}

/// A kind whose texts are templates is in four files; a rule of `check` about it is no part of it.
#[test]
fn the_walk_of_a_kind_of_tool_names_all_of_its_files() {
    let walked = walked("Add a kind of tool", "llm");
    assert_eq!(walked.len(), 4, "{walked:?}");
    assert_eq!(naming(&["LlmAction", "Action::Llm"], &["check"]), walked);
}

#[test]
fn the_walk_of_a_provider_names_all_of_its_files() {
    let of = |kind: &str, words: &[&str]| {
        let walked = walked("Add a provider of models", kind);
        assert_eq!(walked.len(), 3, "{walked:?}");
        let mut named = naming(words, &[]);
        // Its own file has no need to name it.
        let own = format!("crates/runtime/src/drive/model/{kind}.rs");
        assert!(root().join(&own).is_file(), "{own}");
        named.insert(own);
        assert_eq!(named, walked);
    };
    of("gemini", &["Provider::Gemini", "Self::Gemini", "gemini::Gemini"]);
    of("anthropic", &["Provider::Anthropic", "Self::Anthropic", "anthropic::Anthropic"]);
}
