//! The connections: so many as the machine has descriptors for, less what tools, models and the store need. Those
//! that have not shown a token yet have a small part for themselves, so that they shut nobody out who has one.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::http::StatusCode;
use tokio::sync::Notify;

use super::problem::{NO_CONNECTION_LEFT, ProblemDetails};
use super::quotas::{Owner, Permit, QuotaItem, Quotas};

/// The most connections, whatever the machine has.
const MOST: usize = 4_096;
/// The most of those that have not shown a token yet.
const UNKNOWN: usize = 256;
/// Descriptors for the store, the listener, callbacks and what is read from folders.
const RESERVE: usize = 64;
/// Descriptors for each run that is driven: its model, its tools, the pipes of its programs.
const EACH_RUN: usize = 6;

/// How many connections there may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room {
    /// Of those that have not shown a token yet.
    pub unknown: usize,
    /// Of those that have.
    pub known: usize,
}

impl Room {
    /// The room of a process that may open so many files, drives so many runs, and by the project file takes so
    /// many connections that have not shown a token.
    pub fn of(files: usize, runs: usize, unknown: Option<u32>) -> Self {
        let reserve = RESERVE.saturating_add(runs.saturating_mul(EACH_RUN)).min(files / 2);
        let all = files.saturating_sub(reserve).clamp(2, MOST);
        let written = unknown.map(|unknown| usize::try_from(unknown).unwrap_or(usize::MAX));
        // Who has a token keeps half, whatever is written.
        let unknown = written.map_or((all / 4).min(UNKNOWN), |written| written.min(all / 2)).max(1);
        Self { unknown, known: all - unknown }
    }

    /// All together.
    pub fn all(&self) -> usize {
        self.unknown.saturating_add(self.known)
    }
}

/// So many files this process may open.
pub fn files() -> usize {
    #[cfg(unix)]
    let soft = nix::sys::resource::getrlimit(nix::sys::resource::Resource::RLIMIT_NOFILE).map(|(soft, _)| soft).ok();
    #[cfg(not(unix))]
    let soft: Option<u64> = None;
    soft.and_then(|soft| usize::try_from(soft).ok()).unwrap_or(usize::MAX)
}

/// The connections that are open.
pub struct Connections {
    room: Room,
    shares: Arc<Quotas>,
    open: Mutex<OpenConnections>,
}

#[derive(Default)]
struct OpenConnections {
    next: u64,
    /// Those that have not shown a token, the oldest first.
    unknown: BTreeMap<u64, Arc<Connection>>,
    known: usize,
}

/// A connection.
pub struct Connection {
    number: u64,
    /// Whether a request of it is being answered.
    busy: AtomicBool,
    close: Notify,
    /// The share that it counts in.
    permit: Mutex<Option<Permit>>,
}

/// A connection that is open: dropped, it is closed.
pub struct Entered {
    connections: Arc<Connections>,
    connection: Arc<Connection>,
}

impl Connections {
    /// None yet.
    pub fn new(room: Room, shares: Arc<Quotas>) -> Arc<Self> {
        Arc::new(Self { room, shares, open: Mutex::default() })
    }

    /// How many there may be.
    pub fn room(&self) -> Room {
        self.room
    }

    /// How many are open that have not shown a token, and that have.
    pub fn count(&self) -> (usize, usize) {
        let open = self.open();
        (open.unknown.len(), open.known)
    }

    fn open(&self) -> MutexGuard<'_, OpenConnections> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A connection that comes. Where there are too many of its kind, the oldest idle one is closed for it.
    pub fn enter(self: &Arc<Self>) -> Entered {
        let mut open = self.open();
        if open.unknown.len() >= self.room.unknown {
            let idle = open.unknown.values().find(|connection| !connection.busy.load(Ordering::SeqCst));
            let oldest = idle.or_else(|| open.unknown.values().next()).map(|connection| connection.number);
            if let Some(connection) = oldest.and_then(|number| open.unknown.remove(&number)) {
                connection.close.notify_one();
            }
        }
        let number = open.next;
        open.next = number.wrapping_add(1);
        let connection = Arc::new(Connection {
            number,
            busy: AtomicBool::new(false),
            close: Notify::new(),
            permit: Mutex::default(),
        });
        open.unknown.insert(number, Arc::clone(&connection));
        Entered { connections: Arc::clone(self), connection }
    }
}

impl Entered {
    /// The connection, as its requests know it.
    pub fn requests(&self) -> Requests {
        Requests { connections: Arc::clone(&self.connections), connection: Arc::clone(&self.connection) }
    }

    /// Waits until the connection is to be closed for another one.
    pub async fn is_to_close(&self) {
        self.connection.close.notified().await;
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        let was_known = self.connection.permit().take().is_some();
        let mut open = self.connections.open();
        if open.unknown.remove(&self.connection.number).is_none() && was_known {
            open.known = open.known.saturating_sub(1);
        }
    }
}

impl Connection {
    fn permit(&self) -> MutexGuard<'_, Option<Permit>> {
        self.permit.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The connection of a request.
#[derive(Clone)]
pub struct Requests {
    connections: Arc<Connections>,
    connection: Arc<Connection>,
}

impl Requests {
    /// A request of it is answered until the guard is dropped.
    pub fn busy(&self) -> Busy {
        self.connection.busy.store(true, Ordering::SeqCst);
        Busy(Arc::clone(&self.connection))
    }

    /// A token was shown: from now on the connection counts in its share.
    ///
    /// # Errors
    /// 429 when its share is spent, 503 when there is no room for any.
    pub fn show(&self, owner: &Owner) -> Result<(), ProblemDetails> {
        let mut permit = self.connection.permit();
        if permit.as_ref().is_some_and(|permit| *permit.owner() == self.connections.shares.known(owner)) {
            return Ok(());
        }
        let new = self.connections.shares.take(owner, QuotaItem::Connection)?;
        if permit.is_none() {
            let mut open = self.connections.open();
            if open.known >= self.connections.room.known {
                let detail = "the server has all the connections that it may have: try again in a moment";
                return Err(ProblemDetails::new(StatusCode::SERVICE_UNAVAILABLE, NO_CONNECTION_LEFT, detail));
            }
            // One that is just being closed is in neither part any more.
            if open.unknown.remove(&self.connection.number).is_none() {
                return Ok(());
            }
            open.known += 1;
        }
        *permit = Some(new);
        Ok(())
    }
}

/// A request that is being answered.
pub struct Busy(Arc<Connection>);

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.busy.store(false, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests;
