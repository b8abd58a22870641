//! Copies a store to another one: of its runs the events byte for byte, the texts, the tokens that answer pauses, the decisions
//! that wait; then what people did with them, and the rows of the other tables ([`tables::COPIED`]). A copy that was cut off
//! continues where it was. Nobody drives a run of it before all is there that it called, and that belongs to it.

mod audit;
pub mod tables;

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use super::engine::Engine;
use super::fault::Fault;
use super::fold;
use super::unfinished_run::UnfinishedRun;
use crate::journal::copied_table::OUTSIDE_EVENTS;
use crate::journal::{
    CallbackState, Created, Journal, LineRule, NewRun, NewRunLine, Queueing, RowText, RunExtras, RunFilter, RunSummary,
    SettledDecision, StatusRecord, StoreError,
};
use loopctl_engine::blob::Blob;
use loopctl_engine::outcome::Status;
use loopctl_engine::state::State;
use loopctl_lang::diagnostic::Source;

/// The number of runs that are listed at a time.
const PAGE: usize = 200;

/// Two stores.
pub struct StorePair {
    /// Where the runs are.
    pub from: Arc<dyn Journal>,
    /// Where they are to be.
    pub to: Arc<dyn Journal>,
    /// The project file, for runs whose documents need it.
    pub project: Option<Source>,
}

/// How many runs were copied.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CopiedRuns {
    /// By this call.
    pub copied: u64,
    /// Before it.
    pub there: u64,
    /// The lines of what people did that were copied by this call.
    pub audit_lines: u64,
    /// The decisions of the runs that wait for their drivers, in the target now.
    pub decisions: u64,
    /// The kept events that were copied by this call.
    pub kept_events: u64,
}

/// Why a copy ended.
#[derive(Debug, thiserror::Error)]
pub enum CopyFault {
    /// A store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A sentence that says what to do.
    #[error("{0}")]
    Refused(String),
}

/// A run as it is read from its store.
struct ReadRun {
    summary: RunSummary,
    events: Vec<String>,
    texts: Vec<Blob>,
    extras: RunExtras,
}

/// Why a store is not copied: this worker has it open.
pub fn in_use(worker: &str) -> CopyFault {
    CopyFault::Refused(format!(
        "worker {worker} executes runs of one of the stores: stop it first (`loopctl workers` lists them; one that was killed \
         is listed until its lease is over). `loopctl store backup` copies a SQLite file that is in use"
    ))
}

async fn may_be_copied(store: &dyn Journal) -> Result<(), CopyFault> {
    let workers = store.workers().await?;
    let other = workers.iter().find(|worker| worker.is_alive && !worker.is_self);
    other.map_or(Ok(()), |worker| Err(in_use(&worker.name)))
}

impl StorePair {
    /// Copies all runs, and what people did with them.
    ///
    /// # Errors
    /// When a process executes runs of one of the stores, the target has another run of the same id, a copy is not what
    /// was copied, or a store fails. What was copied stays, and the next call continues from there.
    pub async fn copy(&self) -> Result<CopiedRuns, CopyFault> {
        for store in [&self.from, &self.to] {
            may_be_copied(&**store).await?;
        }
        let mut done = CopiedRuns::default();
        for table in tables::before_runs() {
            let rows = tables::copy_rows(&*self.from, &*self.to, table).await?;
            done.kept_events += if *table == OUTSIDE_EVENTS { rows } else { 0 };
        }
        let open = self.copy_runs(&mut done).await?;
        done.audit_lines = audit::copy_audit(&*self.from, &*self.to).await?;
        for table in tables::after_runs() {
            tables::copy_rows(&*self.from, &*self.to, table).await?;
        }
        for run in open {
            run.finish(&*self.to).await?;
        }
        Ok(done)
    }

