//! Which files of a folder are ours.

use super::*;
use crate::diagnostic::Source;
use crate::syntax::document::{read, read_as};

fn ours(text: &str) -> bool {
    named("some.json", text)
}

fn named(name: &str, text: &str) -> bool {
    let source = Source::new(name, text);
    if name.ends_with("loopctl.json") {
        return is_ours(&read_as(&source, Some(DocumentKind::Project)));
    }
    may_be_ours(text) && is_ours(&read(&source))
}

#[test]
fn documents_of_every_kind_are_known_and_so_are_those_with_a_slip() {
    for text in [
        r#"{"type": "loop", "properties": {"mode": "react"}}"#,
        r#"{"type": "loop"}"#,
        r#"{"type": "Loop", "properties": {"objective": "x"}}"#,
        r#"{"properties": {"mode": "react", "objective": "x"}}"#,
        r#"{"type": "loop", "properties": {"objective": "x",,}}"#,
        r#""type": "loop", "properties": {"objective": "x"}}"#,
        r#"{"objective": "x", "tools": []}"#,
        r#"{"action_name": "x", "kind": "http"}"#,
        r#"[{"action_name": "x", "kind": "htp"}, 7]"#,
        r#"{"replies": [{"thought": "x", "action": "y"}]}"#,
        r#"{"replies": [{"thought": "x", "action": "y"}, {"status": "open"}, 5], "tols": {}}"#,
        r#"{"replies": [{"calls": [{"action": "y"}]}]}"#,
        r#"{"replies": [], "tools": {"lookup": [1]}}"#,
        r#"{"name": "w", "definition": {"actions": []}}"#,
    ] {
        assert!(ours(text), "{text}");
    }
    assert!(named("a/loopctl.json", "{}") && named("loopctl.json", "{\"modls\": {}}"));
}

#[test]
fn files_of_other_tools_are_not() {
    for text in [
        r#"{"name": "x", "version": "1.0.0", "type": "module", "scripts": {"loop": "node loop.js"}, "dependencies": {}}"#,
        r#"{"compilerOptions": {"strict": true,}, /* objective */ "include": ["src"]}"#,
        r#"{"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object", "properties": {"objective": {"type": "string"}}}"#,
        r#"{"type": "object", "properties": {"objective": {"type": "string"}, "mode": {"const": "react"}}}"#,
        r#"[{"objective": "x"}, {"loop": 1}]"#,
        r#"[1, 2, 3]"#,
        r#"{"models": {"a": 1}}"#,
        r#"{"objective": "learn Rust"}"#,
        r#"{"replies": 5, "post": "x"}"#,
        r#"{"replies": [{"user": "a", "body": "b"}]}"#,
        r#"{"definition": "a word", "word": "loop"}"#,
        r#"{"properties": {"loop": true}, "type": "Feature"}"#,
        "",
        "null",
        "\"objective\"",
    ] {
        assert!(!ours(text), "{text}");
    }
    for kind in crate::language::schema::KINDS {
        let schema = crate::language::schema::schema(kind).unwrap().to_string();
        assert!(!ours(&schema), "the schema of {kind}");
    }
}
