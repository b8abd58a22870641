//! What providers count, from a local server in each protocol: what a run makes of zeros, of counts that fall, of caches, and
//! of reasoning that is counted beside the reply.

use serde_json::{Value, json};

use crate::common::server::Answer;
use crate::common::streams::{PROVIDERS, streamed};
use crate::common::{Place, Ran, complete};
use crate::run::provider_replies::Played;

/// The names of the counts of a provider: its usage, and in it what was read and written.
fn names(provider: &str) -> [&'static str; 3] {
    match provider {
        "openai" => ["usage", "prompt_tokens", "completion_tokens"],
        "gemini" => ["usageMetadata", "promptTokenCount", "candidatesTokenCount"],
        _ => ["usage", "input_tokens", "output_tokens"],
    }
}

/// A whole reply that calls the tool or, with a text, ends the run; with this usage.
fn whole(provider: &str, text: Option<&str>, usage: &Value) -> Answer {
    let arguments = json!({ "x": 1 });
    let mut body = match (provider, text) {
        ("openai", Some(text)) => json!({ "choices": [{ "message": { "content": text }, "finish_reason": "stop" }] }),
        ("openai", None) => {
            let call = json!({ "id": "c1", "function": { "name": "lookup", "arguments": arguments.to_string() } });
            json!({ "choices": [{ "message": { "tool_calls": [call] }, "finish_reason": "tool_calls" }] })
        }
        ("anthropic", Some(text)) => {
            json!({ "type": "message", "content": [{ "type": "text", "text": text }], "stop_reason": "end_turn" })
        }
        ("anthropic", None) => {
            let call = json!({ "type": "tool_use", "id": "toolu_1", "name": "lookup", "input": arguments });
            json!({ "type": "message", "content": [call], "stop_reason": "tool_use" })
        }
        ("gemini", _) => {
            let call = json!({ "functionCall": { "name": "lookup", "args": arguments } });
            let part = text.map_or(call, |text| json!({ "text": text }));
            json!({ "candidates": [{ "content": { "parts": [part] }, "finishReason": "STOP" }] })
        }
        (_, Some(text)) => {
            let message = json!({ "type": "message", "content": [{ "type": "output_text", "text": text }] });
            json!({ "status": "completed", "error": null, "output": [message] })
        }
        (_, None) => {
            let call = json!({ "type": "function_call", "call_id": "c1", "name": "lookup", "arguments": arguments.to_string() });
            json!({ "status": "completed", "error": null, "output": [call] })
        }
    };
    body[names(provider)[0]] = usage.clone();
    Answer::json(&body)
}

/// A usage with these counts.
fn counts(provider: &str, input: u64, output: u64) -> Value {
    let [_, read, written] = names(provider);
    json!({ read: input, written: output })
}

/// The tokens of a result: read, written, and whether some are an estimate.
fn tokens(result: &Value) -> (u64, u64, bool) {
    let usage = &result["usage"];
    let count = |name: &str| usage[name].as_u64().unwrap_or_else(|| panic!("no {name}: {result:#}"));
    (count("input_tokens"), count("output_tokens"), usage["estimated"].as_bool().unwrap_or_default())
}

#[test]
fn zeros_are_no_usage_so_that_a_budget_holds() {
    for provider in PROVIDERS {
        let mut none = counts(provider, 0, 0);
        none["total_tokens"] = json!(0);
        let more = json!({ "max_iterations": 40, "budget": { "tokens": 900 }, "on_stuck": { "iterations": 60 } });
        let answers = vec![whole(provider, None, &none); 40];
        let played = Played::with(provider, "tool_calls", answers, &more);
        let ran: Ran = played.place.call(&["run", "loop.json", "--output", "json"]);
        let result = ran.json();
        assert_eq!(result["termination"], "budget", "{provider}: {result:#}");
        let (input, output, estimated) = tokens(&result);
        assert!(input + output >= 900 && output > 0 && estimated, "{provider}: {result:#}");
    }
}

