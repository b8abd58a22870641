//! A copy of a store that is in use: its runs as they are at one moment, in a new file without unused space.

use std::fs::{self, File};
use std::path::Path;
use std::time::Duration;

use rusqlite::Connection;

use super::database_errors::fault;
use super::prune::INCREMENTAL;
use super::schema::{SHRINKS, StoreFile, beside, look, open_to_read};
use crate::journal::StoreError;

/// How long the copy waits while another process has locked the store.
const LOCK_TIMEOUT: Duration = Duration::from_secs(5);

/// Copies the store at `from` to a new file. Nobody is hindered: it is one read.
pub(super) fn back_up(from: &Path, store: &str, to: &Path) -> Result<(), StoreError> {
    let target = to.display().to_string();
    let refuse = |store: &str, reason: &str| StoreError::Open { store: store.to_owned(), reason: reason.to_owned() };
    if !from.exists() {
        return Err(refuse(store, "there is none"));
    }
    if to.exists() {
        return Err(refuse(&target, "there is a file of this name: name a new one"));
    }
    let connection = open_to_read(from, LOCK_TIMEOUT).map_err(|error| fault(&error, store, None))?;
    if !matches!(look(&connection, store)?, StoreFile::Ours | StoreFile::Older(_)) {
        return Err(refuse(store, "it is empty: there is nothing to copy"));
    }
    // Nobody finds half a copy under its name.
    let part = beside(to, ".part");
    let failed = |error: std::io::Error| refuse(&target, &error.to_string());
    match fs::remove_file(&part) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(failed(error)),
        _ => {}
    }
    let made = copy(&connection, &part).map_err(|error| fault(&error, &target, None)).and_then(|()| {
        File::open(&part).and_then(|part| part.sync_all()).map_err(failed)?;
        // Unlike a rename, this replaces no file that was made meanwhile.
        fs::hard_link(&part, to).map_err(failed)
    });
    // The first fault is the one to report.
    let _ = fs::remove_file(&part);
    made?;
    if let Some(folder) = to.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        // A folder that can't be synced is the system's affair.
        let _ = File::open(folder).and_then(|folder| folder.sync_all());
    }
    Ok(())
}

fn copy(connection: &Connection, part: &Path) -> rusqlite::Result<()> {
    let name = part.to_str().ok_or_else(|| rusqlite::Error::InvalidPath(part.to_owned()))?;
    let mode: i64 = connection.query_row("PRAGMA auto_vacuum", (), |row| row.get(0))?;
    if mode != INCREMENTAL {
        // Of a store that an older version made: it says how the copy is to be, and changes nothing in the store.
        connection.execute_batch(SHRINKS)?;
    }
    connection.execute("VACUUM INTO ?1", [name])?;
    // The drivers are those of the store that was copied: nobody drives a run of the copy, and none of them died there.
    let copy = Connection::open(part)?;
    copy.execute_batch("UPDATE runs SET driver = NULL WHERE driver IS NOT NULL; DELETE FROM drivers;")
}
