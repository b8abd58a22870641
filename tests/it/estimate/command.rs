//! `loopctl estimate` as a user meets it.

use serde_json::{Value, json};

use crate::common::{Place, complete, document, think};

/// A loop with a priced model, a bounded window and a script that plays the model.
fn place(properties: &Value) -> Place {
    let place = Place::new();
    place.json("loopctl.json", &project(10_000));
    place.looped(properties);
    place
}

fn project(context_tokens: u64) -> Value {
    let model =
        json!({ "provider": "openai", "context_tokens": context_tokens, "price": { "input": 2.0, "output": 8.0 } });
    json!({ "model": "small", "models": { "small": model } })
}

fn properties() -> Value {
    json!({ "mode": "react", "objective": "Sort {{input.text}}.", "tools": [], "max_iterations": 3, "max_tokens": 1000,
        "retry": { "attempts": 2 }, "history": { "summarize": false } })
}

#[test]
fn an_estimate_names_each_figure_with_the_word_that_bounds_it() {
    let place = place(&properties());
    let ran = place.call(&["estimate", "loop.json"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    for shown in
        ["model calls", "max_iterations 3 (loop.json:", "retry.attempts 2 (loop.json:", "$0.1680", "timeout_ms"]
    {
        assert!(ran.stdout.contains(shown), "no {shown}: {}", ran.stdout);
    }
    let report = place.call(&["estimate", "loop.json", "--output", "json"]).json();
    // 3 iterations with 2 attempts each; a request has a window of tokens at most, as the input is not known.
    let most = &report["most"];
    assert_eq!((&most["model_calls"], &most["tool_calls"]), (&json!(6), &json!(0)));
    assert_eq!((&most["input_tokens"], &most["output_tokens"]), (&json!(60_000), &json!(6_000)));
    assert!((most["cost_usd"].as_f64().unwrap() - 0.168).abs() < 1e-9, "{most}");
    assert_eq!(report["active_ms"], 300_000);
    let at = |word: &str| {
        let words = report["bounds"].as_array().unwrap();
        words.iter().find(|found| found["word"] == word).unwrap_or_else(|| panic!("no {word}: {report:#}")).clone()
    };
    assert!(at("max_iterations")["at"].as_str().unwrap().starts_with("loop.json:"));
    assert_eq!(at("timeout_ms").get("at"), None, "a default has no place");
}

#[test]
fn an_input_that_is_known_bounds_what_the_texts_take_of_it() {
    let place = place(&properties());
    place.json("loopctl.json", &project(1_000_000));
    let tokens = |more: &[&str]| {
        let args = [&["estimate", "loop.json", "--output", "json"], more].concat();
        place.call(&args).json()["most"]["input_tokens"].as_u64().unwrap()
    };
    let short = tokens(&["--input", "text=abc"]);
    let longer = tokens(&["--input", &format!("text={}", "x".repeat(1_000))]);
    // Six requests, each with 997 bytes more.
    assert_eq!(longer - short, 6 * 997);
    let wrong = place.call(&["estimate", "loop.json", "--input", "other=1"]);
    assert_eq!(wrong.code, 2, "an input that a run refuses is refused: {}", wrong.stdout);
}

#[test]
fn a_pipeline_fails_over_a_cost_and_where_nothing_bounds_it() {
    let place = place(&properties());
    assert_eq!(place.call(&["estimate", "loop.json", "--fail-over-usd", "0.17"]).code, 0);
    let over = place.call(&["estimate", "loop.json", "--fail-over-usd", "0.1"]);
    assert_eq!(over.code, 1);
    assert!(over.stderr.contains("a run can cost $0.1680, and more than $0.1000 fails"), "{}", over.stderr);
    place.json("loopctl.json", &json!({ "model": "small", "models": { "small": { "provider": "openai" } } }));
    let unknown = place.call(&["estimate", "loop.json", "--fail-over-usd", "5"]);
    assert_eq!(unknown.code, 1);
    assert!(unknown.stderr.contains("nothing bounds what a run costs"), "{}", unknown.stderr);
    assert!(unknown.stdout.contains("no bound: the project has no price of the model \"small\""), "{}", unknown.stdout);
    for wrong in ["-1", "NaN", "inf", "x"] {
        assert_eq!(place.call(&["estimate", "loop.json", &format!("--fail-over-usd={wrong}")]).code, 2, "{wrong}");
    }
}

#[test]
fn a_budget_bounds_the_cost_with_the_request_that_is_under_way() {
    let mut properties = properties();
    properties["max_iterations"] = json!(1000);
    properties["budget"] = json!({ "cost_usd": 0.5 });
    let most = place(&properties).call(&["estimate", "loop.json", "--output", "json"]).json();
    // A request of a whole window, and a reply of 1,000 tokens.
    assert!((most["most"]["cost_usd"].as_f64().unwrap() - (0.5 + 0.028)).abs() < 1e-9, "{most:#}");
}

#[test]
fn what_runs_of_the_store_used_is_beside_what_they_can_use() {
    let place = Place::new();
    place.json("loop.json", &document(&json!({ "mode": "react", "objective": "x", "tools": [] })));
    place.script(&[think("__log_progress__", json!({ "message": "on it" })), complete(json!("done"))]);
    assert!(!place.call(&["estimate", "loop.json"]).stdout.contains("P50"), "no store, no runs");
    assert!(!place.path().join(".loopctl").exists(), "an estimate makes no store");
    for _ in 0..2 {
        assert_eq!(place.run(&[]).0.code, 0);
    }
    let report = place.call(&["estimate", "loop.json", "--output", "json"]);
    let used = &report.json()["used"];
    assert_eq!((&used["runs"], &used["iterations"]["p95"]), (&json!(2), &json!(2)), "{}", report.stdout);
}

#[test]
fn items_of_a_known_input_are_counted_and_those_of_another_are_as_many_as_may_be() {
    let place = Place::new();
    place.json("loopctl.json", &project(3_000_000));
    let judge = json!({ "type": "loop", "id": "judge", "properties": { "mode": "react", "objective": "Judge {{item.text}}.",
        "tools": [], "max_iterations": 2, "max_tokens": 100, "retry": { "attempts": 1 } } });
    let each = json!({ "type": "loop", "id": "each", "properties": { "mode": "foreach", "items_path": "@input.items", "item_variable_name": "item",
        "max_items": 50, "actions_to_execute": [judge] } });
    place.json("workflow.json", &json!({ "name": "flow", "definition": { "actions": [each] } }));
    let calls = |more: &[&str]| {
        let args = [&["estimate", "workflow.json", "--output", "json"], more].concat();
        let ran = place.call(&args);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        let report = ran.json();
        (report["most"]["model_calls"].clone(), report["parts"][0]["calls"].clone(), report["parts"][0]["name"].clone())
    };
    assert_eq!(
        calls(&[]),
        (json!(100 + 50), json!(50), json!("judge")),
        "two iterations and one summary for each item"
    );
    let given = calls(&["--input", "items=[{\"text\": \"a\"}, {\"text\": \"b\"}]"]);
    assert_eq!(given, (json!(4), json!(2), json!("judge")), "a short text never needs a summary");
}

#[test]
fn the_models_of_a_project_are_listed_with_what_they_lack() {
    let place = Place::new();
    let none = place.call(&["models"]);
    assert!(none.code == 2 && none.stderr.contains("no project file"), "{}", none.stderr);
    let price = json!({ "input": 2.5, "output": 10.0, "cached_input": 0.25 });
    let models = json!({
        "small": { "provider": "openai", "model": "gpt-small", "context_tokens": 128_000, "price": price },
        "a/b": { "provider": "anthropic", "price": { "input": 1.0, "output": 5.0 } },
        "local\u{1b}[2J": { "provider": "openai" },
    });
    place.json("loopctl.json", &json!({ "model": "small", "models": models }));
    let shown = place.call(&["models"]);
    assert_eq!(shown.code, 0, "{}", shown.stderr);
    let line = |name: &str| shown.stdout.lines().find(|line| line.starts_with(name)).unwrap().to_owned();
    for cell in ["(default)", "gpt-small", "128,000", "$2.5", "$0.25", "$10", "loopctl.json:"] {
        assert!(line("small").contains(cell), "no {cell}: {}", shown.stdout);
    }
    assert!(
        line("a/b").ends_with("context_tokens") && line("local").ends_with("price, context_tokens"),
        "{}",
        shown.stdout
    );
    assert!(!shown.stdout.contains('\u{1b}'), "no name controls the terminal");
    let listed = place.call(&["models", "--output", "json"]).json();
    let of = |name: &str| listed.as_array().unwrap().iter().find(|model| model["name"] == name).unwrap().clone();
    assert_eq!((&of("small")["lacks"], &of("a/b")["lacks"]), (&json!([]), &json!(["context_tokens"])));
    assert!(of("a/b")["price_at"].as_str().unwrap().starts_with("loopctl.json:"), "a name is a part of a pointer");
    assert_eq!(of("small")["price"]["cached_input"], 0.25);
}

#[test]
fn a_store_that_is_named_must_be_there_and_one_that_is_not_may_fail() {
    let place = place(&properties());
    let missing = place.call(&["estimate", "loop.json", "--store", "sqlite:none.db"]);
    assert!(missing.code == 2 && missing.stderr.contains("there is no store"), "{}", missing.stderr);
    place.file(".loopctl/runs.db", "no database");
    let broken = place.call(&["estimate", "loop.json"]);
    assert_eq!(broken.code, 0, "{}", broken.stderr);
    assert!(broken.stderr.contains("what runs used is left out"), "{}", broken.stderr);
}
