//! A run that is driven here or queued, and the callers that wait for news of it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{Notify, oneshot, watch};

use crate::engine::notice::{Listener, Notice};
use crate::serve::metrics::Meter;
use crate::serve::run_store::FoldedRun;

/// A run that is driven here, or queued.
#[derive(Debug)]
pub struct ActiveRun {
    left: watch::Sender<Option<Left>>,
    news: Notify,
}

/// Nobody drives the run here any more.
#[derive(Debug, Clone)]
struct Left {
    /// The run as its driver left it; none when there was no driver, or it failed.
    run: Option<Arc<FoldedRun>>,
}

impl ActiveRun {
    /// A run that is not driven yet.
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self { left: watch::Sender::new(None), news: Notify::new() })
    }

    /// Waits until something happens in the run after this call, or nobody drives it any more.
    pub fn news(&self) -> impl Future<Output = ()> + '_ {
        let news = self.news.notified();
        let mut left = self.left.subscribe();
        async move {
            tokio::select! {
                () = news => {}
                _ = left.wait_for(Option::is_some) => {}
            }
        }
    }

    /// Waits until nobody drives the run here any more; the run as its driver left it.
    pub(super) async fn left(&self) -> Option<Arc<FoldedRun>> {
        let mut left = self.left.subscribe();
        // The sender lives as long as `self`.
        let left = left.wait_for(Option::is_some).await.ok()?;
        left.as_ref()?.run.clone()
    }

    /// Signals to all who wait that nobody drives the run here any more.
    pub(super) fn leave(&self, run: Option<Arc<FoldedRun>>) {
        self.left.send_replace(Some(Left { run }));
        self.news.notify_waiters();
    }
}

/// Forwards what happens in a run to the metrics and to those that wait for it.
pub(super) struct NoticeForwarder {
    pub run: Arc<ActiveRun>,
    pub meter: Meter,
    /// Gets a message when a decision was accepted.
    pub decision_taken: Mutex<Option<oneshot::Sender<()>>>,
}

impl NoticeForwarder {
    /// Sends a message when the decision is accepted that the driver was given.
    pub fn expect_decision(&self, taken: Option<oneshot::Sender<()>>) {
        *self.decision_taken() = taken;
    }

    /// Whether a decision was given to the driver and is not accepted yet.
    pub fn awaits_decision(&self) -> bool {
        self.decision_taken().is_some()
    }

    fn decision_taken(&self) -> MutexGuard<'_, Option<oneshot::Sender<()>>> {
        self.decision_taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Listener for NoticeForwarder {
    fn on(&self, notice: Notice) {
        self.meter.record(&notice);
        self.run.news.notify_waiters();
        // The run is resumed before the decision is checked; all other notices come after its acceptance.
        if !matches!(notice, Notice::RunResumed { .. })
            && let Some(sender) = self.decision_taken().take()
        {
            let _ = sender.send(());
        }
    }
}
