//! Every stuck pattern through the whole program, with a case beside it that must not fire.

use serde_json::{Value, json};

use crate::common::{Place, complete, look, think};

fn stuck(replies: &[Value], tools: Value, on_stuck: Value) -> Value {
    let place = Place::new();
    place.looped(&json!({ "on_stuck": on_stuck, "max_iterations": 40 }));
    place.json("script.json", &json!({ "replies": replies, "tools": tools }));
    place.run(&[]).1
}

fn say(thought: &str, action: &str, input: Value) -> Value {
    json!({ "thought": thought, "action": action, "action_input": input })
}

#[test]
fn the_same_action_fires_whatever_the_order_of_keys_and_the_spelling_of_numbers() {
    let replies = [
        json!(r#"{"thought":"1","action":"look","action_input":{"at":"a","n":1}}"#),
        json!(r#"{"thought":"2","action":"look","action_input":{"n":1.0,"at":"a"}}"#),
        json!(r#"{"thought":"3","action":"look","action_input":{"n":1e0,"at":"a"}}"#),
        complete(json!("no")),
    ];
    let result = stuck(&replies, json!({ "look": [1, 2, 3] }), json!({}));
    assert_eq!(result["stuck"]["pattern"], "same_action", "{result:#}");
}

#[test]
fn the_same_action_one_time_less_does_not_fire() {
    let replies = [look("a"), look("a"), look("b"), look("a"), look("a"), complete(json!("ok"))];
    let result = stuck(&replies, json!({ "look": [1, 2, 3, 4, 5] }), json!({}));
    assert_eq!(result["termination"], "complete", "{result:#}");
}

#[test]
fn the_same_failure_fires_at_twice_the_count_and_not_before() {
    let replies: Vec<Value> = (0..6).map(|n| look(&n.to_string())).chain([complete(json!("no"))]).collect();
    let result = stuck(&replies, json!({ "look": [{ "error": "down" }] }), json!({}));
    assert_eq!(result["stuck"]["pattern"], "same_failure", "{result:#}");
    assert_eq!(result["iterations"], 6);
    let fewer: Vec<Value> = (0..5).map(|n| look(&n.to_string())).chain([complete(json!("ok"))]).collect();
    assert_eq!(stuck(&fewer, json!({ "look": [{ "error": "down" }] }), json!({}))["termination"], "complete");
}

#[test]
fn an_alternation_without_anything_new_fires_and_one_with_news_does_not() {
    let replies: Vec<Value> = (0..6)
        .map(|n| if n % 2 == 0 { look("a") } else { think("act", json!({ "what": "b" })) })
        .chain([complete(json!("ok"))])
        .collect();
    let still = stuck(&replies, json!({ "look": ["x"], "act": ["y"] }), json!({}));
    assert_eq!(still["stuck"]["pattern"], "alternation", "{still:#}");
    let news = stuck(&replies, json!({ "look": ["1", "2", "3"], "act": ["y"] }), json!({}));
    assert_eq!(news["termination"], "complete", "{news:#}");
}

#[test]
fn a_cycle_of_three_fires() {
    let replies: Vec<Value> = (0..9).map(|n| look(["a", "b", "c"][n % 3])).chain([complete(json!("ok"))]).collect();
    let result = stuck(&replies, json!({ "look": ["x"] }), json!({}));
    assert_eq!(result["stuck"]["pattern"], "cycle", "{result:#}");
}

#[test]
fn the_same_thought_without_news_fires_and_one_with_news_does_not() {
    let replies: Vec<Value> = (0..4)
        .map(|n| {
            say(
                ["Let me look.", "let me look", "LET ME, look!", "Let me look"][n],
                "look",
                json!({ "at": (n % 2).to_string() }),
            )
        })
        .chain([complete(json!("ok"))])
        .collect();
    let still = stuck(&replies, json!({ "look": ["x"] }), json!({}));
    assert_eq!(still["stuck"]["pattern"], "same_thought", "{still:#}");
    let news = stuck(&replies, json!({ "look": ["1", "2", "3", "4"] }), json!({}));
    assert_eq!(news["termination"], "complete", "{news:#}");
}

#[test]
fn the_same_thought_over_different_calls_is_a_batch() {
    let batch = |names: [&str; 6]| -> Vec<Value> {
        let calls = names.into_iter().map(|name| say("Check the next name.", "look", json!({ "at": name })));
        calls.chain([complete(json!("ok"))]).collect()
    };
    let seen = || json!({ "look": [[]] });
    let different = stuck(&batch(["a", "b", "c", "d", "e", "f"]), seen(), json!({}));
    assert_eq!(different["termination"], "complete", "{different:#}");
    for names in [["a", "a", "a", "a", "a", "a"], ["a", "b", "a", "b", "a", "b"], ["a", "b", "c", "b", "a", "c"]] {
        let again = stuck(&batch(names), seen(), json!({}));
        assert_eq!(again["termination"], "stuck", "{names:?}: {again:#}");
    }
}

#[test]
fn a_polling_tool_is_stuck_only_when_its_observations_are_the_same_too() {
    let place = Place::new();
    let tools = json!([{ "type": "action", "name": "look", "polling": true }]);
    place.looped(&json!({ "tools": tools }));
    let replies: Vec<Value> = (0..4)
        .map(|n| say(&format!("wait {n}"), "look", json!({ "at": "a" })))
        .chain([complete(json!("ok"))])
        .collect();
    place.json("script.json", &json!({ "replies": replies, "tools": { "look": [1, 2, 3, 4] } }));
    assert_eq!(place.run(&[]).1["termination"], "complete");
    place.json("script.json", &json!({ "replies": replies, "tools": { "look": [1] } }));
    assert_eq!(place.run(&[]).1["termination"], "stuck");
}

#[test]
fn a_hint_is_given_twice_and_then_the_run_fails() {
    let replies: Vec<Value> = (0..6).map(|_| look("a")).chain([complete(json!("no"))]).collect();
    let on_stuck = json!({ "iterations": 2, "action": "retry_with_hint", "hint": "try the other door" });
    let result = stuck(&replies, json!({ "look": ["x"] }), on_stuck);
    assert_eq!(result["termination"], "stuck");
    assert_eq!(result["iterations"], 6, "{result:#}");
}

#[test]
fn an_agent_that_takes_the_hint_completes() {
    let on_stuck = json!({ "iterations": 2, "action": "retry_with_hint" });
    let result = stuck(&[look("a"), look("a"), look("b"), complete(json!("ok"))], json!({ "look": ["x"] }), on_stuck);
    assert_eq!(result["termination"], "complete");
}

#[test]
fn cycles_of_every_length_up_to_six_fire_and_one_of_seven_does_not() {
    for length in 2..=7_usize {
        let places: Vec<String> = (0..length).map(|n| n.to_string()).collect();
        let replies: Vec<Value> =
            (0..2 * length).map(|n| look(&places[n % length])).chain([complete(json!("ok"))]).collect();
        let result = stuck(&replies, json!({ "look": ["x"] }), json!({ "iterations": 2 }));
        let expected = match length {
            2 => json!("alternation"),
            3..=6 => json!("cycle"),
            _ => json!(null),
        };
        assert_eq!(result["stuck"]["pattern"], expected, "{length}: {result:#}");
    }
}

#[test]
fn a_polling_tool_within_a_cycle_is_no_circle_while_it_has_news() {
    let place = Place::new();
    let tools = json!([{ "type": "action", "name": "look", "polling": true }, { "type": "action", "name": "act" }]);
    place.looped(&json!({ "tools": tools }));
    let replies: Vec<Value> = (0..6)
        .map(|n| if n % 2 == 0 { look("a") } else { think("act", json!({ "what": "wait" })) })
        .chain([complete(json!("ok"))])
        .collect();
    place.json("script.json", &json!({ "replies": replies, "tools": { "look": [1, 2, 3], "act": ["waited"] } }));
    assert_eq!(place.run(&[]).1["termination"], "complete");
    place.json("script.json", &json!({ "replies": replies, "tools": { "look": [1], "act": ["waited"] } }));
    assert_eq!(place.run(&[]).1["stuck"]["pattern"], "alternation");
}

#[test]
fn what_a_human_says_resets_the_count() {
    let ask = json!({ "thought": "unsure", "action": "__pause_for_human__", "action_input": { "question": "Go on?" } });
    let asked = |asks: bool| {
        let place = Place::new();
        place.looped(&json!({}));
        let before = if asks { vec![look("a"), look("a"), ask.clone()] } else { vec![look("a"), look("a")] };
        let replies: Vec<Value> = before.into_iter().chain([look("a"), look("a"), complete(json!("ok"))]).collect();
        place.script(&replies);
        let args = ["run", "loop.json", "--script", "script.json", "--output", "json", "--run-id", "r"];
        let ran = place.call(&args);
        if !asks {
            return ran.json();
        }
        assert_eq!(ran.code, 3, "{ran:#?}");
        place.call(&["resume", "r", "--answer", "yes", "--script", "script.json", "--output", "json"]).json()
    };
    assert_eq!(asked(true)["termination"], "complete");
    assert_eq!(asked(false)["stuck"]["pattern"], "same_action", "without a human it is a circle");
}

#[test]
fn a_hint_resets_the_count() {
    let on_stuck = json!({ "iterations": 3, "action": "retry_with_hint" });
    let replies = [look("a"), look("a"), look("a"), look("a"), look("a"), complete(json!("ok"))];
    assert_eq!(stuck(&replies, json!({ "look": ["x"] }), on_stuck)["termination"], "complete");
    assert_eq!(stuck(&replies, json!({ "look": ["x"] }), json!({ "iterations": 3 }))["termination"], "stuck");
}
