//! The tables, and their migrations.

use std::time::Duration;

use super::connection::Link;
use super::database_errors::StatementError;
use super::examination::{FoundTables, found};
use super::target::PostgresTarget;
use crate::journal::StoreError;

/// The version of the tables.
pub const VERSION: i32 = 14;
/// The oldest version of loopctl's tables whose programs can work with these: later ones only added to them.
const OLDEST_READER: i32 = 4;
/// The lease of a store whose name says nothing of it.
pub(super) const LEASE: Duration = Duration::from_secs(15);
/// The advisory lock of a migration (`LOOP`).
const LOCK: i64 = 0x4C4F_4F50;

/// All tables: a role needs its rights on each.
pub(super) const NAMES: [&str; 17] = [
    "loopctl",
    "drivers",
    "runs",
    "events",
    "texts",
    "run_texts",
    "session_memory",
    "answer_tokens",
    "decisions",
    "schedules",
    "scheduled_runs",
    "audit",
    "loop_switches",
    "outside_events",
    "ledger",
    "ledger_parts",
    "reservations",
];

/// The tables. `@` is the schema. What models and clients write is `bytea`: `text` refuses a NUL. The row of a run is
/// written when its status changes, and by what adds to its costs. The latter changes no column of an index: such an update
/// needs no entries in the indexes.
pub const TABLES: &str = "
CREATE TABLE @.loopctl (
  version int NOT NULL,
  oldest_reader int NOT NULL,
  lease_ms int NOT NULL,
  line_joins bigint NOT NULL DEFAULT 0
);
CREATE TABLE @.drivers (
  driver uuid PRIMARY KEY,
  until timestamptz NOT NULL,
  since timestamptz NOT NULL DEFAULT clock_timestamp(),
  host text,
  version text,
  folder bytea,
  process bigint,
  address text,
  clock_ahead_ms bigint
) WITH (fillfactor = 50);
CREATE TABLE @.runs (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  run_id text COLLATE \"C\" NOT NULL UNIQUE,
  fence bigint NOT NULL,
  driver uuid,
  claim uuid,
  birth uuid NOT NULL,
  format smallint NOT NULL,
  status text NOT NULL,
  termination text,
  iterations int NOT NULL,
  started_at_ms bigint NOT NULL,
  updated_at_ms bigint NOT NULL,
  due_at_ms bigint,
  cancel_requested boolean NOT NULL DEFAULT false,
  cancel_reason bytea,
  callback text,
  callback_tries int NOT NULL DEFAULT 0,
  callback_pause int NOT NULL DEFAULT 0,
  callback_at timestamptz,
  callback_by uuid,
  failed_take_ups int NOT NULL DEFAULT 0,
  take_up_events bigint,
  take_up_fence bigint,
  org text,
  token text,
  session text,
  called_by text,
  loop_name text NOT NULL,
  identity bytea NOT NULL,
  callback_url text,
  folder bytea,
  waits_since_ms bigint,
  cancel_by text,
  start_key text,
  progress_at_ms bigint,
  tokens bigint,
  cost_usd float8,
  error text,
  question text,
  search_text text,
  title text,
  awaits text,
  line text,
  line_limit int,
  line_rule text,
  place bigint
) WITH (fillfactor = 70);
CREATE UNIQUE INDEX runs_by_start_key ON @.runs (start_key) WHERE start_key IS NOT NULL;
CREATE INDEX runs_by_queue ON @.runs (org, token, id)
  WHERE called_by IS NULL AND (status = 'running' OR due_at_ms IS NOT NULL);
CREATE INDEX runs_by_driver ON @.runs (driver) WHERE driver IS NOT NULL;
CREATE INDEX runs_by_callback ON @.runs (callback_at) WHERE callback = 'pending';
CREATE INDEX runs_by_due ON @.runs (due_at_ms) WHERE due_at_ms IS NOT NULL;
CREATE INDEX runs_by_waiting ON @.runs (run_id)
  WHERE called_by IS NOT NULL AND (status = 'paused' OR waits_since_ms IS NOT NULL);
CREATE INDEX runs_by_status ON @.runs (status, id);
CREATE INDEX runs_by_org ON @.runs (org, id) WHERE org IS NOT NULL;
CREATE INDEX runs_by_owner ON @.runs (org, run_id);
CREATE INDEX runs_by_end ON @.runs (updated_at_ms)
  WHERE called_by IS NULL AND status IN ('completed', 'failed', 'cancelled');
