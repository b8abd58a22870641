//! The runbook, `docs/runbook.md`: its commands are taken by the program, its metrics exist, and what it shows is what the
//! program says when the same thing goes wrong.
#![cfg(unix)]

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::common::server::{Answer, Server};
use crate::common::{Place, complete, killed, think};
use crate::pasted::{self, Section};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn page() -> String {
    fs::read_to_string(root().join("docs/runbook.md")).unwrap()
}

fn section(title: &str) -> Section {
    let sections = pasted::sections(&page());
    sections.into_iter().find(|section| section.title == title).unwrap_or_else(|| panic!("no section {title}"))
}

/// The lines that a section shows are in what was said.
fn is_said(title: &str, said: &str) {
    let shown = section(title).shown;
    assert!(!shown.is_empty(), "{title}: nothing is shown");
    for line in shown {
        assert!(said.contains(&line), "{title}: `{line}` is not said:\n{said}");
    }
}

/// A place with a loop `triage`, whose model is at this address and is asked once or twice.
fn place(base_url: &str) -> Place {
    let place = Place::new();
    place.json(
        "loopctl.json",
        &json!({ "model": "main", "models": { "main": {
            "provider": "openai", "base_url": base_url, "model": "m", "api_key": "env:OPENAI_API_KEY" } } }),
    );
    let properties = json!({ "mode": "react", "objective": "Triage.", "tools": [], "builtins": [],
        "retry": { "attempts": 2, "base_ms": 1 } });
    place.json("loop.json", &json!({ "type": "loop", "name": "triage", "properties": properties }));
    place
}

const KEY: &[(&str, &str)] = &[("OPENAI_API_KEY", "a-key-of-the-test")];

/// The arguments of a line, as a shell takes it apart: what is quoted is one of them.
fn arguments(line: &str) -> Vec<String> {
    let mut arguments = Vec::new();
    let mut rest = line.trim();
    while let Some(first) = rest.chars().next() {
        let (argument, after) = match first {
            '\'' | '"' => rest[1..].split_once(first).expect("the quote is closed"),
            _ => rest.split_once(' ').unwrap_or((rest, "")),
        };
        arguments.push(argument.to_owned());
        rest = after.trim_start();
    }
    arguments
}

#[test]
fn each_command_of_the_runbook_is_taken() {
    let mut seen = 0;
    let place = Place::new();
    for section in pasted::sections(&page()) {
        for line in section.commands.lines().filter_map(|line| line.strip_prefix("loopctl ")) {
            let words = line.split(" # ").next().unwrap().trim();
            let mut arguments = arguments(words);
            arguments.push("--help".to_owned());
            let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
            let ran = place.call(&arguments);
            assert_eq!(ran.code, 0, "{line}: {}", ran.stderr);
            seen += 1;
        }
    }
    assert!(seen > 20, "only {seen} commands were found");
}

#[test]
fn each_metric_of_the_runbook_exists() {
    let observe = fs::read_to_string(root().join("docs/observe.md")).unwrap();
    let page = page();
    let metrics: BTreeSet<&str> = page
        .match_indices("loopctl_")
        .map(|(at, _)| page[at..].split(|sign: char| !sign.is_ascii_alphanumeric() && sign != '_').next().unwrap())
        .collect();
    assert!(metrics.len() > 6, "{metrics:?}");
    for metric in metrics {
        assert!(
            observe.contains(&format!("`{}`", metric.trim_end_matches("_count"))),
            "{metric} is not in docs/observe.md"
        );
    }
}

/// Sentences of logs that take a cluster, or hours, to come: they are those of the source.
#[test]
fn each_sentence_of_the_log_is_in_the_source() {
    let sources = [
        "src/serve/scheduler/claim.rs",
        "src/serve/schedules.rs",
        "crates/runtime/src/journal/postgres/database.rs",
        "crates/runtime/src/journal/fault.rs",
    ];
    let text: String = sources.iter().map(|name| fs::read_to_string(root().join(name)).unwrap()).collect();
    // Long sentences are broken in the source.
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ").replace("\\ ", "");
    let page = page().split_whitespace().collect::<Vec<_>>().join(" ");
    for sentence in [
        "set aside: its drivers died again and again",
        "schedules start early or late; set the clock (NTP)",
        "which is still to come: a clock was ahead",
        "starts no run: this one is paused, and waits for a decision",
        "the database went back",
    ] {
        assert!(page.contains(sentence), "the runbook has no `{sentence}`");
        assert!(text.contains(sentence), "the source has no `{sentence}`");
    }
    assert!(
        text.contains("NOTED_CLOCK_DIFFERENCE: Duration = Duration::from_secs(5)") && page.contains("of 5 seconds")
    );
    assert!(
        text.contains("MAX_CLOCK_DIFFERENCE: Duration = Duration::from_secs(60)") && page.contains("From 60 seconds")
    );
}

#[test]
fn a_model_that_is_away() {
    let place = place("http://127.0.0.1:9/v1");
    let ran = place.call_with(&["run", "loop.json", "--run-id", "r"], KEY);
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    is_said("The model is away", &ran.stderr);
    assert!(ran.stderr.contains("loopctl retry r"), "{}", ran.stderr);
}

