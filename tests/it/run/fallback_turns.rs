//! Turns that another model wrote, at servers that want the reasoning of each turn, with their words.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use crate::common::server::{Answer, Request, Server};
use crate::common::{Place, Ran};

/// Why a server refuses a request; none when it takes it.
type Rule = fn(&Value) -> Option<&'static str>;

/// What a server answers: so many calls beside each other, an outage, or the answer.
#[derive(Clone, Copy)]
enum Turn {
    Calls(usize),
    Outage,
    Done,
}

/// A model at a server of its own.
struct Peer {
    server: Server,
    provider: &'static str,
    model: Value,
    refused: Arc<AtomicUsize>,
}

const KIMI: &str = "thinking is enabled but reasoning_content is missing in assistant tool call message at index 4";
const DEEPSEEK: &str = "The `reasoning_content` in the thinking mode must be passed back to the API.";
const MIMO: &str = "The reasoning_content in the thinking mode must be passed back to the API.";
const CLAUDE: &str = "messages.3.content.0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`. When \
    `thinking` is enabled, a final `assistant` message must start with a thinking block (preceeding the lastmost set of \
    `tool_use` and `tool_result` blocks).";
const DEEPSEEK_MESSAGES: &str = "The `content[].thinking` in the thinking mode must be passed back to the API.";
const ASTRAY: &str = "Item 'fc_1' of type 'function_call' was provided without its required 'reasoning' item: 'rs_1'.";
const UNSIGNED: &str = "Function call is missing a thought_signature in functionCall parts. This is required for tools to \
    work correctly, and missing thought_signature may lead to degraded model performance.";
const ANY: &str = "skip_thought_signature_validator";

/// The reply of a model that reasons, in the form of its provider.
fn reply(provider: &str, turn: Turn, number: usize) -> Answer {
    let calls = match turn {
        Turn::Outage => return Answer::json("{}").status(503),
        Turn::Calls(count) => count,
        Turn::Done => 0,
    };
    let id = |at: usize| format!("{provider}_{number}_{at}");
    let input = |at: usize| json!({ "x": id(at) });
    let text = "The order is on its way.";
    Answer::json(&match provider {
        "openai" => {
            let calls: Vec<Value> = (0..calls)
                .map(|at| json!({ "id": id(at), "type": "function", "function": { "name": "lookup", "arguments": input(at).to_string() } }))
                .collect();
            let mut said = json!({ "role": "assistant", "content": text, "reasoning_content": "Hm." });
            if !calls.is_empty() {
                (said["content"], said["tool_calls"]) = (Value::Null, json!(calls));
            }
            json!({ "choices": [{ "index": 0, "finish_reason": "stop", "message": said }] })
        }
        "openai-responses" => {
            let mut output =
                vec![json!({ "type": "reasoning", "id": "rs_1", "encrypted_content": "c", "summary": [] })];
            output.extend((0..calls).map(|at| {
                json!({ "type": "function_call", "status": "completed", "call_id": id(at), "name": "lookup",
                "arguments": input(at).to_string() })
            }));
            if calls == 0 {
                output.push(json!({ "type": "message", "role": "assistant", "status": "completed",
                    "content": [{ "type": "output_text", "text": text }] }));
            }
            json!({ "status": "completed", "output": output })
        }
        "anthropic" => {
            let mut content = vec![json!({ "type": "thinking", "thinking": "Hm.", "signature": "Eq==" })];
            content.extend(
                (0..calls).map(|at| json!({ "type": "tool_use", "id": id(at), "name": "lookup", "input": input(at) })),
            );
            if calls == 0 {
                content.push(json!({ "type": "text", "text": text }));
            }
            json!({ "type": "message", "role": "assistant", "content": content,
                "stop_reason": if calls == 0 { "end_turn" } else { "tool_use" } })
        }
        _ => {
            let call = |at| match at {
                0 => json!({ "functionCall": { "name": "lookup", "args": input(at) }, "thoughtSignature": "Own=" }),
                _ => json!({ "functionCall": { "name": "lookup", "args": input(at) } }),
            };
            let mut parts: Vec<Value> = (0..calls).map(call).collect();
            if parts.is_empty() {
                parts.push(json!({ "text": text }));
            }
            json!({ "candidates": [{ "finishReason": "STOP", "content": { "role": "model", "parts": parts } }] })
        }
    })
}