CREATE INDEX runs_by_awaited ON @.runs (id) WHERE awaits IS NOT NULL;
CREATE INDEX runs_by_line ON @.runs (line, place)
  WHERE line IS NOT NULL AND (status IN ('running', 'paused') OR status = 'cancelled' AND termination IS NULL);
CREATE TABLE @.outside_events (
  org text NOT NULL,
  id text NOT NULL,
  event text NOT NULL,
  data bytea NOT NULL,
  at_ms bigint NOT NULL,
  keep_until_ms bigint NOT NULL,
  number bigint GENERATED ALWAYS AS IDENTITY,
  taken boolean NOT NULL DEFAULT false,
  PRIMARY KEY (org, id)
);
CREATE INDEX outside_events_by_name ON @.outside_events (org, event, number) WHERE NOT taken;
CREATE INDEX outside_events_by_end ON @.outside_events (keep_until_ms);
CREATE TABLE @.events (
  run bigint NOT NULL,
  seq int NOT NULL,
  fence bigint NOT NULL,
  sum bigint NOT NULL,
  event bytea NOT NULL,
  PRIMARY KEY (run, seq)
);
CREATE TABLE @.texts (sha256 bytea PRIMARY KEY, text bytea NOT NULL);
CREATE TABLE @.run_texts (run bigint NOT NULL, sha256 bytea NOT NULL, PRIMARY KEY (run, sha256));
CREATE INDEX run_texts_by_text ON @.run_texts (sha256);
CREATE TABLE @.session_memory (
  session text NOT NULL,
  key bytea NOT NULL,
  value bytea NOT NULL,
  PRIMARY KEY (session, key)
);
CREATE TABLE @.answer_tokens (
  hash text PRIMARY KEY,
  run bigint NOT NULL,
  pause int NOT NULL,
  call text,
  expires_at_ms bigint NOT NULL,
  used boolean NOT NULL DEFAULT false
);
CREATE INDEX answer_tokens_by_run ON @.answer_tokens (run, pause);
CREATE TABLE @.decisions (
  run bigint NOT NULL,
  subject text NOT NULL,
  id text NOT NULL,
  decision bytea NOT NULL,
  refused bytea,
  PRIMARY KEY (run, subject)
);
CREATE TABLE @.schedules (
  name bytea PRIMARY KEY,
  timetable text NOT NULL,
  seen_at_ms bigint NOT NULL,
  place bytea NOT NULL
);
CREATE TABLE @.scheduled_runs (
  run_id text COLLATE \"C\" PRIMARY KEY,
  schedule bytea NOT NULL,
  due_at_ms bigint NOT NULL,
  timetable text NOT NULL,
  ahead boolean NOT NULL DEFAULT false
);
CREATE INDEX scheduled_runs_by_time ON @.scheduled_runs (schedule, due_at_ms);
CREATE TABLE @.audit (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  at_ms bigint NOT NULL,
  action text NOT NULL,
  actor text,
  detail text,
  run_id text,
  loop_name text,
  org text,
  times bigint NOT NULL DEFAULT 1
);
CREATE INDEX audit_by_run ON @.audit (run_id, id) WHERE run_id IS NOT NULL;
CREATE INDEX audit_by_org ON @.audit (org, id) WHERE org IS NOT NULL;
CREATE TABLE @.loop_switches (
  name text PRIMARY KEY,
  is_off boolean NOT NULL,
  at_ms bigint NOT NULL,
  actor text,
  reason bytea
);
CREATE TABLE @.ledger (
  account text COLLATE \"C\" PRIMARY KEY,
  from_ms bigint NOT NULL,
  until_ms bigint,
  stays_ms bigint,
  most_tokens bigint,
  most_nanos bigint,
  settled_tokens bigint NOT NULL,
  settled_nanos bigint NOT NULL,
  reserved_tokens bigint NOT NULL,
  reserved_nanos bigint NOT NULL,
  warned_ms bigint
);
CREATE TABLE @.ledger_parts (
  account text COLLATE \"C\" NOT NULL,
  part_ms bigint NOT NULL,
  tokens bigint NOT NULL,
  nanos bigint NOT NULL,
  PRIMARY KEY (account, part_ms)
);
CREATE TABLE @.reservations (
  account text COLLATE \"C\" NOT NULL,
  id text COLLATE \"C\" NOT NULL,
  run_id text NOT NULL,
  fence bigint NOT NULL,
  tokens bigint NOT NULL,
  nanos bigint NOT NULL,
  PRIMARY KEY (account, id)
);
";

