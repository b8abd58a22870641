//! The budget: what is counted, when it is warned about, and what happens when it is spent.

use serde_json::{Value, json};

use crate::common::server::{Answer, Server};
use crate::common::{Place, Ran, complete, document, look, with};

/// A reply of a script that used so many tokens.
fn used(reply: &Value, input: u64, output: u64) -> Value {
    json!({ "text": reply.to_string(), "usage": { "input": input, "output": output } })
}

fn events(ran: &Ran, kind: &str) -> Vec<Value> {
    let lines = ran.stdout.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    lines.filter(|line| line["event"] == kind).collect()
}

fn priced(models: Value) -> Value {
    json!({ "models": models, "allow": { "commands": ["echo"] } })
}

/// A model of OpenAI's protocol at a server, with its price for a million tokens.
fn model(server: &Server, input: f64, output: f64) -> Value {
    json!({ "provider": "openai", "base_url": server.url(), "price": { "input": input, "output": output } })
}

/// A loop whose tool `look` is a program, so that the models are real ones.
fn with_models(properties: Value, models: Value) -> Place {
    let place = Place::new();
    let mut document = document(&properties);
    for action in document["actions"].as_array_mut().expect("actions") {
        let (name, parameters) = (action["action_name"].clone(), action["parameters"].clone());
        *action = json!({ "action_name": name, "kind": "command", "program": "echo", "args": ["seen"],
            "description": "Looks.", "parameters": parameters });
    }
    place.json("loop.json", &document);
    place.json("loopctl.json", &priced(models));
    place
}

fn run(place: &Place, more: &[&str]) -> Ran {
    let mut args = vec!["run", "loop.json", "--output", "json", "--store", "memory", "--model", "main"];
    args.extend(more);
    place.call(&args)
}

#[test]
fn a_warning_is_given_once_and_a_resumed_run_does_not_give_it_again() {
    let place = Place::new();
    place.looped(&json!({ "budget": { "tokens": 1_000, "warn_at": 0.5 } }));
    place.script(&[
        used(&look("a"), 300, 100),
        used(&look("b"), 100, 50),
        used(
            &json!({ "thought": "t", "action": "__pause_for_human__", "action_input": { "question": "Go on?" } }),
            50,
            10,
        ),
        used(&look("c"), 20, 10),
        used(&complete(json!("done")), 20, 10),
    ]);
    let args = ["run", "loop.json", "--script", "script.json", "--output", "ndjson", "--run-id", "r"];
    let first = place.call(&args);
    assert_eq!(first.code, 3, "{first:#?}");
    let warned = events(&first, "budget_warning");
    assert_eq!(warned.len(), 1, "{first:#?}");
    assert_eq!(
        (&warned[0]["iterations"], &warned[0]["tokens"], &warned[0]["used"]),
        (&json!(2), &json!(550), &json!(0.55))
    );
    let args = ["resume", "r", "--answer", "yes", "--script", "script.json", "--output", "ndjson"];
    let second = place.call(&args);
    assert_eq!((second.code, events(&second, "budget_warning").len()), (0, 0), "{second:#?}");
}

#[test]
fn a_spent_budget_is_never_passed_by_more_than_one_call() {
    let place = Place::new();
    place.looped(&json!({ "budget": { "tokens": 1_000 }, "max_iterations": 50 }));
    let replies: Vec<Value> = (0..20).map(|n| used(&look(&n.to_string()), 150, 50)).collect();
    place.script(&replies);
    let (ran, result) = place.run(&[]);
    assert_eq!((ran.code, &result["termination"]), (1, &json!("budget")), "{ran:#?}");
    assert_eq!((&result["iterations"], &result["usage"]["input_tokens"]), (&json!(5), &json!(750)));
}

#[test]
fn a_spent_budget_with_on_limit_answer_gets_one_last_answer() {
    let place = Place::new();
    place.looped(&json!({ "budget": { "tokens": 100 }, "on_limit": "answer" }));
    place.script(&[used(&look("a"), 150, 50), used(&complete(json!("so far")), 10, 10)]);
    let (ran, result) = place.run(&[]);
    assert_eq!((ran.code, &result["termination"], &result["limit"]), (0, &json!("forced_answer"), &json!("budget")));
}

