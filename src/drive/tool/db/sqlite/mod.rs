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
use super::{DatabaseKind, Query, ToolDatabase};
use crate::drive::clock::simulated;
use crate::drive::future::BoxFuture;
use crate::drive::tool::output::fault;
use crate::drive::tool::runner::RawFault;
use crate::engine::event::ToolFault;
use crate::program::table::TableRequest;

/// The kind of database.
pub(super) const KIND: DatabaseKind = DatabaseKind {
    schemes: &["sqlite"],
    form: "sqlite:PATH",
    #[cfg(feature = "cli")]
    probe: None,
    is_valid: |path| !path.is_empty() && !path.starts_with(":memory:"),
    open: |address, _| Ok(Arc::new(SqliteFile { file: address.root.join(address.rest()), init: address.init.clone() })),
};

impl ToolDatabase for SqliteFile {
    fn run(&self, query: Query) -> BoxFuture<'static, Result<Value, RawFault>> {
        let (file, read_only) = (self.clone(), query.read_only);
        Box::pin(async move { Ok(run(file, read_only, move |connection| query::run(&query, connection)).await?) })
    }

    fn request(&self, request: TableRequest) -> BoxFuture<'static, Result<Value, RawFault>> {
        let (file, read_only) = (self.clone(), request.read_only);
        Box::pin(async move { Ok(run(file, read_only, move |connection| table::run(&request, connection)).await?) })
    }
}

/// How long a query may take on a simulated clock, which no deadline ends.
const LONGEST: Duration = Duration::from_secs(60);

/// Does work in its own thread and on its own connection, so that nothing that a statement sets outlives it.
/// When this future is dropped, what runs on the connection is stopped.
///
/// # Errors
/// When the database can't be opened, and those of the work.
async fn run(
    source: SqliteFile,
    read_only: bool,
    work: impl FnOnce(&Connection) -> Result<Value, ToolFault> + Send + 'static,
) -> Result<Value, ToolFault> {
    let stop = StopOnDrop(Arc::new(AtomicBool::new(false)));
    let stopped = Arc::clone(&stop.0);
    let (send, receive) = oneshot::channel();
    let (finish, done) = mpsc::channel();
    let is_simulated = simulated::is_simulated();
    std::thread::Builder::new()
        .name("loopctl-db".to_owned())
        .spawn(move || {
            let result = open::open(&source, read_only, stopped).and_then(|connection| work(&connection));
            // After a timeout nobody waits any more.
            if is_simulated {
                let _ = finish.send(result);
            } else {
                let _ = send.send(result);
            }
        })
        .map_err(|error| fault("database: not available", format!("no thread: {error}")))?;
    if is_simulated {
        // The thread has nothing else to do, and waits for this one.
        return done.recv_timeout(LONGEST).unwrap_or_else(|_| Err(fault("database: timed out", "")));
    }
    let result = receive.await;
    drop(stop);
    result.unwrap_or_else(|_| Err(fault("database: failed", "the thread of the query was lost")))
}

/// Stops the query when it is dropped.
struct StopOnDrop(Arc<AtomicBool>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
