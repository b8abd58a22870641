//! The words for how a run ends or stops: results say them, and scenarios expect them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Where a run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Under way, or cut off.
    Running,
    /// Waits for a human, or for a time.
    Paused,
    /// Ended with an answer.
    Completed,
    /// Ended without one.
    Failed,
    /// Stopped by hand or by a signal.
    Cancelled,
    /// Cut off again and again: several drivers in a row took it up and died before anything happened in it, so no
    /// server takes it up any more. Stores say this; a run's own state does not know it.
    Quarantined,
}

impl Status {
    /// All statuses, in the order in which they are listed.
    pub const ALL: [Self; 6] =
        [Self::Running, Self::Paused, Self::Completed, Self::Failed, Self::Cancelled, Self::Quarantined];

    /// The status in a word, as it is written in results.
    pub fn word(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Paused => "paused",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
            Self::Quarantined => "quarantined",
        }
    }
}

/// Why a run ended or stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Termination {
    /// `__complete__`, or the dialect's answer.
    Complete,
    /// A limit was reached and the last call answered.
    ForcedAnswer,
    /// The iterations are spent.
    MaxIterations,
    /// The active time is spent.
    Timeout,
    /// The model's window is full.
    Context,
    /// The budget is spent.
    Budget,
    /// A spending limit of the project is reached.
    SpendingLimit,
    /// The agent went in circles.
    Stuck,
    /// The model can't be reached, or refuses.
    ModelError,
    /// The model can't be read.
    InvalidReplies,
    /// It asked for a human.
    Human,
    /// A tool wants approval.
    Approval,
    /// A call's outcome is not known after a crash.
    Uncertain,
    /// A step of the workflow waits for a time.
    Waiting,
    /// A step of the workflow waits for an event from outside.
    WaitingEvent,
    /// Stopped by hand or by a signal.
    Cancelled,
    /// A step of the workflow failed.
    StepFailed,
    /// A human did not approve, and the workflow stops then.
    Rejected,
    /// Nobody filled in a form in time.
    FormExpired,
    /// The `condition` of the workflow does not hold: nothing ran.
    ConditionNotMet,
}

impl Termination {
    /// Whether a run that is paused for this reason waits for a time, an event, or room in a spending limit.
    pub fn is_wait(self) -> bool {
        matches!(self, Self::Waiting | Self::WaitingEvent | Self::SpendingLimit)
    }

    /// Whether what waits for this reason continues without a human: also a model that can't be reached is asked again.
    pub fn needs_no_human(self) -> bool {
        self == Self::ModelError || self.is_wait()
    }
}

/// A limit of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// `max_iterations`.
    MaxIterations,
    /// `timeout_ms`.
    Timeout,
    /// The model's window.
    Context,
    /// `budget`.
    Budget,
}

impl Limit {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::MaxIterations, Self::Timeout, Self::Context, Self::Budget];
}

impl From<Limit> for Termination {
    fn from(limit: Limit) -> Self {
        match limit {
            Limit::MaxIterations => Self::MaxIterations,
            Limit::Timeout => Self::Timeout,
            Limit::Context => Self::Context,
            Limit::Budget => Self::Budget,
        }
    }
}

/// The patterns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StuckPattern {
    /// The same action with the same input.
    SameAction,
    /// The same action failing.
    SameFailure,
    /// A cycle of 2 actions.
    Alternation,
    /// A cycle of 3 to 6 actions.
    Cycle,
    /// The same thought.
    SameThought,
}
