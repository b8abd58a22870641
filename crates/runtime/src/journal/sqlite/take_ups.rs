//! How often drivers resumed a run and died before anything happened in it. The deaths are forgotten of a run that waits for
//! its model: it is not what they died of.

use rusqlite::{Connection, params};

use super::database_errors::RequestError;
use super::queue::listed;
use super::requests::events_of;
use super::write_request::{Transaction, WriteRequest};

/// What the row of a run records about the drivers that resumed it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TakeUps {
    /// The number of drivers in a row that did nothing and died.
    pub failed: u32,
    /// How many events the run and its sub-runs had when it was last resumed, including those that the
    /// resumption itself appends; none when only its first driver had it.
    pub events: Option<i64>,
}

/// The events of a run and its sub-runs.
#[derive(Debug, Clone, Copy)]
pub(super) struct Events {
    /// All of them.
    count: i64,
    /// The runs under way, this one included: a driver that resumes them appends one event to each.
    under_way: i64,
}

impl TakeUps {
    /// The record after one more driver resumed the run. `died`: the driver before it died with the run, or
    /// else released it.
    pub fn one_more(self, now: Events, died: bool) -> Self {
        let happened = self.events.is_none_or(|before| now.count > before);
        let failed = match (happened, died) {
            (true, _) => 0,
            (false, true) => self.failed.saturating_add(1),
            (false, false) => self.failed,
        };
        Self { failed, events: Some(now.count.saturating_add(now.under_way)) }
    }
}

/// The number of events of a run and all runs below it; the run itself has `own` events.
pub(super) fn events_of_all(connection: &Connection, run_id: &str, own: i64) -> rusqlite::Result<Events> {
    connection
        .prepare_cached(
            "SELECT coalesce(sum((SELECT max(seq) + 1 FROM events WHERE run = runs.id)), 0),
                    coalesce(sum(status = 'running'), 0)
             FROM runs WHERE run_id > ?1 AND run_id < ?2 AND parent_run_id IS NOT NULL",
        )?
        .query_row(below(run_id), |row| {
            let (below, under_way): (i64, i64) = (row.get(0)?, row.get(1)?);
            Ok(Events { count: own.saturating_add(below), under_way: under_way.saturating_add(1) })
        })
}

/// The bounds of the ids of all runs below a run.
pub(super) fn below(run_id: &str) -> [String; 2] {
    // The ids of sub-runs begin with that of their caller and a dot; `/` is the next character after the dot.
    [format!("{run_id}."), format!("{run_id}/")]
}

/// Resets the count when the driver that releases the run did something in it.
pub(super) fn forget_if_something_happened(connection: &Connection, run_id: &str) -> rusqlite::Result<()> {
    let row = connection.prepare_cached("SELECT id FROM runs WHERE run_id = ?1")?.query_row([run_id], |row| row.get(0));
    let now = events_of_all(connection, run_id, events_of(connection, row?)?)?;
    connection
        .prepare_cached("UPDATE runs SET failed_take_ups = 0 WHERE run_id = ?1 AND take_up_events < ?2")?
        .execute(params![run_id, now.count])?;
    Ok(())
}

/// Forgets the drivers that died of these runs.
pub(super) struct Absolve(pub(super) Vec<String>);

impl WriteRequest for Absolve {
    type Answer = ();

    fn run_id(&self) -> &str {
        ""
    }

    fn perform(&self, transaction: &mut Transaction<'_>) -> Result<(), RequestError> {
        transaction
            .connection
            .prepare_cached(
                "UPDATE runs SET failed_take_ups = 0
                 WHERE run_id IN (SELECT value FROM json_each(?1)) AND failed_take_ups > 0",
            )?
            .execute([listed(&self.0)])?;
        Ok(())
    }
}
