//! The runs whose models failed and are asked again after a wait: what their status shows meanwhile. The journal gets the failed
//! attempts with what came of the call; until then, the rows of the runs say that their models are away, so that each process
//! that looks at the store sees it.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Display;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::FutureExt as _;
use tokio::runtime::Handle;

use super::clock;
use super::gate::turns::{SlotOwner, TurnOwner};
use super::run_meter::RunMeters;
use crate::journal::{Journal, ModelWait, StoreError, WaitedFor};
use loopctl_lang::language::action::OnUncertain;

/// The most calls of a run of which its row says that nothing was sent.
const MOST_UNSENT: usize = 1_000;

/// What a call waits for its turn at.
#[derive(Debug, Clone, Copy)]
pub(super) struct PlaceOfWait<'a> {
    pub of: WaitedFor,
    pub name: &'a str,
}

impl<'a> PlaceOfWait<'a> {
    /// A model.
    pub fn model(name: &'a str) -> Self {
        Self { of: WaitedFor::Model, name }
    }

    /// That a call waits there, or did when it was left: in words.
    pub fn in_words(self) -> String {
        let what = if self.of.is_model() { "request" } else { "call" };
        format!("its {what} waited for its turn at the {} {:?}", self.of.in_words(), self.name)
    }
}

/// A failure of a model that is asked again.
#[derive(Debug)]
pub(super) struct FailedRequest {
    /// The name of the model.
    pub model: String,
    /// Which attempt failed, from 1.
    pub attempt: u32,
    /// Why, in a sentence without secrets.
    pub reason: String,
    /// The same without the words of the server.
    pub kind: String,
    /// The status of the server's answer; none without one.
    pub status: Option<u16>,
    /// The wait before the next one, in milliseconds.
    pub delay_ms: u64,
}

/// The waits of all runs of an engine.
pub(super) struct ModelWaits(Arc<SharedWaits>);

struct SharedWaits {
    journal: Arc<dyn Journal>,
    meters: Option<Arc<dyn RunMeters>>,
    waits: Mutex<Waits>,
    /// Whether there ever was a call of which nothing was sent and that a crash would make uncertain.
    has_marks: AtomicBool,
}

#[derive(Default)]
struct Waits {
    /// By the runs, and by the calls of runs.
    all: BTreeMap<String, ModelWait>,
    /// The runs that are driven here.
    driven: HashMap<String, RunHere>,
    /// By the runs, the addresses of their calls of which nothing was sent, or nothing is under way.
    unsent: HashMap<String, BTreeSet<String>>,
    /// The runs whose rows are to be written.
    changed: BTreeSet<String>,
    /// Whether a task writes rows.
    is_writing: bool,
}

struct RunHere {
    /// Its lease.
    fence: u64,
    /// The run that called it.
    caller: Option<String>,
    /// Held while its row is written, so that an older state of a row never replaces a newer one.
    writing: Arc<tokio::sync::Mutex<()>>,
    /// For whom its requests wait, once one has waited.
    asker: Option<TurnOwner>,
}

/// A run that is driven here, until this is dropped.
pub(super) struct DrivenHere {
    shared: Arc<SharedWaits>,
    run_id: String,
    fence: u64,
}

/// The wait of one run, or of one call of it; dropping this ends it.
#[derive(Debug)]
pub(super) struct RunModelWait<'w> {
    all: &'w ModelWaits,
    run_id: String,
    asked_by: String,
    /// The address of a call that asks, if a crash while it is under way asks a human.
    at: Option<String>,
}

impl std::fmt::Debug for ModelWaits {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("ModelWaits").finish_non_exhaustive()
    }
}

impl ModelWaits {
    /// `meters`: what counts the failures.
    pub fn new(journal: Arc<dyn Journal>, meters: Option<Arc<dyn RunMeters>>) -> Self {
        Self(Arc::new(SharedWaits { journal, meters, waits: Mutex::default(), has_marks: AtomicBool::new(false) }))
    }

    /// A run is driven here, with this lease. `caller`: the run that called it.
    pub fn driven(&self, run_id: &str, caller: Option<&str>, fence: u64) -> DrivenHere {
        let caller = caller.map(str::to_owned);
        let driven = RunHere { fence, caller, writing: Arc::default(), asker: None };
        self.0.waits().driven.insert(run_id.to_owned(), driven);
        DrivenHere { shared: Arc::clone(&self.0), run_id: run_id.to_owned(), fence }
    }

    /// The wait of a run for a model that failed; else that of the first run, or call, below that waits so.
    pub fn find(&self, run_id: &str) -> Option<ModelWait> {
        self.0.waits().find(run_id)
    }

