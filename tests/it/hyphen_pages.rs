//! The documents of Hyphen's public pages, as far as they could be seen (we put our own words in place of long
//! texts): `check` reports exactly the expected faults. Where a page cuts a document off, what was cut off is
//! reported as missing, and nothing else. Whole documents, with their actions and workflows beside them, have no fault.

use std::path::PathBuf;

use loopctl::compile::Texts;
use loopctl::diagnostic::{Diagnostic, Source};
use loopctl::load_texts;
use serde_json::json;

/// A loop of mode `react`, with all that its page shows.
const REACT: &str = r#"{"type":"loop","properties":{"mode":"react","objective":"~task description",
 "tools":[{"type":"action","name":"tool_a"},{"type":"action","name":"tool_b"}],
 "model":"gpt-4","max_iterations":10,"timeout_ms":300000,"temperature":0.7,
 "on_stuck":{"iterations":3,"action":"escalate"},
 "include_reasoning_trace":true,"result_key":"agentResult"}}"#;

/// Mails to a list of customers.
const MAILS: &str = r#"{"type":"loop","properties":{"mode":"foreach","items_path":"@input.customers","item_variable_name":"customer",
 "actions_to_execute":[{"type":"gmail_send","properties":{"__oauth_account__":"<account e-mail>","to":"@customer.email",
   "subject":"~statement for {{customer.name}}","body":"~hello {{customer.name}},\n\n~statement attached"}}],
 "max_concurrency":10,"failure_strategy":"continue_on_error","collect_results":true,"result_key":"emailResults"}}"#;

/// Steps for each order: the page shows a part of the properties; `mode` and `items_path` are ours.
const ORDERS: &str = r#"{"type":"loop","properties":{"mode":"foreach","items_path":"@input.orders",
 "item_variable_name":"order","actions_to_execute":[{"type":"process_payment",
 "properties":{"order_id":"@order.id","amount":"@order.total","currency":"@order.currency"}}]}}"#;

/// The body of an agent request that routes documents.
const ROUTER: &str = r#"{"objective":"~classify and route this document\n\n{{input.document_text}}\n\n~from {{input.sender_email}}\n~at {{input.received_at}}",
 "tools":[{"type":"action","name":"document_classifier"},{"type":"action","name":"field_extractor"},
  {"type":"workflow","name":"invoice_processing"},{"type":"workflow","name":"purchase_order_processing"},
  {"type":"workflow","name":"support_ticket_handler"},{"type":"workflow","name":"contract_review"}],
 "config":{"model":"gpt-4","max_iterations":8,"on_stuck":{"iterations":3,"action":"escalate"}}}"#;

/// The first agent of the tutorial: its actions, whole.
const TUTORIAL: &str = r#"[{"action_name":"lookup_order","kind":"http","description":"~look up an order","url":"https://httpbin.org/anything/orders/{{order_id}}","http_method":"GET","passthrough":true},
 {"action_name":"draft_response","kind":"llm","description":"~draft a reply","template":"~reply to:\n\n{{issue}}\n{{order_details}}\n\n~short","model":"gpt-4o-mini","max_tokens":256}]"#;

/// Its workflow, cut off in the objective.
const TUTORIAL_WORKFLOW: &str = r#"{"name":"customer_issue_agent","definition":{"actions":[{"type":"loop","properties":{"mode":"react","objective":"~handle {{input.issue}}…"}}]}}"#;

/// A condition at the top.
const HIGH_VALUE: &str = r#"{"name":"process_high_value","definition":{"condition":{"greaterThan":["@input.order_total",10000]},"actions":[]}}"#;

/// A step with another in its place.
const NOTIFY: &str = r#"{"type":"send_notification","filter":{"condition":{"greaterThan":["@input.amount",5000]}},
  "properties":{"channel":"urgent","message":"~high: ${{input.amount}}"},
  "onFalse":{"type":"send_notification","properties":{"channel":"standard","message":"~done: ${{input.amount}}"}}}"#;

/// Actions of these names.
fn actions(names: &[&str]) -> String {
    let action = |name: &&str| {
        json!({ "action_name": name, "kind": "http", "description": "It does its work.",
            "url": "https://api.example.com/", "http_method": "GET" })
    };
    json!(names.iter().map(action).collect::<Vec<_>>()).to_string()
}

