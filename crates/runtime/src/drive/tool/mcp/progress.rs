//! What a server reports of how far a call is: some of it reaches the listener of the run, and none of it is kept.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value;
use tokio::sync::mpsc;

/// The method of such a report.
pub(super) const PROGRESS: &str = "notifications/progress";
/// The most reports of a call that a listener hears.
pub(super) const MAX_REPORTS: usize = 100;
/// How many reports of a call may wait; more are dropped.
const QUEUED: usize = 16;

/// Who waits for the reports of a server, by the tokens of the calls.
#[derive(Default)]
pub(super) struct ProgressBoard {
    open: Mutex<HashMap<u64, mpsc::Sender<Value>>>,
    next: AtomicU64,
}

/// The reports of a call.
pub(super) struct CallReports {
    board: Arc<ProgressBoard>,
    /// The token that the server names the call by.
    pub token: u64,
    reports: mpsc::Receiver<Value>,
}

impl ProgressBoard {
    fn open(&self) -> MutexGuard<'_, HashMap<u64, mpsc::Sender<Value>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the reports of a call.
    pub fn register(self: &Arc<Self>) -> CallReports {
        let (sender, reports) = mpsc::channel(QUEUED);
        let token = self.next.fetch_add(1, Ordering::Relaxed);
        self.open().insert(token, sender);
        CallReports { board: Arc::clone(self), token, reports }
    }

    /// Takes a report of the server. One that nobody waits for is dropped, and so is one that comes too fast.
    pub fn take(&self, params: Value) {
        let Some(token) = params.get("progressToken").and_then(Value::as_u64) else { return };
        if let Some(waiting) = self.open().get(&token) {
            let _ = waiting.try_send(params);
        }
    }
}

impl CallReports {
    /// The next report; none once the call is over.
    pub async fn next(&mut self) -> Option<Value> {
        self.reports.recv().await
    }

    /// The next report that has come.
    pub fn waiting(&mut self) -> Option<Value> {
        self.reports.try_recv().ok()
    }
}

impl Drop for CallReports {
    fn drop(&mut self) {
        self.board.open().remove(&self.token);
    }
}
