//! Replies as providers really send them, from a local server in each protocol: what a run makes of them.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use crate::common::server::{Answer, Server};
use crate::common::streams::{PROVIDERS, streamed};
use crate::common::{Place, Ran, with};

/// A loop with the tool `lookup` at a server whose model gives these answers.
pub struct Played {
    pub place: Place,
    pub server: Arc<Server>,
}

impl Played {
    fn new(provider: &str, dialect: &str, answers: Vec<Answer>) -> Self {
        Self::with(provider, dialect, answers, &json!({}))
    }

    /// The same, in a loop with these properties too, of a model with prices of a dollar for a million tokens.
    pub fn with(provider: &str, dialect: &str, answers: Vec<Answer>, properties: &Value) -> Self {
        let asked = AtomicUsize::new(0);
        let server = Server::with(move |_, request| {
            if request.path.starts_with("/look") {
                return Answer::json(&json!({ "state": "sent" }));
            }
            let none = || Answer::json(&json!({ "error": "no more answers" })).status(400);
            answers.get(asked.fetch_add(1, Ordering::SeqCst)).cloned().unwrap_or_else(none)
        });
        let place = Place::new();
        let lookup = json!({ "action_name": "lookup", "kind": "http", "description": "Looks an order up.",
            "url": format!("{}/look", server.url()), "http_method": "GET",
            "parameters": { "type": "object", "properties": { "x": { "type": "integer" } } } });
        let usual = json!({ "mode": "react", "objective": "Look the order up.", "dialect": dialect,
            "tools": [{ "type": "action", "name": "lookup" }], "max_iterations": 8, "include_reasoning_trace": true,
            "retry": { "attempts": 3, "base_ms": 0 } });
        let properties = with(usual, properties.clone());
        place.json("loop.json", &json!({ "type": "loop", "properties": properties, "actions": [lookup] }));
        let model = json!({ "provider": provider, "base_url": format!("{}/v1", server.url()), "model": "fake-1",
            "price": { "input": 1, "output": 1, "cached_input": 0.1 } });
        let allow = json!({ "private_addresses": true });
        place.json("loopctl.json", &json!({ "allow": allow, "model": "m", "models": { "m": model } }));
        Self { place, server: Arc::new(server) }
    }

    pub fn run(&self) -> Value {
        let ran = self.place.call(&["run", "loop.json", "--output", "json"]);
        assert_eq!(ran.code, 0, "{ran:#?}");
        ran.json()
    }

    /// The same, with replies in pieces; the last line of what was printed.
    pub fn run_streamed(&self) -> Value {
        let ran: Ran = self.place.call(&["run", "loop.json", "--output", "ndjson", "--deltas"]);
        assert_eq!(ran.code, 0, "{ran:#?}");
        let last = ran.stdout.lines().last().expect("a line").to_owned();
        serde_json::from_str(&last).expect("JSON")
    }

    /// The paths of the calls of the tool.
    fn looked(&self) -> Vec<String> {
        let paths = self.server.requests().into_iter().map(|request| request.path);
        paths.filter(|path| path.starts_with("/look")).collect()
    }

    pub fn asked(&self) -> usize {
        self.server.requests().len() - self.looked().len()
    }
}

/// A whole answer of a provider, with this reason or status.
pub fn whole(provider: &str, text: &str, reason: &str) -> Answer {
    Answer::json(&match provider {
        "openai" => json!({ "choices": [{ "index": 0, "message": { "content": text }, "finish_reason": reason }] }),
        "anthropic" => {
            json!({ "type": "message", "content": [{ "type": "text", "text": text }], "stop_reason": reason })
        }
        "gemini" => json!({ "candidates": [{ "content": { "parts": [{ "text": text }] }, "finishReason": reason }] }),
        _ => json!({ "status": reason, "error": null,
            "output": [{ "type": "message", "content": [{ "type": "output_text", "text": text }] }] }),
    })
}

const DONE: &str = "The order is on its way.";

