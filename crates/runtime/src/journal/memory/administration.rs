//! What an administrator asks of the runs in memory: to delete some, and what a copy needs.

use std::collections::HashSet;
use std::sync::{Arc, PoisonError};

use super::{MemoryJournal, StoredRun};
use crate::journal::admin::MOST_NAMED_RUNS;
use crate::journal::read_only_copy::is_imported;
use crate::journal::{CallbackState, PruneQuery, RunExtras, Worker};
use loopctl_engine::outcome::Status;

impl MemoryJournal {
    pub(super) fn pruned(&self, which: &PruneQuery) -> u64 {
        let mut table = self.table.write().unwrap_or_else(PoisonError::into_inner);
        let is_below = |run: &StoredRun, of: &str| {
            run.parent_run_id.is_some() && run.run_id.strip_prefix(of).is_some_and(|rest| rest.starts_with('.'))
        };
        let goes_on = |run: &StoredRun| {
            let status = run.data().status_record.status;
            matches!(status, Status::Running | Status::Paused | Status::Quarantined) && !run.is_imported()
        };
        let is_free = |of: &Arc<StoredRun>| !table.in_order.iter().any(|run| is_below(run, &of.run_id) && goes_on(run));
        let most = if which.dry_run { usize::MAX } else { which.most };
        let old = table.in_order.iter().filter(|run| run.has_ended(which) && is_free(run)).take(most);
        let old: Vec<Arc<str>> = old.map(|run| Arc::clone(&run.run_id)).collect();
        if !which.dry_run {
            let is_gone = |run: &StoredRun| old.iter().any(|of| *of == run.run_id || is_below(run, of));
            let gone: HashSet<Arc<str>> =
                table.in_order.iter().filter(|run| is_gone(run)).map(|run| Arc::clone(&run.run_id)).collect();
            table.in_order.retain(|run| !gone.contains(&run.run_id));
            self.schedules().pruned(&gone);
            table.by_id.retain(|run_id, _| !gone.contains(run_id));
            table.by_key.retain(|_, run| !gone.contains(&run.run_id));
            table.by_org.values_mut().for_each(|runs| runs.retain(|run_id, _| !gone.contains(run_id)));
        }
        u64::try_from(old.len()).unwrap_or(u64::MAX)
    }

    /// This process: nobody else has the store.
    pub(super) fn own_process(&self) -> Vec<Worker> {
        let table = self.table.read().unwrap_or_else(PoisonError::into_inner);
        let runs: Vec<String> =
            table.in_order.iter().filter(|run| run.data().driven).map(|run| run.run_id.to_string()).collect();
        let driven = u64::try_from(runs.len()).unwrap_or(u64::MAX);
        vec![Worker {
            name: "memory".to_owned(),
            is_self: true,
            is_alive: true,
            host: None,
            process: Some(std::process::id()),
            address: self.address.lock().unwrap_or_else(PoisonError::into_inner).clone(),
            clock_ahead_ms: None,
            version: Some(env!("CARGO_PKG_VERSION").to_owned()),
            folder: self.folder.lock().unwrap_or_else(PoisonError::into_inner).clone(),
            since_ms: self.since_ms,
            silent_ms: None,
            driven,
            runs: runs.into_iter().take(MOST_NAMED_RUNS).collect(),
        }]
    }
}

impl StoredRun {
    /// Whether it came in a file, and nobody continues it.
    fn is_imported(&self) -> bool {
        is_imported(&self.identity)
    }

    fn has_ended(&self, which: &PruneQuery) -> bool {
        let data = self.data();
        let record = &data.status_record;
        let end = match record.status {
            Status::Completed | Status::Failed => Some(record.status),
            Status::Cancelled if record.termination.is_some() || self.is_imported() => Some(Status::Cancelled),
            Status::Paused if self.is_imported() => Some(Status::Cancelled),
            _ => None,
        };
        end.is_some_and(|end| which.statuses.contains(&end))
            && record.at_ms < which.before_ms
            && self.parent_run_id.is_none()
            && which.loops.has(&self.loop_name)
            && which.runs.as_ref().is_none_or(|runs| runs.iter().any(|run| **run == *self.run_id))
            && !data.driven
            && (self.callback_url.is_none() || data.callback.state != CallbackState::Pending)
    }

    pub(super) fn extras(&self) -> RunExtras {
        let data = self.data();
        RunExtras {
            token: self.token.clone(),
            due_at_ms: data.status_record.due_at_ms,
            waits_since_ms: data.status_record.waits_since_ms,
            answer_tokens: data.answer_tokens.all(),
            start_key: self.start_key.clone(),
            scheduled: None,
            search_text: data.search_text.clone(),
            title: data.title.clone(),
            awaits: data.status_record.awaits.clone(),
            line: self.line.as_deref().cloned(),
        }
    }
}
