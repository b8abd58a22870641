//! Whole documents: those of Hyphen's pages load, and what can't run here is reported.
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::diagnostic::codes;
use crate::program::bind;
use crate::syntax::document::{self, DocumentKind};

fn source(name: &str, text: &str) -> Source {
    Source::new(name, text)
}

/// Actions of kind `http` with these names, as one file.
fn actions(file: &str, names: &[&str]) -> Source {
    let all: Vec<Value> = names
        .iter()
        .map(|name| json!({"action_name": name, "kind": "http", "description": "Does it.", "url": "https://example.com/x", "http_method": "GET"}))
        .collect();
    source(file, &Value::from(all).to_string())
}

fn compiled(text: &str, names: &[&str]) -> Compiled {
    let mut texts = Texts::new(source("loops/case.json", text));
    texts.actions.push(actions("actions/a.json", names));
    compile(&texts)
}

fn codes_of(compiled: &Compiled) -> Vec<&str> {
    compiled.diagnostics.iter().map(|fault| fault.code).collect()
}

/// The reference configuration of Hyphen's page on the ReAct loop.
const REFERENCE: &str = r#"{
"type": "loop",
"properties": {
"mode": "react",
"objective": "Your task description here",
"tools": [
{ "type": "action", "name": "tool_a" },
{ "type": "action", "name": "tool_b" }
],
"model": "gpt-4",
"max_iterations": 10,
"timeout_ms": 300000,
"temperature": 0.7,
"on_stuck": {
"iterations": 3,
"action": "escalate"
},
"include_reasoning_trace": true,
"result_key": "agentResult"
}
}"#;

#[test]
fn the_reference_configuration_of_hyphens_page_loads() {
    let compiled = compiled(REFERENCE, &["tool_a", "tool_b", "unused"]);
    assert!(compiled.diagnostics.is_empty(), "{:?}", compiled.diagnostics);
    let program = compiled.program.unwrap();
    assert_eq!(program.name, "case");
    assert_eq!(program.result_key(), Some("agentResult"));
    let names: Vec<_> = program.tools().iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names[..3], ["tool_a", "tool_b", "__complete__"]);
    let sources: Vec<_> = program.sources.iter().map(|source| &*source.name).collect();
    assert_eq!(sources, ["loops/case.json", "actions/a.json"]);
}

#[test]
fn numbers_in_any_spelling_load() {
    let text = REFERENCE.replace("0.7", "7.0e-1").replace(": 10,", ": 1e1,").replace("300000", "300000.0");
    let compiled = compiled(&text, &["tool_a", "tool_b"]);
    assert!(compiled.diagnostics.is_empty(), "{:?}", compiled.diagnostics);
    let properties = compiled.program.unwrap().as_loop().unwrap().properties.clone();
    assert_eq!((properties.max_iterations, properties.timeout_ms), (10, 300_000));
    assert!(properties.temperature.is_some_and(|temperature| (temperature - 0.7).abs() < f64::EPSILON));
}

#[cfg(feature = "exact-numbers")]
#[test]
fn numbers_where_anything_may_stand_keep_their_digits() {
    let text = r#"{"type": "loop", "actions": [{"action_name": "pay", "description": "Pays.", "kind": "http", "url": "https://example.com",
        "http_method": "POST", "body": {"a": 0.70, "b": 1e400, "c": 123456789012345678901234567890, "d": 12345678901234567.10},
        "ok_status": [2e2], "parameters": {"type": "object", "properties": {"x": {"minimum": 0.10}}}}],
        "properties": {"mode": "react", "objective": "x", "tools": [{"type": "action", "name": "pay"}]}}"#;
    let compiled = compiled(text, &[]);
    assert!(compiled.diagnostics.is_empty(), "{:?}", compiled.diagnostics);
    let value = &compiled.document.value["actions"][0];
    let action: crate::language::Action = crate::language::Action::read(value).unwrap();
    let crate::language::Action::Http(action) = action else { panic!("no http action") };
    let body = action.body.unwrap();
    let digits = |name: &str| body[name].to_string();
    assert_eq!(
        (digits("a").as_str(), digits("c").as_str(), digits("d").as_str()),
        ("0.70", "123456789012345678901234567890", "12345678901234567.10")
    );
    assert_eq!(action.ok_status, Some(vec![200]));
}

/// An e-mail batch of mode `foreach`, and a document router, after Hyphen's pages.
const FOREACH: &str = r#"{"type":"loop","properties":{"mode":"foreach","items_path":"@input.customers","item_variable_name":"customer",
 "actions_to_execute":[{"type":"gmail_send","properties":{"__oauth_account__":"a","to":"@customer.email",
   "subject":"~statement for {{customer.name}}","body":"~hello"}}],
 "max_concurrency":10,"failure_strategy":"continue_on_error","collect_results":true,"result_key":"emailResults"}}"#;

const ROUTER: &str = r#"{"objective":"~route\n\n{{input.document_text}}\n\n~from {{input.sender_email}}\n~at {{input.received_at}}",
 "tools":[{"type":"action","name":"document_classifier"},{"type":"action","name":"field_extractor"},
  {"type":"workflow","name":"invoice_processing"},{"type":"workflow","id":"wfl-123e4567"}],
 "config":{"model":"gpt-4","max_iterations":8,"on_stuck":{"iterations":3,"action":"escalate"}}}"#;

