//! What the simulated model says, and what the simulated tools give back.

use loopctl::engine::event::{
    CallId, Finish, ModelFault, ModelFaultCode, Reply, Tokens, ToolFault, ToolResult, ToolReturned, What,
};
use serde_json::{Value, json};

use crate::chance::Chance;

/// A reply. `calm`: the model answers.
pub fn reply(chance: &mut Chance, calm: bool) -> Reply {
    let say =
        |action: &str, input: Value| json!({ "thought": "t", "action": action, "action_input": input }).to_string();
    let n = json!({ "n": chance.below(3) });
    let number = if calm { 99 } else { chance.below(46) };
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
        _ => say("__complete__", json!({ "answer": { "ok": chance.below(9) } })),
    };
    let usage = Tokens { input: 40 + chance.below(200), output: 5 + chance.below(60) };
    Reply {
        text,
        finish: if number == 40 { Finish::Length } else { Finish::Stop },
        usage: (!chance.one_in(6)).then_some(usage),
        duration_ms: chance.below(900),
        retries: u32::from(chance.one_in(9)),
        ..Reply::default()
    }
}

/// Why the model could not be asked.
pub fn model_fault(chance: &mut Chance) -> What {
    let code = chance.pick(&[
        ModelFaultCode::ModelUnreachable,
        ModelFaultCode::ContextExceeded,
        ModelFaultCode::ContextExceeded,
        ModelFaultCode::ModelProtocol,
    ]);
    What::ModelFailed(ModelFault { code, message: "gone".to_owned(), retryable: true, attempts: 2, duration_ms: 7 })
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
    ToolResult::Failed(ToolFault { class: class.to_owned(), detail: String::new() })
}

/// A call returned.
pub fn returned(call: CallId, result: ToolResult, chance: &mut Chance) -> What {
    let tokens = chance.one_in(12).then_some(Tokens { input: 20, output: 3 });
    What::ToolReturned(ToolReturned {
        call,
        result,
        duration_ms: chance.below(500),
        tokens,
        cost_usd: None,
        run_id: None,
    })
}