#[test]
fn a_key_that_has_expired_or_is_not_there() {
    let refusal = json!({ "error": { "message": "Incorrect API key provided.", "code": "invalid_api_key" } });
    let server = Server::with(move |_, _| Answer::json(&refusal).status(401));
    let place = place(&format!("{}/v1", server.url()));
    let refused = place.call_with(&["run", "loop.json", "--run-id", "r"], KEY);
    assert_eq!(refused.code, 1, "{}", refused.stderr);
    let absent = place.call(&["run", "loop.json"]);
    assert_eq!(absent.code, 2, "{}", absent.stderr);
    let said = format!("{}{}", refused.stderr, absent.stderr);
    is_said("A key has expired", &said.replace(&format!(":{}", server.address().port()), ""));
    assert!(place.call(&["check", "--env"]).stderr.contains("L133"));
}

#[test]
fn a_store_that_is_away() {
    let place = place("http://127.0.0.1:9/v1");
    let store = ["--store", "postgres://loopctl@127.0.0.1:9/loops"];
    let ran = place.call_with(&[&["run", "loop.json"], &store[..]].concat(), KEY);
    assert_eq!(ran.code, 75, "{}", ran.stderr);
    is_said("The store is away", &ran.stderr);
    assert_eq!(place.call(&[&["store", "check"], &store[..]].concat()).code, 75);
}

#[test]
fn a_database_of_tools_that_is_away() {
    let place = Place::new();
    let read = json!({ "action_name": "read", "kind": "db", "description": "Reads.", "datasource": "orders", "query": "SELECT 1" });
    let project = json!({ "datasources": { "orders": { "url": "postgres://app@127.0.0.1:9/shop" } },
        "allow": { "private_addresses": true } });
    place.actions(&[read], &project);
    place.script(&[think("read", json!({})), complete(json!("I can't know."))]);
    let ran = place.call(&["run", "loop.json", "--script", "script.json"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    is_said("A database of tools is away", &ran.stderr);
}

/// A place with a loop that pays by a program.
fn payer() -> Place {
    let place = Place::new();
    let pay = json!({ "action_name": "pay", "kind": "command", "description": "Pays.", "program": "true",
        "parameters": { "type": "object", "properties": {} } });
    place.actions(&[pay], &json!({ "allow": { "commands": ["true"] } }));
    place.script(&[think("pay", json!({})), complete(json!("paid"))]);
    place
}

const RUN: &[&str] = &["run", "loop.json", "--run-id", "r", "--script", "script.json"];

#[test]
fn a_call_that_is_uncertain() {
    let place = payer();
    let events: Vec<String> = (0..4).map(|number| format!("journal:{number}:before-effect")).collect();
    // The process dies between the intent to call and the outcome, whichever event that is.
    let asked = events.iter().find_map(|fail| {
        let _ = fs::remove_dir_all(place.path().join(".loopctl"));
        let _ = killed(place.command(RUN), fail);
        let asked = place.call(&["resume", "r", "--script", "script.json"]);
        asked.stderr.contains("pay. Did it happen?").then_some(asked)
    });
    let asked = asked.expect("one of these events is the intent");
    assert_eq!(asked.code, 3, "{}", asked.stderr);
    is_said("An uncertain call", &asked.stderr);
    let decision = ["resume", "r", "--happened", "{\"payment\": \"P-31\"}", "--script", "script.json"];
    assert_eq!(place.call(&decision).code, 0);
}

#[test]
fn a_disk_that_is_full() {
    let place = payer();
    let stopped = (3..12).map(|number| {
        let _ = fs::remove_dir_all(place.path().join(".loopctl"));
        place.call_with(RUN, &[("LOOPCTL_FAIL", &format!("store:{number}:full"))])
    });
    let stopped = stopped.into_iter().find(|ran| ran.stderr.contains("the run stopped"));
    let stopped = stopped.expect("one of these calls to the store is an append");
    is_said("The disk is full", &stopped.stderr);
    // There is room again.
    assert_eq!(place.call(&["resume", "r", "--script", "script.json"]).code, 0);
}

#[test]
fn a_run_that_waits_and_one_that_is_set_aside_are_listed_as_shown() {
    let place = Place::new();
    let pay = json!({ "action_name": "pay", "kind": "command", "description": "Pays.", "program": "true",
        "parameters": { "type": "object", "properties": {} }, "requires_approval": true });
    place.json("loopctl.json", &json!({ "allow": { "commands": ["true"] } }));
    let document: Value = json!({ "type": "loop", "name": "refund", "actions": [pay], "properties": {
        "mode": "react", "model": "m", "objective": "Refund.", "tools": [{ "type": "action", "name": "pay" }] } });
    place.json("loop.json", &document);
    place.script(&[think("pay", json!({}))]);
    let ran = place.call(&["run", "loop.json", "--run-id", "r1", "--script", "script.json"]);
    assert_eq!(ran.code, 3, "{}", ran.stderr);
    let listed = place.call(&["runs", "--status", "paused"]);
    for line in section("A run waits for days").shown {
        // How long ago it was is another on a slow machine.
        for part in line.split(" now ") {
            assert!(listed.stdout.contains(part.trim()), "`{part}` is not in:\n{}", listed.stdout);
        }
    }
    // The same table, of other runs.
    let head = listed.stdout.split_whitespace().take(8).collect::<Vec<_>>();
    let shown = section("A quarantined run").shown;
    assert_eq!(shown[0].split_whitespace().collect::<Vec<_>>(), head);
}
