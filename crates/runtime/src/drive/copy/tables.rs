//! The tables of a store, and what a copy does with each. A table that is not in this list is one that somebody forgot: a test says so.

use crate::journal::copied_table::{
    CopiedTable, LEDGER, LEDGER_PARTS, MEMORY, OUTSIDE_EVENTS, SCHEDULED_RUNS, SCHEDULES,
};
use crate::journal::{Journal, StoreError};

/// What a copy does with a table.
#[derive(Debug, PartialEq, Eq)]
pub enum TableCopying {
    /// Its rows are copied before the runs: who drives a run needs them.
    RowsBefore(&'static CopiedTable),
    /// They are copied with their runs.
    WithRuns,
    /// They are copied with what people did.
    WithAudit,
    /// Its rows are copied after the runs: a schedule that is known, and whose runs are not, starts runs anew.
    RowsAfter(&'static CopiedTable),
    /// It says something of the store itself, and of the processes that have it open.
    OfStore,
}

/// All tables.
pub const COPIED: &[(&str, TableCopying)] = &[
    ("session_memory", TableCopying::RowsBefore(&MEMORY)),
    ("outside_events", TableCopying::RowsBefore(&OUTSIDE_EVENTS)),
    ("ledger", TableCopying::RowsBefore(&LEDGER)),
    ("ledger_parts", TableCopying::RowsBefore(&LEDGER_PARTS)),
    ("runs", TableCopying::WithRuns),
    ("events", TableCopying::WithRuns),
    ("texts", TableCopying::WithRuns),
    ("run_texts", TableCopying::WithRuns),
    ("answer_tokens", TableCopying::WithRuns),
    ("decisions", TableCopying::WithRuns),
    ("audit", TableCopying::WithAudit),
    ("loop_switches", TableCopying::WithAudit),
    ("scheduled_runs", TableCopying::RowsAfter(&SCHEDULED_RUNS)),
    ("schedules", TableCopying::RowsAfter(&SCHEDULES)),
    ("reservations", TableCopying::OfStore),
    ("drivers", TableCopying::OfStore),
    ("loopctl", TableCopying::OfStore),
];

/// The tables whose rows are copied before the runs.
pub(super) fn before_runs() -> impl Iterator<Item = &'static CopiedTable> {
    COPIED.iter().filter_map(|(_, copying)| match copying {
        TableCopying::RowsBefore(table) => Some(*table),
        _ => None,
    })
}

/// The tables whose rows are copied after the runs.
pub(super) fn after_runs() -> impl Iterator<Item = &'static CopiedTable> {
    COPIED.iter().filter_map(|(_, copying)| match copying {
        TableCopying::RowsAfter(table) => Some(*table),
        _ => None,
    })
}

/// Copies the rows of a table that the target does not have; returns how many those are.
pub(super) async fn copy_rows(
    from: &dyn Journal,
    to: &dyn Journal,
    table: &'static CopiedTable,
) -> Result<u64, StoreError> {
    let (mut copied, mut after) = (0_u64, None);
    loop {
        let page = from.rows(table, after.take()).await?;
        let Some(last) = page.last().cloned() else { return Ok(copied) };
        copied = copied.saturating_add(to.put_rows(table, page).await?);
        after = Some(last);
    }
}