impl Peer {
    /// A model with these settings that takes these turns, and refuses by a rule.
    fn new(provider: &'static str, model: Value, turns: &[Turn], rule: Rule) -> Self {
        let (asked, turns, refused) = (AtomicUsize::new(0), turns.to_vec(), Arc::<AtomicUsize>::default());
        let counted = Arc::clone(&refused);
        let server = Server::reading(move |seen, request: &Request| {
            if !request.path.starts_with("/v1") {
                return Answer::json(&json!({ "found_17": seen }));
            }
            if let Some(words) = rule(&request.json()) {
                counted.fetch_add(1, Ordering::SeqCst);
                // MiMo says it in the place of the name of a parameter.
                let error = match words {
                    MIMO => json!({ "code": "400", "message": "Param Incorrect", "param": words, "type": "" }),
                    words => json!({ "message": words, "param": null }),
                };
                return Answer::json(&json!({ "type": "error", "error": error })).status(400);
            }
            let number = asked.fetch_add(1, Ordering::SeqCst);
            reply(provider, turns.get(number).copied().unwrap_or(Turn::Done), number)
        });
        Self { server, provider, model, refused }
    }

    fn declared(&self) -> Value {
        let mut declared =
            json!({ "provider": self.provider, "base_url": format!("{}/v1", self.server.url()), "model": "fake-1" });
        for (name, value) in self.model.as_object().expect("an object") {
            declared[name] = value.clone();
        }
        declared
    }

    fn refusals(&self) -> usize {
        self.refused.load(Ordering::SeqCst)
    }

    /// The requests to the model.
    fn asked(&self) -> Vec<Value> {
        let requests = self.server.requests().into_iter();
        requests.filter(|request| request.path.starts_with("/v1")).map(|request| request.json()).collect()
    }
}

/// A loop that asks one model, and then another one.
fn place(first: &Peer, fallback: Option<&Peer>) -> Place {
    let place = Place::new();
    let mut looped = json!({ "mode": "react", "objective": "Look the order up.", "dialect": "tool_calls",
        "tools": [{ "type": "action", "name": "lookup" }], "retry": { "attempts": 1 } });
    if fallback.is_some() {
        looped["fallback_models"] = json!(["m"]);
    }
    let action = json!({ "action_name": "lookup", "kind": "http", "description": "Looks.", "http_method": "GET",
        "url": format!("{}/look", first.server.url()),
        "parameters": { "type": "object", "properties": { "x": { "type": "string" } } } });
    place.json("loop.json", &json!({ "type": "loop", "properties": looped, "actions": [action] }));
    let mut models = json!({ "first": first.declared() });
    if let Some(fallback) = fallback {
        models["m"] = fallback.declared();
    }
    let allow = json!({ "private_addresses": true });
    place.json("loopctl.json", &json!({ "allow": allow, "model": "first", "models": models }));
    place
}

/// The result of a run that completes.
fn completed(ran: &Ran) -> Value {
    assert!(!ran.stdout.is_empty(), "{ran:#?}");
    let result = ran.json();
    assert_eq!(result["status"], "completed", "{result:#}");
    result
}

fn ran(first: &Peer, fallback: &Peer) -> Value {
    completed(&place(first, Some(fallback)).call(&["run", "loop.json", "--output", "json", "--store", "memory"]))
}

fn list(value: &Value) -> impl DoubleEndedIterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn takes_all(_: &Value) -> Option<&'static str> {
    None
}

/// Kimi: each message with calls.
fn kimi(request: &Value) -> Option<&'static str> {
    let is_blank = |message: &Value| message["reasoning_content"].as_str().unwrap_or_default().trim().is_empty();
    list(&request["messages"]).any(|message| message.get("tool_calls").is_some() && is_blank(message)).then_some(KIMI)
}