fn check(text: &str, names: &[&str], workflows: &[&str]) -> Vec<Diagnostic> {
    let mut texts = Texts::new(Source::new("page.json", text));
    if !names.is_empty() {
        texts.actions.push(Source::new("actions/all.json", actions(names)));
    }
    for name in workflows {
        let workflow = json!({ "name": name, "description": "It does its work.", "definition": { "actions": [] } });
        texts.workflows.push(Source::new(format!("workflows/{name}.json"), workflow.to_string()));
    }
    match load_texts(&texts, PathBuf::from(".")) {
        Ok(loaded) => loaded.warnings,
        Err(unsound) => unsound.diagnostics,
    }
}

/// Codes with their paths.
fn brief(diagnostics: &[Diagnostic]) -> Vec<String> {
    diagnostics.iter().map(|fault| format!("{} {}", fault.code, fault.path)).collect()
}

fn workflow(step: &str) -> String {
    format!(r#"{{"name":"w","definition":{{"actions":[{step}]}}}}"#)
}

#[test]
fn alone_each_reports_its_unknown_names_and_nothing_else() {
    assert_eq!(brief(&check(REACT, &[], &[])), ["L030 /properties/tools/0/name", "L030 /properties/tools/1/name"]);
    assert_eq!(brief(&check(MAILS, &[], &[])), ["L030 /properties/actions_to_execute/0/type"]);
    assert_eq!(brief(&check(ORDERS, &[], &[])), ["L030 /properties/actions_to_execute/0/type"]);
    let router = check(ROUTER, &[], &[]);
    let count = |code: &str| router.iter().filter(|fault| fault.code == code).count();
    assert_eq!((count("L030"), count("L056"), router.len()), (2, 4, 6));
    assert_eq!(brief(&check(HIGH_VALUE, &[], &[])), [""; 0]);
    let (step, other) = ("L030 /definition/actions/0/type", "L030 /definition/actions/0/onFalse/type");
    assert_eq!(brief(&check(&workflow(NOTIFY), &[], &[])), [step, other]);
}

#[test]
fn with_their_actions_and_workflows_the_whole_ones_are_sound() {
    assert_eq!(brief(&check(REACT, &["tool_a", "tool_b"], &[])), [""; 0]);
    assert_eq!(brief(&check(MAILS, &["gmail_send"], &[])), [""; 0]);
    assert_eq!(brief(&check(ORDERS, &["process_payment"], &[])), [""; 0]);
    let workflows = ["invoice_processing", "purchase_order_processing", "support_ticket_handler", "contract_review"];
    let router = brief(&check(ROUTER, &["document_classifier", "field_extractor"], &workflows));
    assert_eq!(router, [""; 0]);
    assert_eq!(brief(&check(&workflow(NOTIFY), &["send_notification"], &[])), [""; 0]);
}

#[test]
fn a_step_alone_is_reported_to_be_no_document_and_nothing_else() {
    let found = check(NOTIFY, &[], &[]);
    assert_eq!(brief(&found), ["L016 /type"]);
}

#[test]
fn what_is_cut_off_misses_what_was_cut_off_and_nothing_else() {
    let found = check(TUTORIAL_WORKFLOW, &[], &[]);
    assert_eq!(brief(&found), ["L011 /definition/actions/0/properties"]);
    let whole =
        TUTORIAL_WORKFLOW.replace(r#"issue}}…""#, r#"issue}}…","tools":[{"type":"action","name":"lookup_order"}]"#);
    assert_eq!(brief(&check(&whole, &["lookup_order"], &[])), [""; 0]);
}

#[test]
fn the_actions_of_the_tutorial_are_sound_and_can_be_used() {
    let text = REACT.replace("tool_a", "lookup_order").replace("tool_b", "draft_response");
    let mut texts = Texts::new(Source::new("page.json", text));
    texts.actions.push(Source::new("actions/tutorial.json", TUTORIAL));
    let loaded = load_texts(&texts, PathBuf::from(".")).unwrap();
    assert!(loaded.warnings.is_empty(), "{:?}", loaded.warnings);
}
