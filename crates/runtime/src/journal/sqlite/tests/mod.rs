//! What the store on disk promises beyond the promises of both stores.

// Needs the fail points, which a release build has not.
#[cfg(debug_assertions)]
mod crash;
mod damage;
mod faults;
mod group;
mod leases;
mod owner;
mod queue;
mod schedules;
mod space;
mod speed;
mod take_ups;

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Sender, channel};

use rusqlite::Connection;
use tempfile::TempDir;

use super::*;

/// A folder with a path for a store.
fn place() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.db");
    (folder, path)
}

fn open(path: &Path) -> SqliteJournal {
    SqliteJournal::open(path).unwrap()
}

/// The fault of a store that must not open.
fn refused(path: &Path) -> StoreError {
    match SqliteJournal::open(path) {
        Ok(_) => panic!("{} was opened", path.display()),
        Err(fault) => fault,
    }
}

impl SqliteJournal {
    /// Runs SQL on the writer's connection.
    fn sql(&self, sql: &'static str) {
        let (done, received) = channel();
        self.writer.touch(move |connection| {
            connection.execute_batch(sql).unwrap();
            done.send(()).unwrap();
            true
        });
        received.recv().unwrap();
    }

    /// Keeps the writer busy until the sender is dropped: what is asked meanwhile is one batch.
    fn hold(&self) -> Sender<()> {
        let (free, held) = channel::<()>();
        let (busy, started) = channel();
        self.writer.touch(move |_| {
            busy.send(()).unwrap();
            let _ = held.recv();
            true
        });
        started.recv().unwrap();
        free
    }

    /// Ends like a process that is killed: locks are released, leases are not.
    fn die(self) {
        self.writer.touch(|_: &Connection| false);
    }
}
