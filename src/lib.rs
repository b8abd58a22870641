//! loopctl runs agent loops that are declared in JSON.
//!
//! The data's way: what can be written ([`language`]) becomes what it means ([`compile`]); a
//! [`Program`] is run by the pure loop ([`engine`]) under a driver ([`drive`]); its events last in a
//! [`journal`], and tell what happened ([`trace`]).
//!
//! # Loops inside your own program
//!
//! A tool written in Rust, a run that is watched and stopped from outside, an answer to what it asks,
//! and its end by hand. Here a script plays the model; leave it out, and the model that the document
//! or `loopctl.json` names is asked. With [`journal::open`] in place of the store in memory, a run
//! outlives the process.
//!
//! ```
//! use loopctl::compile::Texts;
//! use loopctl::diagnostic::Source;
//! use loopctl::{
//!     BoxFuture, Decision, EmbeddedTool, Engine, Notice, Resume, Start, Status, Stop, ToolCall, ToolFault, Watch,
//! };
//! use serde_json::{Value, json};
//!
//! struct Orders;
//!
//! impl EmbeddedTool for Orders {
//!     fn description(&self) -> &str {
//!         "Looks an order up by its number."
//!     }
//!     fn parameters(&self) -> Value {
//!         json!({"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]})
//!     }
//!     fn idempotent(&self) -> bool {
//!         true // after a crash it may be called again
//!     }
//!     fn call<'a>(&'a self, call: &'a ToolCall<'a>) -> BoxFuture<'a, Result<Value, ToolFault>> {
//!         Box::pin(async move { Ok(json!({"id": call.input["id"], "status": "lost", "run": call.run_id})) })
//!     }
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let document = json!({"type": "loop", "name": "orders", "properties": {
//!     "mode": "react", "objective": "Settle order {{input.id}}.", "tools": [{"type": "action", "name": "orders"}]}});
//! let mut texts = Texts::new(Source::new("orders.json", document.to_string()));
//! texts.embedded = vec![loopctl::signature("orders", &Orders)];
//! let loaded = loopctl::load_texts(&texts, ".".into())?; // files: loopctl::load_with
//! let program = loaded.program;
//!
//! let script = serde_json::from_value(json!({"replies": [
//!     {"thought": "Look.", "action": "orders", "action_input": {"id": 7}},
//!     {"thought": "Ask.", "action": "__pause_for_human__", "action_input": {"question": "Refund it?"}},
//!     {"thought": "Done.", "action": "__complete__", "action_input": {"answer": "refunded"}}]}))?;
//! let engine = Engine::builder(program.project.clone(), &loaded.root).tool("orders", Orders).script(script).build();
//!
//! // The run goes its way in a task; its notices are read here, as they come.
//! let (teller, mut notices) = loopctl::notices();
//! let stop = Stop::new(); // stop.after_step() ends it resumably from anywhere
//! let task = tokio::spawn({
//!     let (engine, program, stop) = (engine.clone(), program.clone(), stop.clone());
//!     async move {
//!         let start = Start { input: json!({"id": 7}), run_id: Some("order-7".into()), ..Start::default() };
//!         engine.run(&program, start, Watch { listener: Some(&teller), stop: Some(stop) }).await
//!     }
//! });
//! let mut called = Vec::new();
//! while let Some(notice) = notices.next().await {
//!     if let Notice::ToolCalled { action, .. } = notice {
//!         called.push(action);
//!     }
//! }
//! let paused = task.await??;
//! assert_eq!((called, paused.status()), (vec!["orders".to_owned()], Status::Paused));
//! assert_eq!(paused.pause().map(|pause| pause.question.as_str()), Some("Refund it?"));
//!
//! // A human answers, now or next week.
//! let answer = Resume::with(Decision::Answer("Yes.".into()));
//! let ended = engine.resume(&program, "order-7", answer, Watch::default()).await?;
//! assert_eq!(ended.answer().map(|answer| &answer.answer), Some(&json!("refunded")));
//!
//! // Another run is ended by hand.
//! let other = engine.run(&program, Start { input: json!({"id": 8}), ..Start::default() }, Watch::default()).await?;
//! let status = engine.cancel(&program, other.run_id(), Some("not needed any more".into())).await?;
//! assert_eq!(status, Status::Cancelled);
//! # Ok(())
//! # }
//! ```
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

pub mod check;
pub mod cli;
pub mod compile;
pub mod diagnostic;
pub mod drive;
pub mod engine;
pub mod journal;
pub mod language;
mod load;
pub mod policy;
pub mod program;
pub mod serve;
pub mod syntax;
pub mod trace;

pub use diagnostic::Diagnostic;
pub use drive::engine::{Engine, EngineBuilder, Finished, Resume, Watch};
pub use drive::fault::Fault;
pub use drive::notices::{Notices, Teller, notices};
pub use drive::start::Start;
pub use drive::stop::Stop;
pub use drive::tool::{BoxFuture, EmbeddedTool, ToolCall};
pub use engine::event::{Decided, Decision, ToolFault};
pub use engine::notice::{Listener, Notice};
pub use engine::outcome::{Status, Termination};
pub use load::{EmbeddedSignature, Loaded, Unsound, examine, load, load_texts, load_with, signature};
pub use program::Program;