/// The migrations from older versions: the version, and the statements that lead to the next one.
const MIGRATIONS: &[(i32, &str)] = &[
    (1, FROM_1),
    (2, FROM_2),
    (3, FROM_3),
    (4, FROM_4),
    (5, FROM_5),
    (6, FROM_6),
    (7, FROM_7),
    (8, FROM_8),
    (9, FROM_9),
    (10, FROM_10),
    (11, FROM_11),
    (12, FROM_12),
    (13, FROM_13),
];

/// Version 2 knows in which folder a run started, and finds runs and texts that may be deleted.
const FROM_1: &str = "
ALTER TABLE @.runs ADD COLUMN folder bytea;
CREATE INDEX runs_by_end ON @.runs (updated_at_ms)
  WHERE called_by IS NULL AND status IN ('completed', 'failed', 'cancelled');
CREATE INDEX run_texts_by_text ON @.run_texts (sha256);
";

/// Version 3 holds decisions for the drivers of their runs.
const FROM_2: &str = "
CREATE TABLE @.decisions (
  run bigint NOT NULL,
  subject text NOT NULL,
  id text NOT NULL,
  decision bytea NOT NULL,
  refused bytea,
  PRIMARY KEY (run, subject)
);
";

/// Version 4 has the same tables; its events name their texts by the SHA-256, which programs of older versions can't read.
const FROM_3: &str = "";

/// Version 5 knows what waits for a human in runs that are under way, who cancelled a run, and the processes of drivers.
const FROM_4: &str = "
ALTER TABLE @.runs ADD COLUMN waits_since_ms bigint;
ALTER TABLE @.runs ADD COLUMN cancel_by text;
ALTER TABLE @.drivers ADD COLUMN process bigint;
CREATE INDEX runs_by_waiting ON @.runs (run_id)
  WHERE called_by IS NOT NULL AND (status = 'paused' OR waits_since_ms IS NOT NULL);
";

/// Version 6 knows for which time a schedule started a run, and since when a schedule is as it is. Until then the id of a run
/// said the former; an empty timetable is one that nobody noted.
const FROM_5: &str = "
CREATE TABLE @.schedules (
  name bytea PRIMARY KEY,
  timetable text NOT NULL,
  seen_at_ms bigint NOT NULL,
  place bytea NOT NULL
);
CREATE TABLE @.scheduled_runs (
  run_id text COLLATE \"C\" PRIMARY KEY,
  schedule bytea NOT NULL,
  due_at_ms bigint NOT NULL,
  timetable text NOT NULL,
  ahead boolean NOT NULL DEFAULT false
);
CREATE INDEX scheduled_runs_by_time ON @.scheduled_runs (schedule, due_at_ms);
INSERT INTO @.scheduled_runs (run_id, schedule, due_at_ms, timetable)
SELECT run_id, convert_to(loop_name, 'UTF8'),
  (make_date(substr(stamp, 1, 4)::int, substr(stamp, 5, 2)::int, 1) - date '1970-01-01' + substr(stamp, 7, 2)::int - 1)
    * 86400000::bigint
  + substr(stamp, 10, 2)::int * 3600000 + substr(stamp, 12, 2)::int * 60000 + substr(stamp, 14, 2)::int * 1000, ''
FROM (SELECT run_id, loop_name, substr(run_id, length(loop_name) + 2) AS stamp FROM @.runs
  WHERE called_by IS NULL AND substr(run_id, 1, length(loop_name) + 1) = loop_name || chr(64)) AS r
WHERE stamp ~ '^[12][0-9]{3}(0[1-9]|1[0-2])[0-9]{2}T[0-9]{6}Z$';
INSERT INTO @.schedules (name, timetable, seen_at_ms, place)
SELECT schedule, '', min(due_at_ms), '' FROM @.scheduled_runs GROUP BY schedule;
";

/// Version 7 has each key of a start once. Until then the id of a run said it: the name of its loop, and a UUID that is computed
/// from the key. Where two runs had one, the first keeps it.
const FROM_6: &str = "
ALTER TABLE @.runs ADD COLUMN start_key text;
UPDATE @.runs r SET start_key = k.start_key FROM (
  SELECT min(id) AS id, right(run_id, 36) AS start_key FROM @.runs
  WHERE called_by IS NULL AND run_id ~ '.-[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}$'
  GROUP BY right(run_id, 36)
) AS k WHERE r.id = k.id;
CREATE UNIQUE INDEX runs_by_start_key ON @.runs (start_key) WHERE start_key IS NOT NULL;
";