    /// Copies all runs. Those that a server would drive are not finished: a run that has not ended calls others, which come
    /// after it.
    async fn copy_runs(&self, done: &mut CopiedRuns) -> Result<Vec<UnfinishedRun>, CopyFault> {
        let (mut open, mut after) = (Vec::new(), None);
        loop {
            let filter = RunFilter {
                called: true,
                oldest_first: true,
                limit: PAGE,
                after: after.take(),
                ..RunFilter::default()
            };
            let page = self.from.list(filter).await?;
            let Some(last) = page.last().map(|run| run.run_id.clone()) else { return Ok(open) };
            for summary in page {
                let (run_id, waits) = (summary.run_id.clone(), summary.parent_run_id.is_none() && !summary.has_ended());
                let written = self.copy_run(summary, done).await?;
                self.verify(&run_id).await?;
                match written {
                    None => done.there += 1,
                    Some(run) => {
                        done.copied += 1;
                        if waits { open.push(run) } else { run.finish(&*self.to).await? }
                    }
                }
            }
            after = Some(last);
        }
    }

    async fn read(&self, summary: RunSummary) -> Result<ReadRun, CopyFault> {
        if let Some(why) = &summary.damaged {
            return Err(CopyFault::Refused(format!("run {} can't be read: {why}", summary.run_id)));
        }
        let run_id = &summary.run_id;
        let (events, texts) = (self.from.read(run_id).await?, self.from.texts(run_id).await?);
        let extras = self.from.extras(run_id).await?;
        Ok(ReadRun { events, texts, extras, summary })
    }

    /// Copies a run, or the rest of it; returns it, unless it was there as a whole.
    async fn copy_run(&self, summary: RunSummary, done: &mut CopiedRuns) -> Result<Option<UnfinishedRun>, CopyFault> {
        let run = self.read(summary).await?;
        let run_id = run.summary.run_id.clone();
        let (fence, next) = match self.to.create(run.made()).await? {
            Created::New(lease) => (lease.fence, 1),
            Created::Same => {
                let there = self.to.read(&run_id).await?;
                let common = there.len().min(run.events.len());
                if there.get(..common) != run.events.get(..common) {
                    return Err(other_run(&run_id));
                }
                let is_whole = self.to.find(&run_id).await?.is_some_and(|copy| !copy.is_unfinished());
                if is_whole && there.len() >= run.events.len() {
                    if there.len() == run.events.len() {
                        self.prepare(&run, done).await?;
                    }
                    self.settle(&run).await?;
                    return Ok(None);
                }
                (self.to.lease(&run_id).await?.fence, there.len())
            }
            Created::Conflict | Created::LineFull(_) => return Err(other_run(&run_id)),
            Created::KeyTaken(by) => {
                return Err(CopyFault::Refused(format!(
                    "run {by} of the target was started with the same `Idempotency-Key` as run {run_id}: nothing of it was \
                     changed; copy to another store, or delete that run"
                )));
            }
        };
        let written = UnfinishedRun { record: run.record(), run_id, fence };
        written.write(&*self.to, &run.events, next, &run.texts).await?;
        self.prepare(&run, done).await?;
        self.settle(&run).await?;
        Ok(Some(written))
    }

    /// What must be there before somebody drives the run.
    async fn prepare(&self, run: &ReadRun, done: &mut CopiedRuns) -> Result<(), CopyFault> {
        let run_id = &run.summary.run_id;
        let pauses: BTreeSet<u32> = run.extras.answer_tokens.iter().map(|token| token.pause).collect();
        for pause in pauses {
            let mut tokens = Vec::new();
            for token in run.extras.answer_tokens.iter().filter(|token| token.pause == pause) {
                if self.to.answer_token(run_id, &token.hash).await?.is_none() {
                    tokens.push(token.clone());
                }
            }
            self.to.put_answer_tokens(run_id, tokens).await?;
        }
        if let Some(request) = self.from.cancel_requested(run_id).await? {
            self.to.request_cancel(run_id, request).await?;
        }
        for decision in self.from.queued_decisions(run_id).await? {
            let (id, refused) = (decision.id.clone(), decision.refused.clone());
            if self.to.queue_event(run_id, decision).await? != Queueing::Queued {
                continue;
            }
            done.decisions += u64::from(refused.is_none());
            if let Some(why) = refused {
                let due_at_ms = run.extras.due_at_ms;
                self.to.settle_decision(run_id, &id, SettledDecision::Refused { why, due_at_ms }).await?;
            }
        }
        Ok(())
    }

