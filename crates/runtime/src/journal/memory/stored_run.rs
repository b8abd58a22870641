//! A run in memory: its lease, and what lists show of it.

use std::collections::BTreeMap;
use std::sync::{Arc, MutexGuard, PoisonError};

use super::{RunData, StoredRun};
use crate::journal::{
    Callback, CallbackState, Lease, ModelWait, RowCompletion, RunFilter, RunSummary, StatusRecord, StoreError,
};
use loopctl_engine::outcome::Status;

impl StoredRun {
    pub(super) fn data(&self) -> MutexGuard<'_, RunData> {
        self.data.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The events of the run, for the holder of the lease with this number.
    pub(super) fn held(&self, fence: u64) -> Result<MutexGuard<'_, RunData>, StoreError> {
        let data = self.data();
        if data.driven && data.fence == fence { Ok(data) } else { Err(StoreError::Fenced(self.run_id.to_string())) }
    }

    pub(super) fn lease(&self) -> Result<Lease, StoreError> {
        let mut data = self.data();
        if data.driven {
            return Err(StoreError::Driven(self.run_id.to_string()));
        }
        data.driven = true;
        data.fence = data.fence.saturating_add(1);
        Ok(Lease { fence: data.fence, events: data.next(), failed_take_ups: 0 })
    }

    pub(super) fn is_due(&self, now_ms: i64) -> bool {
        self.data().is_due(now_ms)
    }

    /// Whether the text that a search finds the run by has this one in it.
    pub(super) fn has_text(&self, text: &str) -> bool {
        self.data().search_text.as_ref().is_some_and(|all| all.contains(text))
    }

    pub(super) fn complete(&self, row: RowCompletion) {
        let mut data = self.data();
        if data.is_complete() || data.status_record.status != row.record.status {
            return;
        }
        if data.status_record.tokens.is_none() {
            let StatusRecord { iterations, tokens, cost_usd, error, question, awaits, .. } = row.record;
            let record = data.status_record.clone();
            data.status_record = StatusRecord { iterations, tokens, cost_usd, error, question, awaits, ..record };
        }
        data.search_text.get_or_insert(row.search_text);
        data.title.get_or_insert(row.title);
    }

    pub(super) fn release(&self, fence: u64) {
        let mut data = self.data();
        if data.fence == fence {
            data.driven = false;
        }
    }

    pub(super) fn summary(&self) -> RunSummary {
        let data = self.data();
        RunSummary {
            run_id: self.run_id.to_string(),
            loop_name: self.loop_name.clone(),
            session: self.session.clone(),
            title: data.title.as_deref().filter(|title| !title.is_empty()).map(Into::into),
            status: data.status_record.status,
            termination: data.status_record.termination,
            iterations: data.status_record.iterations,
            started_at_ms: self.started_at_ms,
            updated_at_ms: data.status_record.at_ms,
            tokens: data.status_record.tokens,
            cost_usd: data.status_record.cost_usd,
            error: data.status_record.error.as_ref().map(|text| text.as_str().to_owned()),
            model_wait: data.model_wait().map(|wait| Box::new(ModelWait { reason: None, ..wait.clone() })),
            unsent: data.unsent(),
            question: data.status_record.question.as_ref().map(|text| text.as_str().to_owned()),
            due_at_ms: data.due_at_ms(),
            schedule: self.scheduled.as_ref().map(|scheduled| scheduled.schedule.clone()),
            scheduled_for_ms: self.scheduled.as_ref().map(|scheduled| scheduled.due_at_ms),
            behind: None,
            is_complete: data.is_complete(),
            driven: data.driven,
            waits_since_ms: data.status_record.waits_since_ms.filter(|_| data.status_record.status == Status::Running),
            damaged: None,
            identity: self.identity.clone(),
            parent_run_id: self.parent_run_id.clone(),
            org: self.org.clone(),
            token: self.token.as_deref().map(Into::into),
            callback: self.callback_url.clone().map(|url| Callback {
                url,
                progress: data.callback,
                posted_pause: data.posted_pause,
            }),
        }
    }
}

impl RunData {
    /// The model that its present driver asks again.
    fn model_wait(&self) -> Option<&ModelWait> {
        let is_under_way = self.driven && self.status_record.status == Status::Running;
        let noted = self.model_wait.as_ref().filter(|(fence, _)| is_under_way && *fence == self.fence);
        noted.map(|(_, wait)| wait)
    }

    /// The calls of which nothing was sent when the driver before the present one died.
    fn unsent(&self) -> Vec<String> {
        let noted = self.model_wait.as_ref().filter(|(fence, _)| fence.saturating_add(1) == self.fence);
        noted.map(|(_, wait)| wait.unsent.clone()).unwrap_or_default()
    }

    /// Whether the row has all that lists show.
    fn is_complete(&self) -> bool {
        self.status_record.tokens.is_some() && self.search_text.is_some() && self.title.is_some()
    }
}

/// The called runs that wait for a human, or of which a step does, with the moment since which they have waited.
pub(super) fn waiting_called(runs: &[Arc<StoredRun>]) -> BTreeMap<String, i64> {
    let called = runs.iter().filter(|run| run.parent_run_id.is_some()).map(|run| run.summary());
    let waiting = called.filter(RunSummary::waits_for_human);
    waiting.map(|run| (run.run_id, run.waits_since_ms.unwrap_or(run.updated_at_ms))).collect()
}

/// A run as lists show it: one that is under way waits for a human too when a run below does.
pub(super) fn listed(run: RunSummary, called: &BTreeMap<String, i64>) -> RunSummary {
    if run.status != Status::Running || run.waits_since_ms.is_some() {
        return run;
    }
    let (from, to) = (format!("{}.", run.run_id), format!("{}/", run.run_id));
    let waits_since_ms = called.range(from..to).map(|(_, since_ms)| *since_ms).min();
    RunSummary { waits_since_ms, ..run }
}

/// Whether the filter matches a run, apart from its place in the list.
pub(super) fn is_wanted(filter: &RunFilter, run: &RunSummary) -> bool {
    filter.wants_status_of(run)
        && (filter.called || run.parent_run_id.is_none())
        && filter.org.as_deref().is_none_or(|org| run.org.as_deref().unwrap_or_default() == org)
        && filter.id_prefix.as_ref().is_none_or(|prefix| run.run_id.starts_with(prefix.as_str()))
        && filter.loop_name.as_ref().is_none_or(|name| run.loop_name == *name)
        && (filter.session.is_none() || filter.session == run.session)
        && filter.since_ms.is_none_or(|since| run.started_at_ms >= since)
        && filter.until_ms.is_none_or(|until| run.started_at_ms < until)
        && filter.wants_end_of(run)
        && (!filter.callback_pending
            || run.callback.as_ref().is_some_and(|callback| callback.progress.state == CallbackState::Pending))
}
