//! Loops that mean something: tools with actions, an input that goes with them, and a script that
//! plays the model, well and badly.

use loopctl::compile::Texts;
use loopctl::diagnostic::Source;
use serde_json::{Map, Value, json};

use super::choices::Choices;

const NAMES: [&str; 5] = ["lookup_ticket", "list.charges", "ask-model", "count_words", "file/report"];

/// A loop or an agent request with what runs it.
pub struct Played {
    pub texts: Texts,
    pub input: Value,
    pub script: Value,
}

/// A sound document, by construction; with `flaw` something of its meaning is wrong.
pub fn play(choices: &mut Choices, request: bool, flaw: bool) -> Played {
    let tools = 1 + choices.below(NAMES.len());
    let names = NAMES.iter().take(tools);
    let mut actions: Vec<Value> = names.clone().map(|name| action(name, choices)).collect();
    let mut declared: Vec<Value> = names.map(|name| declaration(name, choices)).collect();
    let mut properties = properties(choices);
    let mut objective = "Look at {{input.ticket_id}}.".to_owned();
    if choices.once_in(3) {
        objective.push_str(" {{#if input.note}}Mind {{input.note}}.{{/if}}");
    }
    if flaw {
        spoil(choices, &mut actions, &mut declared, &mut properties, &mut objective);
    }
    let mut input = Map::from_iter([("ticket_id".to_owned(), json!("TK-1"))]);
    if objective.contains("note") && choices.once_in(2) {
        input.insert("note".to_owned(), json!(["@input.x", "{{secret}}"]));
    }
    if objective.contains("note") && !input.contains_key("note") {
        input.insert("note".to_owned(), Value::Null);
    }
    let document = if request {
        json!({ "objective": objective, "tools": declared, "config": properties, "actions": actions, "input": {"ticket_id": "TK-0"} })
    } else {
        let head = Map::from_iter([
            ("mode".to_owned(), json!("react")),
            ("objective".to_owned(), json!(objective)),
            ("tools".to_owned(), json!(declared)),
        ]);
        let properties: Map<String, Value> = head.into_iter().chain(properties).collect();
        let mut document = json!({ "type": "loop", "name": "played", "properties": properties, "actions": actions });
        if choices.once_in(2) {
            document["input"] = json!({ "type": "object", "required": ["ticket_id"],
                "properties": { "ticket_id": { "type": "string", "pattern": "^TK-[0-9]+$" }, "note": {} } });
        }
        document
    };
    let mut texts = Texts::new(Source::new("loop.json", document.to_string()));
    texts.project = Some(Source::new("loopctl.json", project().to_string()));
    Played { texts, input: Value::Object(input), script: script(choices, tools) }
}

fn project() -> Value {
    json!({
        "model": "big",
        "models": { "big": { "provider": "openai", "model": "gpt-x", "api_key": "env:NOT_SET",
            "context_tokens": 100_000, "price": { "input": 1, "output": 2 } } },
        "orgconfig": { "crm_token": "env:NOT_SET_EITHER" },
        "datasources": { "support": { "url": "sqlite:support.db" } },
        "allow": { "hosts": ["api.example.com"], "commands": ["wc"] }
    })
}

fn action(name: &str, choices: &mut Choices) -> Value {
    let mut action = match name {
        "lookup_ticket" => json!({ "kind": "http", "http_method": choices.of(&["GET", "POST", "DELETE"]),
            "url": "https://api.example.com/{{id}}", "headers": { "Authorization": "Bearer orgconfig:crm_token" } }),
        "list.charges" => json!({ "kind": "db", "datasource": "support", "query": "SELECT 1 WHERE :id = :id" }),
        "ask-model" => json!({ "kind": "llm", "template": "What of {{id}} in {{input.ticket_id}}?" }),
        "count_words" => json!({ "kind": "command", "program": "wc", "args": ["-w"], "stdin": "{{id}}" }),
        _ => json!({ "kind": "http", "http_method": "POST", "url": "https://api.example.com/reports",
            "body": { "of": "@id", "run": "@__run_id", "at": "@now" } }),
    };
    action["action_name"] = json!(name);
    action["description"] = json!("Does something with an id.");
    if choices.once_in(2) {
        action["parameters"] = json!({ "type": "object", "properties": { "id": { "type": choices.of(&["string", "integer"]) } },
            "required": ["id"], "additionalProperties": choices.below(2) == 0 });
    }
    if choices.once_in(4) {
        action["on_uncertain"] = json!(choices.of(&["pause", "retry", "fail"]));
    }
    action
}

