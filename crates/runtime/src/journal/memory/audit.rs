//! What people did with the runs in memory, and the loops that were switched.

use std::collections::BTreeMap;
use std::sync::{MutexGuard, PoisonError};

use super::MemoryJournal;
use crate::journal::{AuditFilter, AuditLine, LoopSwitch};

/// The lines in their order, and the loops that were switched, by name.
#[derive(Debug, Default)]
pub(super) struct AuditLog {
    lines: Vec<AuditLine>,
    switches: BTreeMap<String, LoopSwitch>,
}

impl AuditLog {
    pub(super) fn add(&mut self, line: AuditLine) {
        let id = u64::try_from(self.lines.len()).unwrap_or(u64::MAX).saturating_add(1);
        self.lines.push(AuditLine { id, ..line });
    }
}

impl MemoryJournal {
    pub(super) fn audit_log(&self) -> MutexGuard<'_, AuditLog> {
        self.audit.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn audit_lines(&self, filter: &AuditFilter) -> Vec<AuditLine> {
        let log = self.audit_log();
        let lines = log.lines.iter().filter(|line| filter.takes(line));
        match filter.after {
            Some(_) => lines.take(filter.most()).cloned().collect(),
            None => lines.rev().take(filter.most()).cloned().collect(),
        }
    }

    pub(super) fn switched(&self, switch: LoopSwitch) {
        let mut log = self.audit_log();
        log.add(switch.line());
        log.switches.insert(switch.name.clone(), switch);
    }

    pub(super) fn switches(&self) -> Vec<LoopSwitch> {
        self.audit_log().switches.values().cloned().collect()
    }
}
