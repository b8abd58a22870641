//! Names: where they are looked up, and which are allowed.
use serde_json::{Value, json};

use super::*;
use crate::diagnostic::codes;
use crate::program::ToolKind;

fn action(name: &str) -> Value {
    json!({"action_name": name, "kind": "http", "description": "Does it.", "url": "https://example.com/x", "http_method": "GET"})
}

/// A loop that carries `own` actions along and declares these tools.
fn document(own: &[&str], tools: &Value) -> Source {
    let own: Vec<Value> = own.iter().map(|name| action(name)).collect();
    let text =
        json!({"type": "loop", "actions": own, "properties": {"mode": "react", "objective": "x", "tools": tools}});
    Source::new("loop.json", text.to_string())
}

fn file(name: &str, actions: &[&str]) -> Source {
    Source::new(name, Value::from(actions.iter().map(|name| action(name)).collect::<Vec<_>>()).to_string())
}

fn declared(name: &str) -> Value {
    json!([{"type": "action", "name": name}])
}

fn found(texts: &Texts) -> Vec<(&'static str, String)> {
    compile(texts).diagnostics.into_iter().map(|fault| (fault.code, fault.message)).collect()
}

#[test]
fn a_name_is_found_in_the_document_beside_it_and_in_named_files() {
    for place in 0..3 {
        let mut texts = Texts::new(document(if place == 0 { &["look"] } else { &[] }, &declared("look")));
        texts.actions.push(file("actions/a.json", if place == 1 { &["look"] } else { &[] }));
        texts.extra_actions.push(file("more.json", if place == 2 { &["look"] } else { &[] }));
        let compiled = compile(&texts);
        assert!(compiled.diagnostics.is_empty(), "{:?}", compiled.diagnostics);
        let sources: Vec<_> = compiled.program.unwrap().sources.iter().map(|s| s.name.to_string()).collect();
        let expected: [&[&str]; 3] = [&["loop.json"], &["loop.json", "actions/a.json"], &["loop.json", "more.json"]];
        assert_eq!(sources, expected[place]);
    }
}

#[test]
fn an_unknown_action_is_reported_with_the_nearest_name_and_where_it_was_looked_for() {
    let mut texts = Texts::new(document(&[], &declared("lookup_tiket")));
    texts.actions.push(file("actions/a.json", &["lookup_ticket"]));
    let compiled = compile(&texts);
    let fault = &compiled.diagnostics[0];
    assert_eq!((fault.code, fault.path.as_str()), (codes::UNKNOWN_ACTION, "/properties/tools/0/name"));
    assert_eq!(
        fault.help.as_deref(),
        Some("the nearest name is `lookup_ticket`; looked in the document's own `actions` and in actions/a.json")
    );
    assert_eq!(fault.suggestion.as_ref().unwrap().replacement, "\"lookup_ticket\"");
}

#[test]
fn two_actions_of_one_name_are_reported_with_both_places() {
    let mut texts = Texts::new(document(&["look"], &declared("look")));
    texts.extra_actions.push(file("more.json", &["look"]));
    let compiled = compile(&texts);
    let fault = &compiled.diagnostics[0];
    assert_eq!(fault.code, codes::TWO_OF_A_NAME);
    let files: Vec<_> = fault.related.iter().map(|related| related.file.as_str()).collect();
    assert_eq!(files, ["loop.json", "more.json"]);
}

#[test]
fn an_embedded_tool_is_found_by_its_name() {
    let mut texts = Texts::new(document(&[], &declared("embedded")));
    texts.embedded.push(ToolSignature {
        name: "embedded".to_owned(),
        description: "Does it.".to_owned(),
        parameters: json!({"type": "object"}),
        idempotent: true,
        read_only: false,
    });
    let program = compile(&texts).program.unwrap();
    let tool = program.tool("embedded").unwrap();
    assert!(matches!(tool.kind, ToolKind::Embedded(_)) && tool.idempotent && tool.description == "Does it.");
}

#[test]
fn faults_of_a_file_are_reported_only_when_it_is_used_or_might_have_the_name() {
    let broken = Source::new("actions/b.json", "[{\"action_name\": \"x\",]");
    let mut texts = Texts::new(document(&["look"], &declared("look")));
    texts.actions.push(broken);
    assert!(found(&texts).is_empty());
    texts.main = document(&[], &declared("look"));
    let files: Vec<_> = compile(&texts).diagnostics.iter().map(|fault| fault.place.file.to_string()).collect();
    assert!(files.len() > 1 && files[0] == "loop.json" && files[1] == "actions/b.json", "{files:?}");
    texts.main = document(&["look"], &declared("look"));
    texts.extra_actions.push(Source::new("more.json", "{\"replies\": []}"));
    assert_eq!(found(&texts).len(), 1);
}

