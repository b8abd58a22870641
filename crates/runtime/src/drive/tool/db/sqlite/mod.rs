//! Databases in SQLite files.

mod open;
mod query;
mod table;
#[cfg(test)]
mod tests;
mod value;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use rusqlite::Connection;
use serde_json::Value;
use tokio::sync::oneshot;

use self::open::SqliteFile;
use super::rows::RowLimit;
use super::{DatabaseKind, Query, ToolDatabase};
use crate::drive::clock::simulated;
use crate::drive::future::BoxFuture;
use crate::drive::retry::Transient;
use crate::drive::tool::output::fault;
use crate::drive::tool::runner::RawFault;
use loopctl_engine::event::ToolFault;
use loopctl_lang::program::table::TableRequest;

/// The kind of database.
pub(super) const KIND: DatabaseKind = DatabaseKind {
    schemes: &["sqlite"],
    form: "sqlite:PATH",
    #[cfg(feature = "probe")]
    probe: None,
    is_valid: |path| !path.is_empty() && !path.starts_with(":memory:"),
    open: |address, _| {
        let (file, init) = (address.root.join(address.rest()), address.init.clone());
        Ok(Arc::new(SqliteFile { file, init, most_bytes: simulated::is_simulated().then_some(MOST_BYTES) }))
    },
};

impl ToolDatabase for SqliteFile {
    fn run(&self, query: Query) -> BoxFuture<'static, Result<Value, RawFault>> {
        let work = DatabaseWork { source: self.clone(), read_only: query.read_only, deadline: query.deadline };
        Box::pin(async move { run(work, move |connection| query::run(&query, connection)).await.map_err(raw) })
    }

    fn request(
        &self,
        request: TableRequest,
        rows: RowLimit,
        deadline: Duration,
    ) -> BoxFuture<'static, Result<Value, RawFault>> {
        let work = DatabaseWork { source: self.clone(), read_only: request.read_only, deadline };
        Box::pin(async move { run(work, move |connection| table::run(&request, rows, connection)).await.map_err(raw) })
    }
}

/// A fault as its runner knows it: another connection had the file for a while, and nothing was written.
fn raw(fault: ToolFault) -> RawFault {
    let transient = (fault.class == open::BUSY_FAULT).then(Transient::default);
    RawFault { transient, ..RawFault::from(fault) }
}

/// The most bytes of a database that is made for a play on a simulated clock: 256 MiB.
const MOST_BYTES: i64 = 256 << 20;

/// How long a database may take to be opened, and made, on a simulated clock, in real time: 10 s.
const LONGEST_INIT: Duration = Duration::from_secs(10);

/// How long a query may take on a simulated clock, in real time, whatever its own bound is: 30 s.
const LONGEST_QUERY: Duration = Duration::from_secs(30);

/// Work on a database.
struct DatabaseWork {
    source: SqliteFile,
    read_only: bool,
    /// How long the call may take.
    deadline: Duration,
}

/// Does work in its own thread and on its own connection, so that nothing that a statement sets outlives it.
/// When this future is dropped, what runs on the connection is stopped.
///
/// # Errors
/// When the database can't be opened, and those of the work.
async fn run(
    on: DatabaseWork,
    work: impl FnOnce(&Connection) -> Result<Value, ToolFault> + Send + 'static,
) -> Result<Value, ToolFault> {
    let stop = StopOnDrop(Arc::new(AtomicBool::new(false)));
    let stopped = Arc::clone(&stop.0);
    let (send, receive) = oneshot::channel();
    let (finish, done) = mpsc::channel();
    let is_simulated = simulated::is_simulated();
    let DatabaseWork { source, read_only, deadline } = on;
    std::thread::Builder::new()
        .name("loopctl-db".to_owned())
        .spawn(move || {
            let connection = open::open(&source, read_only, stopped);
            // After a timeout nobody waits any more.
            let _ = finish.send(None);
            let result = connection.and_then(|connection| work(&connection));
            if is_simulated {
                let _ = finish.send(Some(result));
            } else {
                let _ = send.send(result);
            }
        })
        .map_err(|error| fault("database: not available", format!("no thread: {error}")))?;
    if is_simulated {
        return simulated_result(done, deadline, stop).await;
    }
    let result = receive.await;
    drop(stop);
    result.unwrap_or_else(|_| Err(fault("database: failed", "the thread of the query was lost")))
}

/// The result of work on a simulated clock, which no deadline ends: the bounds are of real time. The calling thread has
/// nothing else to do, and waits.
async fn simulated_result(
    done: mpsc::Receiver<Option<Result<Value, ToolFault>>>,
    deadline: Duration,
    stop: StopOnDrop,
) -> Result<Value, ToolFault> {
    if done.recv_timeout(LONGEST_INIT).is_err() {
        // A scenario shows no more than this, and it is the same on each machine that is too slow.
        let why = format!("database: can't be made: its `init` takes longer than {} s", LONGEST_INIT.as_secs());
        return Err(fault(&why, ""));
    }
    if let Ok(Some(result)) = done.recv_timeout(deadline.min(LONGEST_QUERY)) {
        return result;
    }
    drop(stop);
    // The time of the call passes on its clock too, and whoever waits for it says so, as in a run.
    tokio::time::sleep(deadline.saturating_mul(2)).await;
    Err(fault("database: timed out", ""))
}

/// Stops the query when it is dropped.
struct StopOnDrop(Arc<AtomicBool>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
