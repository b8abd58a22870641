//! Constructs of workflows that are sound: what is compiled and judged only where nothing else is wrong.
#![allow(clippy::indexing_slicing, reason = "a member of an object that is written here")]

use loopctl::compile::Texts;
use loopctl::diagnostic::Source;
use serde_json::{Value, json};

use super::{Construct, main};

/// Them.
pub const FLOWS: &[Construct] = &[
    ("approvals", |n| flow(&json!({}), (0..n).map(approval))),
    ("approvals_and_what_asks_for_them", |n| {
        let asks = |at: usize| {
            let condition = json!({ "equal": [format!("@key{at}.approved"), true] });
            json!({ "type": "PbotForm", "outputKey": format!("form{at}"), "filter": { "condition": condition },
                "properties": { "expected_keys": ["a"] } })
        };
        let steps = (0..n / 2).map(approval).chain((0..n / 2).map(asks));
        flow(&json!({}), steps)
    }),
    ("loops_that_read_results", |n| {
        let one = |at: usize| {
            let before =
                at.checked_sub(1).map_or_else(|| "Go.".to_owned(), |at| format!("Go on from {{{{r{at}.answer}}}}."));
            react(&before, at)
        };
        flow(&json!({}), (0..n).map(one))
    }),
    ("results_in_one_text", |n| {
        let steps = (0..n).map(|at| react("Go.", at));
        let all = (0..n).map(|at| format!("{{{{r{at}.answer}}}}")).collect::<Vec<_>>().join(" ");
        flow(&json!({}), steps.chain([react(&all, n)]))
    }),
    ("steps_in_place_of_others", |n| {
        let one = |at: usize| {
            let form = |name: &str| json!({ "type": "PbotForm", "outputKey": format!("{name}{at}"), "properties": { "expected_keys": ["a"] } });
            let mut step = form("key");
            step["filter"] = json!({ "condition": { "equal": ["@input.q", format!("w{at}")] } });
            step["onFalse"] = form("other");
            step
        };
        flow(&json!({}), (0..n).map(one))
    }),
    ("foreach_steps_with_a_budget", |n| {
        flow(&json!({ "budget": { "cost_usd": 1 } }), (0..n).map(|at| foreach(at, &json!({ "max_concurrency": 4 }))))
    }),
    ("foreach_steps_that_collect", |n| {
        let settings =
            json!({ "collect_results": true, "collect": "@a.answer", "result_key": "all", "summary_key": "sum" });
        flow(&json!({}), (0..n).map(|at| foreach(at, &settings)))
    }),
    ("words_of_a_condition", |n| {
        let all: Vec<Value> = (0..n).map(|at| json!({ "notEqual": ["@input.q", format!("w{at}")] })).collect();
        conditional(&json!({ "type": "string" }), &json!({ "and": all }))
    }),
    ("same_words_of_a_condition", |n| {
        let all: Vec<Value> = (0..n).map(|_| json!({ "equal": ["@input.q", "w"] })).collect();
        conditional(&json!({ "type": "string" }), &json!({ "and": all }))
    }),
    ("conditions_on_an_enum", |n| {
        let words: Vec<String> = (0..n).map(|at| format!("word{at}")).collect();
        let all: Vec<Value> = (0..n).map(|at| json!({ "equal": ["@input.q", format!("wrd{at}")] })).collect();
        conditional(&json!({ "type": "string", "enum": words }), &json!({ "or": all }))
    }),
    ("plain_names_of_a_step", |n| {
        let texts: Vec<String> = (0..n).map(|at| format!("{{x{at}}}")).collect();
        flow(
            &json!({}),
            std::iter::once(
                json!({ "type": "PbotForm", "outputKey": "form", "properties": { "expected_keys": ["a"], "a": texts } }),
            ),
        )
    }),
    ("conditions_on_a_pattern", |n| {
        let all: Vec<Value> = (0..n).map(|at| json!({ "equal": ["@input.q", format!("w{at}")] })).collect();
        conditional(
            &json!({ "type": "string", "pattern": format!("^({})*$", "(a|b)?".repeat(n.min(200))) }),
            &json!({ "or": all }),
        )
    }),
    ("entries_of_a_list", |n| {
        let words: Vec<String> = (0..n.min(1_000)).map(|at| format!("word{at}")).collect();
        let entries: Vec<String> = (0..n).map(|at| format!("wrd{at}")).chain(["word1".to_owned()]).collect();
        conditional(&json!({ "type": "string", "enum": words }), &json!({ "in": ["@input.q", entries] }))
    }),
    ("calls_of_unknown_workflows", |n| {
        let call = |at: usize| json!({ "thought": "a", "action": "run_workflow", "action_input": { "workflow_name": format!("wrkflow{at}") } });
        main(json!({ "replies": (0..n).map(call).collect::<Vec<_>>() }).to_string())
    }),
    ("steps_with_odd_inputs", |n| {
        let one = |at: usize| json!({ "type": "get", "outputKey": format!("k{at}"), "properties": { "ordr": 1, "custmer": 2 } });
        let mut texts = flow(&json!({}), (0..n).map(one));
        let parameters = json!({ "type": "object", "properties": (0..1_000).map(|at| (format!("order{at}"), json!({ "type": "integer" }))).collect::<serde_json::Map<_, _>>() });
        let action = json!([{ "action_name": "get", "kind": "http", "http_method": "POST", "url": "https://h/a", "parameters": parameters }]);
        texts.actions = vec![Source::new("actions/a.json", action.to_string())];
        texts
    }),
];

fn approval(at: usize) -> Value {
    json!({ "type": "PbotApproval", "outputKey": format!("key{at}"), "properties": { "comment": "Go on?" } })
}

fn react(objective: &str, at: usize) -> Value {
    json!({ "type": "loop", "properties": { "mode": "react", "objective": objective, "tools": [], "result_key": format!("r{at}") } })
}

fn foreach(at: usize, settings: &Value) -> Value {
    let mut step = json!({ "type": "loop", "properties": { "mode": "foreach", "items_path": "@input.items", "item_variable_name": "one",
        "actions_to_execute": [react("Go.", at)] } });
    for (name, value) in settings.as_object().into_iter().flatten() {
        step["properties"][name] = value.clone();
    }
    step
}

/// A workflow with one step, which runs if a condition on its input holds.
fn conditional(of_input: &Value, condition: &Value) -> Texts {
    let mut step = react("Go.", 0);
    step["filter"] = json!({ "condition": condition });
    with_input(of_input, &json!({}), std::iter::once(step))
}

fn flow(settings: &Value, steps: impl Iterator<Item = Value>) -> Texts {
    with_input(&json!({ "type": "string" }), settings, steps)
}

fn with_input(of_input: &Value, settings: &Value, steps: impl Iterator<Item = Value>) -> Texts {
    let mut definition = json!({ "actions": steps.collect::<Vec<_>>() });
    for (name, value) in settings.as_object().into_iter().flatten() {
        definition[name] = value.clone();
    }
    let input = json!({ "type": "object", "properties": { "q": of_input, "items": { "type": "array" } }, "required": ["q", "items"] });
    main(json!({ "name": "w", "input": input, "definition": definition }).to_string())
}
