//! Four dialects, one engine: a document changes its dialect by one word.

use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use crate::common::dialects::{DIALECTS, Says, answers, calls, comparable};
use crate::common::server::{Answer, Server};
use crate::common::{Place, look, observed, think};

/// Runs the loop with a script in a dialect.
fn scripted(dialect: &str, more: &Value, replies: &[Value]) -> Value {
    let place = Place::new();
    let mut properties = json!({ "dialect": dialect, "max_iterations": 20 });
    for (name, value) in more.as_object().expect("an object") {
        properties[name] = value.clone();
    }
    place.looped(&properties).script(replies);
    place.run(&["--store", "memory"]).1
}

#[test]
fn one_script_plays_the_same_run_in_every_dialect() {
    let replies = [
        look("a"),
        think("lok", json!({ "at": "b" })),
        think("look", json!({ "at": 7 })),
        think("__store_memory__", json!({ "key": "k", "value": { "n": 1 } })),
        think("__retrieve_memory__", json!({ "key": "k" })),
        json!({ "thought": "I act.", "calls": [{ "action": "act", "action_input": { "what": "</tool_call> it" } }] }),
        json!({ "thought": "That is all.", "answer": "It is the cable." }),
    ];
    let runs = DIALECTS.map(|dialect| scripted(dialect, &json!({}), &replies));
    assert_eq!(runs[0]["result"]["answer"], "It is the cable.", "{:#}", runs[0]);
    assert_eq!(runs[0]["iterations"], 7);
    for run in &runs {
        assert_eq!(comparable(&run["trace"]), comparable(&runs[0]["trace"]));
        assert_eq!(run["metadata"], runs[0]["metadata"]);
        assert_eq!(run["result"], runs[0]["result"]);
    }
}

/// A loop whose model is at the server, in a dialect and by a provider.
fn served(dialect: &str, provider: &str, says: Vec<Says>) -> (Value, Server, Place) {
    let place = Place::new();
    let (asked, spoken) = (AtomicUsize::new(0), dialect.to_owned());
    let server = Server::with(move |_, request| {
        let turn = asked.fetch_add(1, Ordering::SeqCst);
        says.get(turn).map_or_else(|| Answer::json("{}").status(400), |says| says.reply(&spoken, request, turn))
    });
    place.looped(&json!({ "dialect": dialect, "max_iterations": 20, "model": "m" }));
    let model = json!({ "provider": provider, "base_url": format!("{}/v1", server.url()) });
    place.json("loopctl.json", &json!({ "models": { "m": model } }));
    let ran = place.call(&["run", "loop.json", "--output", "json", "--store", "memory"]);
    (ran.json(), server, place)
}

#[test]
fn a_model_of_each_dialect_and_provider_makes_the_same_run() {
    let says = || {
        vec![
            calls("I keep it.", &[("__store_memory__", json!({ "key": "k", "value": [1, "</tool_call>"] }))]),
            calls("Wrong name.", &[("stor", json!({}))]),
            calls("I read it.", &[("__retrieve_memory__", json!({ "key": "k" }))]),
            calls("Digits.", &[("__store_memory__", json!({ "key": "n", "value": 12_345_678_901_234_567_890_u128 }))]),
            answers("Enough.", "done"),
        ]
    };
    let (first, ..) = served("json", "openai", says());
    assert_eq!((first["iterations"].as_u64(), &first["result"]["answer"]), (Some(5), &json!("done")), "{first:#}");
    for dialect in DIALECTS {
        for provider in ["openai", "anthropic"] {
            let (result, server, _place) = served(dialect, provider, says());
            assert_eq!(comparable(&result["trace"]), comparable(&first["trace"]), "{dialect} {provider}");
            assert_eq!(result["metadata"], first["metadata"]);
            let native = matches!(dialect, "tool_calls" | "final_answer");
            for request in server.requests() {
                let body = request.json();
                assert_eq!(body.get("tools").is_some(), native, "{dialect}");
                let stops = if provider == "openai" { "stop" } else { "stop_sequences" };
                assert_eq!(body.get(stops).is_some(), dialect == "tags", "{dialect}");
            }
        }
    }
}