/// A reply that stopped for a reason that nobody knows.
fn broken(provider: &str, usage: &Value) -> Answer {
    let text = "The refund is";
    let mut body = match provider {
        "openai" => json!({ "choices": [{ "message": { "content": text }, "finish_reason": "odd" }] }),
        "anthropic" => {
            json!({ "type": "message", "content": [{ "type": "text", "text": text }], "stop_reason": "odd" })
        }
        "gemini" => json!({ "candidates": [{ "content": { "parts": [{ "text": text }] }, "finishReason": "ODD" }] }),
        _ => {
            let message = json!({ "type": "message", "content": [{ "type": "output_text", "text": text }] });
            json!({ "status": "odd", "error": null, "output": [message] })
        }
    };
    body[names(provider)[0]] = usage.clone();
    Answer::json(&body)
}

#[test]
fn failed_attempts_whose_reply_came_are_estimated_too_so_that_a_budget_holds() {
    let retry = json!({ "attempts": 1_000, "base_ms": 0 });
    let more = json!({ "budget": { "tokens": 900 }, "max_iterations": 40, "retry": retry });
    for provider in PROVIDERS {
        for usage in [counts(provider, 0, 0), json!(null)] {
            let played = Played::with(provider, "tool_calls", vec![broken(provider, &usage); 60], &more);
            let result = played.place.call(&["run", "loop.json", "--output", "json"]).json();
            assert_eq!(result["termination"], "budget", "{provider}: {result:#}");
            let (input, output, estimated) = tokens(&result);
            assert!((900..2_000).contains(&(input + output)) && estimated, "{provider}: {result:#}");
            assert!(played.asked() < 20, "{provider}: {}", played.asked());
        }
    }
    // An empty reply that is asked for again was paid for; one that was counted stays as it was.
    let text = "The order is on its way.";
    for (usage, most) in [(counts("openai", 0, 0), 0), (counts("openai", 100, 10), 220)] {
        let answers = vec![whole("openai", Some(""), &usage), whole("openai", Some(text), &usage)];
        let (input, output, estimated) = tokens(&Played::with("openai", "tool_calls", answers, &json!({})).run());
        let once =
            tokens(&Played::with("openai", "tool_calls", vec![whole("openai", Some(text), &usage)], &json!({})).run());
        assert!(input >= once.0 * 2 - 1 && estimated == (most == 0), "{input} {output} {once:?}");
        assert!(most == 0 || input + output == most, "{input} {output}");
    }
}

#[test]
fn empty_replies_of_an_llm_action_that_nobody_counted_are_estimated() {
    let none = counts("openai", 0, 0);
    let empty = || whole("openai", Some(""), &none);
    let answers = vec![empty(), empty(), whole("openai", Some("A letter."), &none)];
    let played = Played::with("openai", "tool_calls", answers, &json!({}));
    let template = "Write to Ann, please. ".repeat(40);
    let ask = json!({ "action_name": "ask", "kind": "llm", "description": "Asks.", "template": template,
        "retry": { "base_ms": 0 } });
    let step = json!({ "type": "ask", "properties": {}, "outputKey": "a" });
    played.place.json("flow.json", &json!({ "name": "flow", "definition": { "actions": [step], "output": "@a" } }));
    played.place.json("actions/ask.json", &ask);
    let ran = played.place.call(&["run", "flow.json", "--output", "json"]);
    let (input, _, estimated) = tokens(&ran.json());
    assert!(played.asked() == 3 && input > 600 && estimated, "{ran:#?}");
}

#[test]
fn the_one_side_that_is_zero_or_missing_is_estimated_and_the_other_counts() {
    for provider in PROVIDERS {
        let [_, read, written] = names(provider);
        for usage in [counts(provider, 0, 50), json!({ written: 50 }), json!({ read: null, written: 50 })] {
            let (input, output, estimated) = tokens(
                &Played::with(provider, "tool_calls", vec![whole(provider, Some("ok"), &usage)], &json!({})).run(),
            );
            assert!(input > 10 && output == 50 && estimated, "{provider} {usage}: {input} {output} {estimated}");
        }
        for usage in [counts(provider, 1_000, 0), json!({ read: 1_000 })] {
            let text = "The order is on its way to the customer.";
            let (input, output, estimated) = tokens(
                &Played::with(provider, "tool_calls", vec![whole(provider, Some(text), &usage)], &json!({})).run(),
            );
            assert!(input == 1_000 && output > 0 && estimated, "{provider} {usage}: {input} {output} {estimated}");
        }
    }
}

