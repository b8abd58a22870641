//! Limits the connections: to the descriptors of the process, less those that tools, models and the store need.
//! Connections that have not shown a token yet have a small limit of their own, so that they do not block
//! clients with a token.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::http::StatusCode;
use tokio::sync::Notify;

use super::problem::{NO_CONNECTION_LEFT, ProblemDetails};
use super::quotas::{Owner, Permit, QuotaItem, Quotas};

/// The maximum number of connections, however many descriptors there are.
const MAX_CONNECTIONS: usize = 4_096;
/// The maximum number of connections that have not shown a token yet.
const UNKNOWN: usize = 256;
/// The descriptors for the store, the listener, callbacks and folders.
const RESERVE: usize = 64;
/// The descriptors for each driven run: its model, its tools, the pipes of its programs.
const EACH_RUN: usize = 6;

/// Where a connection comes from.
#[derive(Debug, Clone, Copy)]
pub struct PeerAddress(pub SocketAddr);

/// The limits of connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room {
    /// For connections that have not shown a token yet.
    pub unknown: usize,
    /// For connections that have.
    pub known: usize,
}

impl Room {
    /// The limits for a process that may open `files` files and drives `runs` runs. `unknown` is the limit of
    /// the project file for connections that have not shown a token.
    pub fn of(files: usize, runs: usize, unknown: Option<u32>) -> Self {
        let reserve = RESERVE.saturating_add(runs.saturating_mul(EACH_RUN)).min(files / 2);
        let all = files.saturating_sub(reserve).clamp(2, MAX_CONNECTIONS);
        let written = unknown.map(|unknown| usize::try_from(unknown).unwrap_or(usize::MAX));
        // Clients with a token keep at least half, whatever the project file says.
        let unknown = written.map_or((all / 4).min(UNKNOWN), |written| written.min(all / 2)).max(1);
        Self { unknown, known: all - unknown }
    }

    /// The limit for all together.
    pub fn all(&self) -> usize {
        self.unknown.saturating_add(self.known)
    }
}

/// The number of files that this process may open.
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
    /// Those that have not shown a token, oldest first.
    unknown: BTreeMap<u64, Arc<Connection>>,
    known: usize,
}

/// A connection.
pub struct Connection {
    number: u64,
    /// Whether one of its requests is being answered.
    busy: AtomicBool,
    close: Notify,
    /// The permit of the quota that it counts in.
    permit: Mutex<Option<Permit>>,
}

/// An open connection; dropping this closes it.
pub struct Entered {
    connections: Arc<Connections>,
    connection: Arc<Connection>,
}

impl Connections {
    /// No connections yet.
    pub fn new(room: Room, shares: Arc<Quotas>) -> Arc<Self> {
        Arc::new(Self { room, shares, open: Mutex::default() })
    }

    /// The limits.
    pub fn room(&self) -> Room {
        self.room
    }

    /// How many connections are open that have not shown a token, and that have.
    pub fn count(&self) -> (usize, usize) {
        let open = self.open();
        (open.unknown.len(), open.known)
    }

    fn open(&self) -> MutexGuard<'_, OpenConnections> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a connection. If there are too many of its kind, the oldest idle one is closed for it.
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
    /// The connection as its requests see it.
    pub fn requests(&self) -> Requests {
        Requests { connections: Arc::clone(&self.connections), connection: Arc::clone(&self.connection) }
    }

    /// Waits until the connection must close for another one.
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
    /// A request of the connection is being answered until the guard is dropped.
    pub fn busy(&self) -> Busy {
        self.connection.busy.store(true, Ordering::SeqCst);
        Busy(Arc::clone(&self.connection))
    }

    /// A token was shown: from now on the connection counts in the quota of its owner.
    ///
    /// # Errors
    /// 429 when the quota is used up, 503 when there are too many connections.
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
            // A connection that is just being closed is in neither set any more.
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
