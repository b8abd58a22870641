//! What the simulated model says, and what the simulated tools give back.

use std::num::NonZeroU32;

use loopctl::engine::event::{
    CallId, EventKind, Finish, ModelFault, ModelFaultCode, Reply, Tokens, ToolFault, ToolResult, ToolRetried,
    ToolReturned,
};
use serde_json::{Value, json};

use crate::simulation::chance::Chance;

/// The most tokens of one reply.
pub const MOST: u64 = 239 + 64;

/// A reply in the words of the dialect, `tags` or `json`. `calm`: the model answers.
pub fn reply(chance: &mut Chance, calm: bool, tags: bool) -> Reply {
    let say = |action: &str, input: Value| match (tags, action) {
        (true, "__complete__") => format!("<answer>{}</answer>", input["answer"]),
        (true, _) => format!("<tool_call>{}</tool_call>", json!({ "name": action, "arguments": input })),
        (false, _) => json!({ "thought": "t", "action": action, "action_input": input }).to_string(),
    };
    let n = json!({ "n": chance.below(3) });
    let number = if calm { 99 } else { chance.below(58) };
    let text = match number {
        0..=9 => say("look", n),
        10..=14 => say("put", n),
        15..=19 => say("send", n),
        20..=24 => say("act", n),
        25 => say("act", json!({ "n": "x" })),
        26 => say("nothing", json!({})),
        27 | 28 => say("__store_memory__", json!({ "key": "k", "value": [chance.below(9), 2.50] })),
        29 => say("__retrieve_memory__", json!({})),
        30 => say("__log_progress__", json!({ "message": "m" })),
        31 | 32 => say("__pause_for_human__", json!({ "question": "q" })),
        33 => say("__complete__", json!({})),
        34 => say("__complete__", json!({ "answer": "no object" })),
        35 => "I am not sure.".to_owned(),
        36 => String::new(),
        37 => format!("{}\n{}", say("look", n.clone()), say("put", n)),
        38 => say("look", json!({ "n": 12_345_678_901_234_567_890_123_u128 })),
        39 => format!("{}\nObservation: done", say("look", n)),
        40 | 41 => "{\"thought\": \"cut off".to_owned(),
        42..=44 => say("ask", json!({ "text": "t" })),
        45..=47 => say("help", n),
        48..=53 => several(chance, tags, &say),
        _ => say("__complete__", json!({ "answer": { "ok": chance.below(9) } })),
    };
    let usage = Tokens { input: 40 + chance.below(200), output: 5 + chance.below(60), ..Tokens::default() };
    Reply {
        text,
        finish: if number == 40 { Finish::Length } else { Finish::Stop },
        usage: (!chance.one_in(6)).then_some(usage),
        window: NonZeroU32::new(if number == 40 { u32::try_from(200 + chance.below(1500)).unwrap() } else { 0 }),
        duration_ms: chance.below(900),
        retries: u32::from(chance.one_in(9)),
        ..Reply::default()
    }
}

/// Two to five calls at once, most of them of what spends; one call in the dialect that has no more.
fn several(chance: &mut Chance, tags: bool, say: &dyn Fn(&str, Value) -> String) -> String {
    let calls = if tags { 2 + chance.below(4) } else { 1 };
    let call = |_| match chance.pick(&["ask", "help", "help", "look", "put", "send"]) {
        "ask" => say("ask", json!({ "text": "t" })),
        other => say(other, json!({ "n": chance.below(3) })),
    };
    (0..calls).map(call).collect()
}

/// What the model makes of the steps that go from the history.
pub fn summary(chance: &mut Chance) -> Reply {
    let text =
        chance.pick(&["What was found: 7.", "", "\n\nObservation: all is done.\n{\"action\": \"send\"}"]).to_owned();
    let usage = Tokens { input: 40 + chance.below(200), output: 5 + chance.below(60), ..Tokens::default() };
    Reply { text, usage: (!chance.one_in(6)).then_some(usage), ..Reply::default() }
}

/// Why the model could not be asked.
pub fn model_fault(chance: &mut Chance) -> EventKind {
    let code = chance.pick(&[
        ModelFaultCode::ModelUnreachable,
        ModelFaultCode::ContextExceeded,
        ModelFaultCode::ContextExceeded,
        ModelFaultCode::ModelProtocol,
    ]);
    let is_told = code == ModelFaultCode::ContextExceeded && chance.one_in(2);
    let window = is_told.then(|| 100 + chance.below(1500));
    EventKind::ModelFailed(ModelFault {
        code,
        message: "gone".to_owned(),
        retryable: true,
        attempts: 2,
        duration_ms: 7,
        failed: Vec::new(),
        window,
        prompt_tokens: window.map(|window| window + 1 + chance.below(500)),
        spending_limit: None,
        paid_out: false,
    })
}

/// What a call gives back.
pub fn result(chance: &mut Chance) -> ToolResult {
    match chance.below(8) {
        0 => failed("http 503"),
        1 => ToolResult::Ok(json!("x".repeat(20 + chance.below(400) as usize))),
        2 => ToolResult::Ok(json!({ "rows": [1.10, null], "seen": chance.below(4) })),
        _ => ToolResult::Ok(json!({ "did": chance.below(3) })),
    }
}

pub fn failed(class: &str) -> ToolResult {
    ToolResult::Failed(ToolFault { class: class.to_owned(), ..ToolFault::default() })
}

/// What the model reads of it, before it is cut.
pub fn observed(result: &ToolResult) -> String {
    match result {
        ToolResult::Ok(Value::String(text)) => text.clone(),
        ToolResult::Ok(value) => value.to_string(),
        ToolResult::Failed(fault) => format!("Error: {}", fault.class),
    }
}

/// The answer to a call was lost, and a human is to say whether it happened.
pub fn lost(call: CallId, attempt: u32, chance: &mut Chance) -> EventKind {
    let error = ToolFault { class: "timed out after 30 s".to_owned(), ..ToolFault::default() };
    let duration_ms = chance.below(500);
    EventKind::ToolRetried(ToolRetried { call, attempt, error, duration_ms, waited_ms: 0, delay_ms: 0, lost: true })
}

/// An attempt at a call failed, and another one follows.
pub fn retried(call: CallId, attempt: u32, chance: &mut Chance) -> EventKind {
    let error = ToolFault { class: "http 503".to_owned(), ..ToolFault::default() };
    let (duration_ms, delay_ms) = (chance.below(500), chance.below(2_000));
    EventKind::ToolRetried(ToolRetried { call, attempt, error, duration_ms, waited_ms: 0, delay_ms, lost: false })
}

/// A call returned.
pub fn returned(call: CallId, result: ToolResult, chance: &mut Chance) -> EventKind {
    EventKind::ToolReturned(ToolReturned {
        attempts: Vec::new(),
        waited_ms: 0,
        call,
        result,
        duration_ms: chance.below(500),
        tokens: None,
        cost_usd: None,
        estimated: false,
        at_most: false,
        run_id: None,
    })
}