#[test]
fn a_reply_that_the_provider_broke_off_is_asked_for_again() {
    for (provider, broken, stop) in [
        ("openai", "network_error", "stop"),
        ("openai", "tool_calls", "stop"),
        ("anthropic", "pause_turn", "end_turn"),
        ("gemini", "OTHER", "STOP"),
        ("openai-responses", "failed", "completed"),
    ] {
        for dialect in ["tool_calls", "json"] {
            let turn = json!({ "thought": "t", "action": "__complete__", "action_input": { "answer": DONE } });
            let says = if dialect == "json" { turn.to_string() } else { DONE.to_owned() };
            let half =
                if dialect == "json" { turn.to_string().replace(DONE, "The refund") } else { "The refund".into() };
            let answers = vec![whole(provider, &half, broken), whole(provider, &says, stop)];
            let played = Played::new(provider, dialect, answers);
            let result = played.run();
            assert_eq!(result["result"]["answer"], DONE, "{provider} {dialect} {broken}: {result:#}");
            assert_eq!(
                (played.asked(), &result["metadata"]["model_retries"]),
                (2, &json!(1)),
                "{provider}: {result:#}"
            );
        }
    }
}

#[test]
fn a_stream_without_a_reason_is_asked_for_again_and_blank_data_is_none() {
    for provider in PROVIDERS {
        let mut cut = streamed(provider, &["The refund ", "is"]);
        let is_end = |data: &String| ["stop\"", "end_turn", "STOP", "completed"].iter().any(|word| data.contains(word));
        cut.retain(|data| !is_end(data));
        let blank = |data: String| [String::new(), data, "null".to_owned()];
        let good: Vec<String> =
            streamed(provider, &["The order ", "is on its way."]).into_iter().flat_map(blank).collect();
        let body: String = good.iter().map(|data| format!("data: {data} \n\n")).collect();
        let labelled = Answer::new("text/plain", body);
        let played = Played::new(provider, "tool_calls", vec![Answer::events(cut), labelled]);
        let last = played.run_streamed();
        assert_eq!(last["result"]["answer"], DONE, "{provider}: {last:#}");
        assert_eq!(played.asked(), 2, "{provider}");
    }
}

#[test]
fn a_whole_reply_over_an_open_connection_is_one_request() {
    for provider in PROVIDERS {
        let mut events = streamed(provider, &["The order ", "is on its way."]);
        // Nothing behind the reason of the end: no usage, no last event, and no end of the connection.
        let is_end = |data: &String| {
            ["\"stop\"", "end_turn", "STOP", "response.completed"].iter().any(|word| data.contains(word))
        };
        let end = events.iter().position(is_end).expect("an end");
        events.truncate(end + 1);
        let more = json!({ "retry": { "attempts": 1 }, "stall_timeout_ms": 60_000 });
        let played = Played::with(provider, "tool_calls", vec![Answer::events(events).stalling()], &more);
        let last = played.run_streamed();
        assert_eq!((&last["result"]["answer"], played.asked()), (&json!(DONE), 1), "{provider}: {last:#}");
    }
}

#[test]
fn an_anthropic_reply_without_an_end_is_asked_for_again_and_a_local_server_may_name_none() {
    let part =
        json!({ "type": "message", "content": [{ "type": "text", "text": "The refund is" }], "stop_reason": null });
    let played = Played::new("anthropic", "tool_calls", vec![Answer::json(&part), Answer::anthropic(DONE)]);
    assert_eq!((&played.run()["result"]["answer"], played.asked()), (&json!(DONE), 2));
    let unsaid = |text: &str| json!({ "message": { "content": text }, "finish_reason": null });
    let usage = json!({ "prompt_tokens": 10, "completion_tokens": 5 });
    for answers in [
        vec![json!({ "choices": [{ "message": { "content": DONE } }] })],
        vec![json!({ "choices": [unsaid(DONE)], "usage": usage })],
        // What a gateway put together of a broken stream counts nothing.
        vec![json!({ "choices": [unsaid("The refund is")] }), json!({ "choices": [unsaid(DONE)], "usage": usage })],
    ] {
        let played = Played::new("openai", "tool_calls", answers.iter().map(Answer::json).collect());
        assert_eq!((&played.run()["result"]["answer"], played.asked()), (&json!(DONE), answers.len()));
    }
}

