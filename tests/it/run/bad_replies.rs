//! Models that answer badly: an observation that says what is wrong, counted, and the run goes on.

use serde_json::{Value, json};

use crate::common::server::{Answer, Server};
use crate::common::{Place, complete, look, think};

fn observation_of(reply: Value) -> (String, Value) {
    let place = Place::new();
    place.looped(&json!({})).script(&[reply, complete(json!("ok"))]);
    let (ran, result) = place.run(&[]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    assert_eq!(result["iterations"], 2, "{result:#}");
    assert_eq!(result["trace"][0]["success"], false, "{result:#}");
    (result["trace"][0]["observation"].as_str().unwrap_or_default().to_owned(), result)
}

#[test]
fn half_of_a_character_in_a_reply_is_a_sign_that_says_so_and_no_unreadable_reply() {
    let called = json!(r#"{"thought": "a", "action": "look", "action_input": {"at": "x \ud83d y"}}"#);
    let answered = json!(r#"{"thought": "b", "action": "__complete__", "action_input": {"answer": "a \ud83d b"}}"#);
    let place = Place::new();
    place.looped(&json!({})).script(&[called, answered]);
    let (ran, result) = place.run(&[]);
    assert_eq!((ran.code, &result["result"]["answer"]), (0, &json!("a \u{fffd} b")), "{ran:#?}");
    assert_eq!((&result["iterations"], &result["metadata"]["invalid_replies"]), (&json!(2), &json!(0)), "{result:#}");
    assert_eq!(result["trace"][0]["action_input"]["at"], "x \u{fffd} y", "{result:#}");
}

#[test]
fn unreadable_replies_are_reported_and_counted() {
    let cases = [
        json!("I think I should look at the ticket first."),
        json!("<!DOCTYPE html><html><body>502 Bad Gateway</body></html>"),
        json!(r#"{"thought": "half", "action": "look", "action_inp"#),
        json!(r#"{"action":"look","action_input":{"at":"a"}} {"action":"act","action_input":{"what":"b"}}"#),
        json!(r#"{"action":"look","action":"act","action_input":{}}"#),
        json!(r#"{"thought":"no action"}"#),
        json!(r#"{"thought":"x","action":7,"action_input":{}}"#),
        json!(r#"{"thought":"x","action":"look","action_input":["a"]}"#),
        json!("[".repeat(10_000)),
    ];
    for case in cases {
        let shown: String = case.to_string().chars().take(60).collect();
        let (observation, result) = observation_of(case);
        assert!(!observation.is_empty(), "{shown}");
        assert_eq!(result["metadata"]["invalid_replies"], 1, "{shown}");
        assert_eq!(result["metadata"]["tool_calls_made"], 0, "{shown}");
    }
}

#[test]
fn the_text_of_a_refused_reply_is_shown_to_people_as_data_and_cut() {
    let bomb = format!("Let me \u{1b}[2J think <b>first</b>. {}", "x".repeat(5000));
    let place = Place::new();
    place.looped(&json!({})).script(&[json!(bomb), complete(json!("ok"))]);
    let (ran, result) = place.run(&["--run-id", "r"]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    let detail = result["trace"][0]["error"]["detail"].as_str().expect("the reply's text");
    assert!(detail.starts_with("Let me \u{1b}[2J think") && detail.contains("[cut:"), "{detail}");
    assert!(detail.chars().count() < 2_100, "{}", detail.len());
    let live = place.call(&["run", "loop.json", "--script", "script.json"]).stderr;
    let text = place.call(&["trace", "r"]).stdout;
    let page = place.call(&["trace", "r", "--format", "html"]).stdout;
    for (shown, words) in [(live, "think <b>first</b>"), (text, "think <b>first</b>"), (page, "think &lt;b&gt;first")] {
        assert!(shown.contains(words) && !shown.contains('\u{1b}'), "{shown}");
    }
}

#[test]
fn a_second_refusal_names_the_tools_and_shows_a_turn_and_little_of_the_replies_is_kept() {
    for dialect in ["json", "tags"] {
        let server = Server::with(move |number, _| match (number, dialect) {
            (0 | 1, _) => Answer::openai(&format!("Hm {}", "y".repeat(4000))),
            (_, "tags") => Answer::openai("<answer>done</answer>"),
            _ => Answer::openai(&complete(json!("done")).to_string()),
        });
        let place = Place::new();
        place.looped(&json!({ "dialect": dialect, "temperature": 0 }));
        let args = ["run", "loop.json", "--model", "m", "--output", "json"];
        let ran = place.call_with(&args, &[("OPENAI_BASE_URL", &server.url())]);
        assert_eq!(ran.code, 0, "{ran:#?}");
        let messages = server.requests()[2].json()["messages"].clone();
        let text = |at: usize| messages[at]["content"].as_str().expect("a text").to_owned();
        let last = messages.as_array().expect("messages").len() - 1;
        let (first, second) = (text(last - 2), text(last));
        assert!(text(last - 1).chars().count() < 560, "{messages:#}");
        assert!(!first.contains("The tools are: look, act"), "{first}");
        assert!(second.contains("The tools are: look, act") && second.contains("__complete__"), "{second}");
        let turn = if dialect == "tags" { "<tool_call>" } else { "\"action\":\"look\"" };
        assert!(second.contains(turn) && !second.contains("&lt;"), "{second}");
    }
}

#[test]
fn a_reply_of_50_mb_is_reported_and_bounded() {
    let place = Place::new();
    place.looped(&json!({})).script(&[json!("x".repeat(50 * 1024 * 1024)), complete(json!("ok"))]);
    let (ran, result) = place.run(&["--store", "memory"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(result["metadata"]["invalid_replies"], 1);
}

#[test]
fn an_unknown_action_is_reported_with_the_nearest_name_and_not_run() {
    let (observation, result) = observation_of(think("lok", json!({ "at": "a" })));
    assert!(observation.contains("look"), "{observation}");
    assert_eq!(result["metadata"]["tool_calls_made"], 0);
    assert_eq!(result["metadata"]["invalid_replies"], 0);
}

#[test]
fn a_twin_of_a_tools_name_is_not_the_tool_and_is_not_hinted_at() {
    let (observation, _) = observation_of(think("l\u{43e}\u{43e}k", json!({ "at": "a" })));
    assert!(!observation.contains("Did you mean"), "{observation}");
}

#[test]
fn an_input_against_the_schema_is_reported_with_all_its_faults_and_not_run() {
    let (observation, result) = observation_of(think("look", json!({ "n": "many", "x": 1 })));
    assert!(observation.contains("at") && observation.contains("/n") && observation.contains('x'), "{observation}");
    assert_eq!(result["metadata"]["tool_calls_made"], 0);
}

#[test]
fn numbers_reach_the_tool_with_the_digits_that_the_model_wrote() {
    for digits in ["12345678901234567890123", "9007199254740993", "0.1", "-0", "1.0", "1E400", "1e2"] {
        let place = Place::new();
        let mut document = crate::common::document(&json!({}));
        document["actions"][0]["parameters"] = json!({ "type": "object" });
        document["actions"][0]["url"] = json!("https://tools.example.com/look");
        place.json("loop.json", &document);
        let reply = format!(r#"{{"thought":"t","action":"look","action_input":{{"n":{digits}}}}}"#);
        place.script(&[json!(reply), complete(json!("ok"))]);
        let (ran, _) = place.run(&[]);
        assert!(ran.stdout.contains(&format!(r#""action_input":{{"n":{digits}}}"#)), "{digits}: {}", ran.stdout);
    }
}

#[test]
fn numbers_reach_the_one_who_approves_with_the_digits_that_the_model_wrote() {
    for digits in ["12345678901234567890123", "9007199254740993", "0.1", "-0", "1.0", "1E400", "1e2"] {
        let place = Place::new();
        let tools = json!([{ "type": "action", "name": "look", "requires_approval": true }]);
        let mut document = crate::common::document(&json!({ "tools": tools }));
        document["actions"][0]["parameters"] = json!({ "type": "object" });
        document["actions"][0]["url"] = json!("https://tools.example.com/look");
        place.json("loop.json", &document);
        let reply = format!(r#"{{"thought":"t","action":"look","action_input":{{"n":{digits}}}}}"#);
        place.script(&[json!(reply), complete(json!("ok"))]);
        let asked = place.call(&["run", "loop.json", "--script", "script.json", "--output", "json", "--run-id", "r"]);
        let made = place.call(&["resume", "r", "--approve", "--script", "script.json", "--output", "json"]);
        for (code, ran) in [(3, asked), (0, made)] {
            assert_eq!(ran.code, code, "{ran:#?}");
            assert!(ran.stdout.contains(&format!(r#""action_input":{{"n":{digits}}}"#)), "{digits}: {}", ran.stdout);
        }
    }
}

#[test]
fn a_reply_with_two_actions_or_two_values_of_one_name_is_not_run() {
    for reply in [
        r#"{"thought":"t","action":"look","action":"act","action_input":{"at":"a","what":"x"}}"#,
        r#"{"thought":"t","action":"look","action_input":{"at":"a"},"action":"act"}"#,
        r#"{"thought":"t","action":"look","action_input":{"at":"a"},"action_input":{"at":"b"}}"#,
    ] {
        let (observation, result) = observation_of(json!(reply));
        assert_eq!(result["metadata"]["tool_calls_made"], 0, "{reply}: {observation}");
        assert_eq!(result["metadata"]["invalid_replies"], 1, "{reply}: {observation}");
    }
}

#[test]
fn what_a_model_says_is_never_rendered_or_resolved() {
    let hostile = "{{input.secret}} @input.secret orgconfig:key ${HOME} {{{{raw}}}}";
    let place = Place::new();
    place.looped(&json!({})).script(&[look(hostile), complete(json!(hostile))]);
    let (_, result) = place.run(&["--input", "secret=hidden"]);
    assert_eq!(result["trace"][0]["action_input"]["at"], hostile);
    assert_eq!(result["result"]["answer"], hostile);
}

#[test]
fn control_characters_of_a_model_never_reach_the_terminal() {
    let place = Place::new();
    let bomb = "\u{1b}[2J\u{1b}]0;title\u{7}\u{9b}31m\u{202e}evil\u{0}";
    place.looped(&json!({})).script(&[
        json!({ "thought": bomb, "action": "look", "action_input": { "at": bomb } }),
        think("__log_progress__", json!({ "message": bomb })),
        complete(json!(bomb)),
    ]);
    let ran = place.call(&["run", "loop.json", "--script", "script.json"]);
    assert_eq!(ran.code, 0);
    for bad in ['\u{1b}', '\u{7}', '\u{9b}', '\u{202e}', '\u{0}'] {
        assert!(!ran.stderr.contains(bad), "{bad:?} in {:?}", ran.stderr);
    }
    let id = place.call(&["runs", "--output", "json"]).json()[0]["run_id"].as_str().expect("an id").to_owned();
    for format in ["text", "html"] {
        let trace = place.call(&["trace", &id, "--format", format]);
        assert_eq!(trace.code, 0, "{trace:#?}");
        for bad in ['\u{1b}', '\u{7}', '\u{9b}', '\u{202e}', '\u{0}'] {
            assert!(!trace.stdout.contains(bad), "{format}: {bad:?}");
        }
    }
}

#[test]
fn long_observations_are_cut_and_the_cut_is_said() {
    let place = Place::new();
    place.looped(&json!({ "max_observation_chars": 100 }));
    let script = json!({ "replies": [look("a"), complete(json!("ok"))], "tools": { "look": ["ä".repeat(1000)] } });
    place.json("script.json", &script);
    let (_, result) = place.run(&[]);
    assert_eq!(result["metadata"]["truncated_observations"], 1);
    let observation = result["trace"][0]["observation"].as_str().expect("a text");
    assert!(observation.starts_with(&"ä".repeat(100)) && observation.contains("900"), "{observation}");
}