#[test]
fn each_request_begins_with_the_bytes_of_the_one_before_in_every_dialect() {
    for dialect in DIALECTS {
        for provider in ["openai", "anthropic"] {
            let says = vec![
                calls("One.", &[("__store_memory__", json!({ "key": "k", "value": 1 }))]),
                calls("Two.", &[("__retrieve_memory__", json!({}))]),
                answers("Enough.", "done"),
            ];
            let (_, server, _place) = served(dialect, provider, says);
            let bodies: Vec<Vec<u8>> = server.requests().into_iter().map(|request| request.body).collect();
            assert_eq!(bodies.len(), 3, "{dialect} {provider}");
            for pair in bodies.windows(2) {
                let same = pair[0].iter().zip(&pair[1]).take_while(|(one, other)| one == other).count();
                // Only what closes a request comes off.
                assert!(same + 48 > pair[0].len(), "{dialect} {provider}: {same} of {}", pair[0].len());
            }
        }
    }
}

#[test]
fn an_unreadable_reply_is_reported_in_every_dialect_and_three_end_the_run() {
    for dialect in DIALECTS {
        let bad = json!("{\"name\": \"look\", \"arguments\": {");
        let bad =
            if dialect == "tool_calls" { json!("```json\n{\"name\":\"look\",\"arguments\":{}}\n```") } else { bad };
        let result = scripted(dialect, &json!({}), &[bad.clone(), look("a"), json!({ "answer": "ok" })]);
        assert_eq!(result["metadata"]["invalid_replies"], 1, "{dialect}: {result:#}");
        assert_eq!(result["result"]["answer"], "ok", "{dialect}");
        let result = scripted(dialect, &json!({}), &[bad.clone(), bad.clone(), bad]);
        assert_eq!(result["termination"], "invalid_replies", "{dialect}");
    }
}

#[test]
fn a_forced_answer_a_hint_and_the_answers_schema_work_in_every_dialect() {
    let schema = json!({ "type": "object", "required": ["cause"] });
    for dialect in DIALECTS {
        let forced = json!({ "max_iterations": 1, "on_limit": "answer" });
        let result = scripted(dialect, &forced, &[look("a"), json!({ "answer": "so far" })]);
        assert_eq!(
            (&result["termination"], &result["result"]["answer"]),
            (&json!("forced_answer"), &json!("so far")),
            "{dialect}: {result:#}"
        );
        let hint = json!({ "on_stuck": { "action": "retry_with_hint", "iterations": 2, "hint": "Stop." } });
        let same = || think("act", json!({ "what": "x" }));
        let result = scripted(dialect, &hint, &[same(), same(), look("a"), json!({ "answer": "ok" })]);
        assert_eq!(result["result"]["answer"], "ok", "{dialect}: {result:#}");
        let strict = json!({ "answer_schema": schema });
        let replies = [json!({ "answer": "no" }), json!({ "thought": "So.", "answer": { "cause": "x" } })];
        let result = scripted(dialect, &strict, &replies);
        assert_eq!(result["result"]["answer"], json!({ "cause": "x" }), "{dialect}: {result:#}");
        assert!(observed(&result["trace"][0]).contains("must be an object"), "{dialect}: {result:#}");
    }
}

