//! Read-only copies of runs in a store. Restate's journal is the truth: what is copied is durable there already, in the same order for
//! each attempt, and a store that is away or has other events of a run never stops the run.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::{mpsc, watch};

use super::record::{EventWrite, JournalWrite, RunWrite};
use crate::drive::clock;
use crate::journal::{Created, Journal, StoreError};

/// The waits before a write that failed is tried again.
const WAITS: [Duration; 4] =
    [Duration::from_millis(100), Duration::from_secs(1), Duration::from_secs(5), Duration::from_secs(30)];
/// How long a run that has ended waits for its copy.
const END_TIMEOUT: Duration = Duration::from_secs(2);

/// A store that runs are copied to.
pub struct CopyStore {
    journal: Arc<dyn Journal>,
    is_away: AtomicBool,
}

impl CopyStore {
    /// A store that is there.
    pub fn new(journal: Arc<dyn Journal>) -> Self {
        Self { journal, is_away: AtomicBool::new(false) }
    }

    /// Logs once that copies are late, and once that they are not any more.
    fn note(&self, fault: Option<&StoreError>) {
        let was_away = self.is_away.swap(fault.is_some(), Ordering::Relaxed);
        match fault {
            Some(fault) if !was_away => tracing::warn!("runs go on without their copies in the store: {fault}"),
            None if was_away => tracing::warn!("the store of the copies is there again"),
            _ => {}
        }
    }
}

/// Copies what an attempt knows to be durable, in a task beside it.
pub struct AttemptCopy {
    store: Arc<CopyStore>,
    writes: mpsc::UnboundedSender<JournalWrite>,
    sent: u64,
    copied: watch::Receiver<u64>,
}

impl AttemptCopy {
    /// A copy of what one attempt is going to hand over.
    pub fn start(store: &Arc<CopyStore>) -> Self {
        let (writes, pending) = mpsc::unbounded_channel();
        let (progress, copied) = watch::channel(0);
        tokio::spawn(copy_all(RunCopier::new(store), pending, progress));
        Self { store: Arc::clone(store), writes, sent: 0, copied }
    }

    /// Copies a write that is durable.
    pub fn copy(&mut self, write: JournalWrite) {
        if self.writes.send(write).is_ok() {
            self.sent = self.sent.saturating_add(1);
        }
    }

    /// Whether all is copied, after a wait for the rest of it. It does not wait for a store that is away.
    pub async fn is_complete(&mut self) -> bool {
        let sent = self.sent;
        if self.store.is_away.load(Ordering::Relaxed) {
            return *self.copied.borrow() >= sent;
        }
        let copied = self.copied.wait_for(|copied| *copied >= sent);
        tokio::select! {
            copied = copied => copied.is_ok(),
            () = clock::sleep(END_TIMEOUT) => {
                // The next run does not wait for it.
                self.store.note(Some(&StoreError::Unreachable("it does not answer".to_owned())));
                false
            }
        }
    }
}

async fn copy_all(
    mut copier: RunCopier,
    mut writes: mpsc::UnboundedReceiver<JournalWrite>,
    progress: watch::Sender<u64>,
) {
    while let Some(write) = writes.recv().await {
        let mut waits = WAITS.into_iter();
        let mut wait = Duration::ZERO;
        while let Err(fault) = copier.copy(&write, writes.is_empty()).await {
            // The first fault may be that of an earlier attempt, or of the workflow before this one, which copies its last events.
            if !wait.is_zero() {
                copier.store.note(Some(&fault));
            }
            if writes.is_closed() {
                // The next attempt at the run, or the next workflow of it, continues.
                return;
            }
            wait = waits.next().unwrap_or(wait);
            clock::sleep(wait).await;
        }
        copier.store.note(None);
        progress.send_modify(|copied| *copied = copied.saturating_add(1));
    }
}

/// Copies one run and its sub-runs.
pub struct RunCopier {
    store: Arc<CopyStore>,
    runs: HashMap<String, RunCopy>,
    /// The store has other events of one of the runs: nothing more is copied.
    is_abandoned: bool,
}

