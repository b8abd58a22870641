//! The statements that append events. Each checks the fence of each run, its driver and the order of its events.
//!
//! There are three, because parts that have nothing to do cost more than the events of a small batch. All take the same
//! parameters, as far as their texts name them.

use std::sync::LazyLock;

use super::append_parameters::AppendParameters;
use super::columns::NumberedStatement;

/// The events. `FOR SHARE` stands against the update of another driver that takes the run: the append is before it
/// and the new driver reads it, or behind it and finds another fence. The look at the event before keeps the order,
/// and finds a database that lost events. Both are look-ups of a row for each event: as joins they would be compared
/// with each other. `IS NOT DISTINCT FROM` keeps the planner from looking at all runs of this driver for each event.
macro_rules! inserted {
    () => {
        inserted!(
            "$a",
            ""
        )
    };
    ($from:literal, $and:literal) => {
        concat!(
            "INSERT INTO @.events (run, seq, fence, sum, event)
  SELECT a.run, a.seq, a.fence, a.sum, a.event FROM ",
            $from,
            " CROSS JOIN LATERAL (
    SELECT 1 FROM @.runs r WHERE r.id = a.run AND r.fence = a.fence AND r.driver IS NOT DISTINCT FROM $me FOR SHARE) r
  WHERE (SELECT e.seq FROM @.events e WHERE e.run = a.run AND e.seq = a.before) IS NOT NULL",
            $and,
            " ON CONFLICT (run, seq) DO NOTHING RETURNING run, seq"
        )
    };
}

/// Columns that become those of a new record, where there is one.
macro_rules! of_record {
    ($($column:literal),*) => {
        concat!($($column, " = CASE WHEN s.status IS NULL THEN r.", $column, " ELSE s.", $column, " END, "),*)
    };
}

/// The rows of the runs whose events were inserted. A run that pauses is due at once when a decision waits.
macro_rules! updated {
    ($unless_taken:literal) => {
        concat!(
            "UPDATE @.runs r SET
    status = coalesce(s.status, r.status),
    iterations = coalesce(s.iterations, r.iterations),
    updated_at_ms = CASE WHEN s.status IS NULL OR s.status = 'running' AND r.status = 'running' THEN r.updated_at_ms
      ELSE s.at_ms END,
    progress_at_ms = coalesce(s.at_ms, r.progress_at_ms),
    ",
            of_record!("termination", "waits_since_ms", "tokens", "cost_usd", "error", "question"),
            "
    due_at_ms = CASE WHEN s.status IS NULL THEN r.due_at_ms
      WHEN s.status = 'paused' AND EXISTS (SELECT 1 FROM @.decisions d WHERE d.run = r.id AND d.refused IS NULL",
            $unless_taken,
            ") THEN 0
      ELSE s.due_at_ms END,
    callback_at = CASE WHEN s.status IS NULL THEN r.callback_at
      WHEN s.posts THEN clock_timestamp() + $lease_ms * interval '1 ms' END,
    callback_by = $me,
    cancel_requested = r.cancel_requested AND NOT s.reopens,
    cancel_reason = CASE WHEN s.reopens THEN NULL ELSE r.cancel_reason END,
    cancel_by = CASE WHEN s.reopens THEN NULL ELSE r.cancel_by END,
    callback_tries = CASE WHEN s.reopens THEN 0 ELSE r.callback_tries END,
    callback = CASE WHEN s.reopens AND r.callback IS NOT NULL THEN 'pending' ELSE r.callback END,
    failed_take_ups = CASE WHEN s.releases AND r.take_up_events < s.events THEN 0 ELSE r.failed_take_ups END,
    driver = CASE WHEN s.releases THEN NULL ELSE r.driver END
  FROM unnest($r.values, $s.values) AS s($r.names, $s.names)
  WHERE r.id = s.run AND s.run IN (SELECT run FROM ins)"
        )
    };
}

/// What a batch of events changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum AppendExtent {
    /// Nothing else.
    Events,
    /// The rows of runs.
    Rows,
    /// Also texts, memory, answer tokens or decisions.
    All,
}

impl AppendExtent {
    pub(super) fn statement(self) -> &'static NumberedStatement {
        match self {
            Self::Events => &EVENTS,
            Self::Rows => &EVENTS_AND_ROWS,
            Self::All => &EVENTS_AND_ALL,
        }
    }
}

static EVENTS: LazyLock<NumberedStatement> = LazyLock::new(|| AppendParameters::statement(inserted!()));

static EVENTS_AND_ROWS: LazyLock<NumberedStatement> = LazyLock::new(|| {
    AppendParameters::statement(concat!(
        "WITH ins AS (",
        inserted!(),
        "), standing AS (",
        updated!(""),
        ") SELECT run, seq FROM ins"
    ))
});

static EVENTS_AND_ALL: LazyLock<NumberedStatement> = LazyLock::new(|| AppendParameters::statement(ALL));

const ALL: &str = concat!(
    "WITH a AS MATERIALIZED (
  SELECT * FROM unnest($a.values, $u.values) AS a($a.names, $u.names)
), ins AS (",
    inserted!(
        "a",
        " AND (a.token IS NULL OR (
      SELECT 1 FROM @.answer_tokens t WHERE t.hash = a.token AND t.run = a.run AND NOT t.used) IS NOT NULL)"
    ),
    "), tokens AS (
  UPDATE @.answer_tokens SET used = true
  WHERE hash IN (SELECT a.token FROM a JOIN ins USING (run, seq) WHERE a.token IS NOT NULL)
), decided AS (
  DELETE FROM @.decisions d USING a JOIN ins USING (run, seq)
  WHERE a.decision IS NOT NULL AND d.run = a.run AND d.id = a.decision
), kept AS (
  INSERT INTO @.texts (sha256, text) SELECT sha256, text FROM $t ORDER BY 1 ON CONFLICT DO NOTHING
), named AS (
  INSERT INTO @.run_texts (run, sha256) SELECT run, sha256 FROM $n WHERE run IN (SELECT run FROM ins) ON CONFLICT DO NOTHING
), memory AS (
  INSERT INTO @.session_memory (session, key, value)
  SELECT session, key, value FROM $m WHERE run IN (SELECT run FROM ins) ORDER BY 1, 2
  ON CONFLICT (session, key) DO UPDATE SET value = excluded.value
), standing AS (",
    updated!(" AND (d.id = ANY ($u.decision)) IS NOT TRUE"),
    ") SELECT run, seq FROM ins"
);