/// Version 8 knows what lists show of a run without its events. What the row of an older run lacks is written when its
/// events are next read.
const FROM_7: &str = "
ALTER TABLE @.runs ADD COLUMN progress_at_ms bigint, ADD COLUMN tokens bigint, ADD COLUMN cost_usd float8,
  ADD COLUMN error text, ADD COLUMN question text, ADD COLUMN search_text text;
";

/// Version 9 knows what each run is about.
const FROM_8: &str = "
ALTER TABLE @.runs ADD COLUMN title text;
";

/// Version 10 knows where servers listen, and how their clocks differ.
const FROM_9: &str = "
ALTER TABLE @.drivers ADD COLUMN address text, ADD COLUMN clock_ahead_ms bigint;
";

/// Version 11 knows what people did with its runs, and the loops that were switched.
const FROM_10: &str = "
CREATE TABLE @.audit (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  at_ms bigint NOT NULL,
  action text NOT NULL,
  actor text,
  detail text,
  run_id text,
  loop_name text,
  org text,
  times bigint NOT NULL DEFAULT 1
);
CREATE INDEX audit_by_run ON @.audit (run_id, id) WHERE run_id IS NOT NULL;
CREATE INDEX audit_by_org ON @.audit (org, id) WHERE org IS NOT NULL;
CREATE TABLE @.loop_switches (
  name text PRIMARY KEY,
  is_off boolean NOT NULL,
  at_ms bigint NOT NULL,
  actor text,
  reason bytea
);
";

/// Version 12 knows events from outside, and which runs wait for them.
const FROM_11: &str = "
ALTER TABLE @.runs ADD COLUMN awaits text;
CREATE INDEX runs_by_awaited ON @.runs (id) WHERE awaits IS NOT NULL;
CREATE TABLE @.outside_events (
  org text NOT NULL,
  id text NOT NULL,
  event text NOT NULL,
  data bytea NOT NULL,
  at_ms bigint NOT NULL,
  keep_until_ms bigint NOT NULL,
  number bigint GENERATED ALWAYS AS IDENTITY,
  taken boolean NOT NULL DEFAULT false,
  PRIMARY KEY (org, id)
);
CREATE INDEX outside_events_by_name ON @.outside_events (org, event, number) WHERE NOT taken;
CREATE INDEX outside_events_by_end ON @.outside_events (keep_until_ms);
";

/// Version 13 knows lines of runs. `line_joins` numbers the statements with which runs join lines: its row is locked until the
/// statement is committed, so that a run is never seen in a line before those ahead of it.
const FROM_12: &str = "
ALTER TABLE @.loopctl ADD COLUMN line_joins bigint NOT NULL DEFAULT 0;
ALTER TABLE @.runs ADD COLUMN line text, ADD COLUMN line_limit int, ADD COLUMN line_rule text, ADD COLUMN place bigint;
CREATE INDEX runs_by_line ON @.runs (line, place)
  WHERE line IS NOT NULL AND (status IN ('running', 'paused') OR status = 'cancelled' AND termination IS NULL);
";

/// Version 14 knows what was spent in the accounts of spending limits.
const FROM_13: &str = "
CREATE TABLE @.ledger (
  account text COLLATE \"C\" PRIMARY KEY,
  from_ms bigint NOT NULL,
  until_ms bigint,
  stays_ms bigint,
  most_tokens bigint,
  most_nanos bigint,
  settled_tokens bigint NOT NULL,
  settled_nanos bigint NOT NULL,
  reserved_tokens bigint NOT NULL,
  reserved_nanos bigint NOT NULL,
  warned_ms bigint
);
CREATE TABLE @.ledger_parts (
  account text COLLATE \"C\" NOT NULL,
  part_ms bigint NOT NULL,
  tokens bigint NOT NULL,
  nanos bigint NOT NULL,
  PRIMARY KEY (account, part_ms)
);
CREATE TABLE @.reservations (
  account text COLLATE \"C\" NOT NULL,
  id text COLLATE \"C\" NOT NULL,
  run_id text NOT NULL,
  fence bigint NOT NULL,
  tokens bigint NOT NULL,
  nanos bigint NOT NULL,
  PRIMARY KEY (account, id)
);
";