    /// How far the callback is.
    async fn settle(&self, run: &ReadRun) -> Result<(), CopyFault> {
        let Some(callback) = &run.summary.callback else { return Ok(()) };
        let run_id = &run.summary.run_id;
        if callback.progress.state != CallbackState::Pending {
            self.to.note_callback(run_id, callback.progress, None, None).await?;
        }
        if callback.posted_pause > 0 {
            self.to.note_posted_pause(run_id, callback.posted_pause).await?;
        }
        Ok(())
    }

    /// Checks that a copy folds to the same state. One that continued since it was made is not looked at any more.
    async fn verify(&self, run_id: &str) -> Result<(), CopyFault> {
        let (events, copied) = (self.from.read(run_id).await?, self.to.read(run_id).await?);
        let differs = || CopyFault::Refused(format!("the copy of run {run_id} is not the run: report this"));
        if copied.get(..events.len()) != Some(events.as_slice()) {
            return Err(differs());
        }
        if copied.len() > events.len() {
            return Ok(());
        }
        let state = |journal: &Arc<dyn Journal>| folded(Arc::clone(journal), run_id.to_owned(), self.project.clone());
        match (state(&self.from).await, state(&self.to).await) {
            (Ok(one), Ok(other)) if one == other => Ok(()),
            // A version that made it reads it; its bytes are the same.
            (Err(one), Err(other)) if one.to_string() == other.to_string() => Ok(()),
            _ => Err(differs()),
        }
    }
}

fn other_run(run_id: &str) -> CopyFault {
    CopyFault::Refused(format!(
        "the target has another run {run_id}: nothing of it was changed; copy to another store, or delete that run"
    ))
}

async fn folded(journal: Arc<dyn Journal>, run_id: String, project: Option<Source>) -> Result<State, Fault> {
    let engine = Engine::builder(Arc::default(), Path::new(".")).journal(journal).build();
    let events = engine.events(&run_id).await?;
    let program = fold::recorded(&fold::texts(&run_id, &events, project)?)?;
    fold::fold(&program, &run_id, events)
}

impl ReadRun {
    /// The run as it is made in the target. Nobody can drive it before it is finished.
    fn made(&self) -> NewRun {
        let summary = &self.summary;
        NewRun {
            run_id: summary.run_id.clone(),
            loop_name: summary.loop_name.clone(),
            session: summary.session.clone(),
            org: summary.org.clone(),
            token: self.extras.token.clone(),
            callback_url: summary.callback.as_ref().map(|callback| callback.url.clone()),
            parent_run_id: summary.parent_run_id.clone(),
            identity: summary.identity.clone(),
            start_key: self.extras.start_key.clone(),
            at_ms: summary.started_at_ms,
            event: self.events.first().cloned().unwrap_or_default(),
            texts: self.texts.clone(),
            scheduled: self.extras.scheduled.clone(),
            status_record: Some(self.unfinished()),
            search_text: self.extras.search_text.clone(),
            title: self.extras.title.clone(),
            audit: None,
            line: self.line(),
        }
    }

    /// The line that it is in. Whether it may be there was decided before.
    fn line(&self) -> Option<Box<NewRunLine>> {
        let line = self.extras.line.clone()?;
        let rule = match line.rule {
            LineRule::Refuse => LineRule::Wait,
            rule => rule,
        };
        Some(Box::new(NewRunLine { rule, ..line }))
    }

    fn unfinished(&self) -> StatusRecord {
        StatusRecord::unfinished(self.summary.started_at_ms)
    }

    fn record(&self) -> StatusRecord {
        let summary = &self.summary;
        StatusRecord {
            // Whether drivers died of it is found out again.
            status: if summary.status == Status::Quarantined { Status::Running } else { summary.status },
            termination: summary.termination,
            iterations: summary.iterations,
            at_ms: summary.updated_at_ms,
            due_at_ms: self.extras.due_at_ms,
            waits_since_ms: self.extras.waits_since_ms,
            tokens: summary.tokens,
            cost_usd: summary.cost_usd,
            error: summary.error.as_deref().and_then(RowText::new),
            question: summary.question.as_deref().and_then(RowText::new),
            awaits: self.extras.awaits.clone(),
        }
    }
}
