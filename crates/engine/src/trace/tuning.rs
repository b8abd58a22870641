//! What a threshold of stuck detection would have done to old runs.

use serde::Serialize;

/// What thresholds would have done.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Tuning {
    /// The loop; none for all.
    #[serde(rename = "loop", skip_serializing_if = "Option::is_none")]
    pub loop_name: Option<String>,
    /// How many runs were judged: those that have ended.
    pub runs: usize,
    /// How many of them completed.
    pub completed: usize,
    /// How many runs could not be judged.
    pub not_judged: usize,
    /// By threshold.
    pub thresholds: Vec<ThresholdTally>,
}

/// What one threshold would have done.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ThresholdTally {
    /// `on_stuck.iterations`.
    pub iterations: u32,
    /// How many runs it would have stopped.
    pub stopped: usize,
    /// How many of these completed later.
    pub false_stops: usize,
    /// The tokens that the others used after the stop.
    pub tokens_saved: u64,
    /// How many runs had this threshold.
    pub in_use: usize,
}