/// DeepSeek: each message of the model.
fn deepseek(request: &Value) -> Option<&'static str> {
    let is_bad = |message: &Value| message["role"] == "assistant" && !message["reasoning_content"].is_string();
    list(&request["messages"]).any(is_bad).then_some(DEEPSEEK)
}

/// MiMo: the same.
fn mimo(request: &Value) -> Option<&'static str> {
    deepseek(request).map(|_| MIMO)
}

/// Whether a turn with calls begins with something else than thinking.
fn begins_without_thinking(request: &Value) -> bool {
    list(&request["messages"]).any(|message| {
        let mut blocks = list(&message["content"]);
        let has_calls = list(&message["content"]).any(|block| block["type"] == "tool_use");
        has_calls && blocks.next().is_some_and(|block| block["type"] != "thinking")
    })
}

/// Anthropic, of a model that is asked to think: the last turn of the model must begin with thinking.
fn claude(request: &Value) -> Option<&'static str> {
    let mut turns = list(&request["messages"]).filter(|message| message["role"] == "assistant");
    let last = json!({ "messages": [turns.next_back()] });
    (request["thinking"]["type"] == "enabled" && begins_without_thinking(&last)).then_some(CLAUDE)
}

/// A server where models think unasked, and which looks at each turn.
fn always_thinks(request: &Value) -> Option<&'static str> {
    begins_without_thinking(request).then_some(CLAUDE)
}

fn deepseek_messages(request: &Value) -> Option<&'static str> {
    begins_without_thinking(request).then_some(DEEPSEEK_MESSAGES)
}

/// Responses: calls behind reasoning.
fn responses(request: &Value) -> Option<&'static str> {
    let items: Vec<&Value> = list(&request["input"]).collect();
    // Calls beside each other share the reasoning before the first one.
    let is_before = |item: &Value| item["type"] == "reasoning" || item["type"] == "function_call";
    let is_bad = |pair: &[&Value]| pair[1]["type"] == "function_call" && !is_before(pair[0]);
    items.windows(2).any(is_bad).then_some(ASTRAY)
}

/// Gemini 3: the first call of each content.
fn gemini_3(request: &Value) -> Option<&'static str> {
    list(&request["contents"])
        .any(|content| {
            let mut calls = list(&content["parts"]).filter(|part| part.get("functionCall").is_some());
            calls.next().is_some_and(|part| !part["thoughtSignature"].is_string())
        })
        .then_some(UNSIGNED)
}

/// Older models of Gemini, which know no signature of another model.
fn gemini_2(request: &Value) -> Option<&'static str> {
    request.to_string().contains(ANY).then_some("Corrupted thought signature.")
}

/// A server that speaks OpenAI's protocol for Gemini 3.
fn gemini_3_compatible(request: &Value) -> Option<&'static str> {
    list(&request["messages"])
        .any(|message| {
            let first = list(&message["tool_calls"]).next();
            first.is_some_and(|call| !call["extra_content"]["google"]["thought_signature"].is_string())
        })
        .then_some(UNSIGNED)
}

#[test]
fn a_fallback_to_gemini_3_gets_the_documented_signature_with_the_first_call_of_each_step() {
    for model in ["gemini-3-pro-preview", "gemini-3.5-flash", "gemini-4-argon"] {
        let first = Peer::new("openai", json!({}), &[Turn::Calls(1), Turn::Calls(2), Turn::Outage], takes_all);
        let fallback = Peer::new("gemini", json!({ "model": model }), &[Turn::Done], gemini_3);
        let result = ran(&first, &fallback);
        assert_eq!(result["result"]["answer"], "The order is on its way.");
        assert_eq!(fallback.refusals(), 0, "{model}: it is known by its name");
        let asked = fallback.asked();
        let steps: Vec<&Value> = list(&asked[0]["contents"]).filter(|content| content["role"] == "model").collect();
        assert_eq!(steps[0]["parts"][0]["thoughtSignature"], ANY);
        assert_eq!(
            (&steps[1]["parts"][0]["thoughtSignature"], &steps[1]["parts"][1]["thoughtSignature"]),
            (&json!(ANY), &Value::Null)
        );
    }
}

