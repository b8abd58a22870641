//! The tables, and what a database must be before it holds runs.

use std::time::Duration;

use tokio_postgres::types::Type;

use super::link::Link;
use super::target::PostgresTarget;
use super::trouble::StatementFailure;
use crate::journal::StoreFault;

/// The version of the tables.
pub const VERSION: i32 = 1;
/// The oldest version of loopctl's tables whose programs can work with these.
const OLDEST_READER: i32 = 1;
/// The lease of a store whose name says nothing of it.
const LEASE: Duration = Duration::from_secs(15);
/// The oldest server: 13.
const OLDEST_SERVER: i32 = 130_000;
/// The advisory lock of a migration (`LOOP`).
const LOCK: i64 = 0x4C4F_4F50;

/// The tables. `@` is the schema. What models and clients write is `bytea`: `text` refuses a NUL. The row of a run is
/// written some times in its life, never by a step.
pub const TABLES: &str = "
CREATE TABLE @.loopctl (
  version int NOT NULL,
  oldest_reader int NOT NULL,
  lease_ms int NOT NULL
);
CREATE TABLE @.drivers (
  driver uuid PRIMARY KEY,
  until timestamptz NOT NULL,
  since timestamptz NOT NULL DEFAULT clock_timestamp(),
  host text,
  version text,
  folder bytea
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
  callback_url text
) WITH (fillfactor = 70);
CREATE INDEX runs_by_queue ON @.runs (org, token, id)
  WHERE called_by IS NULL AND (status = 'running' OR due_at_ms IS NOT NULL);
CREATE INDEX runs_by_driver ON @.runs (driver) WHERE driver IS NOT NULL;
CREATE INDEX runs_by_callback ON @.runs (callback_at) WHERE callback = 'pending';
CREATE INDEX runs_by_due ON @.runs (due_at_ms) WHERE due_at_ms IS NOT NULL;
CREATE INDEX runs_by_status ON @.runs (status, id);
CREATE INDEX runs_by_org ON @.runs (org, id) WHERE org IS NOT NULL;
CREATE INDEX runs_by_owner ON @.runs (org, run_id);
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
";

const SETTINGS: &str = "SELECT current_setting('server_version_num')::int, current_setting('server_version'),
    current_setting('fsync'), current_setting('synchronous_commit'), current_setting('server_encoding')";
const THERE: &str = "SELECT to_regclass($1) IS NOT NULL, to_regnamespace($2) IS NOT NULL";
const FOUND: &str = "SELECT version, oldest_reader, lease_ms FROM @.loopctl";

/// Checks the database, makes the tables if there are none, and returns the lease of the store.
///
/// # Errors
/// A sentence that says what to do.
pub(super) async fn open(link: &Link, target: &PostgresTarget) -> Result<Duration, StatementFailure> {
    check_server(link, target).await?;
    let lease = match found(link, target).await? {
        Some(lease) => lease,
        None => {
            make(link, target).await?;
            let nothing = || target.refuse("its tables can't be read after they were made");
            found(link, target).await?.ok_or_else(nothing)?
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

async fn check_server(link: &Link, target: &PostgresTarget) -> Result<(), StatementFailure> {
    let rows = link.query_once(SETTINGS, &[]).await?;
    let Some(row) = rows.first() else { return Err(target.refuse("it says nothing of its settings").into()) };
    let (number, version): (i32, String) = (row.try_get(0)?, row.try_get(1)?);
    let (fsync, commit, encoding): (String, String, String) = (row.try_get(2)?, row.try_get(3)?, row.try_get(4)?);
    if number < OLDEST_SERVER {
        let why = format!("its server is PostgreSQL {version}: use version 13 or later");
        return Err(target.refuse(&why).into());
    }
    if fsync != "on" {
        let why = "its server runs with `fsync = off` and loses runs when the machine fails: set `fsync = on`";
        return Err(target.refuse(why).into());
    }
    if commit == "off" {
        let why = "`synchronous_commit` is `off` and the server loses what it acknowledged when it fails: set it to `on` for \
                   this role (ALTER ROLE ... SET synchronous_commit = on)";
        return Err(target.refuse(why).into());
    }
    if encoding != "UTF8" {
        let why = format!("its encoding is {encoding}: create the database with ENCODING 'UTF8'");
        return Err(target.refuse(&why).into());
    }
    Ok(())
}

/// The lease of the store; none when there are no tables.
async fn found(link: &Link, target: &PostgresTarget) -> Result<Option<Duration>, StatementFailure> {
    let table = format!("{}.loopctl", target.schema);
    let there = link.query_once(THERE, &[(&table, Type::TEXT), (&target.schema, Type::TEXT)]).await?;
    if there.first().map(|row| row.try_get::<_, bool>(0)).transpose()? != Some(true) {
        return Ok(None);
    }
    let rows = link.query_once(FOUND, &[]).await?;
    let Some(row) = rows.first() else { return Err(target.refuse("its table loopctl is empty").into()) };
    let (version, oldest_reader, lease_ms): (i32, i32, i32) = (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
    if oldest_reader > VERSION {
        let store = target.shown().to_owned();
        return Err(StoreFault::Newer { store, found: i64::from(version), known: i64::from(VERSION) }.into());
    }
    Ok(Some(Duration::from_millis(u64::try_from(lease_ms).unwrap_or(15_000))))
}

/// Makes the tables, unless another process was faster.
///
/// # Errors
/// When the role may not.
async fn make(link: &Link, target: &PostgresTarget) -> Result<(), StatementFailure> {
    let table = format!("{}.loopctl", target.schema);
    let there = link.query_once(THERE, &[(&table, Type::TEXT), (&target.schema, Type::TEXT)]).await?;
    let has_schema = there.first().map(|row| row.try_get::<_, bool>(1)).transpose()? == Some(true);
    let statements = statements(target, has_schema);
    // In one transaction, and one process at a time: the others find the tables.
    let made = link.batch(&format!("BEGIN; SELECT pg_advisory_xact_lock({LOCK}); {statements} COMMIT")).await;
    let Err(trouble) = made else { return Ok(()) };
    link.batch("ROLLBACK").await?;
    match trouble {
        // Another process made them while this one waited.
        StatementFailure::Database { code, .. } if matches!(code.as_str(), "42P07" | "42P06" | "23505") => Ok(()),
        StatementFailure::Database { code, .. } if code == "42501" => {
            let why = "it has no tables yet, and this role may not make them: open it once with a role that may \
                       (`loopctl runs --store env:VAR`), and give this one USAGE on the schema, and SELECT, INSERT, UPDATE \
                       and DELETE on its tables";
            Err(target.refuse(why).into())
        }
        other => Err(other),
    }
}

/// The statements that make the tables.
pub(super) fn statements(target: &PostgresTarget, has_schema: bool) -> String {
    let lease_ms = target.lease.unwrap_or(LEASE).as_millis();
    let schema = if has_schema { "" } else { "CREATE SCHEMA @;" };
    let version = format!("INSERT INTO @.loopctl VALUES ({VERSION}, {OLDEST_READER}, {lease_ms});");
    format!("{schema}{TABLES}{version}\n").replace('@', &target.schema)
}
