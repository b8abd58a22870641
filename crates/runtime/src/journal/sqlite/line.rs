//! Lines of runs.

use rusqlite::{Connection, OptionalExtension, Row, params};

use super::database_errors::RequestError;
use crate::journal::column_words::{known, word};
use crate::journal::{LineRule, MOST_AHEAD, NewRunLine, PlaceInLine, RunAhead, StoreError};

/// The runs of lines that can continue without being retried: the condition of the index `runs_by_line`.
macro_rules! open {
    () => {
        "line IS NOT NULL AND (status IN ('running', 'paused') OR status = 'cancelled' AND termination IS NULL)"
    };
}
pub(super) use open;

/// Whether a run has a place in its line, or may be driven before.
macro_rules! may_be_driven {
    () => {
        concat!(
            "(line IS NULL OR line_rule = 'replace' OR id IN (
               SELECT id FROM (SELECT id, line_limit, row_number() OVER (PARTITION BY line ORDER BY place) AS number
                 FROM runs INDEXED BY runs_by_line WHERE ",
            $crate::journal::sqlite::line::open!(),
            ") WHERE number <= line_limit))"
        )
    };
}
pub(super) use may_be_driven;

/// The first run that one waits for.
macro_rules! behind {
    () => {
        "CASE WHEN runs.line IS NOT NULL AND runs.status IN ('running', 'paused') AND (
           SELECT count(*) FROM runs AS other INDEXED BY runs_by_line WHERE other.line = runs.line AND other.place < runs.place
             AND other.line IS NOT NULL
             AND (other.status IN ('running', 'paused') OR other.status = 'cancelled' AND other.termination IS NULL)
         ) >= runs.line_limit THEN (
           SELECT other.run_id FROM runs AS other INDEXED BY runs_by_line WHERE other.line = runs.line
             AND other.place < runs.place AND other.line IS NOT NULL
             AND (other.status IN ('running', 'paused') OR other.status = 'cancelled' AND other.termination IS NULL)
           ORDER BY other.place LIMIT 1
         ) END"
    };
}
pub(super) use behind;

const OPEN: &str = concat!("SELECT run_id, place FROM runs INDEXED BY runs_by_line WHERE line = ?1 AND ", open!());

/// The number of a run that joins a line at its end. One that has ended and continues is not among the open ones yet.
pub(super) fn next_place(connection: &Connection, line: &str) -> rusqlite::Result<i64> {
    let sql =
        concat!("SELECT coalesce(max(place), 0) + 1 FROM runs INDEXED BY runs_by_line WHERE line = ?1 AND ", open!());
    connection.prepare_cached(sql)?.query_row([line], |row| row.get(0))
}

/// The first run of a line that is full, for a run that does not wait.
pub(super) fn refused_by(connection: &Connection, new: &NewRunLine) -> rusqlite::Result<Option<String>> {
    if new.rule != LineRule::Refuse {
        return Ok(None);
    }
    let mut open = connection.prepare_cached(&format!("{OPEN} ORDER BY place LIMIT ?2"))?;
    let open: Vec<String> =
        open.query_map(params![new.line, new.limit], |row| row.get(0))?.collect::<Result<_, _>>()?;
    let is_full = open.len() >= usize::try_from(new.limit).unwrap_or(usize::MAX);
    Ok(open.into_iter().next().filter(|_| is_full))
}

/// Puts a run that continues after its end at the end of its line.
pub(super) fn rejoin(connection: &Connection, row: i64) -> rusqlite::Result<()> {
    let line: Option<Option<String>> = connection
        .prepare_cached("SELECT line FROM runs WHERE id = ?1")?
        .query_row([row], |row| row.get(0))
        .optional()?;
    let Some(line) = line.flatten() else { return Ok(()) };
    // Its own row may be among the open ones by now: its number then only grows.
    let place = next_place(connection, &line)?;
    connection.prepare_cached("UPDATE runs SET place = ?2 WHERE id = ?1")?.execute(params![row, place]).map(drop)
}

/// Where a run is in its line.
pub(super) fn of_run(connection: &Connection, run_id: &str) -> Result<PlaceInLine, RequestError> {
    type LineOfRow = (Option<String>, Option<u32>, Option<String>, Option<i64>);
    let read = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?));
    let sql = concat!(
        "SELECT line, line_limit, line_rule, CASE WHEN ",
        open!(),
        " THEN place ELSE 9223372036854775807 END FROM runs WHERE run_id = ?1"
    );
    let found: Option<LineOfRow> = connection.prepare_cached(sql)?.query_row([run_id], read).optional()?;
    let (line, limit, rule, place) = found.ok_or_else(|| StoreError::NoSuchRun(run_id.to_owned()))?;
    let (Some(line), Some(limit)) = (line, limit) else { return Ok(PlaceInLine::default()) };
    let unknown = |what: &str| StoreError::Corrupt(format!("run {run_id}: its row has an unknown word: {what}"));
    let rule = rule.unwrap_or_default();
    let rule = known(&rule).map_err(|_| unknown(&rule))?;
    let sql = concat!(
        "SELECT run_id, status, termination, driver IS NOT NULL FROM runs INDEXED BY runs_by_line
         WHERE line = ?1 AND place < ?2 AND ",
        open!(),
        " ORDER BY place LIMIT ?3"
    );
    let mut query = connection.prepare_cached(sql)?;
    let most = i64::try_from(MOST_AHEAD).unwrap_or(i64::MAX);
    let mut rows = query.query(params![line, place, most])?;
    let mut ahead = Vec::new();
    while let Some(row) = rows.next()? {
        let (status, termination): (String, Option<String>) = (row.get(1)?, row.get(2)?);
        ahead.push(RunAhead {
            run_id: row.get(0)?,
            status: known(&status).map_err(|_| unknown(&status))?,
            termination: termination.as_deref().and_then(|word| known(word).ok()),
            driven: row.get(3)?,
        });
    }
    Ok(PlaceInLine { limit, rule, ahead })
}

/// The word of a rule.
pub(super) fn rule_word(line: &NewRunLine) -> Option<String> {
    word(&line.rule)
}

/// The line of a run, of the row that it is in.
pub(super) fn written(row: &Row<'_>) -> rusqlite::Result<Option<NewRunLine>> {
    let (line, limit): (Option<String>, Option<u32>) = (row.get("line")?, row.get("line_limit")?);
    let rule: Option<String> = row.get("line_rule")?;
    let rule = rule.and_then(|rule| known(&rule).ok()).unwrap_or_default();
    Ok(line.zip(limit).map(|(line, limit)| NewRunLine { line, limit, rule }))
}