#[test]
fn declarations_in_the_old_form_are_warnings_with_the_new_form() {
    let texts = Texts::new(document(&["look"], &json!(["look", "__complete__"])));
    let compiled = compile(&texts);
    let codes: Vec<_> = compiled.diagnostics.iter().map(|fault| fault.code).collect();
    assert_eq!(codes, [codes::LEGACY_TOOL, codes::DECLARED_BUILTIN]);
    let suggestion = compiled.diagnostics[0].suggestion.clone().unwrap();
    assert_eq!(suggestion.replacement, "{\"type\":\"action\",\"name\":\"look\"}");
    assert!(compiled.program.unwrap().tool("look").is_some());
}

#[test]
fn names_that_are_taken_or_twins_or_twice_are_reported() {
    let one = |own: &[&str], tools: Value| {
        found(&Texts::new(document(own, &tools))).into_iter().map(|(code, _)| code).collect::<Vec<_>>()
    };
    assert_eq!(one(&["__complete__"], json!(["__complete__"]))[0], codes::SHADOWED_BUILTIN);
    assert_eq!(one(&[], declared("__run__")), [codes::SHADOWED_BUILTIN]);
    assert_eq!(
        one(&["a"], json!([{"type": "action", "name": "a"}, {"type": "action", "name": "a"}])),
        [codes::DUPLICATE_TOOL]
    );
    assert_eq!(
        one(&["Ab", "ab"], json!([{"type": "action", "name": "Ab"}, {"type": "action", "name": "ab"}])),
        [codes::CASE_TWINS]
    );
    // A Cyrillic letter among Latin ones: refused, and never led to the real tool.
    let twin = one(&["lookup"], declared("l\u{43e}\u{43e}kup"));
    assert_eq!(twin, [codes::BAD_NAME]);
}

#[test]
fn a_table_tool_without_tables_is_refused_where_it_is_declared() {
    let text = r#"{"type": "loop", "actions": [{"action_name": "m", "kind": "custom-table"}],
        "properties": {"mode": "react", "objective": "x", "tools": [{"type": "action", "name": "m"}]}}"#;
    let texts = Texts::new(Source::new("loop.json", text));
    let compiled = compile(&texts);
    assert_eq!(
        (compiled.diagnostics[0].code, &*compiled.diagnostics[0].path),
        (codes::MISSING_FIELD, "/properties/tools/0/name")
    );
    assert!(compiled.diagnostics[0].message.contains("the action names none"));
}

#[test]
fn a_fault_in_a_template_of_an_action_stands_at_its_place_in_the_action_s_file() {
    let text = "[{\"action_name\": \"ask\", \"description\": \"Asks.\", \"kind\": \"llm\",\n \"template\": \"a\\n\\u00e9 {{}}\"}]";
    let mut texts = Texts::new(document(&[], &declared("ask")));
    texts.actions.push(Source::new("actions/ask.json", text));
    let compiled = compile(&texts);
    let fault = &compiled.diagnostics[0];
    assert_eq!((&*fault.place.file, fault.place.line, fault.place.column), ("actions/ask.json", 2, 25));
    assert_eq!(fault.path, "/0/template");
}

#[test]
fn names_have_letters_of_one_script_in_one_form() {
    for name in [
        "lookup_ticket",
        "a",
        "crm/get.order-2",
        "\u{43f}\u{43e}\u{438}\u{441}\u{43a}",
        "\u{691c}\u{7d22}\u{3059}\u{308b}",
        &"x".repeat(64),
    ] {
        assert_eq!(names::fault_of(name), None, "{name}");
    }
    for name in [
        "",
        "a b",
        "a\u{0}",
        "a\u{202e}b",
        "../etc",
        "a//b",
        "/a",
        "a/",
        "a$",
        "a`b`",
        "l\u{43e}okup",
        "\u{ff4c}ook",
        "e\u{301}x",
        "a\u{200d}b",
        "\u{fb01}x",
        &"x".repeat(65),
        "a\nb",
        "a;rm",
    ] {
        assert!(names::fault_of(name).is_some(), "{name:?}");
    }
}