#[test]
fn a_fallback_that_answers_is_paid_at_its_own_price() {
    let dead = Server::with(|_, _| Answer::json("{}").status(503));
    let alive =
        Server::with(|number, _| Answer::openai(&[look("a"), complete(json!("ok"))][number.min(1)].to_string()));
    let models = json!({ "main": model(&dead, 1_000.0, 1_000.0), "spare": model(&alive, 10.0, 100.0) });
    let place = with_models(json!({ "fallback_models": ["spare"], "budget": { "cost_usd": 1.0 } }), models);
    let ran = run(&place, &[]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    // Two replies of 10 and 5 tokens at 10 and 100 dollars for a million.
    assert_eq!(ran.json()["usage"]["cost_usd"], json!(0.0012), "{ran:#?}");
}

/// Two replies of 15 tokens leave 20 of 50.
fn routed(main: &Server, spare: &Server) -> Value {
    let models = json!({ "main": model(main, 10.0, 100.0), "spare": model(spare, 1.0, 10.0) });
    let route = json!([{ "model": "spare", "when": { "budget_left_below": 0.5 } }]);
    let retry = json!({ "attempts": 1 });
    let place = with_models(json!({ "fallback_models": route, "budget": { "tokens": 50 }, "retry": retry }), models);
    let ran = run(&place, &[]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    ran.json()
}

#[test]
fn a_model_with_a_condition_is_asked_first_once_less_is_left_of_the_budget_and_not_before() {
    let main = Server::with(|number, _| Answer::openai(&look(["a", "b", "c"][number.min(2)]).to_string()));
    let spare = Server::with(|_, _| Answer::openai(&complete(json!("ok")).to_string()));
    let result = routed(&main, &spare);
    assert_eq!((main.requests().len(), spare.requests().len()), (2, 1), "{result:#}");
    // Two replies of 10 and 5 tokens at the price of the one model, and one at that of the other.
    assert_eq!(result["usage"]["cost_usd"], json!(0.00126), "{result:#}");
}

#[test]
fn a_model_with_a_condition_that_is_away_leaves_the_turn_to_the_own_model() {
    let main = Server::with(|number, _| {
        Answer::openai(&[look("a"), look("b"), complete(json!("ok"))][number.min(2)].to_string())
    });
    let spare = Server::with(|_, _| Answer::json("{}").status(503));
    let result = routed(&main, &spare);
    assert_eq!((main.requests().len(), spare.requests().len()), (3, 1), "{result:#}");
}

fn asking(models: Value, server: &Server) -> Place {
    let place = Place::new();
    place.actions(
        &[json!({ "action_name": "translate", "kind": "llm", "description": "Translates.", "template": "Translate {{text}}",
            "model": "translator" })],
        &priced(with(json!({ "main": model(server, 10.0, 100.0) }), models)),
    );
    place
}

fn translate() -> Value {
    json!({ "thought": "t", "action": "translate", "action_input": { "text": "bonjour" } })
}

#[test]
fn an_llm_tool_is_paid_at_the_price_of_its_own_model() {
    let main =
        Server::with(|number, _| Answer::openai(&[translate(), complete(json!("ok"))][number.min(1)].to_string()));
    let other = Server::with(|_, _| Answer::openai("hello"));
    let place = asking(json!({ "translator": model(&other, 1_000.0, 2_000.0) }), &main);
    let ran = run(&place, &[]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    let usage = &ran.json()["usage"];
    // Two replies at 10 and 100 dollars (0.0012), one at 1,000 and 2,000 (0.02), of 10 and 5 tokens each.
    assert_eq!((&usage["cost_usd"], &usage["input_tokens"]), (&json!(0.0212), &json!(30)), "{usage}");
    assert!(usage.get("estimated").is_none());
}

#[test]
fn an_llm_tool_whose_provider_does_not_count_is_estimated_and_said_to_be() {
    let main =
        Server::with(|number, _| Answer::openai(&[translate(), complete(json!("ok"))][number.min(1)].to_string()));
    let silent = json!({ "choices": [{ "message": { "content": "hello, and welcome" }, "finish_reason": "stop" }] });
    let other = Server::with(move |_, _| Answer::json(&silent));
    let place = asking(json!({ "translator": model(&other, 1_000.0, 2_000.0) }), &main);
    let usage = run(&place, &[]).json()["usage"].clone();
    assert_eq!(usage["estimated"], true, "{usage}");
    assert!(usage["input_tokens"].as_u64() > Some(20) && usage["output_tokens"].as_u64() > Some(10), "{usage}");
    assert!(usage["cost_usd"].as_f64() > Some(0.005), "{usage}");
}

#[test]
fn a_cost_that_is_only_known_in_part_is_not_shown_as_the_cost() {
    let main =
        Server::with(|number, _| Answer::openai(&[translate(), complete(json!("ok"))][number.min(1)].to_string()));
    let other = Server::with(|_, _| Answer::openai("hello"));
    let unpriced = json!({ "provider": "openai", "base_url": other.url() });
    let place = asking(json!({ "translator": unpriced }), &main);
    let ran = run(&place, &[]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    assert!(ran.json()["usage"].get("cost_usd").is_none(), "{ran:#?}");
}

#[test]
fn a_tool_that_asks_a_model_is_not_called_when_the_budget_is_spent() {
    let main = Server::with(|_, _| Answer::openai(&translate().to_string()));
    let other = Server::with(|_, _| Answer::openai("hello"));
    let place = asking(json!({ "translator": model(&other, 1.0, 1.0) }), &main);
    let mut document: Value = serde_json::from_slice(&std::fs::read(place.path().join("loop.json")).unwrap()).unwrap();
    document["properties"]["budget"] = json!({ "tokens": 12 });
    place.json("loop.json", &document);
    let ran = run(&place, &[]);
    assert_eq!((ran.code, &ran.json()["termination"]), (1, &json!("budget")), "{ran:#?}");
    assert_eq!((main.requests().len(), other.requests().len()), (1, 0));
}

#[test]
fn empty_replies_that_are_tried_again_are_counted_and_stop_at_the_budget() {
    let server = Server::with(|_, _| Answer::openai(""));
    let models = json!({ "main": model(&server, 1.0, 1.0) });
    let retry = json!({ "attempts": 9, "base_ms": 1, "max_ms": 1 });
    let place = with_models(json!({ "retry": retry, "budget": { "tokens": 40 } }), models);
    let ran = run(&place, &[]);
    let result = ran.json();
    assert_eq!((ran.code, &result["termination"]), (1, &json!("budget")), "{ran:#?}");
    assert_eq!(server.requests().len(), 3, "15 tokens each: the third one passed it");
    assert_eq!(result["usage"]["input_tokens"], 30, "{result:#}");
}

#[test]
fn a_budget_in_dollars_is_refused_for_a_fallback_without_a_price() {
    let server = Server::with(|_, _| Answer::openai(&complete(json!("ok")).to_string()));
    let spare = json!({ "provider": "openai", "base_url": server.url() });
    let models = json!({ "main": model(&server, 1.0, 1.0), "spare": spare });
    let place = with_models(json!({ "fallback_models": ["spare"], "budget": { "cost_usd": 1 } }), models);
    let ran = run(&place, &[]);
    assert_eq!((ran.code, server.requests().len()), (2, 0), "{ran:#?}");
    assert!(ran.stderr.contains("L096") && ran.stderr.contains("spare"), "{}", ran.stderr);
}

#[test]
fn the_last_word_of_a_spent_budget_is_tried_again_when_an_attempt_cost_nothing() {
    let place = Place::new();
    place.looped(&json!({ "budget": { "tokens": 100 }, "on_limit": "answer" }));
    place.script(&[used(&look("a"), 150, 50), json!({ "http": 503 }), used(&complete(json!("so far")), 10, 10)]);
    let (ran, result) = place.run(&[]);
    assert_eq!((ran.code, &result["termination"], &result["limit"]), (0, &json!("forced_answer"), &json!("budget")));
    place.script(&[used(&look("a"), 150, 50), json!({ "http": 503 }), json!({ "http": 503 })]);
    let (ran, result) = place.run(&[]);
    assert_eq!((ran.code, &result["error"]["code"]), (1, &json!("model_unreachable")), "{result:#}");
}

#[test]
fn tools_of_one_turn_that_ask_a_model_do_not_pass_the_budget_together() {
    for (budget, made) in [(json!({ "tokens": 30 }), 1), (json!({ "tokens": 1_000_000 }), 3), (Value::Null, 3)] {
        let main = Server::with(|number, _| {
            let call = json!({ "name": "translate", "arguments": { "text": "bonjour" } });
            let three = format!("<tool_call>{call}</tool_call>\n").repeat(3);
            Answer::openai(if number == 0 { &three } else { "<answer>ok</answer>" })
        });
        let other = Server::with(|_, _| Answer::openai("hello"));
        let place = asking(json!({ "translator": model(&other, 1.0, 1.0) }), &main);
        let mut document: Value =
            serde_json::from_slice(&std::fs::read(place.path().join("loop.json")).unwrap()).unwrap();
        document["properties"]["dialect"] = json!("tags");
        if !budget.is_null() {
            document["properties"]["budget"] = budget;
        }
        place.json("loop.json", &document);
        let ran = run(&place, &[]);
        let result = ran.json();
        let ended = if made == 3 { "complete" } else { "budget" };
        assert_eq!((&result["termination"], other.requests().len()), (&json!(ended), made), "{ran:#?}");
        let not_called = result["trace"].to_string().matches("not called: the run's budget is spent").count();
        assert_eq!(not_called > 0, made < 3, "{result:#}");
    }
}

/// A workflow whose steps are counted by a budget of its own, or of its items.
fn counted_workflow(place: &Place, of_workflow: bool, step: Value) {
    place.json(
        "actions/judge.json",
        &json!([{ "action_name": "judge", "kind": "llm", "description": "Judges.",
        "idempotent": true, "template": "Is {{text}} clear?" }]),
    );
    let mut properties = json!({ "mode": "foreach", "items_path": "@input.texts", "item_variable_name": "one",
        "actions_to_execute": [step] });
    let mut definition = json!({});
    if of_workflow {
        definition["budget"] = json!({ "cost_usd": 1 });
    } else {
        properties["item_budget"] = json!({ "cost_usd": 1 });
    }
    definition["actions"] = json!([{ "type": "loop", "properties": properties }]);
    place.json("loop.json", &json!({ "name": "clarity", "definition": definition }));
}

#[test]
fn a_budget_in_dollars_of_a_workflow_or_its_items_is_refused_for_each_model_without_a_price() {
    let server = Server::with(|_, _| Answer::openai(&complete(json!("ok")).to_string()));
    let judge = json!({ "type": "judge", "properties": { "text": "@one" } });
    let inner =
        json!({ "type": "loop", "properties": { "mode": "react", "objective": "Judge {{one}}.", "tools": [] } });
    let named = json!({ "type": "loop", "name": "judging" });
    let bare = json!({ "provider": "openai", "base_url": server.url() });
    for of_workflow in [false, true] {
        for step in [&judge, &inner, &named] {
            let place = Place::new();
            place.json(
                "loops/judging.json",
                &json!({ "type": "loop", "name": "judging",
                "properties": { "mode": "react", "objective": "Judge.", "tools": [] } }),
            );
            counted_workflow(&place, of_workflow, step.clone());
            let models = json!({ "main": model(&server, 1.0, 1.0), "bare": bare });
            place.json("loopctl.json", &json!({ "models": models }));
            place.json("input.json", &json!({ "texts": ["a"] }));
            let ran = run(&place, &["--input-file", "input.json"]);
            assert_eq!(ran.code, 0, "{ran:#?}");
            let asked = server.requests().len();
            // What the caller names is known when the run starts.
            let args = ["run", "loop.json", "--store", "memory", "--model", "bare", "--input-file", "input.json"];
            let ran = place.call(&args);
            assert!(ran.code != 0 && ran.stderr.contains("model bare") && ran.stderr.contains("no price"), "{ran:#?}");
            place.json("loopctl.json", &json!({ "model": "bare", "models": models }));
            let ran = place.call(&["run", "loop.json", "--store", "memory", "--input-file", "input.json"]);
            assert!(ran.code == 2 && ran.stderr.contains("L096"), "{ran:#?}");
            assert_eq!(server.requests().len(), asked);
        }
    }
}

#[test]
fn a_budget_in_dollars_needs_no_price_of_a_model_that_nothing_asks() {
    let place = Place::new();
    let echo = json!({ "action_name": "look", "kind": "command", "program": "echo", "args": ["seen"],
        "description": "Looks.", "idempotent": true });
    place.json("actions/look.json", &json!([echo]));
    counted_workflow(&place, true, json!({ "type": "look", "properties": {} }));
    let models = json!({ "bare": { "provider": "openai", "base_url": "http://127.0.0.1:9" } });
    place.json("loopctl.json", &json!({ "model": "bare", "models": models, "allow": { "commands": ["echo"] } }));
    place.json("input.json", &json!({ "texts": ["a"] }));
    let ran = place.call(&["run", "loop.json", "--store", "memory", "--input-file", "input.json"]);
    assert_eq!(ran.code, 0, "{ran:#?}");
}
