//! Lines of runs.

use tokio_postgres::Row;
use tokio_postgres::types::Type;

use super::connection::Parameter;
use super::database::Database;
use super::database_errors::StatementError;
use crate::journal::column_words::known;
use crate::journal::{LineRule, MOST_AHEAD, NewRun, NewRunLine, PlaceInLine, RunAhead, StoreError};

/// The runs of lines that can continue without being retried: the condition of the index `runs_by_line`.
macro_rules! open {
    ($run:literal) => {
        concat!(
            $run,
            ".line IS NOT NULL AND (",
            $run,
            ".status IN ('running', 'paused') OR ",
            $run,
            ".status = 'cancelled' AND ",
            $run,
            ".termination IS NULL)"
        )
    };
}
pub(super) use open;

/// Whether a run has a place in its line, or may be driven before.
macro_rules! may_be_driven {
    () => {
        concat!(
            "(r.line IS NULL OR r.line_rule = 'replace' OR r.id IN (
               SELECT n.id FROM (SELECT o.id, o.line_limit, row_number() OVER (PARTITION BY o.line ORDER BY o.place) AS number
                 FROM @.runs o WHERE ",
            $crate::journal::postgres::line::open!("o"),
            ") n WHERE n.number <= n.line_limit))"
        )
    };
}
pub(super) use may_be_driven;

/// The first run that one waits for.
macro_rules! behind {
    () => {
        concat!(
            "CASE WHEN r.line IS NOT NULL AND r.status IN ('running', 'paused') AND (
               SELECT count(*) FROM @.runs o WHERE o.line = r.line AND o.place < r.place AND ",
            $crate::journal::postgres::line::open!("o"),
            ") >= r.line_limit THEN (SELECT o.run_id FROM @.runs o WHERE o.line = r.line AND o.place < r.place AND ",
            $crate::journal::postgres::line::open!("o"),
            " ORDER BY o.place LIMIT 1) END"
        )
    };
}
pub(super) use behind;

/// `$1` is the line, `$2` its limit, `$3` the id of the new run, `$4` the key of its start. A run that is there already is known by
/// that.
const FULL: &str = concat!(
    "SELECT o.run_id FROM @.runs o WHERE o.line = $1 AND ",
    open!("o"),
    " AND NOT EXISTS (SELECT 1 FROM @.runs k WHERE k.run_id = $3 OR k.start_key = $4) ORDER BY o.place LIMIT $2"
);
const AHEAD: &str = concat!(
    "SELECT r.line_limit, r.line_rule, o.run_id, o.status, o.termination, o.driver IS NOT NULL
     FROM @.runs r LEFT JOIN LATERAL (
       SELECT o.* FROM @.runs o WHERE o.line = r.line AND (o.place < r.place OR NOT (",
    open!("r"),
    ")) AND ",
    open!("o"),
    " ORDER BY o.place LIMIT $2) o ON true WHERE r.run_id = $1 ORDER BY o.place"
);

/// Whether a new run does not wait in its line.
pub(super) fn may_be_refused(run: &NewRun) -> bool {
    run.line.as_deref().is_some_and(|line| line.rule == LineRule::Refuse)
}

impl Database {
    /// The first run of a line that is full, for a new run that does not wait. Another one may join the line at the same time: the
    /// statement that creates the run looks again.
    pub(super) async fn refused_by(&self, run: &NewRun) -> Result<Option<String>, StoreError> {
        let Some(line) = run.line.as_deref().filter(|_| may_be_refused(run)) else { return Ok(None) };
        let limit = i64::from(line.limit);
        let parameters: [Parameter<'_>; 4] =
            [(&line.line, Type::TEXT), (&limit, Type::INT8), (&run.run_id, Type::TEXT), (&run.start_key, Type::TEXT)];
        let full = self.persist(|| async {
            let rows = self.quick.query(FULL, &parameters).await?;
            let is_full = i64::try_from(rows.len()).unwrap_or(i64::MAX) >= limit;
            Ok(rows.first().filter(|_| is_full).map(|row| row.try_get(0)).transpose()?)
        });
        full.await
    }

    pub(super) async fn line(&self, run_id: String) -> Result<PlaceInLine, StoreError> {
        let most = i64::try_from(MOST_AHEAD).unwrap_or(i64::MAX);
        let unknown = |what: &str| StoreError::Corrupt(format!("run {run_id}: its row has an unknown word: {what}"));
        let line = self.persist(|| async {
            let rows = self.quick.query(AHEAD, &[(&run_id, Type::TEXT), (&most, Type::INT8)]).await?;
            let first = rows.first().ok_or_else(|| StoreError::NoSuchRun(run_id.clone()))?;
            let (limit, rule): (Option<i32>, Option<String>) = (first.try_get(0)?, first.try_get(1)?);
            let (Some(limit), Some(rule)) = (limit, rule) else { return Ok(PlaceInLine::default()) };
            let mut ahead = Vec::new();
            for row in &rows {
                let Some(run_id) = row.try_get::<_, Option<String>>(2)? else { continue };
                let (status, termination): (String, Option<String>) = (row.try_get(3)?, row.try_get(4)?);
                ahead.push(RunAhead {
                    run_id,
                    status: known(&status).map_err(|_| unknown(&status))?,
                    termination: termination.as_deref().and_then(|word| known(word).ok()),
                    driven: row.try_get(5)?,
                });
            }
            let rule = known(&rule).map_err(|_| unknown(&rule))?;
            Ok(PlaceInLine { limit: u32::try_from(limit).unwrap_or_default(), rule, ahead })
        });
        line.await
    }
}

/// The line of a run, of the row that it is in.
pub(super) fn written(row: &Row) -> Result<Option<NewRunLine>, StatementError> {
    let (line, limit): (Option<String>, Option<i32>) = (row.try_get("line")?, row.try_get("line_limit")?);
    let rule: Option<String> = row.try_get("line_rule")?;
    let rule = rule.and_then(|rule| known(&rule).ok()).unwrap_or_default();
    let limit = limit.and_then(|limit| u32::try_from(limit).ok());
    Ok(line.zip(limit).map(|(line, limit)| NewRunLine { line, limit, rule }))
}
