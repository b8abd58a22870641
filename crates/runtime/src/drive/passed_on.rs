//! A decision, as the queue of a store holds it.

use serde::{Deserialize, Serialize};

use loopctl_engine::event::Decided;

/// A decision, as the queue holds it.
#[derive(Serialize, Deserialize)]
pub(super) struct PassedOn {
    /// The decision.
    pub decided: Decided,
    /// The hash of the token that it uses up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer_token: Option<String>,
    /// The name of the event from outside that decides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event: Option<String>,
    /// Whether the event was marked as taken for this run, and for no other one before. The store writes it (`Journal::mark_event`), as
    /// the last member.
    #[serde(default, skip_serializing)]
    pub marked: bool,
}