#[test]
fn a_call_that_may_be_cut_off_is_neither_made_nor_the_answer() {
    let said = |provider: &str, name: &str, input: &Value| match provider {
        "anthropic" => json!({ "content": [{ "type": "tool_use", "id": "a", "name": "lookup", "input": { "x": 1 } },
            { "type": "tool_use", "id": "b", "name": name, "input": input }], "stop_reason": "max_tokens" }),
        "gemini" => json!({ "candidates": [{ "finishReason": "MAX_TOKENS", "content": { "parts": [
            { "functionCall": { "name": "lookup", "args": { "x": 1 } } },
            { "functionCall": { "name": name, "args": input } }] } }] }),
        _ => json!({ "status": "completed", "output": [{ "type": "function_call", "status": "incomplete",
            "call_id": "a", "name": name, "arguments": input.to_string() }] }),
    };
    for (provider, stop) in [("anthropic", "end_turn"), ("gemini", "STOP"), ("openai-responses", "completed")] {
        for (name, input) in [
            ("lookup", json!({})),
            ("lookup", json!({ "x": 2 })),
            ("__complete__", json!({ "answer": "The refund is" })),
        ] {
            let reply = said(provider, name, &input);
            let end = whole(provider, DONE, stop);
            let played = Played::new(provider, "tool_calls", vec![Answer::json(&reply), end]);
            let result = played.run();
            assert_eq!(
                (&result["result"]["answer"], played.asked()),
                (&json!(DONE), 2),
                "{provider} {name}: {result:#}"
            );
            assert_eq!(played.looked(), Vec::<String>::new(), "{provider} {name} {input}");
            assert!(result["trace"].to_string().contains("cut off in the middle of a tool call"), "{result:#}");
        }
    }
    let cut = said("gemini", "lookup", &json!({})).to_string();
    let answers = vec![Answer::events([cut]), Answer::events(streamed("gemini", &[DONE]))];
    let played = Played::new("gemini", "tool_calls", answers);
    let last = played.run_streamed();
    assert_eq!((&last["result"]["answer"], played.looked()), (&json!(DONE), vec![]), "{last:#}");
}

#[test]
fn a_stream_that_breaks_behind_a_reason_that_was_not_the_last_is_asked_for_again() {
    let piece = |provider: &str, text: &str| match provider {
        "openai" => json!({ "choices": [{ "delta": { "content": text }, "finish_reason": "stop" }] }).to_string(),
        _ => json!({ "candidates": [{ "content": { "parts": [{ "text": text }] }, "finishReason": "STOP" }] })
            .to_string(),
    };
    for provider in ["openai", "gemini"] {
        let [half, rest] = ["The order ", "is on its way."].map(|text| piece(provider, text));
        let broken = Answer::events([piece(provider, "The refund "), piece(provider, "is")]).cut();
        let played = Played::new(provider, "tool_calls", vec![broken, Answer::events([half, rest])]);
        let last = played.run_streamed();
        assert_eq!((&last["result"]["answer"], played.asked()), (&json!(DONE), 2), "{provider}: {last:#}");
    }
}

#[test]
fn a_call_that_a_reply_has_twice_is_made_once() {
    let function = json!({ "name": "lookup", "arguments": "{\"x\":1}" });
    let call =
        json!({ "type": "function_call", "id": "f", "call_id": "a", "name": "lookup", "arguments": "{\"x\":1}" });
    let block = json!({ "type": "tool_use", "id": "a", "name": "lookup", "input": { "x": 1 } });
    let part = json!({ "functionCall": { "id": "a", "name": "lookup", "args": { "x": 1 } } });
    let native = json!({ "id": "a", "function": function });
    for (provider, twice, stop) in [
        (
            "openai",
            json!({ "choices": [{ "message": { "tool_calls": [native, native] }, "finish_reason": "tool_calls" }] }),
            "stop",
        ),
        ("anthropic", json!({ "content": [block, block], "stop_reason": "tool_use" }), "end_turn"),
        ("gemini", json!({ "candidates": [{ "content": { "parts": [part, part] }, "finishReason": "STOP" }] }), "STOP"),
        ("openai-responses", json!({ "status": "completed", "output": [call, call] }), "completed"),
    ] {
        let played = Played::new(provider, "tool_calls", vec![Answer::json(&twice), whole(provider, DONE, stop)]);
        let result = played.run();
        assert_eq!(
            (&result["result"]["answer"], played.looked()),
            (&json!(DONE), vec!["/look?x=1".to_owned()]),
            "{provider}: {result:#}"
        );
    }
}

