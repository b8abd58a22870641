//! The trace, pure: from a run's state to what people and programs read about it (result, entries, text and
//! HTML), with secrets hidden and control characters escaped.

pub mod approval;
pub mod compare;
pub mod continuation;
pub mod decision;
pub mod entries;
pub mod escape;
pub mod events;
pub mod html;
pub mod iteration;
pub mod json;
pub mod layout;
pub mod live_reply;
pub mod paused;
pub mod prompts;
pub mod question_post;
pub mod reason;
pub mod refused_replies;
pub mod result;
pub mod step_text;
pub mod steps;
#[cfg(test)]
pub(crate) mod tests_state;
pub mod text;
pub mod tuning;
pub mod units;

pub use crate::record::TraceEntry;
pub use layout::{Look, Tone};
pub use loopctl_lang::policy::redact;
pub use paused::{PausedRun, WaitingSteps};
pub use redact::Redaction;
pub use result::{RunResult, Shown, result};

/// What a trace shows of a run besides its result. The texts must be redacted already.
#[derive(Debug, Clone, Copy)]
pub struct About<'a> {
    /// The loop's name.
    pub loop_name: &'a str,
    /// The model.
    pub model: &'a str,
    /// The objective, rendered.
    pub objective: &'a str,
    /// The time that the run was active, in milliseconds.
    pub active_ms: u64,
}
