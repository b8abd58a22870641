//! Who waits for a run on a connection, hears of its progress, and has it interrupted by leaving.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::mpsc;

use super::ActiveRun;
use crate::engine::notice::Notice;
use crate::program::Program;
use crate::serve::mcp::progress;
use crate::trace::Redaction;

/// The most messages that a follower has not read; more are lost to it.
const MAX_UNREAD: usize = 64;

/// The followers of all runs.
#[derive(Default)]
pub struct RunFollowers {
    by_run: Mutex<HashMap<String, Vec<KnownFollower>>>,
    /// How many there are, so that runs without any cost nothing.
    all: AtomicUsize,
}

struct KnownFollower {
    number: usize,
    /// None for one that wants no messages.
    sender: Option<mpsc::Sender<String>>,
}

/// A follower of a run, until it is dropped.
pub struct RunFollower {
    followers: Arc<RunFollowers>,
    run_id: String,
    number: usize,
    /// The run that is interrupted when the last of its followers leaves.
    interrupted: Option<Arc<ActiveRun>>,
}

impl RunFollowers {
    fn by_run(&self) -> MutexGuard<'_, HashMap<String, Vec<KnownFollower>>> {
        self.by_run.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a follower. `hears`: whether it wants messages.
    /// Returns it, and what it hears.
    pub fn join(self: &Arc<Self>, run_id: &str, hears: bool) -> (RunFollower, mpsc::Receiver<String>) {
        let (sender, progress) = mpsc::channel(MAX_UNREAD);
        self.all.fetch_add(1, Ordering::SeqCst);
        let mut by_run = self.by_run();
        let of_run = by_run.entry(run_id.to_owned()).or_default();
        let number = of_run.iter().map(|known| known.number.saturating_add(1)).max().unwrap_or(0);
        of_run.push(KnownFollower { number, sender: hears.then_some(sender) });
        let follower =
            RunFollower { followers: Arc::clone(self), run_id: run_id.to_owned(), number, interrupted: None };
        (follower, progress)
    }

    /// Has the followers of a run hear of its progress.
    pub fn report(&self, run_id: &str, notice: &Notice, program: &Program) {
        if self.all.load(Ordering::SeqCst) == 0 {
            return;
        }
        let by_run = self.by_run();
        let hearing = by_run.get(run_id).into_iter().flatten().filter_map(|known| known.sender.as_ref());
        let mut hearing = hearing.peekable();
        if hearing.peek().is_none() {
            return;
        }
        let Some(message) = progress::message(notice, &Redaction::new(&program.project.redact)) else { return };
        for sender in hearing {
            let _ = sender.try_send(message.clone());
        }
    }
}

impl RunFollower {
    /// Has the run interrupted after its step when this follower leaves, and no other one is left.
    pub fn interrupts(&mut self, active: &Arc<ActiveRun>) {
        self.interrupted = Some(Arc::clone(active));
    }

    /// The run continues when this follower leaves.
    pub fn lets_go(&mut self) {
        self.interrupted = None;
    }
}

impl Drop for RunFollower {
    fn drop(&mut self) {
        self.followers.all.fetch_sub(1, Ordering::SeqCst);
        let mut by_run = self.followers.by_run();
        let Some(of_run) = by_run.get_mut(&self.run_id) else { return };
        of_run.retain(|known| known.number != self.number);
        if of_run.is_empty() {
            by_run.remove(&self.run_id);
            if let Some(active) = &self.interrupted {
                tracing::info!(run_id = self.run_id, "who called for the run has gone: it ends after its step");
                active.interrupt();
            }
        }
    }
}
