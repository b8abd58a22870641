//! Decisions about steps that wait, on their way to the driver of their run in another process.

/// A decision about a step that waits. It is durable until an event takes it, or the driver refuses it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueuedDecision {
    /// Its id, new for each decision.
    pub id: String,
    /// What is decided: one decision about it waits at a time.
    pub subject: String,
    /// The decision, in the words of the one who queued it.
    pub decision: String,
    /// Why the driver refused it; none while it waits.
    pub refused: Option<String>,
}

/// The outcome of queueing a decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Queueing {
    /// It waits for the driver of the run.
    Queued,
    /// Another decision about the same subject waits.
    Occupied,
    /// Nobody drives the run: it can be leased.
    NotDriven,
}

/// What becomes of a queued decision that no event takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SettledDecision {
    /// It does not fit.
    Refused {
        /// Why.
        why: String,
        /// When the run must be looked at next, if it is paused, in milliseconds since 1970.
        due_at_ms: Option<i64>,
    },
    /// Its refusal was read.
    Read,
}
