//! Opens the file: finds out what it is and which version it has, and creates the tables of a new one.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use super::database_errors::fault;
use super::texts::name_by_sha256;
use crate::journal::StoreError;
use crate::journal::lease_clock::Clock;

/// Marks a file as ours (`LOOP`).
const APPLICATION: i64 = 0x4C4F_4F50;
/// The version of the tables.
pub(super) const VERSION: i64 = 19;

/// The events of all runs are in one table in the order of their appends, with an index by run: a commit of
/// many runs then writes few pages (measured: a fifth of the bytes of a table that is ordered by run).
/// `runs.events` is how many events a run had when its row was last written: it has no fewer now. The long
/// texts of `runs` are the last columns, so that reading the others does not read them. `texts` are documents
/// and prompts: many runs share them, and `run_texts` says which run has which.
const TABLES: &str = "
CREATE TABLE runs (
  id INTEGER PRIMARY KEY,
  run_id TEXT NOT NULL UNIQUE,
  fence INTEGER NOT NULL,
  driver TEXT,
  status TEXT NOT NULL,
  termination TEXT,
  iterations INTEGER NOT NULL,
  events INTEGER NOT NULL,
  started_at_ms INTEGER NOT NULL,
  updated_at_ms INTEGER NOT NULL,
  cancel_requested INTEGER NOT NULL DEFAULT 0,
  cancel_reason TEXT,
  callback TEXT,
  callback_tries INTEGER NOT NULL DEFAULT 0,
  org TEXT,
  parent_run_id TEXT,
  session TEXT,
  loop_name TEXT NOT NULL,
  identity TEXT NOT NULL,
  callback_url TEXT,
  failed_take_ups INTEGER NOT NULL DEFAULT 0,
  take_up_events INTEGER,
  due_at_ms INTEGER,
  callback_pause INTEGER NOT NULL DEFAULT 0,
  token TEXT,
  callback_at_ms INTEGER,
  callback_by TEXT,
  folder TEXT,
  waits_since_ms INTEGER,
  cancel_by TEXT,
  start_key TEXT,
  tokens INTEGER,
  cost_usd REAL,
  error TEXT,
  question TEXT,
  search_text TEXT,
  title TEXT,
  awaits TEXT,
  line TEXT,
  line_limit INTEGER,
  line_rule TEXT,
  place INTEGER
) STRICT;
CREATE UNIQUE INDEX runs_by_start_key ON runs (start_key) WHERE start_key IS NOT NULL;
CREATE INDEX runs_by_queue ON runs (org, token, id)
  WHERE parent_run_id IS NULL AND (status = 'running' OR due_at_ms IS NOT NULL);
CREATE INDEX runs_by_due ON runs (due_at_ms) WHERE due_at_ms IS NOT NULL;
CREATE INDEX runs_by_waiting ON runs (run_id)
  WHERE parent_run_id IS NOT NULL AND (status = 'paused' OR waits_since_ms IS NOT NULL);
CREATE INDEX runs_by_awaited ON runs (org, id) WHERE awaits IS NOT NULL;
CREATE INDEX runs_by_line ON runs (line, place)
  WHERE line IS NOT NULL AND (status IN ('running', 'paused') OR status = 'cancelled' AND termination IS NULL);