    /// The wait of a run that asks its model.
    pub fn of(&self, run_id: &str) -> RunModelWait<'_> {
        RunModelWait { all: self, run_id: run_id.to_owned(), asked_by: run_id.to_owned(), at: None }
    }

    /// The wait of a call that asks a model, at its address in the run: it is found as those of the runs below are. `after_crash`: what
    /// becomes of the call when the process dies while it is under way.
    pub fn of_call(&self, run_id: &str, at: impl Display, after_crash: OnUncertain) -> RunModelWait<'_> {
        let asked_by = format!("{run_id}.{at}");
        let at = (after_crash != OnUncertain::Retry).then(|| at.to_string());
        RunModelWait { all: self, run_id: run_id.to_owned(), asked_by, at }
    }

    /// An event replaced the row of a run, and what it said of calls of which nothing was sent.
    pub fn row_replaced(&self, run_id: &str) {
        if !self.0.has_marks.load(Ordering::Relaxed) {
            return;
        }
        let mut waits = self.0.waits();
        if waits.unsent.contains_key(run_id) {
            waits.changed.insert(run_id.to_owned());
            self.0.write(waits);
        }
    }
}

impl RunModelWait<'_> {
    /// An attempt failed.
    pub fn failed(&self, request: FailedRequest) {
        let FailedRequest { model, attempt, reason, kind, status, delay_ms } = request;
        let now_ms = clock::wall_ms();
        let shared = &self.all.0;
        if let Some(meters) = &shared.meters {
            meters.model_retried(&model, status);
        }
        let mut waits = shared.waits();
        let since_ms = waits.all.get(&self.asked_by).map_or(now_ms, |known| known.since_ms);
        let again_at_ms = now_ms.saturating_add_unsigned(delay_ms);
        self.mark(&mut waits);
        let (run_id, reason) = (self.run_id.clone(), Some(reason));
        let again_at_ms = Some(again_at_ms);
        let unsent = Vec::new();
        let of = WaitedFor::Model;
        let wait = ModelWait { run_id, of, model, attempts: attempt, since_ms, kind, reason, again_at_ms, unsent };
        waits.all.insert(self.asked_by.clone(), wait);
        waits.note(&self.asked_by);
        shared.write(waits);
    }
}

impl<'w> RunModelWait<'w> {
    /// For whom the requests of the run wait: the store is asked once, by the first of them.
    ///
    /// # Errors
    /// That of the store.
    pub async fn asker(&self, journal: &Arc<dyn Journal>) -> Result<TurnOwner, StoreError> {
        let root = {
            let waits = self.all.0.waits();
            if let Some(asker) = waits.driven.get(&self.run_id).and_then(|driven| driven.asker.clone()) {
                return Ok(asker);
            }
            waits.root(&self.run_id).to_owned()
        };
        // Runs that were called are of the organisation of their caller.
        let org = journal.find(&root).await?.and_then(|run| run.org).map(Arc::from);
        let asker = TurnOwner { org, run: root.into() };
        if let Some(driven) = self.all.0.waits().driven.get_mut(&self.run_id) {
            driven.asker = Some(asker.clone());
        }
        Ok(asker)
    }

    /// The run that makes the call, with the lease that it is driven with here.
    pub fn slot_owner(&self) -> SlotOwner {
        let fence = self.all.0.waits().driven.get(&self.run_id).map(|driven| driven.fence);
        SlotOwner { run_id: self.run_id.clone(), fence: fence.unwrap_or_default() }
    }

    /// A request that is not sent yet waits for its turn, until the answer is dropped; `left`: for how long, if that is known. A failure
    /// of the model is more important.
    pub fn in_line(&'w self, place: PlaceOfWait<'_>, kind: &str, left: Option<Duration>) -> ShownLine<'w> {
        let now_ms = clock::wall_ms();
        let shared = &self.all.0;
        let mut waits = shared.waits();
        let known = waits.all.get(&self.asked_by);
        // What says when it ends is not replaced by what does not.
        let is_new = |wait: &ModelWait| wait.attempts == 0 && (left.is_some() || wait.again_at_ms.is_none());
        if known.is_none_or(is_new) {
            let since_ms = known.map_or(now_ms, |wait| wait.since_ms);
            let (run_id, model, kind) = (self.run_id.clone(), place.name.to_owned(), kind.to_owned());
            let again_at_ms = left.map(|left| now_ms.saturating_add_unsigned(millis(left)));
            let (reason, unsent) = (None, Vec::new());
            let of = place.of;
            let wait = ModelWait { run_id, of, model, attempts: 0, since_ms, kind, reason, again_at_ms, unsent };
            self.mark(&mut waits);
            waits.all.insert(self.asked_by.clone(), wait);
            waits.note(&self.asked_by);
            shared.write(waits);
        }
        ShownLine(self)
    }
}

