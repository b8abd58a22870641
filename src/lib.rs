//! loopctl runs agent loops that are declared in JSON.
//!
//! The data flow: a written document ([`language`]) is compiled ([`compile`]) to a [`Program`]; the pure loop
//! ([`engine`]) runs it under a driver ([`drive`]); its events are stored in a [`journal`], and a trace is made
//! from them ([`trace`]).
//!
//! # Loops inside a program of yours
//!
//! A tool written in Rust, a run that is watched and can be stopped, an answer to its question, and its result as a
//! type. Here a script plays the model; leave it out, and the model that the document or `loopctl.json` names is
//! called. With [`LoopBuilder::store`], runs outlive the process.
//!
//! ```
//! use loopctl::{EmbeddedTool, Loop, Notice, Outcome, Status, ToolCall, ToolError};
//! use serde_json::{Value, json};
//!
//! #[derive(serde::Deserialize, schemars::JsonSchema)]
//! struct Order {
//!     /// The number of the order
//!     id: u32,
//! }
//!
//! struct Orders;
//!
//! impl EmbeddedTool for Orders {
//!     type Input = Order;
//!     type Output = Value;
//!     const NAME: &'static str = "orders";
//!     const DESCRIPTION: &'static str = "Looks an order up by its number.";
//!     const IDEMPOTENT: bool = true; // after a crash it may be called again
//!
//!     async fn call(&self, order: Order, call: &ToolCall<'_>) -> Result<Value, ToolError> {
//!         Ok(json!({"id": order.id, "status": "lost", "run": call.run_id}))
//!     }
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let document = json!({"type": "loop", "name": "orders", "properties": {
//!     "mode": "react", "objective": "Settle order {{input.id}}.", "tools": [{"type": "action", "name": "orders"}]}});
//! let script = serde_json::from_value(json!({"replies": [
//!     {"thought": "Look.", "action": "orders", "action_input": {"id": 7}},
//!     {"thought": "Ask.", "action": "__pause_for_human__", "action_input": {"question": "Refund it?"}},
//!     {"thought": "Done.", "action": "__complete__", "action_input": {"answer": "refunded"}}]}))?;
//! let orders = Loop::load_text("orders.json", document.to_string()).tool(Orders).script(script).build()?;
//!
//! // The run is durable, and a task drives it. Its notices are read from the store.
//! let run = orders.start(json!({"id": 7})).id("order-7").spawn().await?;
//! let (mut notices, mut called) = (run.notices(), Vec::new());
//! while let Some(notice) = notices.next().await {
//!     match notice?.unredacted() {
//!         Notice::ToolCalled { action, .. } => called.push(action.clone()),
//!         Notice::Paused { .. } => break,
//!         _ => {}
//!     }
//! }
//! assert_eq!(called, ["orders"]);
//! let Outcome::Paused(waiting) = run.wait().await?.outcome() else { panic!("it asks") };
//! assert_eq!(waiting.question.text, "Refund it?");
//!
//! // A human answers, now or next week.
//! let ended = orders.resume("order-7").answer("Yes.").await?;
//! assert_eq!(ended.answer_as::<String>()?, "refunded");
//!
//! // Another run is cancelled.
//! let other = orders.start(json!({"id": 8})).await?;
//! assert_eq!(orders.handle(other.run_id()).cancel("not needed any more").await?, Status::Cancelled);
//! # Ok(())
//! # }
//! ```
//!
//! # Many documents, a server, and tests
//!
//! An [`Engine`] holds tools, models and a store for many documents: [`LoopBuilder::engine`]. With the feature `serve`,
//! `serve::Service::builder` serves a folder with it, and with the feature `cli`, `testing::Scenarios` plays scenarios with its tools.
#![cfg_attr(
    test,
    allow(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::indexing_slicing,
        clippy::panic,
        clippy::as_conversions,
        clippy::string_slice
    )
)]

#[cfg(feature = "cli")]
pub mod cli;
#[cfg(feature = "restate")]
pub mod restate;
#[cfg(feature = "cli")]
mod scenario;
#[cfg(feature = "serve")]
pub mod serve;
#[cfg(feature = "cli")]
pub mod testing;

pub use loopctl_engine as engine;
pub use loopctl_engine::trace;
#[cfg(feature = "cli")]
use loopctl_engine::{estimate, replay};
pub use loopctl_lang::{check, compile, diagnostic, language, policy, program, syntax};
pub use loopctl_runtime::{drive, journal, project};

pub use compile::ToolSignature;
pub use diagnostic::Diagnostic;
pub use drive::builder::EngineBuilder;
pub use drive::engine::Engine;
pub use drive::fault::Fault;
pub use drive::future::BoxFuture;
pub use drive::model::{DynModel, EmbeddedModel, ModelError, ModelReasoning, ModelReply, ModelRequest, ModelTool};
pub use drive::notices::{NoticePosition, PositionError};
pub use drive::requirements::{Missing, MissingRequirement};
pub use drive::run_result::{AnswerError, Finished};
pub use drive::stop::Stop;
pub use drive::tool::{DynTool, EmbeddedTool, RenamedTool, ToolCall, ToolError};
pub use engine::event::{Decided, Decision, ToolFault};
pub use engine::notice::{Listener, Notice};
pub use engine::outcome::{Answer, RunError, Status, Termination};
pub use engine::step::Refused;
pub use journal::StoreError;
pub use loopctl_runtime::embed::{
    Keeper, LoadError, Loop, LoopBuilder, Notices, Outcome, PauseOutcome, PausedCall, ResumeRun, RunHandle, RunNotice,
    StartRun,
};
pub use program::Program;
pub use project::load::{DocumentError, Loaded, examine, load, load_texts};