CREATE TABLE outside_events (
  org TEXT NOT NULL,
  id TEXT NOT NULL,
  event TEXT NOT NULL,
  data TEXT NOT NULL,
  at_ms INTEGER NOT NULL,
  keep_until_ms INTEGER NOT NULL,
  number INTEGER NOT NULL,
  taken INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (org, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX outside_events_by_name ON outside_events (org, event, number) WHERE taken = 0;
CREATE INDEX outside_events_by_end ON outside_events (keep_until_ms);
CREATE INDEX outside_events_by_number ON outside_events (number);
CREATE TABLE answer_tokens (
  hash TEXT PRIMARY KEY,
  run_id TEXT NOT NULL,
  pause INTEGER NOT NULL,
  call TEXT,
  expires_at_ms INTEGER NOT NULL,
  used INTEGER NOT NULL DEFAULT 0
) STRICT, WITHOUT ROWID;
CREATE TABLE decisions (
  run_id TEXT NOT NULL,
  subject TEXT NOT NULL,
  id TEXT NOT NULL,
  decision TEXT NOT NULL,
  refused TEXT,
  PRIMARY KEY (run_id, subject)
) STRICT, WITHOUT ROWID;
CREATE INDEX runs_by_end ON runs (updated_at_ms)
  WHERE parent_run_id IS NULL AND status IN ('completed', 'failed', 'cancelled');
CREATE INDEX answer_tokens_by_run ON answer_tokens (run_id);
CREATE INDEX runs_by_status ON runs (status, id);
CREATE INDEX runs_by_org ON runs (org, id) WHERE org IS NOT NULL;
CREATE INDEX runs_by_owner ON runs (org, run_id);
CREATE INDEX runs_by_callback ON runs (callback) WHERE callback = 'pending';
CREATE TABLE events (
  run INTEGER NOT NULL,
  seq INTEGER NOT NULL,
  sum INTEGER NOT NULL,
  event TEXT NOT NULL,
  UNIQUE (run, seq)
) STRICT;
CREATE TABLE texts (
  id INTEGER PRIMARY KEY,
  digest TEXT NOT NULL,
  text TEXT NOT NULL
) STRICT;
CREATE INDEX texts_by_digest ON texts (digest);
CREATE TABLE run_texts (
  run INTEGER NOT NULL,
  text INTEGER NOT NULL,
  PRIMARY KEY (run, text)
) STRICT, WITHOUT ROWID;
CREATE INDEX run_texts_by_text ON run_texts (text);
CREATE TABLE session_memory (
  session TEXT NOT NULL,
  key TEXT NOT NULL,
  value TEXT NOT NULL,
  PRIMARY KEY (session, key)
) STRICT, WITHOUT ROWID;
CREATE TABLE drivers (
  driver TEXT PRIMARY KEY,
  until_ms INTEGER NOT NULL,
  since_ms INTEGER NOT NULL DEFAULT 0,
  version TEXT,
  folder TEXT,
  process INTEGER,
  address TEXT
) STRICT, WITHOUT ROWID;
CREATE TABLE schedules (
  name TEXT PRIMARY KEY,
  timetable TEXT NOT NULL,
  seen_at_ms INTEGER NOT NULL,
  place TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE scheduled_runs (
  run_id TEXT PRIMARY KEY,
  schedule TEXT NOT NULL,
  due_at_ms INTEGER NOT NULL,
  timetable TEXT NOT NULL,
  ahead INTEGER NOT NULL DEFAULT 0
) STRICT, WITHOUT ROWID;
CREATE INDEX scheduled_runs_by_time ON scheduled_runs (schedule, due_at_ms);
CREATE TABLE audit (
  id INTEGER PRIMARY KEY,
  at_ms INTEGER NOT NULL,
  action TEXT NOT NULL,
  actor TEXT,
  detail TEXT,
  run_id TEXT,
  loop_name TEXT,
  org TEXT,
  times INTEGER NOT NULL DEFAULT 1
) STRICT;
CREATE INDEX audit_by_run ON audit (run_id) WHERE run_id IS NOT NULL;
CREATE INDEX audit_by_org ON audit (org) WHERE org IS NOT NULL;
CREATE TABLE loop_switches (
  name TEXT PRIMARY KEY,
  is_off INTEGER NOT NULL,
  at_ms INTEGER NOT NULL,
  actor TEXT,
  reason TEXT
) STRICT, WITHOUT ROWID;
CREATE TABLE ledger (
  account TEXT PRIMARY KEY,
  from_ms INTEGER NOT NULL,
  until_ms INTEGER,
  stays_ms INTEGER,
  most_tokens INTEGER,
  most_nanos INTEGER,
  settled_tokens INTEGER NOT NULL,
  settled_nanos INTEGER NOT NULL,
  reserved_tokens INTEGER NOT NULL,
  reserved_nanos INTEGER NOT NULL,
  warned_ms INTEGER
) STRICT, WITHOUT ROWID;
CREATE TABLE ledger_parts (
  account TEXT NOT NULL,
  part_ms INTEGER NOT NULL,
  tokens INTEGER NOT NULL,
  nanos INTEGER NOT NULL,
  PRIMARY KEY (account, part_ms)
) STRICT, WITHOUT ROWID;
CREATE TABLE reservations (
  account TEXT NOT NULL,
  id TEXT NOT NULL,
  run_id TEXT NOT NULL,
  fence INTEGER NOT NULL,
  tokens INTEGER NOT NULL,
  nanos INTEGER NOT NULL,
  PRIMARY KEY (account, id)
) STRICT, WITHOUT ROWID;
";

/// Has the file give pages back when it is asked to.
pub(super) const SHRINKS: &str = "PRAGMA auto_vacuum = INCREMENTAL;";

const NO_DATABASE: &str = "it is no SQLite database; name another file";

/// The migrations from older versions: the version, and the statements that lead to the next one.
const MIGRATIONS: &[(i64, &str)] = &[
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
    (14, FROM_14),
    (15, FROM_15),
    (16, FROM_16),
    (17, FROM_17),
    (18, FROM_18),
];

const FROM_2: &str = "
ALTER TABLE runs ADD COLUMN failed_take_ups INTEGER NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN take_up_events INTEGER;
CREATE INDEX IF NOT EXISTS runs_by_owner ON runs (org, run_id);
";

/// Until version 3 only the identity of a sub-run named the run which called it.
const FROM_3: &str = "
ALTER TABLE runs ADD COLUMN parent_run_id TEXT;
UPDATE runs SET parent_run_id = substr(identity, length('called by ') + 1) WHERE identity GLOB 'called by *';
";

/// Version 5 knows when an approval expires, which pauses were posted, and the tokens that answer them.
const FROM_4: &str = "
ALTER TABLE runs ADD COLUMN due_at_ms INTEGER;
ALTER TABLE runs ADD COLUMN callback_pause INTEGER NOT NULL DEFAULT 0;
CREATE INDEX IF NOT EXISTS runs_by_due ON runs (due_at_ms) WHERE due_at_ms IS NOT NULL;
CREATE TABLE IF NOT EXISTS answer_tokens (
  hash TEXT PRIMARY KEY,
  run_id TEXT NOT NULL,
  pause INTEGER NOT NULL,
  call TEXT,
  expires_at_ms INTEGER NOT NULL,
  used INTEGER NOT NULL DEFAULT 0
) STRICT, WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS answer_tokens_by_run ON answer_tokens (run_id);
";

/// Version 6 knows which token started a run, and when a callback is free to be posted.
const FROM_5: &str = "
ALTER TABLE runs ADD COLUMN token TEXT;
ALTER TABLE runs ADD COLUMN callback_at_ms INTEGER;
ALTER TABLE runs ADD COLUMN callback_by TEXT;
UPDATE runs SET callback_at_ms = 0 WHERE callback = 'pending' AND status <> 'running';
CREATE INDEX IF NOT EXISTS runs_by_queue ON runs (org, token, id)
  WHERE parent_run_id IS NULL AND (status = 'running' OR due_at_ms IS NOT NULL);
";

/// Version 7 knows in which folder a run started, who the drivers are, and finds what may be deleted.
const FROM_6: &str = "
ALTER TABLE runs ADD COLUMN folder TEXT;
ALTER TABLE drivers ADD COLUMN since_ms INTEGER NOT NULL DEFAULT 0;
ALTER TABLE drivers ADD COLUMN version TEXT;
ALTER TABLE drivers ADD COLUMN folder TEXT;
CREATE INDEX IF NOT EXISTS runs_by_end ON runs (updated_at_ms)
  WHERE parent_run_id IS NULL AND status IN ('completed', 'failed', 'cancelled');
CREATE INDEX IF NOT EXISTS run_texts_by_text ON run_texts (text);
";

/// Version 8 holds decisions for the drivers of their runs.
const FROM_7: &str = "
CREATE TABLE IF NOT EXISTS decisions (
  run_id TEXT NOT NULL,
  subject TEXT NOT NULL,
  id TEXT NOT NULL,
  decision TEXT NOT NULL,
  refused TEXT,
  PRIMARY KEY (run_id, subject)
) STRICT, WITHOUT ROWID;
";

/// Version 9 has the same tables; its texts are kept by their SHA-256: see [`name_by_sha256`].
const FROM_8: &str = "";
/// The first version of that.
const NAMED_BY_SHA256: i64 = 9;

/// Version 10 knows what waits for a human in runs that are under way, who cancelled a run, and the processes of drivers.
const FROM_9: &str = "
ALTER TABLE runs ADD COLUMN waits_since_ms INTEGER;
ALTER TABLE runs ADD COLUMN cancel_by TEXT;
ALTER TABLE drivers ADD COLUMN process INTEGER;
CREATE INDEX IF NOT EXISTS runs_by_waiting ON runs (run_id)
  WHERE parent_run_id IS NOT NULL AND (status = 'paused' OR waits_since_ms IS NOT NULL);
";

/// Version 11 knows for which time a schedule started a run, and since when a schedule is as it is. Until then the id of a run
/// said the former; an empty timetable is one that nobody noted.
const FROM_10: &str = "
CREATE TABLE IF NOT EXISTS schedules (
  name TEXT PRIMARY KEY,
  timetable TEXT NOT NULL,
  seen_at_ms INTEGER NOT NULL,
  place TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS scheduled_runs (
  run_id TEXT PRIMARY KEY,
  schedule TEXT NOT NULL,
  due_at_ms INTEGER NOT NULL,
  timetable TEXT NOT NULL,
  ahead INTEGER NOT NULL DEFAULT 0
) STRICT, WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS scheduled_runs_by_time ON scheduled_runs (schedule, due_at_ms);
INSERT OR IGNORE INTO scheduled_runs (run_id, schedule, due_at_ms, timetable)
SELECT run_id, loop_name, due * 1000, '' FROM (
  SELECT run_id, loop_name, unixepoch(substr(stamp, 1, 4) || '-' || substr(stamp, 5, 2) || '-' || substr(stamp, 7, 2) || 'T'
    || substr(stamp, 10, 2) || ':' || substr(stamp, 12, 2) || ':' || substr(stamp, 14, 2)) AS due
  FROM (SELECT run_id, loop_name, substr(run_id, length(loop_name) + 2) AS stamp FROM runs
    WHERE parent_run_id IS NULL AND substr(run_id, 1, length(loop_name) + 1) = loop_name || '@')
  WHERE stamp GLOB '[0-9][0-9][0-9][0-9][0-9][0-9][0-9][0-9]T[0-9][0-9][0-9][0-9][0-9][0-9]Z'
) WHERE due IS NOT NULL;
INSERT OR IGNORE INTO schedules (name, timetable, seen_at_ms, place)
SELECT schedule, '', min(due_at_ms), '' FROM scheduled_runs GROUP BY schedule;
";

/// Version 12 has each key of a start once. Until then the id of a run said it: the name of its loop, and a UUID that is computed
/// from the key. Where two runs had one, the first keeps it.
const FROM_11: &str = "
ALTER TABLE runs ADD COLUMN start_key TEXT;
UPDATE runs SET start_key = substr(run_id, -36) WHERE id IN (
  SELECT min(id) FROM runs WHERE parent_run_id IS NULL
    AND run_id GLOB '*?-????????-????-8???-????-????????????' AND substr(run_id, -36) NOT GLOB '*[^0-9a-f-]*'
  GROUP BY substr(run_id, -36)
);
CREATE UNIQUE INDEX IF NOT EXISTS runs_by_start_key ON runs (start_key) WHERE start_key IS NOT NULL;
";

/// Version 13 knows what lists show of a run without its events. What the row of an older run lacks is written when its
/// events are next read.
const FROM_12: &str = "
ALTER TABLE runs ADD COLUMN tokens INTEGER;
ALTER TABLE runs ADD COLUMN cost_usd REAL;
ALTER TABLE runs ADD COLUMN error TEXT;
ALTER TABLE runs ADD COLUMN question TEXT;
ALTER TABLE runs ADD COLUMN search_text TEXT;
";

/// Version 14 knows what each run is about.
const FROM_13: &str = "
ALTER TABLE runs ADD COLUMN title TEXT;
";

/// Version 15 knows where servers listen.
const FROM_14: &str = "
ALTER TABLE drivers ADD COLUMN address TEXT;
";

/// Version 16 knows what people did with its runs, and the loops that were switched.
const FROM_15: &str = "
CREATE TABLE IF NOT EXISTS audit (
  id INTEGER PRIMARY KEY,
  at_ms INTEGER NOT NULL,
  action TEXT NOT NULL,
  actor TEXT,
  detail TEXT,
  run_id TEXT,
  loop_name TEXT,
  org TEXT,
  times INTEGER NOT NULL DEFAULT 1
) STRICT;
CREATE INDEX IF NOT EXISTS audit_by_run ON audit (run_id) WHERE run_id IS NOT NULL;
CREATE INDEX IF NOT EXISTS audit_by_org ON audit (org) WHERE org IS NOT NULL;
CREATE TABLE IF NOT EXISTS loop_switches (
  name TEXT PRIMARY KEY,
  is_off INTEGER NOT NULL,
  at_ms INTEGER NOT NULL,
  actor TEXT,
  reason TEXT
) STRICT, WITHOUT ROWID;
";

/// Version 17 knows events from outside, and which runs wait for them.
const FROM_16: &str = "
ALTER TABLE runs ADD COLUMN awaits TEXT;
CREATE INDEX IF NOT EXISTS runs_by_awaited ON runs (org, id) WHERE awaits IS NOT NULL;
CREATE TABLE IF NOT EXISTS outside_events (
  org TEXT NOT NULL,
  id TEXT NOT NULL,
  event TEXT NOT NULL,
  data TEXT NOT NULL,
  at_ms INTEGER NOT NULL,
  keep_until_ms INTEGER NOT NULL,
  number INTEGER NOT NULL,
  taken INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (org, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS outside_events_by_name ON outside_events (org, event, number) WHERE taken = 0;
CREATE INDEX IF NOT EXISTS outside_events_by_end ON outside_events (keep_until_ms);
CREATE INDEX IF NOT EXISTS outside_events_by_number ON outside_events (number);
";

/// Version 18 knows lines of runs.
const FROM_17: &str = "
ALTER TABLE runs ADD COLUMN line TEXT;
ALTER TABLE runs ADD COLUMN line_limit INTEGER;
ALTER TABLE runs ADD COLUMN line_rule TEXT;
ALTER TABLE runs ADD COLUMN place INTEGER;
CREATE INDEX IF NOT EXISTS runs_by_line ON runs (line, place)
  WHERE line IS NOT NULL AND (status IN ('running', 'paused') OR status = 'cancelled' AND termination IS NULL);
";

/// Version 19 knows what was spent in the accounts of spending limits.
const FROM_18: &str = "
CREATE TABLE IF NOT EXISTS ledger (
  account TEXT PRIMARY KEY,
  from_ms INTEGER NOT NULL,
  until_ms INTEGER,
  stays_ms INTEGER,
  most_tokens INTEGER,
  most_nanos INTEGER,
  settled_tokens INTEGER NOT NULL,
  settled_nanos INTEGER NOT NULL,
  reserved_tokens INTEGER NOT NULL,
  reserved_nanos INTEGER NOT NULL,
  warned_ms INTEGER
) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS ledger_parts (
  account TEXT NOT NULL,
  part_ms INTEGER NOT NULL,
  tokens INTEGER NOT NULL,
  nanos INTEGER NOT NULL,
  PRIMARY KEY (account, part_ms)
) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS reservations (
  account TEXT NOT NULL,
  id TEXT NOT NULL,
  run_id TEXT NOT NULL,
  fence INTEGER NOT NULL,
  tokens INTEGER NOT NULL,
  nanos INTEGER NOT NULL,
  PRIMARY KEY (account, id)
) STRICT, WITHOUT ROWID;
";

/// What a file turned out to be.
pub(super) enum StoreFile {
    /// No tables in it yet.
    Empty,
    /// A store of our version.
    Ours,
    /// A store of this older version.
    Older(i64),
}

/// Opens the store for writing, and creates it if there is none.
pub(super) fn open(path: &Path, patience: Duration) -> Result<Connection, StoreError> {
    let store = path.display().to_string();
    let failed = |error: &rusqlite::Error| opening_fault(error, &store);
    make_folder(path).map_err(|error| StoreError::Open { store: store.clone(), reason: error.to_string() })?;
    if !may_be_file(path) {
        return Err(StoreError::Open { store, reason: NO_FILE.to_owned() });
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags).map_err(|error| failed(&error))?;
    // The log of a store that we refuse must stay unchanged when we close it.
    let pending = fs::metadata(beside(path, "-wal")).is_ok_and(|log| log.len() > 0);
    keep_log(&connection, pending).map_err(|error| failed(&error))?;
    connection.busy_timeout(patience).map_err(|error| failed(&error))?;

    let clock = Clock::new();
    let patience_ms = u64::try_from(patience.as_millis()).unwrap_or(u64::MAX);
    if fs::metadata(path).is_ok_and(|file| file.len() == 1) {
        // SQLite would take it for an empty one.
        return Err(StoreError::Open { store, reason: NO_DATABASE.to_owned() });
    }
    loop {
        match settle(&connection, &store) {
            // Two processes that change the mode of a new file at once get this error immediately.
            Err(StoreError::Locked) if clock.monotonic_ms() < patience_ms => {
                std::thread::sleep(Duration::from_millis(5));
            }
            Err(other) => return Err(other),
            Ok(()) => break,
        }
    }
    keep_log(&connection, false).map_err(|error| failed(&error))?;
    Ok(connection)
}

/// What a path is that names a pipe, a device or a socket.
const NO_FILE: &str = "it is no regular file (a pipe, a device or a socket)";

/// Whether no pipe or device is there: opening one waits.
fn may_be_file(path: &Path) -> bool {
    fs::metadata(path).map_or(true, |found| found.is_file() || found.is_dir())
}

/// Opens the store again, read-only. It must exist.
pub(super) fn open_to_read(path: &Path, patience: Duration) -> rusqlite::Result<Connection> {
    if !may_be_file(path) {
        let code = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_CANTOPEN);
        return Err(rusqlite::Error::SqliteFailure(code, Some(NO_FILE.to_owned())));
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(patience)?;
    connection.execute_batch("PRAGMA cell_size_check = ON;")?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    Ok(connection)
}

/// The path with something added to its last part.
pub(super) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

fn keep_log(connection: &Connection, keep: bool) -> rusqlite::Result<()> {
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, keep).map(|_| ())
}

/// Creates the missing folders, as durable as the files in them.
fn make_folder(path: &Path) -> std::io::Result<()> {
    let Some(folder) = path.parent().filter(|folder| !folder.exists()) else {
        return Ok(());
    };
    fs::create_dir_all(folder)?;
    for above in folder.ancestors().skip(1) {
        // A folder that can't be synced is the system's affair; the store itself is not damaged.
        if fs::File::open(above).and_then(|above| above.sync_all()).is_err() {
            break;
        }
    }
    Ok(())
}

/// Finds out what the file is before anything is written to it; then prepares it.
fn settle(connection: &Connection, store: &str) -> Result<(), StoreError> {
    let failed = |error: rusqlite::Error| opening_fault(&error, store);
    // In one transaction: another process may be creating the tables right now.
    connection.execute_batch("BEGIN").map_err(failed)?;
    let found = look(connection, store);
    connection.execute_batch("ROLLBACK").map_err(failed)?;
    let found = found?;
    if connection.is_readonly(rusqlite::MAIN_DB).map_err(failed)? {
        return Err(StoreError::ReadOnly(format!("{store} may be read only: allow writing to it and to its folder")));
    }
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false).map_err(failed)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true).map_err(failed)?;
    if matches!(found, StoreFile::Empty) {
        // Before the first page is written: later it can't be changed in place.
        connection.execute_batch(SHRINKS).map_err(failed)?;
    }
    let mode: String = connection.query_row("PRAGMA journal_mode", (), |row| row.get(0)).map_err(failed)?;
    if mode != "wal" {
        let _: String = connection.query_row("PRAGMA journal_mode = WAL", (), |row| row.get(0)).map_err(failed)?;
    }
    connection
        .execute_batch(
            "PRAGMA synchronous = FULL; PRAGMA fullfsync = ON; PRAGMA checkpoint_fullfsync = ON;
             PRAGMA journal_size_limit = 16777216; PRAGMA cell_size_check = ON; PRAGMA secure_delete = ON;",
        )
        .map_err(failed)?;
    match found {
        StoreFile::Ours => Ok(()),
        StoreFile::Empty | StoreFile::Older(_) => make_tables(connection, store),
    }
}

/// Creates the tables, or migrates those of an older version, unless another process was faster.
fn make_tables(connection: &Connection, store: &str) -> Result<(), StoreError> {
    let failed = |error: rusqlite::Error| opening_fault(&error, store);
    connection.execute_batch("BEGIN IMMEDIATE").map_err(failed)?;
    let result = look(connection, store).and_then(|found| match found {
        StoreFile::Ours => Ok(()),
        StoreFile::Older(version) => {
            let steps = MIGRATIONS.iter().filter(|(from, _)| *from >= version).map(|(_, statements)| *statements);
            let statements: String = steps.collect();
            connection.execute_batch(&format!("{statements} PRAGMA user_version = {VERSION};")).map_err(failed)?;
            if version < NAMED_BY_SHA256 { name_by_sha256(connection).map_err(failed) } else { Ok(()) }
        }
        StoreFile::Empty => connection.execute_batch(&statements()).map_err(failed),
    });
    let result = result.and_then(|()| connection.execute_batch("COMMIT").map_err(failed));
    if result.is_err() && !connection.is_autocommit() {
        // Nothing was written: the first fault is the one to report.
        let _ = connection.execute_batch("ROLLBACK");
    }
    result
}

/// The statements that make the tables.
pub(super) fn statements() -> String {
    format!("{SHRINKS}\n{TABLES}PRAGMA application_id = {APPLICATION};\nPRAGMA user_version = {VERSION};\n")
}

/// What the file is, in the open transaction. Reads only.
pub(super) fn look(connection: &Connection, store: &str) -> Result<StoreFile, StoreError> {
    let number = |sql: &str| {
        connection.query_row(sql, (), |row| row.get::<_, i64>(0)).map_err(|error| opening_fault(&error, store))
    };
    let refuse = |reason: &str| StoreError::Open { store: store.to_owned(), reason: reason.to_owned() };
    let (application, version) = (number("PRAGMA application_id")?, number("PRAGMA user_version")?);
    match (application, version) {
        (APPLICATION, VERSION) => Ok(StoreFile::Ours),
        (APPLICATION, older) if MIGRATIONS.iter().any(|(from, _)| *from == older) => Ok(StoreFile::Older(older)),
        (APPLICATION, newer) if newer > VERSION => {
            Err(StoreError::Newer { store: store.to_owned(), found: newer, known: VERSION })
        }
        (APPLICATION, older) if older > 0 => Err(refuse(&format!(
            "it is of schema version {older}, from before the first release; this loopctl knows {VERSION}: name another file"
        ))),
        (APPLICATION, other) => Err(StoreError::Corrupt(format!("{store} says that it is of schema version {other}"))),
        (0, 0) if number("SELECT count(*) FROM sqlite_schema")? == 0 => Ok(StoreFile::Empty),
        _ => Err(refuse("it is the database of another program; name another file")),
    }
}

/// The fault of an error while the store is being opened.
fn opening_fault(error: &rusqlite::Error, store: &str) -> StoreError {
    let refuse = |reason: &str| StoreError::Open { store: store.to_owned(), reason: reason.to_owned() };
    match error.sqlite_error_code() {
        Some(rusqlite::ErrorCode::NotADatabase) => refuse(NO_DATABASE),
        Some(rusqlite::ErrorCode::DatabaseCorrupt) => StoreError::Corrupt(format!("{store}: {error}")),
        _ => match fault(error, store, None) {
            StoreError::Other(reason) => refuse(&reason),
            other => other,
        },
    }
}
