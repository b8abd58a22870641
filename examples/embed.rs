//! loopctl inside a program of your own: a tool written in Rust, a loop that declares it, a run that is followed, a human who
//! approves a call as it was shown, and the answer. It plays a script, so that it needs no key and no network:
//! `cargo run --example embed`.
#![expect(clippy::print_stdout, reason = "an example shows its answer")]

use std::error::Error;
use std::time::Duration;

use loopctl::{EmbeddedTool, Loop, Outcome, ToolCall, ToolError};
use serde_json::{Value, json};

/// What the model gives to the tool: its JSON Schema is made from this type.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Refund {
    /// The order's number
    order: u32,
    /// How much, in cents
    cents: u32,
}

/// Pays a customer back. A real one would ask a bank.
struct Refunds;

impl EmbeddedTool for Refunds {
    type Input = Refund;
    type Output = Value;
    const NAME: &'static str = "refund";
    const DESCRIPTION: &'static str = "Pays a customer back.";

    async fn call(&self, refund: Refund, call: &ToolCall<'_>) -> Result<Value, ToolError> {
        if refund.cents > 10_000 {
            // The model reads the error, and the run continues.
            return Err(ToolError::new("more than 100 euros"));
        }
        Ok(json!({ "order": refund.order, "paid": refund.cents, "key": call.key() }))
    }
}

const LOOP: &str = r#"{
  "type": "loop",
  "name": "refunds",
  "input": { "type": "object", "properties": { "order": { "type": "integer" } }, "required": ["order"] },
  "properties": {
    "mode": "react",
    "objective": "The parcel of order {{input.order}} is lost: pay the customer back.",
    "tools": [{ "type": "action", "name": "refund", "requires_approval": true }]
  }
}"#;

const SCRIPT: &str = r#"{ "replies": [
  { "thought": "It cost 25 euros.", "action": "refund", "action_input": { "order": 7, "cents": 2500 } },
  { "thought": "It is paid.", "action": "__complete__", "action_input": { "answer": "25 euros were paid back." } }
] }"#;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    // A script plays the model; without it, the project's models or OPENAI_API_KEY are used. With `.store("sqlite:runs.db")`, runs
    // outlive the process. `Loop::load` takes a file.
    let refunds = Loop::load_text("refunds.json", LOOP).tool(Refunds).script(serde_json::from_str(SCRIPT)?).build()?;
    // What an earlier process left, or died in, continues, and what is due happens.
    let keeper = refunds.engine().keep([&refunds]);

    // The run is durable here: a wrong input, or an id that is another run's, is an error of this line.
    let run = refunds.start(json!({ "order": 7 })).id("order-7").timeout(Duration::from_secs(600)).spawn().await?;
    let mut notices = run.notices();
    let follower = tokio::spawn(async move {
        while let Some(Ok(notice)) = notices.next().await {
            println!("{} {}", notice.position(), notice.json()["event"]);
        }
    });
    let mut left = run.wait().await?;
    while let Outcome::Paused(waiting) = left.outcome() {
        let call = waiting.calls.first().ok_or("it asks for something else")?;
        println!("{} {}: approved", call.action, call.input);
        left = refunds.resume("order-7").decide(call.approve_as_shown()).by("ann").await?;
    }
    follower.await?;
    println!("{}", left.answer_as::<String>()?);
    keeper.drain(Duration::from_secs(20)).await;
    Ok(())
}