#[test]
fn counts_of_a_stream_never_fall() {
    for provider in PROVIDERS {
        let [usage, read, written] = names(provider);
        let mut events: Vec<Value> = streamed(provider, &["ok"])
            .iter()
            .filter_map(|data| serde_json::from_str(data).ok())
            .map(|mut event: Value| {
                let falls = json!({ read: 0, written: 16 });
                match event.get("response") {
                    Some(_) => event["response"][usage] = falls,
                    None if event.get(usage).is_some() => event[usage] = falls,
                    None => {}
                }
                event
            })
            .collect();
        let first = json!({ read: 1_000, written: 1 });
        events.insert(
            0,
            match provider {
                "openai" => json!({ "choices": [], "usage": first }),
                "anthropic" => json!({ "type": "message_start", "message": { "usage": first } }),
                "gemini" => json!({ "candidates": [], "usageMetadata": first }),
                // What a response reports at its start does not count.
                _ => continue,
            },
        );
        let answer = Answer::events(events.iter().map(Value::to_string));
        let last = Played::with(provider, "tool_calls", vec![answer], &json!({})).run_streamed();
        assert_eq!(tokens(&last), (1_000, 16, false), "{provider}: {last:#}");
        assert_eq!(last["usage"]["cost_usd"], 0.001_016, "{provider}");
    }
}

#[test]
fn reasoning_beside_the_completion_is_output_and_a_cache_is_never_more_than_the_input() {
    let openai = |output: u64, total: u64| {
        json!({ "prompt_tokens": 1_000, "completion_tokens": output, "total_tokens": total,
            "completion_tokens_details": { "reasoning_tokens": 500 }, "prompt_tokens_details": { "cached_tokens": 4_000 } })
    };
    let responses = |output: u64, total: u64| {
        json!({ "input_tokens": 1_000, "output_tokens": output, "total_tokens": total,
            "output_tokens_details": { "reasoning_tokens": 500 }, "input_tokens_details": { "cached_tokens": 4_000 } })
    };
    let gemini = |output: u64| {
        json!({ "promptTokenCount": 1_000, "candidatesTokenCount": output, "thoughtsTokenCount": 500,
        "totalTokenCount": 1_510, "cachedContentTokenCount": 4_000 })
    };
    for (provider, usage) in [
        ("openai", openai(10, 1_510)),
        ("openai", openai(510, 1_510)),
        ("openai-responses", responses(10, 1_510)),
        ("openai-responses", responses(510, 1_510)),
        ("gemini", gemini(10)),
        ("gemini", gemini(510)),
    ] {
        let result = Played::with(provider, "tool_calls", vec![whole(provider, Some("ok"), &usage)], &json!({})).run();
        assert_eq!(tokens(&result), (1_000, 510, false), "{provider} {usage}: {result:#}");
        let details = &result["usage"];
        assert_eq!(
            (&details["reasoning_tokens"], &details["cached_input_tokens"]),
            (&json!(500), &json!(1_000)),
            "{result:#}"
        );
        let cost = details["cost_usd"].as_f64().map(|cost| format!("{cost:.6}"));
        assert_eq!(cost.as_deref(), Some("0.000610"), "{provider}");
    }
}

#[test]
fn zeros_of_a_script_and_of_an_llm_action_are_estimated_too() {
    let place = Place::new();
    place.looped(&json!({}));
    let done = json!({ "text": complete(json!("done")).to_string(), "usage": { "input": 0, "output": 7 } });
    place.json("script.json", &json!({ "replies": [done] }));
    let ran = place.call(&["run", "loop.json", "--script", "script.json", "--output", "json"]);
    let (input, output, estimated) = tokens(&ran.json());
    assert!(input > 10 && output == 7 && estimated, "{ran:#?}");

    let answers = vec![whole("openai", Some("A letter to Ann, with all that she needs."), &counts("openai", 0, 0))];
    let played = Played::with("openai", "tool_calls", answers, &json!({}));
    let ask =
        json!({ "action_name": "ask", "kind": "llm", "description": "Asks.", "template": "Write to Ann, please." });
    let step = json!({ "type": "ask", "properties": {}, "outputKey": "a" });
    played.place.json("flow.json", &json!({ "name": "flow", "definition": { "actions": [step], "output": "@a" } }));
    played.place.json("actions/ask.json", &ask);
    let ran = played.place.call(&["run", "flow.json", "--output", "json"]);
    let (input, output, estimated) = tokens(&ran.json());
    assert!(input > 0 && output > 5 && estimated, "{ran:#?}");
}
