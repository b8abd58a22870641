//! Cases of a script: which replies a run plays follows from its input alone.

use serde_json::{Value, json};

use crate::common::{Place, complete, think};

/// A loop that takes an id, and whose model is a script with a case for A, one for B, and no other replies.
fn place(replies: &[Value]) -> Place {
    let place = Place::new();
    let input = json!({ "type": "object", "properties": { "id": { "type": "string" } }, "required": ["id"] });
    let properties = json!({ "mode": "react", "objective": "Look at {{input.id}}.", "tools": [] });
    place.json("loop.json", &json!({ "type": "loop", "name": "look", "input": input, "properties": properties }));
    place.json(
        "loopctl.json",
        &json!({ "model": "played", "models": { "played": { "provider": "script", "script": "script.json" } } }),
    );
    let asks = think("__pause_for_human__", json!({ "question": "Is it B?" }));
    place.json(
        "script.json",
        &json!({ "replies": replies, "cases": [
            { "when": { "id": "A" }, "replies": [complete(json!("this is A"))] },
            { "when": { "id": "B" }, "replies": [asks, complete(json!("this is B"))] },
        ] }),
    );
    place
}

fn run(place: &Place, id: &str, more: &[&str]) -> (i32, Value) {
    let id = format!("id={id}");
    let ran = place.call(&[&["run", "loop.json", "--output", "json", "--input", &id], more].concat());
    (ran.code, ran.json())
}

#[test]
fn the_input_chooses_the_replies() {
    let place = place(&[]);
    let (code, result) = run(&place, "A", &[]);
    assert_eq!((code, &result["result"]["answer"]), (0, &json!("this is A")));
    // A script that takes the place of all models chooses in the same way.
    let (code, result) = run(&place, "A", &["--script", "script.json"]);
    assert_eq!((code, &result["result"]["answer"]), (0, &json!("this is A")));
}

#[test]
fn a_resumed_run_and_a_rerun_play_the_case_of_their_input() {
    let place = place(&[]);
    let (code, _) = run(&place, "B", &["--run-id", "r"]);
    assert_eq!(code, 3);
    let resumed = place.call(&["resume", "r", "--answer", "yes", "--output", "json"]);
    assert_eq!((resumed.code, &resumed.json()["result"]["answer"]), (0, &json!("this is B")));
    assert_eq!(run(&place, "A", &["--run-id", "a"]).0, 0);
    let rerun = place.call(&["rerun", "a", "--output", "json"]);
    assert_eq!((rerun.code, &rerun.json()["result"]["answer"]), (0, &json!("this is A")), "{}", rerun.stderr);
}

#[test]
fn another_input_fails_and_says_which_ones_there_are() {
    let nothing = place(&[]);
    for script in [&[] as &[&str], &["--script", "script.json"]] {
        let (code, result) = run(&nothing, "C", script);
        assert_eq!(code, 1, "{result}");
        assert_eq!(
            result["error"]["message"],
            "the script has no replies for this input; it has replies for id=A and id=B",
        );
        assert_eq!(result["error"]["retryable"], false);
        assert!(result.get("result").is_none(), "{result}");
    }
    // `replies` are for all others.
    let (code, result) = run(&place(&[complete(json!("another"))]), "C", &[]);
    assert_eq!((code, &result["result"]["answer"]), (0, &json!("another")));
}

#[test]
fn a_scenario_plays_the_case_of_its_input_to_its_end() {
    let place = place(&[]);
    let scenario = |name: &str, id: &str, more: Value| {
        crate::common::with(json!({ "name": name, "input": { "id": id }, "script": "script.json" }), more)
    };
    let ends = json!({ "expect": { "status": "completed", "answer": "this is B" } });
    let answers = crate::common::with(ends, json!({ "decisions": [{ "answer": "yes" }], "crash": "everywhere" }));
    let scenarios = |all: Vec<Value>| json!({ "document": "loop.json", "scenarios": all });
    place.json("loop.test.json", &scenarios(vec![scenario("b", "B", answers)]));
    let tested = place.call(&["test"]);
    assert_eq!(tested.code, 0, "{}", tested.stderr);
    // Replies of the case that are left over are left over.
    let paused = json!({ "expect": { "status": "paused" } });
    place.json("loop.test.json", &scenarios(vec![scenario("b", "B", paused)]));
    let tested = place.call(&["test"]);
    assert!(tested.code == 1 && tested.stderr.contains("1 reply is left over"), "{}", tested.stderr);
    // No case is no scenario.
    place.json("loop.test.json", &scenarios(vec![scenario("c", "C", json!({ "expect": { "status": "failed" } }))]));
    for command in ["test", "check"] {
        let tested = place.call(&[command]);
        assert_ne!(tested.code, 0);
        assert!(tested.stderr.contains("it has replies for id=A and id=B"), "{command}: {}", tested.stderr);
    }
}

#[test]
fn a_called_loop_takes_the_case_of_its_own_input_from_the_script_of_a_model() {
    let place = place(&[]);
    let input = json!({ "type": "object", "properties": { "of": { "type": "string" } }, "required": ["of"] });
    let called = json!({ "mode": "react", "objective": "Help.", "tools": [{ "type": "loop", "name": "look" }] });
    place.json("boss.json", &json!({ "type": "loop", "name": "boss", "input": input, "properties": called }));
    let look = std::fs::read_to_string(place.path().join("loop.json")).unwrap();
    place.file(
        "loops/look.json",
        look.replace("\"type\": \"loop\",", "\"type\": \"loop\", \"description\": \"Looks.\","),
    );
    std::fs::remove_file(place.path().join("loop.json")).unwrap();
    place.json(
        "script.json",
        &json!({ "replies": [], "cases": [
            { "when": { "of": "it" }, "replies": [think("look", json!({ "id": "A" })), complete(json!("asked"))] },
            { "when": { "id": "A" }, "replies": [complete(json!("this is A"))] },
        ] }),
    );
    let ran = place.call(&["run", "boss.json", "--input", "of=it", "--output", "json"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let trace = ran.json()["trace"].to_string();
    assert!(trace.contains("this is A"), "{trace}");
}

#[test]
fn a_question_of_an_action_has_no_case() {
    let place = place(&[]);
    let mut document: Value = serde_json::from_slice(&std::fs::read(place.path().join("loop.json")).unwrap()).unwrap();
    document["properties"]["tools"] = json!([{ "type": "action", "name": "sum_up" }]);
    place.json("loop.json", &document);
    let action =
        json!({ "action_name": "sum_up", "kind": "llm", "description": "Sums up.", "template": "Sum up {{text}}." });
    place.json("actions/sum_up.json", &action);
    for (replies, said) in [(json!([]), "the script has no `replies`: a question"), (json!(["Short."]), "Short.")] {
        let case = json!({ "when": { "id": "A" },
            "replies": [think("sum_up", json!({ "text": "it" })), complete(json!("this is A"))] });
        place.json("script.json", &json!({ "replies": replies, "cases": [case] }));
        let ran = place.call(&["run", "loop.json", "--input", "id=A", "--output", "json"]);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        let trace = ran.json()["trace"].to_string();
        assert!(trace.contains(said) && !trace.contains("it has replies for"), "{trace}");
    }
}
