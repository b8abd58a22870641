//! A run that is driven here or waits for it, and who is told of what happens in it.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{Notify, oneshot, watch};

use super::metrics::Meter;
use crate::engine::notice::{Listener, Notice};

/// A run that is driven here, or waits for it.
#[derive(Debug)]
pub struct Live {
    pub(super) done: watch::Sender<bool>,
    pub(super) news: Notify,
}

impl Live {
    /// One that is not driven yet.
    pub fn new() -> Arc<Self> {
        Arc::new(Self { done: watch::Sender::new(false), news: Notify::new() })
    }

    /// Waits until something happens in the run after this call, or nobody drives it any more.
    pub fn news(&self) -> impl Future<Output = ()> + '_ {
        let news = self.news.notified();
        let mut done = self.done.subscribe();
        async move {
            tokio::select! {
                () = news => {}
                _ = done.wait_for(|done| *done) => {}
            }
        }
    }
}

/// Tells who waits that something happened.
pub(super) struct Ears {
    pub live: Arc<Live>,
    pub meter: Meter,
    /// Is told when a decision was taken.
    pub taken: Mutex<Option<oneshot::Sender<()>>>,
}

impl Listener for Ears {
    fn on(&self, notice: Notice) {
        self.meter.hear(&notice);
        self.live.news.notify_waiters();
        // The run is told to go on before the decision is looked at; all else comes after it.
        if !matches!(notice, Notice::RunResumed { .. })
            && let Some(taken) = self.taken.lock().unwrap_or_else(PoisonError::into_inner).take()
        {
            let _ = taken.send(());
        }
    }
}
