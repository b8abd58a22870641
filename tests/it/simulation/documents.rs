//! The documents that are played: made by chance, with all that decides how a loop goes on or ends.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex};

use loopctl::Program;
use loopctl::compile::{Texts, compile};
use loopctl::diagnostic::Source;
use serde_json::{Value, json};

use crate::simulation::chance::Chance;

/// The program of this number.
pub fn program(number: u64) -> Arc<Program> {
    static MADE: LazyLock<Mutex<HashMap<u64, Arc<Program>>>> = LazyLock::new(Mutex::default);
    if let Some(known) = MADE.lock().unwrap().get(&number) {
        return Arc::clone(known);
    }
    let mut document = document(&mut Chance::new(number ^ 0x00d0_c000));
    let order = Chance::new(number ^ 0x000a_de00).pick(&["as_written", "reads_together", "reads_together", "together"]);
    document["properties"]["order"] = json!(order);
    let mut texts = Texts::new(Source::new("loop.json", document.to_string()));
    texts.loops.push(Source::new("loops/help.json", help(number.is_multiple_of(2)).to_string()));
    let compiled = compile(&texts);
    let program = compiled.program.unwrap_or_else(|| panic!("{document:#}\n{:#?}", compiled.diagnostics));
    MADE.lock().unwrap().insert(number, Arc::clone(&program));
    program
}

/// The loop that is called: what it does is simulated, not played. Only what its tools are decides with which other
/// calls it may be under way.
fn help(writes: bool) -> Value {
    let write = json!({ "action_name": "write", "kind": "http", "description": "Writes.", "url": "https://x.example/",
        "http_method": "POST" });
    let tools = if writes { json!([{ "type": "action", "name": "write" }]) } else { json!([]) };
    json!({ "type": "loop", "name": "help", "description": "Helps.", "actions": [write],
        "input": { "type": "object", "properties": { "n": { "type": "integer" } } },
        "properties": { "mode": "react", "objective": "Help.", "tools": tools } })
}

fn document(chance: &mut Chance) -> Value {
    let action = |name: &str, method: &str, more: Value| {
        let mut action = json!({
            "action_name": name, "kind": "http", "description": "Does it.", "url": "https://x.example/",
            "http_method": method, "parameters": { "type": "object", "properties": { "n": { "type": "integer" } } }
        });
        for (key, value) in more.as_object().unwrap() {
            action[key] = value.clone();
        }
        action
    };
    let uncertain = chance.pick(&["pause", "pause", "retry", "fail"]);
    let ask = json!({ "action_name": "ask", "kind": "llm", "description": "Asks.", "template": "Say {{text}}",
        "parameters": { "type": "object", "properties": { "text": { "type": "string" } }, "required": ["text"] },
        "on_uncertain": chance.pick(&["pause", "retry", "fail"]) });
    let actions = json!([
        ask,
        action("look", "GET", json!({ "retry": { "attempts": 3 } })),
        action("put", "POST", json!({ "idempotent": true, "retry": { "attempts": 2 } })),
        action("send", "POST", json!({ "on_uncertain": uncertain })),
        action("act", "POST", json!({})),
    ]);
    let mut act = json!({ "type": "action", "name": "act", "requires_approval": true });
    if chance.one_in(3) {
        act["approval"] = json!({ "approvers": 2 });
    }
    if chance.one_in(3) {
        let on_expiry = chance.pick(&["deny", "deny", "fail", "escalate"]);
        act["approval"] =
            merged(&act["approval"], &json!({ "expires_after_ms": 1 + chance.below(8_000), "on_expiry": on_expiry }));
    }
    let mut send = json!({ "type": "action", "name": "send" });
    if chance.one_in(2) {
        act["max_calls"] = json!(1 + chance.below(2));
        send["max_calls"] = json!(1 + chance.below(3));
    }
    let tools = json!([
        { "type": "action", "name": "look", "polling": chance.one_in(3) },
        { "type": "action", "name": "put", "requires_approval": chance.one_in(4) }, send, act,
        { "type": "action", "name": "ask", "requires_approval": chance.one_in(5) },
        { "type": "loop", "name": "help", "requires_approval": chance.one_in(5) }
    ]);
    let mut properties = json!({
        "mode": "react", "objective": "Do it.", "tools": tools,
        "max_iterations": 1 + chance.below(12),
        "timeout_ms": chance.pick(&[3_000, 30_000, 600_000, 600_000]),
        "dialect": chance.pick(&["json", "tags"]),
        "on_limit": chance.pick(&["fail", "answer"]),
        "max_observation_chars": chance.pick(&[12, 4000]),
        "on_stuck": { "iterations": 2 + chance.below(3), "action": chance.pick(&["fail", "escalate", "retry_with_hint"]) },
    });
    if chance.one_in(3) {
        properties["budget"] = json!({ "tokens": 100 + chance.below(3000) });
    } else if chance.one_in(4) {
        properties["budget"] = json!({ "cost_usd": 0.002 });
    }
    if chance.one_in(3) {
        properties["answer_schema"] = json!({ "type": "object", "required": ["ok"] });
    }
    if chance.one_in(3) {
        let tokens = 300 + chance.below(900);
        properties["history"] = chance.pick(&[
            json!({ "context_tokens": tokens }),
            json!({ "context_tokens": tokens, "summarize": true }),
            json!({ "context_tokens": tokens, "summarize": false }),
            json!({ "max_messages": 6, "keep_last": 3 }),
            json!({ "max_messages": 8, "keep_last": 4, "summarize": true }),
        ]);
    }
    if chance.one_in(3) {
        properties["on_model_outage"] = json!("pause");
    }
    json!({ "type": "loop", "name": "simulated", "actions": actions, "properties": properties })
}

/// The members of both objects; nothing counts as one without members.
fn merged(one: &Value, other: &Value) -> Value {
    let members = [one, other].into_iter().filter_map(Value::as_object).flatten();
    Value::Object(members.map(|(name, value)| (name.clone(), value.clone())).collect())
}
