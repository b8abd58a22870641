//! Why a run ended so, and which word of its document would change that.

use serde_json::{Value, json};

use crate::common::{Place, look, think};
use crate::replay::{done, golden, run};

fn explained(name: &str, properties: Value, replies: &[Value]) -> (Place, String) {
    let place = Place::new();
    place.looped(&properties).script(replies);
    run(&place, "r", &[]);
    let shown = place.call(&["explain", "r"]);
    assert_eq!(shown.code, 0, "{name}: {shown:#?}");
    // The commands call the program as it was called.
    let text = format!("## {name}\n{}\n", shown.stdout.replace(env!("CARGO_BIN_EXE_loopctl"), "loopctl"));
    (place, text)
}

#[test]
fn an_ending_is_explained_with_its_evidence_and_with_what_changes_it() {
    let same = [look("a"), look("a"), look("a"), done()];
    let ask = [think("__pause_for_human__", json!({ "question": "Which?" }))];
    let cases = [
        ("stuck", json!({}), same.as_slice()),
        ("iterations", json!({ "max_iterations": 2 }), &[look("a"), look("b")]),
        ("budget", json!({ "budget": { "tokens": 900 } }), &[look("a"), look("b"), done()]),
        ("unreadable", json!({}), &[json!("?"), json!("?"), json!("?")]),
        ("paused", json!({}), &ask),
        ("completed", json!({}), &[look("a"), done()]),
    ];
    let text: String =
        cases.into_iter().map(|(name, properties, replies)| explained(name, properties, replies).1).collect();
    golden("explain.txt", &text);
}

#[test]
fn a_change_is_named_only_when_its_replay_shows_it() {
    let (place, _) = explained("stuck", json!({}), &[look("a"), look("a"), look("a")]);
    let json = place.call(&["explain", "r", "--output", "json"]).json();
    assert_eq!(json["termination"], "stuck", "{json:#}");
    let tried = json["tried"].as_array().unwrap();
    assert_eq!(tried[0]["field"], "on_stuck.iterations");
    assert_eq!(
        (&tried[0]["to"], &tried[0]["changes"], &tried[0]["verdict"]),
        (&json!("4"), &json!(true), &json!("goes_on"))
    );
    let place = Place::new();
    place.looped(&json!({ "max_iterations": 2, "on_stuck": { "iterations": 9 } })).script(&[look("a"), look("a")]);
    run(&place, "r", &[]);
    let json = place.call(&["explain", "r", "--output", "json"]).json();
    let fields: Vec<_> = json["tried"].as_array().unwrap().iter().map(|tried| tried["field"].clone()).collect();
    assert_eq!(fields, ["max_iterations", "on_limit"], "{json:#}");
}

#[test]
fn a_code_is_told_apart_from_a_run() {
    let (place, _) = explained("completed", json!({}), &[done()]);
    assert!(place.call(&["explain", "L012"]).stdout.starts_with("# L012"));
    assert!(place.call(&["explain", "last"]).stdout.contains("completed"));
    for (word, words) in [("L999", "there is no code L999"), ("nothing-like-it", "there is no run nothing-like-it")] {
        let refused = place.call(&["explain", word]);
        assert!(refused.code == 2 && refused.stderr.contains(words), "{word}: {refused:#?}");
    }
    let empty = Place::new().call(&["explain", "some-run"]);
    assert!(empty.code == 2 && empty.stderr.contains("there is no code"), "{empty:#?}");
}

#[test]
fn what_a_model_said_controls_no_terminal() {
    let odd = look("\u{1b}[2J\u{202e}");
    let (_, text) = explained("odd", json!({}), &[odd.clone(), odd.clone(), odd]);
    assert!(!text.contains('\u{1b}') && !text.contains('\u{202e}'), "{text}");
}

#[test]
fn a_run_that_waits_or_that_a_limit_ended_has_the_commands_with_which_it_continues() {
    let ask = [think("__pause_for_human__", json!({ "question": "Which?" }))];
    for (properties, replies, command) in [
        (json!({ "max_iterations": 2 }), &[look("a"), look("b")][..], "--max-iterations 4"),
        (json!({ "budget": { "tokens": 900 } }), &[look("a"), look("b"), done()], "--budget-tokens "),
        (json!({}), &ask, "--answer "),
    ] {
        let (place, text) = explained("next", properties, replies);
        assert!(text.contains("resume r") && text.contains(command), "{command}: {text}");
        let next = place.call(&["explain", "r", "--output", "json"]).json()["next"].clone();
        assert!(next.to_string().contains(command), "{next:#}");
    }
}
