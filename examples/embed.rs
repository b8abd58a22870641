//! loopctl inside a program of your own: a tool written in Rust, a loop that declares it, and the
//! answer as a value. It plays a script, so that it needs no key and no network:
//! `cargo run --example embed`.
#![expect(clippy::print_stdout, reason = "an example shows its answer")]

use std::error::Error;

use loopctl::{EmbeddedTool, Loop, ToolCall, ToolError};
use serde_json::{Value, json};

/// What the model gives to the tool: its JSON Schema is made from this type.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Part {
    /// The part's number, like P-7
    part: String,
}

/// How many of a part are in stock. A real one would ask a warehouse.
struct Stock;

impl EmbeddedTool for Stock {
    type Input = Part;
    type Output = Value;
    const NAME: &'static str = "stock";
    const DESCRIPTION: &'static str = "Returns how many of a part are in stock.";
    // Reading does no harm: after a crash the call is made again without asking.
    const IDEMPOTENT: bool = true;

    async fn call(&self, Part { part }: Part, _: &ToolCall<'_>) -> Result<Value, ToolError> {
        match part.as_str() {
            "P-7" => Ok(json!({ "part": part, "in_stock": 12 })),
            // The model reads the error, and the run continues.
            _ => Err(ToolError::new("unknown part")),
        }
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
    // A script plays the model; without it, the project's models or OPENAI_API_KEY are used. With
    // `.store("sqlite:runs.db")`, runs outlive the process. `Loop::load` takes a file.
    let stock = Loop::load_text("stock.json", LOOP).tool(Stock).script(serde_json::from_str(SCRIPT)?).build()?;

    // With a store that outlives the process: what an earlier one left, or died in.
    for id in stock.unfinished().await? {
        stock.resume(&id).await?;
    }
    let finished = stock.start(json!({ "part": "P-7" })).await?;
    println!("{}", finished.answer_as::<String>()?);
    Ok(())
}
