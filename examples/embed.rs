//! loopctl inside a program of your own: a tool written in Rust, a loop that declares it, and the
//! answer as a value. It plays a script, so that it needs no key and no network:
//! `cargo run --example embed`.
#![expect(clippy::print_stdout, reason = "an example shows its answer")]

use std::error::Error;
use std::path::PathBuf;
use std::sync::Arc;

use loopctl::compile::Texts;
use loopctl::diagnostic::Source;
use loopctl::engine::state::Phase;
use loopctl::journal::memory::MemoryJournal;
use loopctl::language::Script;
use loopctl::{BoxFuture, EmbeddedTool, Engine, Start, ToolCall, ToolFault, Watch, load_texts};
use serde_json::{Value, json};

/// How many of a part are in stock. A real one would ask a warehouse.
struct Stock;

impl EmbeddedTool for Stock {
    fn description(&self) -> &str {
        "Tells how many of a part are in stock."
    }

    fn parameters(&self) -> Value {
        json!({
            "type": "object",
            "properties": { "part": { "type": "string", "description": "The part's number, like P-7" } },
            "required": ["part"],
            "additionalProperties": false
        })
    }

    // Reading does no harm: after a crash the call is made again without asking.
    fn idempotent(&self) -> bool {
        true
    }

    fn call<'a>(&'a self, call: &'a ToolCall<'a>) -> BoxFuture<'a, Result<Value, ToolFault>> {
        Box::pin(async move {
            match call.input.get("part").and_then(Value::as_str) {
                Some("P-7") => Ok(json!({ "part": "P-7", "in_stock": 12 })),
                // A failure is an observation: the model reads the class and goes on.
                _ => Err(ToolFault { class: "unknown part".to_owned(), detail: String::new() }),
            }
        })
    }
}

const LOOP: &str = r#"{
  "type": "loop",
  "name": "stock",
  "input": { "type": "object", "properties": { "part": { "type": "string" } }, "required": ["part"] },
  "properties": {
    "mode": "react",
    "objective": "Can we ship ten of part {{input.part}} today?",
    "tools": [{ "type": "action", "name": "stock" }]
  }
}"#;

const SCRIPT: &str = r#"{ "replies": [
  { "thought": "I look at the stock.", "action": "stock", "action_input": { "part": "P-7" } },
  { "thought": "Twelve is enough.", "action": "__complete__", "action_input": { "answer": "Yes: 12 of P-7 are in stock." } }
] }"#;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    // Each fault of a document has its place: an editor or a service can show it there.
    let texts = Texts {
        embedded: vec![("stock".to_owned(), Stock.description().to_owned(), Stock.parameters(), Stock.idempotent())],
        ..Texts::new(Source::new("stock.json", LOOP))
    };
    let loaded = load_texts(&texts, PathBuf::from(".")).inspect_err(|unsound| {
        for fault in &unsound.diagnostics {
            println!("{}:{}: {}", fault.place.file, fault.place.line, fault.message);
        }
    })?;

    // A script plays the model; leave it out, and the project's models or OPENAI_API_KEY serve. With
    // `SqliteJournal::open(path)` in place of memory, runs outlive the process.
    let script: Script = serde_json::from_str(SCRIPT)?;
    let engine = Engine::builder(Arc::clone(&loaded.program.project), &loaded.root)
        .journal(Arc::new(MemoryJournal::new()))
        .script(script)
        .tool("stock", Stock)
        .build();

    let start = Start { input: json!({ "part": "P-7" }), ..Start::default() };
    let finished = engine.run(&loaded.program, start, Watch::default()).await?;
    match &finished.state.phase {
        Phase::Ended(ending) => match &ending.answer {
            Some(answer) => println!("{}", answer.answer),
            None => println!("no answer: {:?}", ending.error),
        },
        phase => println!("the run waits: {phase:?}"),
    }
    Ok(())
}