fn declaration(name: &str, choices: &mut Choices) -> Value {
    if choices.once_in(5) {
        return json!(name);
    }
    let mut declaration = json!({ "type": "action", "name": name });
    if choices.once_in(4) {
        declaration["max_calls"] = json!(1 + choices.below(3));
    }
    if choices.once_in(6) {
        declaration["requires_approval"] = json!(true);
    }
    if choices.once_in(4) {
        declaration["polling"] = json!(true);
    }
    declaration
}

fn properties(choices: &mut Choices) -> Map<String, Value> {
    let mut properties = Map::new();
    let mut set = |choices: &mut Choices, name: &str, value: Value| {
        if choices.once_in(3) {
            properties.insert(name.to_owned(), value);
        }
    };
    let iterations = json!(1 + choices.below(8));
    set(choices, "max_iterations", iterations);
    let stuck =
        json!({ "iterations": 2 + choices.below(2), "action": choices.of(&["fail", "escalate", "retry_with_hint"]) });
    set(choices, "on_stuck", stuck);
    let limit = json!(choices.of(&["fail", "answer"]));
    set(choices, "on_limit", limit);
    let tokens = json!(20_000 + choices.below(20_000));
    set(choices, "budget", json!({ "tokens": tokens, "cost_usd": 0.5, "warn_at": 0.5 }));
    set(choices, "answer_schema", json!({ "type": "object", "required": ["sum"] }));
    set(choices, "system_prompt", json!("Reach {{objective}} with {{tools}} on {{today}}. {{dialect_instructions}}"));
    set(choices, "temperature", json!(0.0));
    set(choices, "history", json!({ "context_tokens": 60_000 }));
    set(choices, "max_observation_chars", json!(200));
    set(choices, "retry", json!({ "attempts": 1 }));
    set(choices, "result_key", json!("triage"));
    let dialect = ["json", "tool_calls", "tags", "final_answer"][choices.below(4)];
    set(choices, "dialect", json!(dialect));
    properties
}

/// Something that has a right shape and no meaning.
fn spoil(
    choices: &mut Choices,
    actions: &mut Vec<Value>,
    declared: &mut Vec<Value>,
    properties: &mut Map<String, Value>,
    objective: &mut String,
) {
    match choices.below(11) {
        0 => declared.push(json!({ "type": "action", "name": "lookup_tickt" })),
        1 => actions.push(actions[0].clone()),
        2 => declared.push(declared[0].clone()),
        3 => objective.push_str(" {{input.ticket_id"),
        4 => objective.push_str(" {{ticket}}"),
        5 => objective.push_str(" orgconfig:crm_token"),
        6 => actions[0]["url"] = json!("ftp://example.com/{{id}}"),
        7 => actions[0]["parameters"] = json!({ "type": "strin" }),
        8 => declared.push(json!({ "type": "mcp", "server": "shop" })),
        9 => drop(properties.insert("answer_schema".to_owned(), json!({ "$ref": "https://example.com/x" }))),
        _ => declared.push(json!({ "type": "loop", "name": "other" })),
    }
}

/// What the model says: sensible and senseless things, and at the end the answer.
fn script(choices: &mut Choices, tools: usize) -> Value {
    let mut replies = Vec::new();
    for _ in 0..choices.below(8) {
        let call = |action: &str, input: Value| json!({ "thought": "next", "action": action, "action_input": input });
        replies.push(match choices.below(9) {
            0..=3 => call(NAMES[choices.below(tools)], json!({ "id": choices.below(3) })),
            4 => call(NAMES[choices.below(tools)], json!({ "id": "TK-1" })),
            5 => call("no_such_tool", json!({})),
            6 => json!("I am not sure what to do."),
            7 => call("__store_memory__", json!({ "key": "k", "value": 1 })),
            _ => call("__pause_for_human__", json!({ "question": "Which?" })),
        });
    }
    let complete = json!({ "thought": "done", "action": "__complete__", "action_input": { "answer": { "sum": 1 } } });
    replies.extend(std::iter::repeat_n(complete, 12));
    let answers: Map<String, Value> = NAMES
        .iter()
        .map(|name| ((*name).to_owned(), json!([{ "ok": true, "text": "{{input.x}} @now" }, { "error": "not found" }])))
        .collect();
    json!({ "replies": replies, "tools": answers })
}
