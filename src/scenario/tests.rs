//! A crash at each event finds an engine that loses what it did, and nothing where it does not. A simulated clock has no
//! sockets.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use serde_json::json;

use super::crash::CrashReport;
use super::journal::CrashPoint;
use super::play::{Play, Played, RUN_ID};
use crate::compile::Texts;
use crate::diagnostic::Source;
use crate::drive::clock::simulated;
use crate::drive::stage::StagePlan;
use crate::language::Script;
use crate::program::Program;
use crate::project::load::load_texts;

/// A loop that looks something up and pays.
fn program() -> Arc<Program> {
    let tool = |name: &str| json!({"type": "action", "name": name});
    let action = |name: &str| {
        json!({"action_name": name, "kind": "http", "description": "Does it.", "http_method": "POST",
               "url": "https://shop.example.com/", "parameters": {"type": "object", "properties": {}}})
    };
    let main = json!({"type": "loop", "name": "shop", "properties": {"mode": "react", "objective": "Settle it.",
        "tools": [tool("look"), tool("pay")]}});
    let mut texts = Texts::new(Source::new("loop.json", main.to_string()));
    let actions = json!([action("look"), action("pay")]);
    texts.actions.push(Source::new("actions.json", actions.to_string()));
    load_texts(&texts, PathBuf::new()).unwrap().program
}

fn play(program: &Arc<Program>, crash: Option<CrashPoint>, stores_late: bool) -> Played {
    let script: Script = serde_json::from_value(json!({
        "replies": [
            {"thought": "Look.", "action": "look", "action_input": {}},
            {"thought": "Pay.", "action": "pay", "action_input": {}},
            {"thought": "Done.", "action": "__complete__", "action_input": {"answer": "paid"}}],
        "tools": {"look": [{"state": "late"}], "pay": [{"paid": true}]}}))
    .unwrap();
    let plan = StagePlan { script, ..StagePlan::default() };
    let root = PathBuf::from(".");
    Play {
        program,
        run_id: RUN_ID,
        root: &root,
        plan,
        input: None,
        start_ms: 0,
        decisions: &[],
        is_left_waiting: false,
        host: None,
        crash,
        stores_late,
    }
    .perform()
}

#[test]
fn a_crash_at_each_event_ends_alike() {
    let program = program();
    let base = play(&program, None, false);
    let report = CrashReport::of(&base, |point| play(&program, Some(point), false));
    assert!(report.failures("").is_empty(), "{:?}", report.failures(""));
    assert_eq!(
        report.line(),
        "12 crash points: 12 end alike, 2 ask whether look happened, 2 ask whether pay happened, 0 repeat a call"
    );
}

#[test]
fn a_run_that_was_started_without_waiting_is_taken_up_after_each_crash() {
    let main = json!({"type": "loop", "name": "shop", "properties": {"mode": "react", "objective": "Settle it.",
        "tools": [{"type": "workflow", "name": "later", "wait": false}]}});
    let later = json!({"name": "later", "description": "Looks later.",
        "definition": {"actions": [{"type": "look", "properties": {}}, {"id": "again", "type": "look", "properties": {}}]}});
    let look = json!([{"action_name": "look", "kind": "http", "description": "Looks.", "http_method": "GET",
        "url": "https://shop.example.com/", "parameters": {"type": "object", "properties": {}}}]);
    let mut texts = Texts::new(Source::new("loop.json", main.to_string()));
    texts.actions.push(Source::new("actions.json", look.to_string()));
    texts.workflows.push(Source::new("workflows/later.json", later.to_string()));
    let program = load_texts(&texts, PathBuf::new()).unwrap().program;
    let script: Script = serde_json::from_value(json!({
        "replies": [
            {"thought": "Later.", "action": "later", "action_input": {}},
            {"thought": "Done.", "action": "__complete__", "action_input": {"answer": "asked"}}],
        "tools": {"look": [{"state": "late"}]}}))
    .unwrap();
    let root = PathBuf::from(".");
    let play = |crash| {
        let plan = StagePlan { script: script.clone(), ..StagePlan::default() };
        let play = Play {
            program: &program,
            run_id: RUN_ID,
            root: &root,
            plan,
            input: None,
            start_ms: 0,
            decisions: &[],
            is_left_waiting: false,
            host: None,
            crash,
            stores_late: false,
        };
        play.perform()
    };
    let base = play(None);
    assert_eq!((base.calls.len(), &base.faults), (2, &Vec::new()));
    let keys = |played: &Played| played.calls.iter().map(|call| call.key.clone()).collect::<BTreeSet<_>>();
    for point in (0..base.events).flat_map(|event| [false, true].map(|is_stored| CrashPoint { event, is_stored })) {
        let played = play(Some(point));
        assert_eq!(
            (keys(&played), &played.faults, &played.repeated),
            (keys(&base), &Vec::new(), &Vec::new()),
            "{point:?}"
        );
    }
}

#[test]
fn a_crash_finds_an_engine_that_acts_before_its_intent_is_stored() {
    let program = program();
    let base = play(&program, None, true);
    assert!(base.faults.is_empty(), "{:?}", base.faults);
    let report = CrashReport::of(&base, |point| play(&program, Some(point), true));
    let failures = report.failures("");
    assert!(failures.iter().any(|failure| failure.message.contains("happens 2 times and not 1")), "{failures:?}");
}

#[test]
#[should_panic(expected = "IO is disabled")]
fn a_simulated_clock_has_no_sockets() {
    let connected = simulated::run(0, tokio::net::TcpStream::connect("127.0.0.1:9"));
    drop(connected);
}