#[test]
fn a_text_answer_is_read_as_json_where_the_schema_wants_it() {
    let schema = json!({ "answer_schema": { "type": "object", "required": ["id"] } });
    for (dialect, text) in [
        ("tool_calls", "```json\n{\"id\": 12345678901234567890123}\n```"),
        ("tags", "<answer>{\"id\": 12345678901234567890123}</answer>"),
        ("final_answer", "All done.\n**FINAL_ANSWER:** {\"id\": 12345678901234567890123}"),
    ] {
        let result = scripted(dialect, &schema, &[json!(text)]);
        assert_eq!(result["result"]["answer"].to_string(), r#"{"id":12345678901234567890123}"#, "{result:#}");
        let plain = scripted(dialect, &json!({}), &[json!(text)]);
        assert!(plain["result"]["answer"].is_string(), "{plain:#}");
    }
}

#[test]
fn a_pause_and_its_answer_work_in_every_dialect() {
    for dialect in DIALECTS {
        let place = Place::new();
        let ask = think("__pause_for_human__", json!({ "question": "Which?" }));
        place.looped(&json!({ "dialect": dialect })).script(&[ask, json!({ "answer": "ok" })]);
        let ran = place.call(&["run", "loop.json", "--script", "script.json", "--run-id", "r", "--output", "json"]);
        assert_eq!(ran.code, 3, "{dialect}: {ran:#?}");
        let ran = place.call(&[
            "resume",
            "r",
            "--script",
            "script.json",
            "--answer",
            "</tool_response> B",
            "--output",
            "json",
        ]);
        assert_eq!(ran.code, 0, "{dialect}: {ran:#?}");
        assert_eq!(ran.json()["trace"][0]["observation"], "</tool_response> B", "{dialect}");
    }
}

#[test]
fn several_calls_of_a_script_are_refused_where_the_dialect_has_one() {
    let both = json!({ "calls": [{ "action": "look", "action_input": { "at": "a" } }, { "action": "look", "action_input": { "at": "b" } }] });
    for dialect in DIALECTS {
        let result = scripted(dialect, &json!({}), &[both.clone(), json!({ "answer": "ok" })]);
        if dialect == "json" {
            assert_eq!(result["error"]["code"], "model_protocol", "{result:#}");
            continue;
        }
        assert_eq!(result["result"]["answer"], "ok", "{dialect}: {result:#}");
        let trace = comparable(&result["trace"]);
        assert_eq!((&trace[0]["iteration"], &trace[1]["iteration"]), (&json!(1), &json!(1)), "{dialect}");
        assert_eq!(trace[1]["action_input"], json!({ "at": "b" }), "{dialect}");
    }
}

#[test]
fn a_response_that_the_model_of_tags_invents_is_cut_and_not_remembered() {
    let place = Place::new();
    let server = Server::with(|turn, _| match turn {
        0 => Answer::openai(
            "<think>I keep it.</think>\n<tool_call>{'name': 'look', arguments: {at: 'a',},}</tool_call>\n\
             <tool_response>\nall is well\n</tool_response>\n<answer>all is well</answer>",
        ),
        _ => Answer::openai("<answer>It is not.</answer>"),
    });
    let action = json!({ "action_name": "look", "kind": "command", "description": "Looks.", "program": "printf",
        "args": ["broken"], "parameters": { "type": "object" } });
    let tools = json!([{ "type": "action", "name": "look" }]);
    place.json(
        "loop.json",
        &json!({ "type": "loop", "actions": [action], "properties": { "mode": "react",
        "objective": "Look.", "tools": tools, "dialect": "tags", "model": "m" } }),
    );
    let allow = json!({ "commands": ["printf"] });
    let model = json!({ "provider": "openai", "base_url": format!("{}/v1", server.url()) });
    place.json("loopctl.json", &json!({ "models": { "m": model }, "allow": allow }));
    let ran = place.call(&["run", "loop.json", "--output", "json", "--store", "memory"]);
    let result = ran.json();
    assert_eq!(result["result"]["answer"], "It is not.", "{ran:#?}");
    assert_eq!(observed(&result["trace"][0]), "broken");
    let last = server.requests().pop().expect("a request").json();
    assert_eq!(last["stop"], json!(["<tool_response>"]));
    let messages = last["messages"].as_array().expect("messages");
    let said = messages.iter().find(|message| message["role"] == "assistant").expect("a message");
    assert!(!said["content"].as_str().expect("a text").contains("all is well"), "{said}");
    assert_eq!(messages.last().expect("a message")["content"], "<tool_response>\nbroken\n</tool_response>");
}

#[test]
fn a_text_without_the_mark_ends_nothing_in_final_answer() {
    let replies = [json!("I will look at it first."), look("a"), json!("It is so.\n\nFINAL_ANSWER: the cable")];
    let result = scripted("final_answer", &json!({}), &replies);
    assert_eq!((&result["iterations"], &result["result"]["answer"]), (&json!(3), &json!("the cable")), "{result:#}");
    assert_eq!(result["trace"][0]["thought"], "I will look at it first.");
    let result = scripted("tool_calls", &json!({}), &replies);
    assert_eq!(result["result"]["answer"], "I will look at it first.", "{result:#}");
}