#[test]
fn commentary_is_no_part_of_the_answer_and_alone_it_is_asked_again() {
    let says = |phase: &str, text: &str| json!({ "type": "message", "role": "assistant", "phase": phase, "content": [{ "type": "output_text", "text": text }] });
    let answer = |output: Value| Answer::json(&json!({ "status": "completed", "error": null, "output": output }));
    let alone = answer(json!([says("commentary", "I confirm it.")]));
    let both = answer(json!([says("commentary", "I confirm it."), says("final_answer", DONE)]));
    let played = Played::new("openai-responses", "tool_calls", vec![alone, both]);
    let result = played.run();
    assert_eq!((&result["result"]["answer"], played.asked()), (&json!(DONE), 2), "{result:#}");
    assert!(result["trace"].to_string().contains("I confirm it."), "{result:#}");
}

#[test]
fn a_call_that_only_the_last_event_has_is_made_once() {
    let text = json!({ "type": "message", "content": [{ "type": "output_text", "text": "I look." }] });
    let call = json!({ "type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "lookup", "arguments": "{\"x\":1}" });
    let events = [
        json!({ "type": "response.output_text.delta", "output_index": 0, "delta": "I look." }),
        json!({ "type": "response.function_call_arguments.delta", "output_index": 1, "item_id": "fc_1", "delta": "{\"x\":1}" }),
        json!({ "type": "response.completed", "response": { "status": "completed", "error": null, "output": [text, call] } }),
    ];
    let answers = vec![
        Answer::events(events.iter().map(Value::to_string)),
        Answer::events(streamed("openai-responses", &[DONE])),
    ];
    let played = Played::new("openai-responses", "tool_calls", answers);
    let last = played.run_streamed();
    assert_eq!((&last["result"]["answer"], played.looked()), (&json!(DONE), vec!["/look?x=1".to_owned()]), "{last:#}");
}

#[test]
fn pieces_of_a_call_are_one_call_and_a_torn_reply_makes_none() {
    let piece = |calls: Value| json!({ "choices": [{ "index": 0, "delta": { "tool_calls": calls } }] }).to_string();
    let end = json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": "tool_calls" }] }).to_string();
    let first = piece(json!([{ "index": 0, "id": "c1", "function": { "name": "lookup", "arguments": "" } }]));
    let rest = piece(json!([{ "index": 0, "id": "c2", "function": { "arguments": "{\"x\":5}" } }]));
    let nameless = piece(json!([{ "index": 1, "id": "c3", "function": { "arguments": "{\"x\":6}" } }]));
    let torn = Answer::events([first.clone(), rest.clone(), nameless, end.clone()]);
    let good = Answer::events([first, rest, end]);
    let played = Played::new("openai", "tool_calls", vec![torn, good, Answer::events(streamed("openai", &[DONE]))]);
    let last = played.run_streamed();
    assert_eq!((&last["result"]["answer"], played.looked()), (&json!(DONE), vec!["/look?x=5".to_owned()]), "{last:#}");
}

/// Events of the Responses API; `HALF` is half of a sign.
fn responded(events: &[Value]) -> Answer {
    let named = |event: &Value| {
        let mut event = event.clone();
        event["type"] = json!(format!("response.{}", event["type"].as_str().expect("a type")));
        event.to_string().replace("HALF", "\\ud83d")
    };
    Answer::events(events.iter().map(named))
}

fn said(text: &str) -> Value {
    json!({ "type": "message", "content": [{ "type": "output_text", "text": text }] })
}

fn last_event(output: &Value) -> Value {
    json!({ "type": "completed", "response": { "status": "completed", "error": null, "output": output } })
}

#[test]
fn each_text_of_a_stream_counts_once_wherever_the_last_event_has_it() {
    let delta = |place: Value, text: &str| with(json!({ "type": "output_text.delta", "delta": text }), place);
    let whole = |place: Value, text: &str| with(json!({ "type": "output_text.done", "text": text }), place);
    let none = last_event(&json!([]));
    for (events, answer) in [
        // A half of a sign, which is written as its escape.
        (vec![delta(json!({}), "sent HALF ok"), last_event(&json!([said("sent HALF ok")]))], "sent \u{fffd} ok"),
        (
            vec![
                delta(json!({ "output_index": 0 }), "sent HALF"),
                delta(json!({ "output_index": 0 }), " ok"),
                json!({ "type": "output_item.done", "output_index": 0, "item": said("sent HALF ok") }),
                none.clone(),
            ],
            "sent \u{fffd} ok",
        ),
        // Another index, other blanks, one message in place of two.
        (vec![delta(json!({ "output_index": 1 }), " hello you"), last_event(&json!([said("hello you")]))], "hello you"),
        (
            vec![
                delta(json!({ "output_index": 0 }), "hello "),
                delta(json!({ "output_index": 1 }), "you"),
                last_event(&json!([said("hello you")])),
            ],
            "hello you",
        ),
        (
            vec![
                delta(json!({ "output_index": 0, "item_id": "a" }), "hello "),
                delta(json!({ "output_index": 0, "item_id": "b" }), "you"),
                last_event(&json!([said("hello you")])),
            ],
            "hello you",
        ),
        // Parts of a message that come whole, with and without their numbers, and behind their pieces.
        (
            vec![
                whole(json!({ "output_index": 0, "content_index": 0 }), "hello "),
                whole(json!({ "output_index": 0, "content_index": 1 }), "you"),
                none.clone(),
            ],
            "hello you",
        ),
        (
            vec![
                whole(json!({ "output_index": 0 }), "hello "),
                whole(json!({ "output_index": 0 }), "you"),
                none.clone(),
            ],
            "hello you",
        ),
        (
            vec![
                delta(json!({}), "hello "),
                delta(json!({}), "you"),
                whole(json!({ "output_index": 0 }), "hello you"),
                none.clone(),
            ],
            "hello you",
        ),
        (
            vec![
                delta(json!({ "output_index": 0 }), "hello you"),
                whole(json!({ "output_index": 0, "content_index": 0 }), "hello "),
                whole(json!({ "output_index": 0, "content_index": 1 }), "you"),
                none,
            ],
            "hello you",
        ),
        // What the last event lacks.
        (
            vec![
                delta(json!({ "output_index": 0 }), "hello "),
                delta(json!({ "output_index": 1 }), "you"),
                last_event(&json!([said("hello ")])),
            ],
            "hello you",
        ),
    ] {
        let played = Played::new("openai-responses", "tool_calls", vec![responded(&events)]);
        let last = played.run_streamed();
        assert_eq!(last["result"]["answer"], answer, "{events:#?}");
    }
}

#[test]
fn a_call_is_made_once_although_its_place_and_its_ids_change() {
    let call = |id: &str, x: u32| json!({ "type": "function_call", "id": format!("fc_{id}"), "call_id": id, "name": "lookup", "arguments": format!("{{\"x\":{x}}}") });
    let bare = |id: &str| with(call(id, 1), json!({ "arguments": "" }));
    let reasoning = json!({ "type": "reasoning", "id": "rs", "summary": [], "encrypted_content": "E" });
    let done = |index: u32, item: Value| json!({ "type": "output_item.done", "output_index": index, "item": item });
    let added = |index: u32, item: Value| json!({ "type": "output_item.added", "output_index": index, "item": item });
    let piece = |index: u32, text: &str| json!({ "type": "function_call_arguments.delta", "output_index": index, "delta": text });
    for (events, looked) in [
        (vec![done(0, reasoning), done(1, call("a", 1)), last_event(&json!([call("b", 1)]))], vec![1]),
        (vec![added(1, bare("a")), piece(1, "{\"x\": 1}"), last_event(&json!([call("b", 1)]))], vec![1]),
        (vec![added(1, bare("a")), last_event(&json!([call("b", 1)]))], vec![1]),
        (vec![done(1, call("a", 1)), last_event(&json!([bare("b")]))], vec![1]),
        // Two calls are two, and so are calls with the same input that one source has twice.
        (vec![done(1, call("a", 1)), last_event(&json!([call("b", 2)]))], vec![2, 1]),
        (vec![done(1, call("a", 1)), done(2, call("b", 1)), last_event(&json!([call("c", 1)]))], vec![1, 1]),
        (vec![done(1, call("a", 1)), done(2, call("b", 1)), last_event(&json!([call("b", 1)]))], vec![1, 1]),
    ] {
        let answers = vec![responded(&events), Answer::events(streamed("openai-responses", &[DONE]))];
        let played = Played::new("openai-responses", "tool_calls", answers);
        let last = played.run_streamed();
        let mut paths: Vec<String> = looked.iter().map(|x| format!("/look?x={x}")).collect();
        paths.sort();
        let mut made = played.looked();
        made.sort();
        assert_eq!((&last["result"]["answer"], made), (&json!(DONE), paths), "{events:#?}");
    }
}

#[test]
fn the_last_event_of_a_stream_counts_without_the_end_of_its_line() {
    for provider in PROVIDERS {
        let mut events = streamed(provider, &["The order ", "is on its way."]);
        events.retain(|data| !data.contains("[DONE]") && !data.contains("message_stop"));
        let body: Vec<String> = events.iter().map(|data| format!("data: {data}")).collect();
        let played = Played::new(provider, "tool_calls", vec![Answer::new("text/event-stream", body.join("\n\n"))]);
        let last = played.run_streamed();
        assert_eq!((&last["result"]["answer"], played.asked()), (&json!(DONE), 1), "{provider}: {last:#}");
    }
}

#[test]
fn an_empty_object_gives_way_to_the_input_that_follows_it() {
    let piece = |function: Value| {
        let call = json!({ "index": 0, "id": "c1", "function": function });
        json!({ "choices": [{ "index": 0, "delta": { "tool_calls": [call] } }] }).to_string()
    };
    let end = json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": "tool_calls" }] }).to_string();
    for (rest, looked) in [(vec!["{\"x\":5}"], "/look?x=5"), (vec!["{\"x\"", ":5}"], "/look?x=5"), (vec![], "/look")] {
        let first = piece(json!({ "name": "lookup", "arguments": "{}" }));
        let rest = rest.iter().map(|text| piece(json!({ "arguments": text })));
        let events: Vec<String> = std::iter::once(first).chain(rest).chain([end.clone()]).collect();
        let answers = vec![Answer::events(events), Answer::events(streamed("openai", &[DONE]))];
        let played = Played::new("openai", "tool_calls", answers);
        let last = played.run_streamed();
        assert_eq!((&last["result"]["answer"], played.looked()), (&json!(DONE), vec![looked.to_owned()]), "{last:#}");
    }
}

#[test]
fn half_of_a_sign_fails_no_reply() {
    let body = r#"{"choices":[{"index":0,"message":{"content":"sent \ud83d ok"},"finish_reason":"stop"}]}"#;
    let played = Played::new("openai", "tool_calls", vec![Answer::json(body)]);
    assert_eq!((&played.run()["result"]["answer"], played.asked()), (&json!("sent \u{fffd} ok"), 1));
}

#[test]
fn a_native_call_that_nobody_offered_is_made() {
    let function = json!({ "name": "lookup", "arguments": "{\"x\":1}" });
    for (dialect, says) in [
        ("json", json!({ "thought": "t", "action": "__complete__", "action_input": { "answer": DONE } }).to_string()),
        ("tags", format!("<answer>{DONE}</answer>")),
    ] {
        for content in [json!(null), json!("I look.")] {
            let message = json!({ "content": content, "tool_calls": [{ "id": "a", "function": function }] });
            let call = json!({ "choices": [{ "index": 0, "message": message, "finish_reason": "tool_calls" }] });
            let played = Played::new("openai", dialect, vec![Answer::json(&call), whole("openai", &says, "stop")]);
            let result = played.run();
            assert_eq!(result["result"]["answer"], DONE, "{dialect}: {result:#}");
            assert_eq!(played.looked(), ["/look?x=1"], "{dialect}");
            assert_eq!(result["metadata"]["invalid_replies"], 0, "{dialect}: {result:#}");
        }
    }
}

#[test]
fn the_text_of_an_llm_action_that_was_broken_off_is_no_result() {
    for (provider, word, why) in [
        ("openai", "length", "cut off after"),
        ("anthropic", "max_tokens", "cut off after"),
        ("gemini", "MAX_TOKENS", "cut off after"),
        ("openai-responses", "incomplete", "cut off after"),
        ("openai", "network_error", "network_error"),
        ("anthropic", "pause_turn", "pause_turn"),
        ("gemini", "OTHER", "OTHER"),
        ("openai-responses", "failed", "failed"),
    ] {
        let answers = vec![whole(provider, "Dear customer, your refund of 100", word); 2];
        let played = Played::new(provider, "tool_calls", answers);
        let ask = json!({ "action_name": "ask", "kind": "llm", "description": "Asks.", "template": "Write to Ann.",
            "retry": { "attempts": 1 } });
        let step = json!({ "type": "ask", "properties": {}, "outputKey": "a" });
        played.place.json("actions/ask.json", &ask);
        played.place.json("flow.json", &json!({ "name": "flow", "definition": { "actions": [step], "output": "@a" } }));
        let ran = played.place.call(&["run", "flow.json", "--output", "json"]);
        let message = ran.json()["error"]["message"].to_string();
        assert!(ran.code == 1 && message.contains(why), "{provider} {word}: {ran:#?}");
    }
}
