//! Reminders of steps that have waited for some time: their pause is posted again. Nothing of the run changes, and no
//! driver takes it up: the store gives a callback back when its next reminder is due.

use std::collections::BTreeSet;
use std::time::Duration;

use super::pause::pause_of;
use super::{Callbacks, Post, body, noted};
use crate::drive::clock;
use crate::drive::fault::Fault;
use crate::engine::flow::reminders;
use crate::journal::answer_token::NO_PAUSE;
use crate::journal::{AnswerToken, CALLBACK_LEASE, Callback, RunSummary};
use crate::serve::authorizer::hash_text;
use crate::serve::run_store::FoldedRun;
use crate::trace::units::rfc3339;

/// The reminders of a run around a moment, in milliseconds since 1970.
#[derive(Debug, Clone, Copy)]
pub(super) struct ReminderTimes {
    /// The last one that is due.
    due_ms: Option<i64>,
    next_ms: Option<i64>,
}

impl ReminderTimes {
    /// Those of a run, now.
    pub(super) fn of(folded: &FoldedRun) -> Self {
        let now_ms = clock::wall_ms();
        let all = reminders(&folded.program, &folded.state);
        let due_ms = all.iter().copied().filter(|at_ms| *at_ms <= now_ms).max();
        let next_ms = all.iter().copied().filter(|at_ms| *at_ms > now_ms).min();
        Self { due_ms, next_ms }
    }
}

impl Callbacks {
    /// Posts the last reminder of a run that is due, unless that was done, and waits for the next one.
    pub(super) async fn remind(&self, folded: FoldedRun, run: &RunSummary, callback: Callback) -> Result<(), Fault> {
        let (run_id, Some(pause)) = (run.run_id.as_str(), pause_of(&folded.state)) else { return Ok(()) };
        let times = ReminderTimes::of(&folded);
        let Some(at_ms) = times.due_ms else { return self.await_next(run_id, pause, times).await };
        if self.was_reminded(run_id, at_ms).await? {
            return self.await_next(run_id, pause, times).await;
        }
        let Some((paused, tokens)) = self.with_tokens(&folded, run, &BTreeSet::new())? else { return Ok(()) };
        if !tokens.is_empty() {
            self.runs.journal.put_answer_tokens(run_id, tokens).await.map_err(Fault::Store)?;
        }
        // The body is all that the tries need.
        drop(folded);
        let body = body("agent_run_reminded", rfc3339(at_ms), paused);
        let post =
            Post { key: format!("{run_id}-reminder-{at_ms}"), url: callback.url.clone(), org: run.org.clone(), body };
        if self.post_while_paused(run_id, pause, (&post, &callback)).await? {
            self.mark_reminded(run_id, at_ms).await?;
            self.await_next(run_id, pause, times).await?;
        }
        Ok(())
    }

    /// A pause was posted: what was due until then is no reminder any more.
    pub(super) async fn pause_posted(&self, run_id: &str, pause: u32, times: ReminderTimes) -> Result<(), Fault> {
        if let Some(at_ms) = times.due_ms
            && !self.was_reminded(run_id, at_ms).await?
        {
            self.mark_reminded(run_id, at_ms).await?;
        }
        noted(run_id, || self.runs.journal.note_posted_pause(run_id, pause)).await?;
        if times.next_ms.is_some() { self.await_next(run_id, pause, times).await } else { Ok(()) }
    }

    /// Nothing is to be posted of a pause until its next reminder.
    async fn await_next(&self, run_id: &str, pause: u32, times: ReminderTimes) -> Result<(), Fault> {
        let Some(next_ms) = times.next_ms else {
            return noted(run_id, || self.runs.journal.note_posted_pause(run_id, pause)).await;
        };
        let Some((_, callback)) = self.pending(run_id).await? else { return Ok(()) };
        // The post may have taken long.
        let wait_ms = u64::try_from(next_ms.saturating_sub(clock::wall_ms())).unwrap_or_default();
        // Whoever posts has the callback for the time of a lease: it is free again when the reminder is due.
        let again_in = Duration::from_millis(wait_ms).saturating_sub(CALLBACK_LEASE);
        noted(run_id, || self.runs.journal.note_callback(run_id, callback.progress, Some(again_in), None)).await
    }

    pub(super) async fn mark_reminded(&self, run_id: &str, at_ms: i64) -> Result<(), Fault> {
        self.mark_posted(run_id, vec![mark(run_id, at_ms)]).await
    }

    pub(super) async fn was_reminded(&self, run_id: &str, at_ms: i64) -> Result<bool, Fault> {
        self.is_marked(run_id, &mark(run_id, at_ms)).await
    }

    /// The store knows what was posted as tokens that were used: another server does not post it again.
    pub(super) async fn mark_posted(&self, run_id: &str, marks: Vec<String>) -> Result<(), Fault> {
        let token = |hash| AnswerToken { hash, pause: NO_PAUSE, call: None, expires_at_ms: 0, used: true };
        let tokens: Vec<AnswerToken> = marks.into_iter().map(token).collect();
        if tokens.is_empty() {
            return Ok(());
        }
        self.runs.journal.put_answer_tokens(run_id, tokens).await.map_err(Fault::Store)
    }

    pub(super) async fn is_marked(&self, run_id: &str, mark: &str) -> Result<bool, Fault> {
        Ok(self.runs.journal.answer_token(run_id, mark).await.map_err(Fault::Store)?.is_some())
    }
}

/// What names the reminder of a run at a moment, in the place of the hash of a token.
pub(super) fn mark(run_id: &str, at_ms: i64) -> String {
    hash_text(&format!("reminder of {run_id} at {at_ms}"))
}
