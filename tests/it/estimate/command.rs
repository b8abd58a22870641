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

/// The most bytes of a request that passes the wall of a window of 10,000 tokens, with what a provider adds.
const LONGEST: u64 = 10_001 * 1_000 / 60 + 1_000;
/// What six of them cost, with their replies.
const COST: f64 = 2.060_196;

#[test]
fn an_estimate_names_each_figure_with_the_word_that_bounds_it() {
    let place = place(&properties());
    let ran = place.call(&["estimate", "loop.json"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    for shown in ["model calls", "max_iterations 3 (loop.json:", "retry.attempts 2 (loop.json:", "$2.06", "timeout_ms"]
    {
        assert!(ran.stdout.contains(shown), "no {shown}: {}", ran.stdout);
    }
    let report = place.call(&["estimate", "loop.json", "--output", "json"]).json();
    // 3 iterations with 2 attempts each. The input is not known: a request is as long as one may be that has 10,000 tokens.
    let most = &report["most"];
    assert_eq!((&most["model_calls"], &most["tool_calls"]), (&json!(6), &json!(0)));
    assert_eq!((&most["input_tokens"], &most["output_tokens"]), (&json!(6 * LONGEST), &json!(6_000)));
    assert!((most["cost_usd"].as_f64().unwrap() - COST).abs() < 1e-9, "{most}");
    assert_eq!(report["active_ms"], 300_000);
    let at = |word: &str| {
        let words = report["bounds"].as_array().unwrap();
        words.iter().find(|found| found["word"] == word).unwrap_or_else(|| panic!("no {word}: {report:#}")).clone()
    };
    assert!(at("max_iterations")["at"].as_str().unwrap().starts_with("loop.json:"));
    assert_eq!(at("timeout_ms").get("at"), None, "a default has no place");
}

#[test]
fn a_check_says_in_a_line_what_a_run_can_use_where_it_is_asked_to() {
    let place = place(&properties());
    let line = "a run can use at most: model calls 6, tool calls 0, tokens";
    let ran = place.call(&["check", "loop.json", "--estimate"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stderr.contains(line) && ran.stderr.contains("US dollars $2.06"), "{}", ran.stderr);
    assert!(!place.call(&["check", "loop.json"]).stderr.contains(line));
    let broken = crate::common::with(properties(), json!({ "max_iterations": 0 }));
    place.looped(&broken);
    let ran = place.call(&["check", "loop.json", "--estimate"]);
    assert!(ran.code == 1 && !ran.stderr.contains(line), "{}", ran.stderr);
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
    assert_eq!(place.call(&["estimate", "loop.json", "--fail-over-usd", "2.1"]).code, 0);
    let exact = place.call(&["estimate", "loop.json", "--fail-over-usd", "2.060196"]);
    assert_eq!(exact.code, 0, "as much as it can cost is not more: {}", exact.stderr);
    let tiny = place.call(&["estimate", "loop.json", "--fail-over-usd", "1e-9"]);
    assert!(tiny.stderr.contains("more than $0.000000001 fails"), "{}", tiny.stderr);
    let over = place.call(&["estimate", "loop.json", "--fail-over-usd", "0.1"]);
    assert_eq!(over.code, 1);
    assert!(over.stderr.contains("a run can cost $2.060196, and more than $0.1 fails"), "{}", over.stderr);
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
    // The longest request, and a reply of 1,000 tokens.
    assert!((most["most"]["cost_usd"].as_f64().unwrap() - (0.5 + COST / 6.0)).abs() < 1e-9, "{most:#}");
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
        (json!(100 + 50), json!(50), json!("each.judge")),
        "two iterations and one summary for each item"
    );
    let given = calls(&["--input", "items=[{\"text\": \"a\"}, {\"text\": \"b\"}]"]);
    assert_eq!(given, (json!(4 + 2), json!(2), json!("each.judge")), "a server may refuse a request of any length");
}

/// The report of a document, as JSON.
fn report(place: &Place, file: &str) -> Value {
    let ran = place.call(&["estimate", file, "--output", "json"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    ran.json()
}

#[test]
fn lists_in_lists_have_as_many_items_together_as_the_outer_one_may_have() {
    let place = Place::new();
    place.json(
        "actions/t.json",
        &json!({ "action_name": "t", "kind": "command", "program": "true", "description": "Does." }),
    );
    place.json("loopctl.json", &json!({ "allow": { "commands": ["true"] } }));
    let list = |id: &str, items: &str, most: u32, steps: Value| {
        json!({ "type": "loop", "id": id, "properties": { "mode": "foreach",
        "items_path": items, "item_variable_name": id, "max_items": most, "actions_to_execute": steps } })
    };
    let inner = list("b", "@a.y", 1000, json!([{ "type": "t" }]));
    let outer = list("a", "@input.x", 5, json!([{ "type": "t" }, inner]));
    place.json("workflow.json", &json!({ "name": "nf", "definition": { "actions": [outer] } }));
    assert_eq!(report(&place, "workflow.json")["most"]["tool_calls"], 5 + 5);
}

#[test]
fn loops_that_call_loops_call_no_more_than_a_thousand_together() {
    let place = Place::new();
    let calls = |name: &str| {
        json!({ "mode": "react", "objective": "x", "dialect": "tool_calls", "max_iterations": 1000,
        "tools": [{ "type": "loop", "name": name }], "builtins": [], "retry": { "attempts": 1 }, "max_tokens": 100,
        "history": { "summarize": false } })
    };
    let low = json!({ "mode": "react", "objective": "x", "tools": [], "max_iterations": 2, "retry": { "attempts": 1 }, "max_tokens": 100,
        "history": { "summarize": false } });
    place.json("loops/low.json", &json!({ "type": "loop", "name": "low", "description": "d", "properties": low }));
    place.json(
        "loops/mid.json",
        &json!({ "type": "loop", "name": "mid", "description": "d", "properties": calls("low") }),
    );
    place.json("loop.json", &document(&calls("mid")));
    let most = report(&place, "loop.json")["most"].clone();
    assert_eq!(most["model_calls"], 1_000 + 1_000 * 1_000, "{most}");
}

#[test]
fn a_sum_that_is_too_large_to_be_counted_is_no_bound_and_a_line_says_so() {
    let place = place(&properties());
    let model = json!({ "provider": "openai", "context_tokens": 10_000, "price": { "input": 1e308, "output": 1e308 } });
    place.json("loopctl.json", &json!({ "model": "small", "models": { "small": model } }));
    let ran = place.call(&["estimate", "loop.json"]);
    assert!(!ran.stdout.contains("inf"), "{}", ran.stdout);
    assert!(ran.stdout.contains("no bound: a sum is too large to be counted"), "{}", ran.stdout);
    assert_eq!(report(&place, "loop.json")["most"]["cost_usd"], Value::Null);
}

#[test]
fn a_document_that_takes_no_input_is_bounded_without_one() {
    let place = Place::new();
    place.json("loopctl.json", &json!({ "model": "m", "models": { "m": { "provider": "openai" } } }));
    let inner = json!({ "mode": "react", "objective": "SUB {{input.n}}", "tools": [], "max_iterations": 1, "max_tokens": 100,
        "history": { "summarize": false } });
    let input = json!({ "type": "object", "properties": { "n": { "type": "integer" } }, "required": ["n"] });
    place.json(
        "loops/sub.json",
        &json!({ "type": "loop", "name": "sub", "description": "d", "input": input, "properties": inner }),
    );
    let mut own = properties();
    own["objective"] = json!("MAIN");
    own["tools"] = json!([{ "type": "loop", "name": "sub" }]);
    place.json("loop.json", &document(&own));
    assert!(report(&place, "loop.json")["most"]["input_tokens"].is_u64(), "what it calls gets what the model writes");

    place.file("d.txt", "some text");
    place.json(
        "loopctl.json",
        &json!({ "model": "m", "models": { "m": { "provider": "openai" } }, "documents": { "d": "d.txt" } }),
    );
    let judge = |text: &str| {
        json!({ "type": "loop", "properties": { "mode": "react", "objective": text, "tools": [], "max_iterations": 1,
        "history": { "summarize": false } } })
    };
    let steps = json!([judge("J {{doc:d}}")]);
    let closed = json!({ "type": "object", "properties": {}, "additionalProperties": false });
    place.json("workflow.json", &json!({ "name": "wd", "input": closed, "definition": { "actions": steps } }));
    let most = report(&place, "workflow.json")["most"]["input_tokens"].as_u64().unwrap();
    assert!((8 << 20..100 << 20).contains(&most), "a file has 8 MiB at most: {most}");
}

#[test]
fn the_words_of_a_workflow_have_their_places_and_a_part_those_of_its_own_document() {
    let place = Place::new();
    let price = json!({ "input": 1.0, "output": 2.0, "cache_write": 3.0 });
    place.json("loopctl.json", &json!({ "model": "m", "models": { "m": { "provider": "openai", "price": price } } }));
    let of = |name: &str, most: u32| {
        json!({ "type": "loop", "name": name, "description": "d", "properties": { "mode": "react",
        "objective": "x", "tools": [], "max_iterations": most } })
    };
    place.json("loops/sub.json", &of("sub", 7));
    place.json("loops/big.json", &of("big", 9));
    let each = json!({ "type": "loop", "id": "each", "properties": { "mode": "foreach", "items_path": "@input.l", "item_variable_name": "i",
        "max_items": 10, "actions_to_execute": [{ "type": "loop", "name": "big" }] } });
    let definition = json!({ "timeout_ms": 60_000, "budget": { "tokens": 1_000 }, "actions": [{ "type": "loop", "name": "sub" }, each] });
    place.json("workflow.json", &json!({ "name": "dup", "definition": definition }));
    let ran = place.call(&["estimate", "workflow.json", "--input", "l=[1,2]", "--output", "json"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let report = ran.json();
    let word = |of: &Value, word: &str| {
        let words = of["bounds"].as_array().unwrap();
        words.iter().find(|found| found["word"] == word).unwrap_or_else(|| panic!("no {word}: {report:#}")).clone()
    };
    for named in ["timeout_ms", "budget.tokens"] {
        assert!(word(&report, named)["at"].as_str().unwrap().starts_with("workflow.json:"), "{named}: {report:#}");
    }
    assert_eq!(word(&report, "items of each")["at"], "input");
    assert!(
        word(&report, "models.m.price")["value"].as_str().unwrap().starts_with("$3 (what is cached)"),
        "{report:#}"
    );
    let parts = report["parts"].as_array().unwrap();
    let most = |at: usize| (parts[at]["name"].clone(), word(&parts[at], "max_iterations")["value"].clone());
    assert_eq!(most(0), (json!("0"), json!("7")), "{report:#}");
    assert_eq!(most(1), (json!("each.0"), json!("9")), "{report:#}");
    assert_eq!(word(&report, "max_iterations of each.0")["value"], "9");
}

#[test]
fn a_time_without_a_bound_has_no_word_that_bounds_it() {
    let place = Place::new();
    place.json(
        "actions/t.json",
        &json!({ "action_name": "t", "kind": "command", "program": "true", "description": "Does." }),
    );
    place.json("loopctl.json", &json!({ "allow": { "commands": ["true"] } }));
    let definition = json!({ "timeout_ms": 60_000, "actions": [{ "type": "t" }], "on_failure": [{ "type": "t" }] });
    place.json("workflow.json", &json!({ "name": "f", "definition": definition }));
    let report = report(&place, "workflow.json");
    assert_eq!(report["active_ms"], Value::Null);
    assert!(report["bounds"].as_array().unwrap().iter().all(|word| word["figure"] != "active_ms"), "{report:#}");
}

#[test]
fn the_runs_of_a_workflow_have_no_turns_and_their_waits_are_no_active_time() {
    let place = Place::new();
    place.json(
        "actions/t.json",
        &json!({ "action_name": "t", "kind": "command", "program": "true", "description": "Does." }),
    );
    place.json("loopctl.json", &json!({ "allow": { "commands": ["true"] } }));
    place.json("loop.json", &json!({ "name": "w", "definition": { "actions": [{ "type": "t" }] } }));
    assert_eq!(place.call(&["run", "loop.json"]).code, 0);
    let shown = place.call(&["estimate", "loop.json"]).stdout;
    assert!(shown.contains("from start to end, with their waits"), "{shown}");
    assert_eq!(report(&place, "loop.json")["used"]["iterations"], Value::Null);
}

#[test]
fn models_that_check_refuses_are_not_listed_and_a_default_without_a_row_is_said() {
    let place = Place::new();
    let price = json!({ "input": -1.0, "output": 5.0 });
    place.json("loopctl.json", &json!({ "models": { "m": { "provider": "openai", "price": price } } }));
    let refused = place.call(&["models"]);
    assert!(refused.code == 2 && refused.stderr.contains("L014"), "{}{}", refused.stdout, refused.stderr);
    place.file("loopctl.json", r#"{"models": {"m": {"provider": "openai"}, "m": {"provider": "anthropic"}}}"#);
    assert_eq!(place.call(&["models"]).code, 2, "a name that is written twice");
    place.file("loopctl.json", "[]");
    assert_eq!(place.call(&["models"]).code, 2);
    place.json("loopctl.json", &json!({ "model": "other", "models": { "m": { "provider": "openai" } } }));
    let shown = place.call(&["models"]);
    assert!(
        shown.code == 0 && shown.stderr.contains("the default model \"other\" is none of `models`"),
        "{}",
        shown.stderr
    );
    let nowhere = place.call(&["models", "nodir"]);
    assert!(nowhere.code == 2 && nowhere.stderr.contains("there is no folder nodir"), "{}", nowhere.stderr);
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