/// What is known of the copy of a run.
#[derive(Default)]
struct RunCopy {
    /// The events that earlier attempts copied.
    there: Vec<String>,
    /// The lease of the copy, while it is held.
    fence: Option<u64>,
}

impl RunCopier {
    /// A copier that has copied nothing yet.
    pub fn new(store: &Arc<CopyStore>) -> Self {
        Self { store: Arc::clone(store), runs: HashMap::new(), is_abandoned: false }
    }

    /// Copies a write, or finds that it is there. `is_last`: no other one waits, so the leases are released.
    ///
    /// # Errors
    /// When the store fails, or another attempt is copying the run: the same write is to be tried again.
    pub async fn copy(&mut self, write: &JournalWrite, is_last: bool) -> Result<(), StoreError> {
        if self.is_abandoned {
            return Ok(());
        }
        let run_id = match write {
            JournalWrite::Run(run) => &run.run_id,
            JournalWrite::Event(event) => &event.run_id,
        };
        let is_same = match write {
            JournalWrite::Run(run) => self.create(run).await,
            JournalWrite::Event(event) => self.append(event).await,
        };
        match is_same {
            Ok(true) => {}
            Ok(false) => {
                tracing::error!(run_id, "the store has another run of this id: it is not copied any further");
                self.is_abandoned = true;
            }
            Err(fault) => {
                // What the store did is not known: the run is read again.
                self.runs.remove(run_id);
                return Err(fault);
            }
        }
        if is_last || self.is_abandoned {
            self.release().await?;
        }
        Ok(())
    }

    /// Whether the store has this run now.
    async fn create(&mut self, run: &RunWrite) -> Result<bool, StoreError> {
        let copy = match self.store.journal.create(run.clone().read().to_read_only_copy()).await? {
            Created::New(lease) => RunCopy { there: Vec::new(), fence: Some(lease.fence) },
            Created::Same => {
                let there = self.store.journal.read(&run.run_id).await?;
                if there.first() != Some(&run.event) {
                    return Ok(false);
                }
                RunCopy { there, fence: None }
            }
            Created::Conflict | Created::KeyTaken(_) | Created::LineFull(_) => return Ok(false),
        };
        self.runs.insert(run.run_id.clone(), copy);
        Ok(true)
    }

    /// Whether the store has this event now.
    async fn append(&mut self, event: &EventWrite) -> Result<bool, StoreError> {
        let journal = &self.store.journal;
        let copy = match self.runs.remove(&event.run_id) {
            Some(copy) => copy,
            None => {
                let is_copy =
                    journal.find(&event.run_id).await?.is_some_and(|run| run.is_read_only_copy() && !run.is_imported());
                if !is_copy {
                    return Ok(false);
                }
                RunCopy { there: journal.read(&event.run_id).await?, fence: None }
            }
        };
        let there = usize::try_from(event.seq).ok().and_then(|seq| copy.there.get(seq));
        let is_same = there.is_none_or(|there| *there == event.event);
        let fence = match (there, copy.fence) {
            (Some(_), fence) => fence,
            (None, held) => {
                let fence = match held {
                    Some(fence) => fence,
                    None => journal.lease(&event.run_id).await?.fence,
                };
                let mut entry = event.clone().read(fence);
                (entry.release, entry.status_record) =
                    (false, entry.status_record.map(|record| record.to_read_only_copy()));
                // The memory of a session of the store is another one.
                entry.remember.clear();
                journal.append(entry).await?;
                Some(fence)
            }
        };
        self.runs.insert(event.run_id.clone(), RunCopy { fence, ..copy });
        Ok(is_same)
    }

    async fn release(&mut self) -> Result<(), StoreError> {
        for (run_id, copy) in &mut self.runs {
            if let Some(fence) = copy.fence.take() {
                self.store.journal.release(run_id, fence).await?;
            }
        }
        Ok(())
    }
}