impl RunModelWait<'_> {
    /// Whether a crash while its call is under way asks a human.
    pub fn is_of_uncertain_call(&self) -> bool {
        self.at.is_some()
    }

    /// Nothing of the call is under way: the row says so soon. The mark stays when the call is left: one at the same address takes it back
    /// before it sends something.
    fn mark(&self, waits: &mut Waits) {
        if let Some(at) = &self.at {
            self.all.0.has_marks.store(true, Ordering::Relaxed);
            waits.unsent.entry(self.run_id.clone()).or_default().insert(at.clone());
        }
    }

    /// Takes the mark back; returns whether there was one.
    fn unmark(&self, waits: &mut Waits) -> bool {
        let (Some(at), Some(marked)) = (&self.at, waits.unsent.get_mut(&self.run_id)) else { return false };
        let was_marked = marked.remove(at);
        if marked.is_empty() {
            waits.unsent.remove(&self.run_id);
        }
        was_marked
    }

    /// A request of the call is about to be sent: if the row may say that none is, it is written before that.
    ///
    /// # Errors
    /// That of the store.
    pub async fn is_to_be_sent(&self) -> Result<(), StoreError> {
        if !self.unmark(&mut self.all.0.waits()) {
            return Ok(());
        }
        self.all.0.write_row(&self.run_id).await
    }
}

/// A request whose wait for its turn the status of its run shows, until this is dropped.
pub(super) struct ShownLine<'w>(&'w RunModelWait<'w>);

impl Drop for ShownLine<'_> {
    fn drop(&mut self) {
        let shared = &self.0.all.0;
        let mut waits = shared.waits();
        // Whether it is marked as unsent is known when it is sent.
        if waits.all.get(&self.0.asked_by).is_some_and(|wait| wait.attempts == 0) {
            waits.all.remove(&self.0.asked_by);
            waits.note(&self.0.asked_by);
            shared.write(waits);
        }
    }
}

impl RunModelWait<'_> {
    /// The model replies, or nobody asks it any more.
    pub fn end(&self) {
        let shared = &self.all.0;
        let mut waits = shared.waits();
        // Nearly all models answer at once.
        if waits.all.remove(&self.asked_by).is_some() {
            waits.note(&self.asked_by);
            shared.write(waits);
        }
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

impl Drop for RunModelWait<'_> {
    fn drop(&mut self) {
        self.end();
    }
}

impl Drop for DrivenHere {
    fn drop(&mut self) {
        let mut waits = self.shared.waits();
        // The next driver may be here already.
        if waits.driven.get(&self.run_id).is_some_and(|driven| driven.fence == self.fence) {
            waits.driven.remove(&self.run_id);
            waits.unsent.remove(&self.run_id);
        }
    }
}

impl Waits {
    /// The run that nobody called, above a run, as far as it is driven here.
    fn root<'w>(&'w self, run_id: &'w str) -> &'w str {
        let mut root = run_id;
        while let Some(caller) = self.driven.get(root).and_then(|driven| driven.caller.as_deref()) {
            root = caller;
        }
        root
    }

    fn find(&self, run_id: &str) -> Option<ModelWait> {
        let below = (format!("{run_id}."), format!("{run_id}/"));
        self.all.get(run_id).or_else(|| self.all.range(below.0..below.1).next().map(|(_, wait)| wait)).cloned()
    }

    /// The rows of the run that asks, and of those that called it, are to be written.
    fn note(&mut self, asked_by: &str) {
        let above = asked_by.match_indices('.').filter_map(|(at, _)| asked_by.get(..at));
        let driven = above.chain([asked_by]).filter(|run_id| self.driven.contains_key(*run_id));
        self.changed.extend(driven.map(str::to_owned).collect::<Vec<_>>());
    }
}

impl SharedWaits {
    fn waits(&self) -> MutexGuard<'_, Waits> {
        self.waits.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes rows in one task, so that an older state of a row never replaces a newer one.
    fn write(self: &Arc<Self>, mut waits: MutexGuard<'_, Waits>) {
        let Ok(runtime) = Handle::try_current() else { return };
        if waits.changed.is_empty() || std::mem::replace(&mut waits.is_writing, true) {
            return;
        }
        drop(waits);
        let shared = Arc::clone(self);
        runtime.spawn(async move { while shared.write_next().await {} }.boxed());
    }

    /// Writes the row of a run as it is now, after those that are being written.
    async fn write_row(&self, run_id: &str) -> Result<(), StoreError> {
        // Nobody drives it here any more: its row is that of the next driver.
        let writing = self.waits().driven.get(run_id).map(|driven| Arc::clone(&driven.writing));
        let Some(writing) = writing else { return Ok(()) };
        let _writing = writing.lock().await;
        let (fence, wait) = {
            let waits = self.waits();
            let Some(fence) = waits.driven.get(run_id).map(|driven| driven.fence) else { return Ok(()) };
            let unsent = waits.unsent.get(run_id).into_iter().flatten().take(MOST_UNSENT).cloned().collect();
            (fence, waits.find(run_id).map(|wait| ModelWait { unsent, ..wait }))
        };
        self.journal.note_model_wait(run_id, fence, wait).await
    }

    /// Writes the row of one run that has changed; returns whether there was one.
    async fn write_next(&self) -> bool {
        let run_id = {
            let mut waits = self.waits();
            let Some(run_id) = waits.changed.pop_first() else {
                waits.is_writing = false;
                return false;
            };
            run_id
        };
        if let Err(fault) = self.write_row(&run_id).await {
            // The next attempt, or the next event of the run, writes it again.
            tracing::debug!(run_id, code = fault.code(), "the row does not say that the model is away: {fault}");
        }
        true
    }
}
