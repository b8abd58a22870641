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
const MAX_UNKNOWN_CONNECTIONS: usize = 256;
/// The descriptors for the store, the listener, callbacks and folders.
const RESERVED_DESCRIPTORS: usize = 64;
/// The descriptors for each driven run: its model, its tools, the pipes of its programs.
const DESCRIPTORS_PER_RUN: usize = 6;

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
        let reserve = RESERVED_DESCRIPTORS.saturating_add(runs.saturating_mul(DESCRIPTORS_PER_RUN)).min(files / 2);
        let all = files.saturating_sub(reserve).clamp(2, MAX_CONNECTIONS);
        let written = unknown.map(|unknown| usize::try_from(unknown).unwrap_or(usize::MAX));
        // Clients with a token keep at least half, whatever the project file says.
        let unknown = written.map_or((all / 4).min(MAX_UNKNOWN_CONNECTIONS), |written| written.min(all / 2)).max(1);
        Self { unknown, known: all - unknown }
    }

    /// The limit for all together.
    pub fn all(&self) -> usize {
        self.unknown.saturating_add(self.known)
    }
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
mod tests {
    use super::super::quotas::Capacity;
    use super::*;
    use crate::language::serving::{Limits, Share};

    fn connections(room: Room, most: u32) -> Arc<Connections> {
        let token = Share { connections: Some(most), ..Share::default() };
        let whole = Capacity { connections: room.known, places: 1, orgs: 2 };
        let limits = Limits { org: token.clone(), token, unknown_connections: None };
        Connections::new(room, Arc::new(Quotas::new(&limits, whole, false)))
    }

    fn owner(token: &str) -> Owner {
        Owner { org: Some(format!("of {token}")), token: Some(token.to_owned()) }
    }

    /// Whether a connection was asked to close.
    fn is_closing(entered: &Entered) -> bool {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            tokio::select! {
                biased;
                () = entered.is_to_close() => true,
                () = std::future::ready(()) => false,
            }
        })
    }

    #[test]
    fn the_descriptors_less_a_reserve_bound_the_connections() {
        assert_eq!(Room::of(usize::MAX, 64, None), Room { unknown: 256, known: 3_840 });
        assert_eq!(Room::of(1_024, 64, None), Room { unknown: 144, known: 432 });
        assert_eq!(Room::of(1_024, 64, Some(10)), Room { unknown: 10, known: 566 });
        assert_eq!(Room::of(1_024, 64, Some(60_000)), Room { unknown: 288, known: 288 });
        assert_eq!(Room::of(256, 100_000, None), Room { unknown: 32, known: 96 });
        assert_eq!(Room::of(0, 1, None), Room { unknown: 1, known: 1 });
    }

    #[test]
    fn of_those_without_a_token_the_oldest_idle_one_makes_room() {
        let connections = connections(Room { unknown: 3, known: 10 }, 10);
        let open: Vec<Entered> = (0..3).map(|_| connections.enter()).collect();
        let answered = open[0].requests().busy();
        let new = connections.enter();
        assert_eq!(open.iter().map(is_closing).collect::<Vec<_>>(), [false, true, false], "the oldest one is answered");
        drop(answered);
        let newer = connections.enter();
        assert!(is_closing(&open[0]) && !is_closing(&open[2]) && !is_closing(&new));
        assert_eq!(connections.count(), (3, 0));
        drop((open, new, newer));
        assert_eq!(connections.count(), (0, 0));
    }

    #[test]
    fn who_shows_a_token_is_closed_for_nobody_and_counts_in_its_share() {
        let connections = connections(Room { unknown: 1, known: 3 }, 2);
        let shown = |token: &str| {
            let entered = connections.enter();
            let shown = entered.requests().show(&owner(token));
            (entered, shown.map_err(|problem| (problem.status.as_u16(), problem.code)))
        };
        let (one, first) = shown("a");
        let (_two, second) = shown("a");
        assert_eq!((first, second), (Ok(()), Ok(())));
        assert_eq!(one.requests().show(&owner("a")).map_err(|problem| problem.code), Ok(()), "again it counts once");
        let (_three, third) = shown("a");
        assert_eq!(third, Err((429, "too_many_connections")));
        let (other, fourth) = shown("b");
        assert_eq!(fourth, Ok(()), "another one has a share of its own");
        let (_none, fifth) = shown("c");
        assert_eq!(fifth, Err((503, "no_connection_left")));
        assert_eq!(connections.count(), (1, 3));
        assert!(!is_closing(&one) && !is_closing(&other));
        // A connection that several owners use counts for the last one.
        assert_eq!(one.requests().show(&owner("b")).map_err(|problem| problem.code), Ok(()));
        let (_six, sixth) = shown("a");
        assert_eq!(sixth, Err((503, "no_connection_left")), "its share has room again, the server has none");
        drop(one);
        assert_eq!(connections.count(), (1, 2));
    }
}
