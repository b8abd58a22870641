//! Stuck detection: patterns over the iterations since the start, the last human input, or the
//! last hint. A pattern a file.

use serde::{Deserialize, Serialize};

/// A pattern that fired.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stuck {
    /// Which pattern.
    pub pattern: Pattern,
    /// The iterations that show it, first and last.
    pub iterations: (u32, u32),
    /// What was repeated, in a sentence for people and for the model.
    pub detail: String,
}

/// The patterns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Pattern {
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

/// What detection needs to know of one iteration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// The iteration, from 1.
    pub iteration: u32,
    /// The thought: without case, punctuation and spacing; empty when there was none.
    pub thought: String,
    /// The actions of the turn with their inputs, in a spelling that is the same for equal JSON.
    pub action: String,
    /// The names of the actions alone.
    pub name: String,
    /// The observations, in a spelling that is the same for equal JSON.
    pub observation: String,
    /// Whether every call failed.
    pub failed: bool,
    /// Whether every tool of the turn is declared as polling.
    pub polling: bool,
}

/// The first pattern that the steps show at their end, with `n` as `on_stuck.iterations`.
pub fn detect(_steps: &[Step], _n: u32) -> Option<Stuck> {
    None
}
