//! Watches how far runs are that somebody waits for and that are not driven here: one look-up for all of them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::FutureExt as _;
use tokio::sync::watch;

use crate::journal::{Journal, RunHead};

/// The interval of the look-ups, while somebody waits.
const HEAD_POLL_INTERVAL: Duration = Duration::from_millis(250);

/// The runs that somebody waits for.
pub struct HeadWatch {
    journal: Arc<dyn Journal>,
    watched: Mutex<WatchedHeads>,
}

#[derive(Default)]
struct WatchedHeads {
    runs: HashMap<String, WatchedRun>,
    is_looking: bool,
}

struct WatchedRun {
    readers: usize,
    head: watch::Sender<Option<RunHead>>,
}

/// Somebody who waits for news of a run, until it is dropped.
pub struct HeadReader {
    heads: Arc<HeadWatch>,
    run_id: String,
    head: watch::Receiver<Option<RunHead>>,
}

impl HeadWatch {
    /// Watches the runs of a journal.
    pub fn new(journal: Arc<dyn Journal>) -> Self {
        Self { journal, watched: Mutex::default() }
    }

    fn watched(&self) -> MutexGuard<'_, WatchedHeads> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for news of a run.
    pub fn join(self: &Arc<Self>, run_id: &str) -> HeadReader {
        let mut watched = self.watched();
        let run = watched.runs.entry(run_id.to_owned());
        let run = run.or_insert_with(|| WatchedRun { readers: 0, head: watch::Sender::new(None) });
        run.readers += 1;
        let head = run.head.subscribe();
        if !std::mem::replace(&mut watched.is_looking, true) {
            tokio::spawn(Arc::clone(self).look().boxed());
        }
        HeadReader { heads: Arc::clone(self), run_id: run_id.to_owned(), head }
    }

    /// Looks the runs up as long as somebody waits for one.
    async fn look(self: Arc<Self>) {
        loop {
            tokio::time::sleep(HEAD_POLL_INTERVAL).await;
            let runs: Vec<String> = {
                let mut watched = self.watched();
                watched.is_looking = !watched.runs.is_empty();
                if !watched.is_looking {
                    return;
                }
                watched.runs.keys().cloned().collect()
            };
            // Nothing is known of a run that is not there, and of none while the store can't be read: who waits finds out
            // by itself.
            let heads = self.journal.heads(runs.clone()).await.unwrap_or_default();
            let mut heads: HashMap<String, RunHead> =
                heads.into_iter().map(|head| (head.run_id.clone(), head)).collect();
            let watched = self.watched();
            for run_id in runs {
                if let Some(run) = watched.runs.get(&run_id) {
                    run.head.send_replace(heads.remove(&run_id));
                }
            }
        }
    }
}

impl HeadReader {
    /// Whether the last look-up found the run, and it was so far.
    pub fn is(&self, is_so_far: impl Fn(&RunHead) -> bool) -> bool {
        self.head.borrow().as_ref().is_some_and(is_so_far)
    }

    /// Waits until the run is as far as this.
    pub async fn until(&mut self, is_so_far: impl Fn(&RunHead) -> bool) {
        // The sender lives as long as `self`.
        drop(self.head.wait_for(|head| head.as_ref().is_some_and(&is_so_far)).await);
    }
}

impl Drop for HeadReader {
    fn drop(&mut self) {
        let mut watched = self.heads.watched();
        if let Some(run) = watched.runs.get_mut(&self.run_id) {
            run.readers = run.readers.saturating_sub(1);
            if run.readers == 0 {
                watched.runs.remove(&self.run_id);
            }
        }
    }
}
