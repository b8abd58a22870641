//! What there is to say of a store: whether its file can be used, and its version. Reads only.

use std::path::Path;
use std::time::Duration;

use super::database_errors::fault;
use super::drivers::Drivers;
use super::prune::INCREMENTAL;
use super::schema::{StoreFile, VERSION, look, open_to_read};
use crate::journal::StoreError;
use crate::journal::admin::StoreReport;

/// How long the look waits while another process has locked the store.
const LOCK_TIMEOUT: Duration = Duration::from_secs(5);

/// Facts, and the first thing that is wrong.
pub(super) fn report(path: &Path, store: &str) -> Result<StoreReport, StoreError> {
    let mut report = StoreReport::of(store);
    report.fact("file", path.display().to_string());
    report.fact("server", format!("SQLite {}", rusqlite::version()));
    let refuse = |reason: &str| StoreError::Open { store: store.to_owned(), reason: reason.to_owned() };
    if !path.exists() {
        report.fact("tables", format!("none; this loopctl makes version {VERSION}"));
        report.wrong = Some(refuse("there is none yet: call `loopctl store migrate`, or start a run"));
        return Ok(report);
    }
    let connection = open_to_read(path, LOCK_TIMEOUT).map_err(|error| fault(&error, store, None))?;
    let found = match look(&connection, store) {
        Ok(StoreFile::Ours) => VERSION,
        Ok(StoreFile::Older(version)) => {
            report.wrong = Some(refuse("its tables are of an older version: call `loopctl store migrate`"));
            version
        }
        Ok(StoreFile::Empty) => {
            report.wrong = Some(refuse("it is empty: call `loopctl store migrate`"));
            0
        }
        Err(StoreError::Newer { store, found, known }) => {
            report.wrong = Some(StoreError::Newer { store, found, known });
            found
        }
        Err(fault) => {
            report.wrong = Some(fault);
            return Ok(report);
        }
    };
    report.fact("tables", format!("version {found}; this loopctl knows {VERSION}"));
    let is_read_only = std::fs::metadata(path).is_ok_and(|file| file.permissions().readonly());
    report
        .fact("rights", if is_read_only { "the file may only be read" } else { "the file may be written" }.to_owned());
    if is_read_only && report.wrong.is_none() {
        let why = format!("{store} may be read only: allow writing to it and to its folder");
        report.wrong = Some(StoreError::ReadOnly(why));
    }
    Ok(report)
}

/// The drivers of the store that live.
pub(super) fn living(path: &Path, store: &str) -> Result<Vec<String>, StoreError> {
    if !path.exists() {
        return Ok(Vec::new());
    }
    let failed = |error: rusqlite::Error| fault(&error, store, None);
    let connection = open_to_read(path, LOCK_TIMEOUT).map_err(failed)?;
    if matches!(look(&connection, store)?, StoreFile::Empty) {
        return Ok(Vec::new());
    }
    let drivers = Drivers::of(path);
    let mut query = connection.prepare("SELECT driver FROM drivers ORDER BY driver").map_err(failed)?;
    let names = query.query_map((), |row| row.get(0)).and_then(Iterator::collect::<Result<Vec<String>, _>>);
    Ok(names.map_err(failed)?.into_iter().filter(|name| drivers.alive(name)).collect())
}
/// Whether the file of a store stays as large as it is when runs are deleted. Also when it can't be read.
pub(super) fn keeps_its_size(path: &Path) -> bool {
    let mode = open_to_read(path, Duration::from_secs(1))
        .and_then(|connection| connection.query_row("PRAGMA auto_vacuum", (), |row| row.get::<_, i64>(0)));
    mode != Ok(INCREMENTAL)
}