#[test]
fn a_signature_of_gemini_goes_back_unchanged_and_an_older_gemini_gets_no_other_one() {
    let first = Peer::new(
        "gemini",
        json!({ "model": "gemini-3-flash-preview" }),
        &[Turn::Calls(2), Turn::Outage, Turn::Calls(1), Turn::Done],
        gemini_3,
    );
    let fallback = Peer::new("gemini", json!({ "model": "gemini-2.5-flash" }), &[Turn::Calls(1)], gemini_2);
    ran(&first, &fallback);
    assert_eq!((first.refusals(), fallback.refusals()), (0, 0));
    let asked = first.asked();
    let signatures: Vec<Value> = list(&asked[3]["contents"])
        .filter(|content| content["role"] == "model")
        .flat_map(|content| list(&content["parts"]))
        .map(|part| part["thoughtSignature"].clone())
        .collect();
    assert_eq!(signatures, [json!("Own="), Value::Null, json!(ANY), json!("Own=")]);
}

#[test]
fn a_name_that_says_no_version_is_signed_for_once_it_was_refused() {
    let fallback =
        Peer::new("gemini", json!({ "model": "gemini-pro-latest" }), &[Turn::Calls(1), Turn::Done], gemini_3);
    let first = Peer::new("openai", json!({}), &[Turn::Calls(1), Turn::Outage, Turn::Outage], takes_all);
    ran(&first, &fallback);
    assert_eq!(fallback.refusals(), 1);
    let compatible = Peer::new(
        "openai",
        json!({ "model": "google/gemini-3-pro" }),
        &[Turn::Calls(1), Turn::Done],
        gemini_3_compatible,
    );
    let first = Peer::new("anthropic", json!({}), &[Turn::Calls(2), Turn::Outage, Turn::Outage], takes_all);
    ran(&first, &compatible);
    // Its own reply had no signature either.
    assert_eq!(compatible.refusals(), 1);
    assert!(
        !compatible.asked()[1].to_string().contains("reasoning_content"),
        "Google refuses fields that it does not know"
    );
}

#[test]
fn the_first_model_takes_the_turns_of_its_fallback_again() {
    let thinking = json!({ "thinking": { "type": "enabled", "budget_tokens": 2048 }, "model": "claude-sonnet-4-5" });
    let cases: [(&'static str, Value, Rule, usize); 9] = [
        ("openai", json!({}), kimi, 1),
        ("openai", json!({}), deepseek, 1),
        ("openai", json!({}), mimo, 1),
        ("anthropic", thinking.clone(), claude, 0),
        ("anthropic", thinking, always_thinks, 1),
        ("anthropic", json!({ "thinking": { "type": "adaptive" } }), always_thinks, 1),
        ("anthropic", json!({}), deepseek_messages, 1),
        ("openai-responses", json!({}), responses, 1),
        ("gemini", json!({ "model": "gemini-3-pro" }), gemini_3, 0),
    ];
    for (provider, model, rule, refusals) in cases {
        for other in ["openai", "anthropic", "gemini", "openai-responses"] {
            let turns = [Turn::Calls(1), Turn::Outage, Turn::Calls(2), Turn::Outage, Turn::Calls(1), Turn::Done];
            let first = Peer::new(provider, model.clone(), &turns, rule);
            let fallback = Peer::new(other, json!({ "model": "other" }), &[Turn::Calls(2), Turn::Calls(1)], takes_all);
            let result = ran(&first, &fallback);
            assert_eq!(result["result"]["answer"], "The order is on its way.", "{provider} {other}");
            assert_eq!(fallback.asked().len(), 2, "{provider} {other}: only while the first one was away");
            assert_eq!(first.refusals(), refusals, "{provider} {other}: learned once");
            assert_eq!(result["metadata"]["tool_calls_made"], 7, "{provider} {other}: {result:#}");
            // What the other model did is not lost.
            let last = first.asked().pop().expect("a request").to_string();
            assert_eq!(last.matches("found_17").count(), 7, "{provider} {other}: {last}");
        }
    }
}

#[test]
fn a_model_that_decides_how_much_it_thinks_still_thinks_behind_a_turn_of_its_fallback() {
    let adaptive = json!({ "thinking": { "type": "adaptive" }, "model": "claude-opus-4-7" });
    let first = Peer::new("anthropic", adaptive.clone(), &[Turn::Calls(1), Turn::Outage, Turn::Done], claude);
    let fallback = Peer::new("openai", json!({}), &[Turn::Calls(1)], takes_all);
    ran(&first, &fallback);
    assert_eq!(first.asked()[2]["thinking"], adaptive["thinking"]);
    let blocks = first.asked()[2]["messages"].to_string();
    assert!(blocks.contains("\"signature\":\"Eq==\""), "{blocks}");
}

#[test]
fn turns_are_said_as_text_where_a_server_takes_no_words_for_reasoning() {
    fn strict(request: &Value) -> Option<&'static str> {
        let foreign = |message: &Value| message["reasoning_content"].as_str().is_some_and(|text| text != "Hm.");
        if list(&request["messages"]).any(foreign) {
            return Some("The reasoning_content of message 4 is required to be the one that was returned.");
        }
        kimi(request)
    }
    let first = Peer::new("openai", json!({}), &[Turn::Calls(1), Turn::Outage, Turn::Calls(1), Turn::Done], strict);
    let fallback = Peer::new("openai", json!({ "model": "other" }), &[Turn::Calls(1)], takes_all);
    ran(&first, &fallback);
    let last = first.asked().pop().expect("a request");
    assert_eq!(strict(&last), None, "{last:#}");
    assert!(last.to_string().contains("[In an earlier turn] lookup was called with {"), "{last:#}");
}

