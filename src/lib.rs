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
//! # By task
//!
//! **Load a document.** [`Loop::load`] takes a file with the project around it, [`Loop::load_text`] a text; [`LoopBuilder`] has what a
//! program adds: tools, models, secrets, documents in memory, a store ([`journal`]), a [`Script`] that plays the models. [`Project`] is the
//! project file as a type. [`LoadError`] and [`DocumentError`] say what is wrong, with a
//! [`Diagnostic`] for each fault. [`Engine`] and its [`EngineBuilder`] hold what many documents share: [`LoopBuilder::engine`].
//!
//! **Start and resume.** [`Loop::start`] gives a [`StartRun`], [`Loop::resume`] a [`ResumeRun`]: awaited, they give what is left of the run
//! ([`Finished`]), and spawned, a [`RunHandle`] when the run is durable. [`Loop::handle`] gives one by an id. [`Outcome`] is how a run is
//! left: an [`Answer`], a [`RunError`], or what it waits for ([`PauseOutcome`], with a [`PausedCall`] for each call). A [`Decision`], or one
//! about a call as it was shown ([`Decided`]), continues it. [`Stop`] stops runs, and [`Engine::keep`] has all that nobody drives continue
//! ([`Keeper`]).
//!
//! **Follow.** [`RunHandle::notices`] reads [`Notices`] from the store: each [`RunNotice`] has a [`NoticePosition`], from which a reader
//! continues. A [`Listener`] hears each [`Notice`] as it happens, with the pieces of replies.
//!
//! **Tools.** [`EmbeddedTool`] is a Rust type with an input, and [`DynTool`] a tool that is known at run time only. [`RenamedTool`] is one
//! type under several names. [`ToolCall`], [`ToolError`], [`ToolFault`] and [`ToolSignature`] are what they take, give and are.
//!
//! **Models.** [`EmbeddedModel`] and [`DynModel`] likewise, with [`ModelRequest`], [`ModelTool`], [`ModelReply`], [`ModelReasoning`] and
//! [`ModelError`].
//!
//! **Errors.** [`Fault`] of a run, with [`Refused`] of a decision and [`MissingRequirement`] ([`Missing`]) of what it needs; [`StoreError`]
//! of a store; [`AnswerError`] of an answer as a type; [`PositionError`] of a position.
//!
//! **Serve and test.** With the feature `serve`, `serve::Service` has the routes of `loopctl serve` for an axum app. With the feature
//! `testing`, `testing::Scenarios` plays files of scenarios with the tools of an engine.
//!
//! # Features
//!
//! None is needed for models and tools of one's own: `default-features = false`. `http` has models, actions and MCP servers over HTTP,
//! `sqlite` and `postgres` have stores, `serve` and `testing` are above, and `cli`, the default, is the program `loopctl` with all of these.
//! The modules that are not listed here are those of the program: they may change with every version.
#![cfg_attr(docsrs, feature(doc_cfg))]
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
#[doc(hidden)]
pub mod cli;
#[cfg(feature = "restate")]
#[doc(hidden)]
pub mod restate;
#[cfg(feature = "testing")]
#[cfg_attr(
    not(feature = "cli"),
    allow(dead_code, unused_imports, reason = "the program also records, probes and measures")
)]
mod scenario;
#[cfg(feature = "serve")]
#[cfg_attr(docsrs, doc(cfg(feature = "serve")))]
pub mod serve;
#[cfg(feature = "testing")]
#[cfg_attr(docsrs, doc(cfg(feature = "testing")))]
pub mod testing;

#[doc(hidden)]
pub use loopctl_engine as engine;
#[doc(hidden)]
pub use loopctl_engine::trace;
#[cfg(feature = "cli")]
use loopctl_engine::{estimate, replay};
#[doc(hidden)]
pub use loopctl_lang::{check, compile, diagnostic, language, policy, program, syntax};
#[doc(hidden)]
pub use loopctl_runtime::{drive, project};

/// Stores: [`open`](journal::open) opens one by its name, and [`MemoryJournal`](journal::memory::MemoryJournal) is one in memory.
#[doc(inline)]
pub use loopctl_runtime::journal;

#[doc(inline)]
pub use compile::ToolSignature;
#[doc(inline)]
pub use diagnostic::Diagnostic;
#[doc(inline)]
pub use drive::builder::EngineBuilder;
#[doc(inline)]
pub use drive::engine::Engine;
#[doc(inline)]
pub use drive::fault::Fault;
#[doc(inline)]
pub use drive::future::BoxFuture;
#[doc(inline)]
pub use drive::model::{DynModel, EmbeddedModel, ModelError, ModelReasoning, ModelReply, ModelRequest, ModelTool};
#[doc(inline)]
pub use drive::notices::{NoticePosition, PositionError};
#[doc(inline)]
pub use drive::requirements::{Missing, MissingRequirement};
#[doc(inline)]
pub use drive::run_result::{AnswerError, Finished};
#[doc(inline)]
pub use drive::stop::Stop;
#[doc(inline)]
pub use drive::tool::{DynTool, EmbeddedTool, RenamedTool, ToolCall, ToolError};
#[doc(inline)]
pub use engine::event::{Decided, Decision, ToolFault};
#[doc(inline)]
pub use engine::notice::{Listener, Notice};
#[doc(inline)]
pub use engine::outcome::{Answer, RunError, Status, Termination};
#[doc(inline)]
pub use engine::step::Refused;
#[doc(inline)]
pub use journal::StoreError;
#[doc(inline)]
pub use language::{Project, Script};
#[doc(inline)]
pub use loopctl_runtime::embed::{
    Keeper, LoadError, Loop, LoopBuilder, Notices, Outcome, PauseOutcome, PausedCall, ResumeRun, RunHandle, RunNotice,
    StartRun,
};
#[doc(inline)]
pub use program::Program;
#[doc(inline)]
pub use project::load::{DocumentError, Loaded, examine, load, load_texts};
