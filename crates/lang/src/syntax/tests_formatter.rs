//! The format of a document: its meaning stays, and a second formatting changes nothing.

use proptest::prelude::*;

use super::document::{DocumentKind, read};
use super::formatter::formatted;
use super::{MAX_DEPTH, Node, NodeKind, parse};
use crate::diagnostic::Source;

fn format_as(kind: DocumentKind, text: &str) -> String {
    let once = formatted(&Source::new("case.json", text), kind).unwrap_or_else(|faults| panic!("{text}: {faults:?}"));
    let twice = formatted(&Source::new("case.json", once.as_str()), kind).unwrap();
    assert_eq!(once, twice, "formatting twice");
    assert_same_meaning(text, &once);
    once
}

/// A value with its numbers and strings as they are written, and its members by their keys.
#[derive(Debug, PartialEq)]
enum Written {
    One(String),
    Many(Vec<Written>),
    Keyed(Vec<(String, Written)>),
}

/// `sorted`: where the order of members has no meaning.
fn written(text: &str, node: &Node, sorted: bool) -> Written {
    let raw = |start: usize, end: usize| text[start..end].to_owned();
    match &node.kind {
        NodeKind::Array(items) => Written::Many(items.iter().map(|item| written(text, item, sorted)).collect()),
        NodeKind::Object(members) => {
            let mut members: Vec<(String, Written)> = members
                .iter()
                .map(|member| (raw(member.key_span.start, member.key_span.end), written(text, &member.value, sorted)))
                .collect();
            if sorted {
                members.sort_by(|one, other| one.0.cmp(&other.0));
            }
            Written::Keyed(members)
        }
        _ => Written::One(raw(node.span.start, node.span.end)),
    }
}

fn assert_same_meaning(before: &str, after: &str) {
    let tree = |text: &str| {
        let (tree, faults) = parse(&Source::new("case.json", text));
        assert!(faults.is_empty(), "{text}: {faults:?}");
        tree
    };
    let (old, new) = (tree(before), tree(after));
    assert_eq!(old.value(), new.value());
    assert_eq!(written(before, &old.root, true), written(after, &new.root, true));
}

#[test]
fn what_says_what_an_object_is_comes_first_then_the_fields_of_the_language_then_all_others() {
    let text = r#"{"parameters": {"type": "object", "properties": {"b": {}, "a": {}}, "description": "x"}, "zz": 1,
        "url": "https://example.com", "kind": "http", "aa": 2, "http_method": "GET",
        "headers": {"b": "1", "a": "2"}, "action_name": "x", "$schema": "s"}"#;
    let expected = r#"{
  "$schema": "s",
  "action_name": "x",
  "kind": "http",
  "url": "https://example.com",
  "http_method": "GET",
  "headers": { "b": "1", "a": "2" },
  "parameters": { "type": "object", "properties": { "b": {}, "a": {} }, "description": "x" },
  "zz": 1,
  "aa": 2
}
"#;
    assert_eq!(format_as(DocumentKind::Actions, text), expected);
}

#[test]
fn a_step_begins_with_its_id_and_type_and_what_an_action_takes_keeps_its_order() {
    let text = r#"{"definition": {"actions": [
        {"properties": {"url": 1, "id": 2, "type": 3, "$schema": 4, "action_name": 5}, "outputKey": "k", "type": "x", "id": "i"},
        {"properties": {"tools": [{"name": "a", "type": "action"}], "objective": "o", "mode": "react"}, "type": "loop",
         "filter": {"condition": {"equal": ["@b", "@a"]}}}
    ]}, "name": "w"}"#;
    let expected = r#"{
  "name": "w",
  "definition": {
    "actions": [
      {
        "id": "i",
        "type": "x",
        "properties": { "url": 1, "id": 2, "type": 3, "$schema": 4, "action_name": 5 },
        "outputKey": "k"
      },
      {
        "type": "loop",
        "properties": {
          "mode": "react",
          "objective": "o",
          "tools": [{ "type": "action", "name": "a" }]
        },
        "filter": { "condition": { "equal": ["@b", "@a"] } }
      }
    ]
  }
}
"#;
    assert_eq!(format_as(DocumentKind::Workflow, text), expected);
}

