//! Copies runs from one store to another: the events byte for byte, the texts, the tokens that answer pauses, the memory
//! of their sessions; and what people did with them. A copy that was cut off continues where it was.

mod audit;

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use super::engine::Engine;
use super::fault::Fault;
use super::fold;
use crate::journal::{
    Append, CallbackState, Created, Journal, LineRule, NewRun, NewRunLine, RowText, RunExtras, RunFilter, RunSummary,
    StatusRecord, StoreError,
};
use loopctl_engine::blob::Blob;
use loopctl_engine::outcome::Status;
use loopctl_engine::state::State;
use loopctl_lang::diagnostic::Source;

/// The number of runs that are listed at a time.
const PAGE: usize = 200;
/// The maximum number of events that wait for the target at a time.
const IN_FLIGHT: usize = 128;

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
        let (mut done, mut after) = (CopiedRuns::default(), None);
        loop {
            let filter = RunFilter {
                called: true,
                oldest_first: true,
                limit: PAGE,
                after: after.take(),
                ..RunFilter::default()
            };
            let page = self.from.list(filter).await?;
            let Some(last) = page.last().map(|run| run.run_id.clone()) else { break };
            for summary in page {
                let run_id = summary.run_id.clone();
                let is_new = self.copy_run(summary).await?;
                self.verify(&run_id).await?;
                if is_new { done.copied += 1 } else { done.there += 1 }
            }
            after = Some(last);
        }
        done.audit_lines = audit::copy_audit(&*self.from, &*self.to).await?;
        Ok(done)
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

    /// Copies a run, or the rest of it; returns whether something was left to copy.
    async fn copy_run(&self, summary: RunSummary) -> Result<bool, CopyFault> {
        let run = self.read(summary).await?;
        let run_id = run.summary.run_id.clone();
        let has_one = run.events.len() == 1;
        let (fence, next) = match self.to.create(run.made(has_one)).await? {
            Created::New(lease) => (lease.fence, 1),
            Created::Same => {
                let there = self.to.read(&run_id).await?;
                let common = there.len().min(run.events.len());
                if there.get(..common) != run.events.get(..common) {
                    return Err(other_run(&run_id));
                }
                if there.len() >= run.events.len() {
                    self.settle(&run).await?;
                    return Ok(false);
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
        self.prepare(&run).await?;
        let last = run.events.len().saturating_sub(1);
        let mut waiting = Vec::new();
        for (seq, event) in run.events.iter().enumerate().skip(next) {
            let number = u64::try_from(seq).unwrap_or(u64::MAX);
            let mut entry = Append::new(run_id.clone(), fence, number, event.clone());
            if seq == last {
                (entry.release, entry.status_record) = (true, Some(run.record()));
                entry.texts.clone_from(&run.texts);
                entry.remember = self.memory(&run).await?;
            }
            waiting.push(self.to.append(entry));
            if waiting.len() == IN_FLIGHT || seq == last {
                for appended in waiting.drain(..) {
                    appended.await?;
                }
            }
        }
        if has_one {
            self.to.release(&run_id, fence).await?;
        }
        self.settle(&run).await?;
        Ok(true)
    }

    /// What must be there before the last event.
    async fn prepare(&self, run: &ReadRun) -> Result<(), CopyFault> {
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
        Ok(())
    }

    /// What the session of the run remembers, and that of the target does not.
    async fn memory(&self, run: &ReadRun) -> Result<Vec<(String, serde_json::Value)>, CopyFault> {
        let Some(session) = &run.summary.session else { return Ok(Vec::new()) };
        let there = self.to.recall(session).await?;
        let memory = self.from.recall(session).await?.into_iter();
        Ok(memory.filter(|(key, _)| !there.contains_key(key)).collect())
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
    /// The run as it is made in the target. Until its last event is there, it is a run that a signal stopped: nobody
    /// claims it.
    fn made(&self, is_whole: bool) -> NewRun {
        let summary = &self.summary;
        let stopped = StatusRecord::new(Status::Cancelled, summary.started_at_ms);
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
            status_record: Some(if is_whole { self.record() } else { stopped }),
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
