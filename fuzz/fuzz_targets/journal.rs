//! The lines of a journal are read and folded by a loop that has a tool, an approval and limits.
#![no_main]

use std::sync::{Arc, LazyLock};

use libfuzzer_sys::fuzz_target;
use loopctl::Program;
use loopctl::compile::Texts;
use loopctl::diagnostic::Source;
use loopctl::drive::fold;
use loopctl::engine::blob::Blob;
use serde_json::json;

static PROGRAM: LazyLock<Arc<Program>> = LazyLock::new(|| {
    let document = json!({ "type": "loop", "name": "test", "properties": {
        "mode": "react", "objective": "Settle it.", "max_iterations": 5,
        "tools": [{ "type": "action", "name": "look" }, { "type": "action", "name": "act", "requires_approval": true }] },
        "actions": [
            { "action_name": "look", "kind": "command", "program": "true", "description": "Looks.", "parameters": { "type": "object" } },
            { "action_name": "act", "kind": "command", "program": "true", "description": "Acts.", "parameters": { "type": "object" } }] });
    let mut texts = Texts::new(Source::new("loop.json", document.to_string()));
    texts.project = Some(Source::new("loopctl.json", json!({ "allow": { "commands": ["true"] } }).to_string()));
    match loopctl::load_texts(&texts, ".".into()) {
        Ok(loaded) => loaded.program,
        Err(unsound) => panic!("{:?}", unsound.diagnostics),
    }
});

static TEXT: LazyLock<Blob> = LazyLock::new(|| Blob::new("Settle it."));

fuzz_target!(|text: &str| {
    // A prompt and a document are named by their digest.
    let named = TEXT.digest().to_string();
    let lines: Vec<String> = text.lines().map(|line| line.replace("@text", &named)).collect();
    let Ok(events) = fold::events("r", &lines, std::slice::from_ref(&*TEXT)) else { return };
    if let Ok(state) = fold::fold(&PROGRAM, "r", events.clone()) {
        // The same events give the same state.
        assert!(fold::fold(&PROGRAM, "r", events).is_ok_and(|again| again == state));
    }
});
