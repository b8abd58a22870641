//! loopctl runs agent loops that are declared in JSON.
//!
//! The data's way: what can be written ([`language`]) becomes what it means ([`compile`]); a
//! [`Program`] is run by the pure loop ([`engine`]) under a driver ([`drive`]); its events last in a
//! [`journal`], and tell what happened ([`trace`]).
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
pub mod trace;

pub use compile::Program;
pub use diagnostic::Diagnostic;
pub use drive::engine::{Engine, EngineBuilder, Finished, Resume, Watch};
pub use drive::fault::Fault;
pub use drive::start::Start;
pub use drive::stop::Stop;
pub use drive::tool::{BoxFuture, EmbeddedTool, ToolCall};
pub use engine::event::{Decided, Decision, ToolFault};
pub use engine::notice::{Listener, Notice};
pub use engine::outcome::{Status, Termination};
pub use load::{EmbeddedSignature, Loaded, Unsound, examine, load, load_texts, load_with};