/// What a role that makes nothing needs.
pub(super) const GRANTS: &str = "USAGE on the schema, and SELECT, INSERT, UPDATE and DELETE on its tables (`loopctl store schema` prints the GRANTs)";

/// Makes the tables if there are none, brings older ones up to date, and returns the lease of the store. Nothing is
/// written, and no right to make anything is needed, when the tables are of this version.
///
/// # Errors
/// A sentence that says what to do.
pub(super) async fn open(link: &Link, target: &PostgresTarget) -> Result<Duration, StatementError> {
    let lease = match found(link, target).await? {
        FoundTables::Tables { lease, version } if version >= VERSION => lease,
        FoundTables::Tables { .. } | FoundTables::Nothing { .. } => {
            migrate(link, target).await?;
            match found(link, target).await? {
                FoundTables::Tables { lease, .. } => lease,
                FoundTables::Nothing { .. } => {
                    return Err(target.refuse("its tables can't be read after they were made").into());
                }
            }
        }
    };
    if target.lease.is_some_and(|wanted| wanted != lease) {
        tracing::warn!(
            store = target.shown(),
            lease_ms = lease.as_millis(),
            "the lease of the store is used, not that of its name"
        );
    }
    Ok(lease)
}

/// Makes the tables or brings them up to date, unless another process was faster.
///
/// # Errors
/// When the role may not.
async fn migrate(link: &Link, target: &PostgresTarget) -> Result<(), StatementError> {
    // In one transaction, and one process at a time: the others find what this one made.
    link.batch(&format!("BEGIN; SELECT pg_advisory_xact_lock({LOCK})")).await?;
    let made = async {
        let (statements, what) = match found(link, target).await? {
            FoundTables::Tables { version, .. } => (migrations(target, version), "its tables are of an older version"),
            FoundTables::Nothing { has_schema } => (statements(target, has_schema), "it has no tables yet"),
        };
        match link.batch(&format!("{statements} COMMIT")).await {
            Err(StatementError::Database { code, .. }) if code == "42501" => {
                let why = format!(
                    "{what}, and this role may not change that: call `loopctl store migrate` with a role that may, and \
                     give this one {GRANTS}"
                );
                Err(target.refuse(&why).into())
            }
            made => made,
        }
    };
    let made = made.await;
    if made.is_err() {
        // The error that led here is the one to report.
        drop(link.batch("ROLLBACK").await);
    }
    made
}

/// The statements that make the tables.
pub(super) fn statements(target: &PostgresTarget, has_schema: bool) -> String {
    let lease_ms = target.lease.unwrap_or(LEASE).as_millis();
    let schema = if has_schema { "" } else { "CREATE SCHEMA @;" };
    let version = format!(
        "INSERT INTO @.loopctl (version, oldest_reader, lease_ms) VALUES ({VERSION}, {OLDEST_READER}, {lease_ms});"
    );
    format!("{schema}{TABLES}{version}\n").replace('@', &target.schema)
}

/// The statements that bring tables of this version up to date.
fn migrations(target: &PostgresTarget, version: i32) -> String {
    if version >= VERSION {
        return String::new();
    }
    let steps = MIGRATIONS.iter().filter(|(from, _)| *from >= version).map(|(_, statements)| *statements);
    let steps: String = steps.collect();
    format!("{steps}UPDATE @.loopctl SET version = {VERSION}, oldest_reader = {OLDEST_READER};")
        .replace('@', &target.schema)
}

/// The statements for a database's administrator: the tables, and the rights of a role that only uses them.
pub(super) fn printed(target: &PostgresTarget) -> String {
    let made = statements(target, false).replacen(';', ";\n", 1);
    let role = "loopctl_user";
    format!(
        "BEGIN;\n{made}COMMIT;\n
-- The rights of a role that uses the tables and makes nothing; put its name in place of {role}.
-- GRANT USAGE ON SCHEMA {0} TO {role};
-- GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {0} TO {role};\n",
        target.schema
    )
}

/// The fault of tables that a newer loopctl made.
pub(super) fn newer(target: &PostgresTarget, version: i32) -> StoreError {
    StoreError::Newer { store: target.shown().to_owned(), found: i64::from(version), known: i64::from(VERSION) }
}