#[test]
fn a_run_that_goes_on_with_another_model_sends_it_what_it_takes() {
    for (provider, model, rule) in [
        ("gemini", json!({ "model": "gemini-3-pro" }), gemini_3 as Rule),
        ("openai", json!({ "model": "kimi-k3" }), kimi),
    ] {
        let first = Peer::new("openai", json!({}), &[Turn::Calls(2), Turn::Outage], takes_all);
        let place = place(&first, None);
        let failed = place.call(&["run", "loop.json", "--output", "json", "--store", "sqlite:runs.db"]).json();
        assert_eq!(failed["status"], "failed", "{failed:#}");
        let next = Peer::new(provider, model, &[Turn::Done], rule);
        let allow = json!({ "private_addresses": true });
        place
            .json("loopctl.json", &json!({ "allow": allow, "model": "first", "models": { "first": next.declared() } }));
        let run_id = failed["run_id"].as_str().expect("an id");
        completed(&place.call(&["retry", run_id, "--output", "json", "--store", "sqlite:runs.db"]));
    }
}

#[test]
fn reasoning_that_a_server_can_not_verify_any_more_is_left_out_for_the_rest_of_the_run() {
    const WORDS: [(&str, &str, &str); 4] = [
        ("anthropic", "Eq==", "messages.1.content.0: Invalid `signature` in `thinking` block"),
        ("openai-responses", "encrypted_content\":\"c", "The encrypted content c could not be verified."),
        (
            "openai-responses",
            "rs_1",
            "Item 'rs_1' of type 'reasoning' was provided without its required following item.",
        ),
        ("gemini", "Own=", "Corrupted thought signature."),
    ];
    fn rule<const AT: usize>(request: &Value) -> Option<&'static str> {
        let (_, sealed, words) = WORDS[AT];
        request.to_string().contains(sealed).then_some(words)
    }
    let rules: [Rule; 4] = [rule::<0>, rule::<1>, rule::<2>, rule::<3>];
    for ((provider, _, words), rule) in WORDS.into_iter().zip(rules) {
        let model = json!({ "model": "gemini-3-pro" });
        let first = Peer::new(provider, model, &[Turn::Calls(1), Turn::Calls(1), Turn::Done], rule);
        let ran = place(&first, None).call(&["run", "loop.json", "--output", "json", "--store", "memory"]);
        completed(&ran);
        assert_eq!(first.refusals(), 1, "{words}");
        assert_eq!(first.asked().len(), 4, "{words}");
    }
}
