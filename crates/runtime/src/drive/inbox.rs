//! The inboxes of runs that are driven here: decisions on their way to the drivers.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use tokio::sync::{mpsc, oneshot};

use super::fault::Fault;
use loopctl_engine::event::Decided;

/// The maximum number of decisions that wait for a driver; who passes another one waits until there is room.
const MAX_WAITING_DECISIONS: usize = 16;

/// A decision, on its way to the driver of its run.
pub(super) struct PassedDecision {
    pub decided: Decided,
    pub answer_token: Option<String>,
    pub source: DecisionSource,
}

/// Where a decision comes from, and who must learn what became of it.
pub(super) enum DecisionSource {
    /// This process.
    Here(oneshot::Sender<Result<(), Fault>>),
    /// The queue of the store, under this id.
    Queue(String),
}

/// The open inboxes, by their runs.
#[derive(Default)]
pub(super) struct DecisionInboxes {
    open: Mutex<HashMap<String, mpsc::Sender<PassedDecision>>>,
}

/// The inbox of a run. Dropping it closes it: what is in it was not taken.
pub(super) struct DecisionInbox<'w> {
    inboxes: &'w DecisionInboxes,
    run_id: String,
    sender: mpsc::Sender<PassedDecision>,
    receiver: mpsc::Receiver<PassedDecision>,
}

impl DecisionInboxes {
    /// Opens the inbox of a run that is driven here.
    pub fn open(&self, run_id: &str) -> DecisionInbox<'_> {
        let (sender, receiver) = mpsc::channel(MAX_WAITING_DECISIONS);
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.insert(run_id.to_owned(), sender.clone());
        DecisionInbox { inboxes: self, run_id: run_id.to_owned(), sender, receiver }
    }

    /// Where decisions about a run are sent.
    pub fn of(&self, run_id: &str) -> Option<mpsc::Sender<PassedDecision>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).get(run_id).cloned()
    }
}

impl DecisionInbox<'_> {
    /// Waits for the next decision.
    pub async fn next(&mut self) -> PassedDecision {
        match self.receiver.recv().await {
            Some(passed) => passed,
            // The inbox holds a sender itself.
            None => std::future::pending().await,
        }
    }
}

impl Drop for DecisionInbox<'_> {
    fn drop(&mut self) {
        let mut open = self.inboxes.open.lock().unwrap_or_else(PoisonError::into_inner);
        if open.get(&self.run_id).is_some_and(|known| known.same_channel(&self.sender)) {
            open.remove(&self.run_id);
        }
    }
}