#[test]
fn steps_are_compiled_and_workflows_that_are_not_there_are_reported_once_each() {
    let foreach = compiled(FOREACH, &["gmail_send"]);
    assert_eq!(codes_of(&foreach), [""; 0]);
    assert!(foreach.program.unwrap().is_flow());
    let router = compiled(ROUTER, &["document_classifier", "field_extractor"]);
    let unknown = codes::UNKNOWN_WORKFLOW;
    assert_eq!(codes_of(&router), [unknown, unknown]);
    assert_eq!(router.diagnostics[0].path, "/tools/2/name");
    assert_eq!(router.diagnostics[1].path, "/tools/3/id");
    let workflow = compiled(
        r#"{"name":"w","definition":{"condition":{"greaterThan":["@input.order_total",10000]},"actions":[]}}"#,
        &[],
    );
    assert_eq!(codes_of(&workflow), [""; 0]);
}

#[test]
fn an_agent_request_is_a_loop_with_its_own_input() {
    let text = r#"{"objective": "{{input.topic}}", "tools": ["__complete__", {"type": "action", "name": "a"}],
        "input": {"topic": "bees"}, "previous_run_id": "agent-1", "config": {"mode": "react", "max_iterations": 3, "temperature": 0.50}}"#;
    let compiled = compiled(text, &["a"]);
    assert_eq!(codes_of(&compiled), [codes::DECLARED_BUILTIN]);
    let program = compiled.program.unwrap();
    assert_eq!(program.as_loop().unwrap().properties.max_iterations, 3);
    assert_eq!(bind(&program, Value::Null, "now", "r").unwrap().objective, "bees");
    let bound = bind(&program, json!({"topic": "ants"}), "now", "r").unwrap();
    assert_eq!((bound.objective.as_str(), &bound.input.value["topic"]), ("ants", &json!("ants")));
}

#[test]
fn the_actions_of_hyphens_tutorial_load() {
    let text = r#"[{"action_name":"lookup_order","kind":"http","description":"~look up","url":"https://httpbin.org/anything/orders/{{order_id}}","http_method":"GET","passthrough":true},
 {"action_name":"draft_response","kind":"llm","description":"~draft a reply","template":"~reply to:\n\n{{issue}}","model":"gpt-4o-mini","max_tokens":256}]"#;
    let document = document::read(&source("actions.json", text));
    assert!(document.faults.is_empty(), "{:?}", document.faults);
    assert_eq!(document.kind, Some(DocumentKind::Actions));
}

#[test]
fn a_document_of_another_kind_is_said_to_be_none_that_runs() {
    for (text, kind) in [
        ("[]", "actions"),
        ("{\"replies\": []}", "script"),
        (r#"{"document": "loop.json", "scenarios": [{"name": "a"}]}"#, "scenario"),
        ("{\"models\": {}}", "project"),
    ] {
        let compiled = compiled(text, &[]);
        assert_eq!(codes_of(&compiled), [codes::NO_LOOP], "{text}");
        assert!(compiled.diagnostics[0].message.contains(kind), "{:?}", compiled.diagnostics);
    }
}

#[test]
fn faults_of_text_shape_names_and_templates_come_in_one_go() {
    let text = r#"{"type": "loop", "properties": {"mode": "react",
 "objective": "{{topic}} {{input.x}}",
 "tools": [{"type": "action", "name": "nope"}, "a",],
 "max_iterations": 0,
 "answer_schema": {"type": "nothing"}}}"#;
    let compiled = compiled(text, &["a"]);
    let found: Vec<_> = compiled.diagnostics.iter().map(|f| (f.place.line, f.place.column, f.code)).collect();
    assert_eq!(
        found,
        [
            (2, 18, codes::UNKNOWN_VARIABLE),
            (3, 39, codes::UNKNOWN_ACTION),
            (3, 48, codes::LEGACY_TOOL),
            (3, 51, codes::COMMA),
            (4, 20, codes::OUT_OF_BOUNDS),
            (5, 28, codes::BAD_SCHEMA),
        ]
    );
    assert!(compiled.program.is_none());
}

#[test]
fn variables_are_judged_by_the_input_that_the_loop_takes() {
    let case = |objective: &str, input: &str| {
        let text = format!(
            r#"{{"type": "loop", "input": {input}, "properties": {{"mode": "react", "objective": "{objective}", "tools": ["a"]}}}}"#
        );
        let compiled = compiled(&text, &["a"]);
        let fault = compiled.diagnostics.iter().find(|fault| fault.code == codes::UNKNOWN_VARIABLE).cloned();
        fault.map(|fault| fault.help.map(|help| help.to_string()).unwrap_or_default())
    };
    let open = r#"{"properties": {"ticket": {}}}"#;
    let closed = r#"{"properties": {"ticket": {}}, "additionalProperties": false}"#;
    assert_eq!(case("{{input.ticket}}", closed), None);
    assert_eq!(case("{{input.other}}", open), None);
    assert_eq!(case("{{input.tiket}}", open).as_deref(), Some("the nearest name is `input.ticket`"));
    assert_eq!(case("{{input.other}}", closed).as_deref(), Some("the loop's `input` takes `ticket`"));
    assert_eq!(case("{{ticket}}", open).as_deref(), Some("it is written `{{input.ticket}}`"));
    assert_eq!(case("{{inptu.x}}", open).as_deref(), Some("the nearest name is `input`"));
}

