//! The variables of a program's environment: what `check` passes the driver does not refuse, and what the
//! driver refuses `check` reports.

use std::path::Path;

use loopctl::compile::{Texts, compile};
use loopctl::diagnostic::Source;
use loopctl::drive::engine::Watch;
use loopctl::drive::start::Start;
use loopctl::{Engine, Program, load_texts};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::config;

const NAMES: [&str; 12] = [
    "TICKET",
    "ticket",
    "LC_ALL",
    "PATH",
    "Path",
    "LD_PRELOAD",
    "GIT_SSH_COMMAND",
    "GIT_CONFIG_COUNT",
    "LUA_INIT_5_4",
    "_JAVA_OPTIONS",
    "PYTHONWARNINGS",
    "HOME",
];

const VALUES: [&str; 11] = [
    "written",
    "/usr/bin:/bin",
    "{{value}}",
    "x{{input.value}}y",
    "{{#if input.value}}a{{else}}b{{/if}}",
    "{{#each input.list}}{{this}}{{/each}}",
    "{{now}}",
    "{{__run_id}} {{value}}",
    "orgconfig:key",
    "orgconfig:key {{value}}",
    "@input.value",
];

fn texts(name: &str, value: &str, allowed: &[&str]) -> Texts {
    let action = json!({ "action_name": "call", "kind": "command", "description": "Runs.", "program": "true",
        "env": { (name): value }, "parameters": { "type": "object", "properties": { "value": {} }, "required": ["value"] } });
    let document = json!({ "type": "loop", "name": "l", "actions": [action], "properties": { "mode": "react",
        "objective": "Do it.", "tools": [{ "type": "action", "name": "call" }] } });
    let project =
        json!({ "allow": { "commands": ["true"], "env": allowed }, "orgconfig": { "key": "file:Cargo.toml" } });
    let mut texts = Texts::new(Source::new("loop.json", document.to_string()));
    texts.project = Some(Source::new("loopctl.json", project.to_string()));
    texts
}

/// Whether the driver refuses the environment of the one call.
fn is_refused(program: &std::sync::Arc<Program>) -> bool {
    let call = json!({ "thought": "t", "action": "call", "action_input": { "value": "v" } });
    let end = json!({ "thought": "t", "action": "__complete__", "action_input": { "answer": "a" } });
    let script = serde_json::from_value(json!({ "replies": [call, end] })).unwrap();
    let engine = Engine::builder(program.project.clone(), Path::new(".")).script(script).build();
    let input: Value = json!({ "value": "v", "list": ["a"] });
    let start = Start { input, ..Start::default() };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let finished = runtime.block_on(engine.run(program, start, Watch::default())).unwrap();
    let state = format!("{:?}", finished.state);
    let refused = state.contains("environment not allowed");
    assert!(refused || !state.contains("Failed"), "another fault: {state}");
    refused
}

proptest! {
    #![proptest_config(config(60, 4))]

    #[test]
    fn check_and_the_driver_refuse_the_same_variables(
        name in 0..NAMES.len(), value in 0..VALUES.len(), allowed in proptest::collection::vec(0..NAMES.len(), 0..3),
    ) {
        let allowed: Vec<&str> = allowed.into_iter().map(|at| NAMES[at]).collect();
        let texts = texts(NAMES[name], VALUES[value], &allowed);
        match load_texts(&texts, ".".into()) {
            Ok(loaded) => prop_assert!(!is_refused(&loaded.program), "check passes it"),
            Err(unsound) => {
                let errors: Vec<_> = unsound.diagnostics.iter().filter(|fault| fault.is_error()).collect();
                prop_assert!(errors.iter().all(|fault| matches!(fault.code, "L105" | "L129")), "{errors:?}");
                // Without the rules, as the server takes up a run that an older version began.
                if let Some(program) = compile(&texts).program {
                    prop_assert!(is_refused(&program), "the driver would have made the call");
                } else {
                    prop_assert!(errors.iter().any(|fault| fault.code == "L105"), "{errors:?}");
                }
            }
        }
    }
}