#[test]
fn entries_of_maps_keep_their_order_and_the_fields_of_an_entry_do_not() {
    let text = r#"{"datasources": {"z": {"init": "i", "url": "u"}, "a": {"url": "u"}}, "models": {"y": {"model": "m", "provider": "openai"}, "b": {"provider": "openai"}}, "model": "y"}"#;
    let expected = r#"{
  "model": "y",
  "models": { "y": { "provider": "openai", "model": "m" }, "b": { "provider": "openai" } },
  "datasources": { "z": { "url": "u", "init": "i" }, "a": { "url": "u" } }
}
"#;
    assert_eq!(format_as(DocumentKind::Project, text), expected);
}

#[cfg(feature = "exact-numbers")]
#[test]
fn numbers_and_strings_keep_their_spelling() {
    for values in [
        "[1.10, 1e3, 1E+03, -0, -0.0, 100000000000000000000000.5]",
        r#"["\u00e9\/\ud83d\ude00", "é/😀", "\t\"\\", "\u000A"]"#,
    ] {
        let text = format!(r#"{{"replies":{values}}}"#);
        assert_eq!(format_as(DocumentKind::Script, &text), format!("{{\n  \"replies\": {values}\n}}\n"));
    }
    // A key that is spelled with an escape is still the field that it means.
    let text = r#"{"tools": {}, "\u0072eplies": []}"#;
    assert_eq!(format_as(DocumentKind::Script, text), "{\n  \"\\u0072eplies\": [],\n  \"tools\": {}\n}\n");
}

#[test]
fn a_line_has_at_most_100_characters_unless_one_value_has_more() {
    for (letters, is_flat) in [(71, true), (72, false)] {
        // The line is `  "replies": [{ "text": "..." }]`, as long as its bytes even where a character has several.
        let text = format!(r#"{{"replies": [{{"text": "{}"}}]}}"#, "é".repeat(letters));
        let shown = format_as(DocumentKind::Script, &text);
        assert_eq!(shown.lines().count() == 3, is_flat, "{shown}");
        let longest = shown.lines().map(|line| line.chars().count()).max().unwrap();
        assert!(longest <= 100, "{shown}");
        assert!(!is_flat || longest == 100, "{longest}: {shown}");
    }
    // A comma after it counts.
    for (letters, is_flat) in [(70, true), (71, false)] {
        let text = format!(r#"{{"replies": [{{"text": "{}"}}], "tools": {{}}}}"#, "x".repeat(letters));
        assert_eq!(format_as(DocumentKind::Script, &text).lines().count() == 4, is_flat);
    }
    let long = format!(r#"{{"replies": ["{}"]}}"#, "x".repeat(300));
    assert_eq!(format_as(DocumentKind::Script, &long).lines().count(), 5);
}

#[test]
fn the_line_breaks_of_a_text_stay_and_its_end_is_one() {
    let unix = "{\n \"replies\": []}\n\n\n";
    assert_eq!(format_as(DocumentKind::Script, unix), "{\n  \"replies\": []\n}\n");
    let windows = "{\r\n \"replies\": []}";
    assert_eq!(format_as(DocumentKind::Script, windows), "{\r\n  \"replies\": []\r\n}\r\n");
    assert_eq!(format_as(DocumentKind::Actions, "[]"), "[]\n");
    assert_eq!(format_as(DocumentKind::Project, " { } "), "{}\n");
}

#[test]
fn what_could_lose_its_meaning_is_refused_with_the_faults_of_check() {
    for (text, code) in [
        (r#"{"replies": [], "replies": []}"#, "L008"),
        (r#"{"replies": [], "tools": {"a": [{"x": 1, "\u0078": 2}]}}"#, "L008"),
        ("{\"replies\": [] // why\n}", "L007"),
        (r#"{"replies": [1,]}"#, ""),
        ("\u{feff}{\"replies\": []}", "L002"),
        (r#"{"replies": ["a}"#, ""),
        (r#"{"replies": [NaN]}"#, ""),
        ("", ""),
    ] {
        let source = Source::new("case.json", text);
        let faults = formatted(&source, DocumentKind::Script).unwrap_err();
        let expected: Vec<_> = read(&source).faults.into_iter().map(|fault| (fault.code, fault.message)).collect();
        let found: Vec<_> = faults.into_iter().map(|fault| (fault.code, fault.message)).collect();
        assert_eq!(found, expected, "{text}");
        assert!(code.is_empty() || found[0].0 == code, "{text}: {found:?}");
    }
}

#[test]
fn nesting_and_length_are_bounded() {
    let nested = |depth: usize| format!("{{\"replies\": {}1{}}}", "[".repeat(depth), "]".repeat(depth));
    let deepest = format_as(DocumentKind::Script, &nested(MAX_DEPTH - 1));
    assert!(deepest.lines().count() > 150, "{deepest}");
    assert!(formatted(&Source::new("case.json", nested(MAX_DEPTH)), DocumentKind::Script).is_err());
    // What has at most 16 MiB, and more once it is indented, could not be read again.
    let values = format!("{}{}{}", "[".repeat(120), "1,".repeat(90_000) + "1", "]".repeat(120));
    let faults = formatted(&Source::new("case.json", format!("{{\"replies\": {values}}}")), DocumentKind::Script);
    assert_eq!(faults.unwrap_err()[0].code, "L009");
}

/// Texts of JSON with odd spellings, odd blanks, and keys of the language in odd places.
fn odd_json() -> impl Strategy<Value = String> {
    let blank = "[ \t\n]{0,3}";
    let number = "-?(0|[1-9][0-9]{0,3})([.][0-9]{1,3})?([eE][+-]?[0-9]{1,2})?";
    let string = "\"([a-z é@{}]|\\\\[\"\\\\/bfnrt]|\\\\u00[0-9a-f]{2}){0,40}\"";
    let leaf = prop_oneof![number, string, Just("null".to_owned()), Just("true".to_owned())];
    leaf.prop_recursive(6, 80, 6, move |inner| {
        let keys = prop::sample::subsequence(KEYS.to_vec(), 0..8).prop_shuffle();
        let items = prop::collection::vec((blank, inner.clone()), 0..8);
        let values = prop::collection::vec((blank, inner), 8);
        prop_oneof![
            items.prop_map(|items| {
                let items: Vec<String> =
                    items.into_iter().map(|(blank, item)| format!("{blank}{item}{blank}")).collect();
                format!("[{}]", items.join(","))
            }),
            (keys, values).prop_map(|(keys, values)| {
                let members = keys.into_iter().zip(values);
                let members: Vec<String> =
                    members.map(|(key, (blank, value))| format!("{blank}\"{key}\"{blank}:{blank}{value}")).collect();
                format!("{{{}}}", members.join(","))
            }),
        ]
    })
}

const KEYS: [&str; 24] = [
    "$schema",
    "type",
    "mode",
    "kind",
    "id",
    "name",
    "action_name",
    "description",
    "properties",
    "actions",
    "definition",
    "filter",
    "condition",
    "onFalse",
    "outputKey",
    "tools",
    "models",
    "model",
    "replies",
    "scenarios",
    "expect",
    "input",
    "zeta",
    "alpha",
];

/// The words by which objects are distinguished.
fn typed(text: &str, word: &str) -> String {
    text.replace("\"type\":null", &format!("\"type\":\"{word}\"")).replace("\"kind\":null", "\"kind\":\"http\"")
}

proptest! {
    #[test]
    fn any_text_means_the_same_once_formatted_and_is_formatted_once(
        text in odd_json(),
        kind in prop::sample::select(DocumentKind::ALL.to_vec()),
        word in prop::sample::select(vec!["loop", "action", "x", "PbotApproval"]),
    ) {
        format_as(kind, &typed(&text, word));
    }

    #[test]
    fn maps_and_schemas_keep_the_order_of_all_that_is_in_them(value in odd_json()) {
        let text = format!(r#"{{"kind": "llm", "parameters": {value}, "action_name": "a", "template": "t"}}"#);
        let after = format_as(DocumentKind::Actions, &text);
        let part = |text: &str| {
            let (tree, _) = parse(&Source::new("case.json", text));
            written(text, tree.at("/parameters").unwrap(), false)
        };
        prop_assert_eq!(part(&text), part(&after));
    }
}
