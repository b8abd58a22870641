//! A model's reply is read in each dialect: a text, or texts and native calls as JSON.
#![no_main]

use libfuzzer_sys::fuzz_target;
use loopctl::engine::dialect;
use loopctl::engine::event::Reply;
use loopctl::language::react::Dialect;
use serde_json::json;

fuzz_target!(|text: &str| {
    let plain = json!({ "text": text, "duration_ms": 1 });
    let written = serde_json::from_str::<serde_json::Value>(text).unwrap_or_default();
    let called = json!({ "text": written["text"], "calls": written["calls"], "duration_ms": 1 });
    for reply in [plain, called] {
        let Ok(reply) = serde_json::from_value::<Reply>(reply) else { continue };
        for dialect in [Dialect::Json, Dialect::ToolCalls, Dialect::Tags, Dialect::FinalAnswer] {
            drop(dialect::read(dialect, &reply));
        }
    }
});