#[test]
fn a_secret_in_a_prompt_and_one_that_is_pasted_are_errors_that_do_not_show_it() {
    let key = concat!("sk-", "a1b2c3d4e5f6g7h8i9j0k1l2");
    let text = format!(
        r#"{{"type": "loop", "description": "{key}", "properties": {{"mode": "react", "objective": "use orgconfig:api_key now", "tools": ["a"]}}}}"#
    );
    let compiled = compiled(&text, &["a"]);
    assert_eq!(codes_of(&compiled), [codes::SECRET, codes::SECRET_IN_PROMPT, codes::LEGACY_TOOL]);
    assert!(!format!("{:?}", compiled.diagnostics).contains(key));
    let sound = r#"{"type": "loop", "description": "sk-xxxxxxxxxxxxxxxxxxxxxxxx, Bearer orgconfig:api:key_of_the_server_1234567",
        "properties": {"mode": "react", "objective": "x", "tools": ["a"]}}"#;
    assert_eq!(codes_of(&self::compiled(sound, &["a"])), [codes::LEGACY_TOOL]);
}

#[test]
fn a_missing_input_is_reported_with_the_words_that_give_it() {
    let text = r#"{"type": "loop", "input": {"type": "object", "required": ["id"], "properties": {"id": {"type": "string"}, "n": {"type": "integer"}}},
        "properties": {"mode": "react", "objective": "{{input.id}} {{input.more}}", "tools": []}}"#;
    let compiled = compiled(text, &[]);
    assert_eq!(codes_of(&compiled), [codes::NO_TOOLS]);
    let program = compiled.program.unwrap();
    let faults = |input: Value| {
        let faults = bind(&program, input, "now", "r").unwrap_err();
        faults
            .into_iter()
            .map(|fault| (fault.code, fault.path, fault.help.map(|help| help.to_string()).unwrap_or_default()))
            .collect::<Vec<_>>()
    };
    assert_eq!(faults(json!({})), [(codes::MISSING_INPUT, "/id".to_owned(), "give it: `input.id`".to_owned())]);
    assert_eq!(
        faults(json!({"id": "1"})),
        [(codes::MISSING_INPUT, "/more".to_owned(), "give it: `input.more`".to_owned())]
    );
    let misspelt = "`mroe` was given, which the loop does not have: write `input.more`".to_owned();
    assert_eq!(faults(json!({"id": "1", "mroe": 2})), [(codes::MISSING_INPUT, "/more".to_owned(), misspelt)]);
    assert_eq!(faults(json!({"id": "1", "other": 2}))[0].2, "give it: `input.more`", "not near");
    assert_eq!(faults(json!({"n": 2}))[0].2, "give it: `input.id`", "near to `id`, and known");
    assert_eq!(faults(json!({"id": 1, "n": "x"})).len(), 2);
    assert_eq!(faults(json!([])).len(), 1);
    assert_eq!(bind(&program, json!({"id": "1", "more": 2}), "now", "r").unwrap().objective, "1 2");
}

#[test]
fn hostile_documents_end_in_faults_and_not_in_a_crash() {
    for text in [
        "{\"type\":\"loop\",\"properties\":".repeat(40_000),
        format!("{{\"type\":\"loop\",\"properties\":{{\"mode\":\"react\",\"objective\":\"x\",\"tools\":[{}]}}}}", "{\"type\":\"action\",\"name\":\"x\"},".repeat(20_000)),
        "{\"type\":\"loop\",\"properties\":{\"mode\":\"react\",\"objective\":{\"$serde_json::private::Number\":\"x\"},\"tools\":[]}}".to_owned(),
        "{\"type\":\"loop\",\"filter\":{\"$serde_json::private::RawValue\":\"[[\"},\"properties\":{\"mode\":\"react\",\"objective\":\"x\",\"tools\":[]}}".to_owned(),
    ] {
        let compiled = compiled(&text, &["a"]);
        assert!(compiled.program.is_none() && compiled.has_errors());
    }
}

proptest! {
    #[test]
    fn no_bytes_make_compiling_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        prop_assert!(compiled(&text, &[]).program.is_none());
    }

    #[test]
    fn no_change_of_a_loop_makes_compiling_panic(at in 0..REFERENCE.len(), length in 0..40usize, with in "[\\[\\]{}:,\"a0 -]{0,6}") {
        let mut text = REFERENCE.to_owned();
        text.replace_range(at..(at + length).min(REFERENCE.len()), &with);
        let compiled = compiled(&text, &["tool_a", "tool_b"]);
        prop_assert_eq!(compiled.program.is_some(), !compiled.has_errors(), "{}", text);
    }
}
