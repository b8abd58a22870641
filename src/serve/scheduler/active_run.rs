//! A run that is driven here or queued, and the callers that wait for news of it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{Notify, oneshot, watch};

use super::Scheduler;
use super::reply_readers::{ReplyReader, ReplyReaders};
use super::run_followers::RunFollowers;
use crate::drive::engine::Engine;
use crate::drive::stop::Stop;
use crate::engine::notice::{Listener, Notice};
use crate::engine::state::State;
use crate::program::Program;
use crate::serve::callback::QuestionPoster;
use crate::serve::run_store::{FoldedRun, RunRow};
use crate::trace::Redaction;
use crate::trace::live_reply::{LivePosition, LiveReply};

/// A run that is driven here, or queued.
pub struct ActiveRun {
    /// Its row in the store as its driver leaves it; none when that must be looked up, as for each run with a callback.
    pub(super) row: Option<RunRow>,
    left: watch::Sender<Option<Left>>,
    /// Interrupts this run alone.
    stop: Stop,
    /// How often something was written to the journal.
    version: AtomicU64,
    news: Notify,
    /// The reply that is arriving; none before the run is driven.
    reply: Mutex<Option<LiveReply>>,
    arrived: Notify,
    /// What drives the run; none before it is driven.
    engine: Mutex<Option<Engine>>,
    /// The caller who wants replies as they arrive, and has yet to connect.
    expected: Mutex<Option<ReplyReader>>,
}

/// Nobody drives the run here any more.
#[derive(Debug, Clone)]
struct Left {
    /// The run as its driver left it; none when there was no driver, or it failed.
    run: Option<Arc<FoldedRun>>,
}

impl ActiveRun {
    /// A run that is not driven yet.
    pub(super) fn new(row: Option<RunRow>) -> Arc<Self> {
        Arc::new(Self {
            row,
            left: watch::Sender::new(None),
            stop: Stop::new(),
            version: AtomicU64::new(0),
            news: Notify::new(),
            reply: Mutex::default(),
            arrived: Notify::new(),
            engine: Mutex::default(),
            expected: Mutex::default(),
        })
    }

    /// Has the run end its step and leave it then: it can be resumed.
    pub fn interrupt(&self) {
        self.stop.after_step();
    }

    /// The stop of the run, which all runs that are driven here share with `all`.
    pub(super) fn stop(&self, all: &Stop) -> Stop {
        self.stop.below(all)
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

    /// Waits until more of a reply arrives after this call.
    pub fn arrived(&self) -> impl Future<Output = ()> + '_ {
        self.arrived.notified()
    }

    /// Differs from an earlier value when something was written to the journal in between.
    pub fn version(&self) -> u64 {
        self.version.load(Ordering::SeqCst)
    }

    /// What a reader lacks of the reply to this iteration.
    pub fn reply_since(&self, iteration: u32, position: &mut LivePosition) -> Option<Notice> {
        let reply = self.reply.lock().unwrap_or_else(PoisonError::into_inner);
        reply.as_ref().filter(|reply| reply.iteration() == iteration)?.since(position)
    }

    /// Has replies streamed as long as the run is driven here.
    pub fn expect_reader(&self, reader: ReplyReader) {
        *self.expected.lock().unwrap_or_else(PoisonError::into_inner) = Some(reader);
    }

    /// The run is driven from now on; `redact` says what is hidden of its replies.
    pub(super) fn watch_replies(&self, redact: Redaction) {
        *self.reply.lock().unwrap_or_else(PoisonError::into_inner) = Some(LiveReply::new(redact));
    }

    /// The engine that drives the run here.
    pub(super) fn engine(&self) -> Option<Engine> {
        self.engine.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// This engine drives the run from now on.
    pub(super) fn drive_with(&self, engine: &Engine) {
        *self.engine.lock().unwrap_or_else(PoisonError::into_inner) = Some(engine.clone());
    }

    fn arrive(&self, part: &Notice) {
        if let Some(reply) = &mut *self.reply.lock().unwrap_or_else(PoisonError::into_inner) {
            reply.take(part);
        }
        self.arrived.notify_waiters();
    }

    fn changed(&self) {
        self.version.fetch_add(1, Ordering::SeqCst);
        self.news.notify_waiters();
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
        self.expected.lock().unwrap_or_else(PoisonError::into_inner).take();
        self.changed();
    }
}

/// Forwards what happens in a run to the metrics and to those that wait for it.
pub(super) struct NoticeForwarder {
    pub run_id: String,
    pub run: Arc<ActiveRun>,
    pub readers: Arc<ReplyReaders>,
    pub followers: Arc<RunFollowers>,
    pub program: Arc<Program>,
    /// Gets a message when a decision was accepted.
    pub decision_taken: Mutex<Option<oneshot::Sender<()>>>,
    /// Posts what a workflow asks while it is under way; none without a callback.
    pub questions: Option<QuestionPoster>,
    /// Who drives the run alone until something has happened in it; none for any other run.
    pub alone: Option<Arc<Scheduler>>,
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

/// Whether something came of what the run did: a process that dies afterwards does not die of that.
fn is_outcome(notice: &Notice) -> bool {
    matches!(
        notice,
        Notice::ModelReplied { .. } | Notice::Observed { .. } | Notice::StepEnded { .. } | Notice::RunEnded { .. }
    )
}

impl Listener for NoticeForwarder {
    fn on(&self, notice: Notice) {
        if matches!(notice, Notice::ModelDelta { .. }) {
            return self.run.arrive(&notice);
        }
        if let Some(scheduler) = self.alone.as_ref().filter(|_| is_outcome(&notice)) {
            scheduler.let_others_in(&self.run_id);
        }
        self.run.changed();
        self.followers.report(&self.run_id, &notice, &self.program);
        // The run is resumed before the decision is checked; all other notices come after its acceptance.
        if !matches!(notice, Notice::RunResumed { .. })
            && let Some(sender) = self.decision_taken().take()
        {
            let _ = sender.send(());
        }
    }

    fn wants_deltas(&self) -> bool {
        self.readers.has(&self.run_id)
    }

    fn wants_questions(&self) -> bool {
        self.questions.is_some()
    }

    fn on_questions(&self, program: &Program, state: &State) {
        if let Some(questions) = &self.questions {
            questions.report(program, state);
        }
    }
}
