//! The connections to one database: at most so many, and those that nothing uses are kept for a while.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::FutureExt as _;
use tokio::runtime::Handle;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

use super::connect::{self, ConnectFault, ServerConnection};
use crate::journal::postgres::address::PostgresAddress;

/// The most connections to one database.
const MAX_CONNECTIONS: usize = 8;
/// How long a connection that nothing uses is kept.
const MAX_IDLE: Duration = Duration::from_secs(60);
/// How long a server may take to forget what a call set.
const RESET_TIME: Duration = Duration::from_secs(5);
/// How long a call waits for a connection that is being reset.
const RESET_WAIT: Duration = Duration::from_millis(100);
/// How many bytes its answer to that may have.
const RESET_BYTES: usize = 1 << 20;

/// What a statement can leave on its connection: cursors, a role, settings, channels, locks, temporary tables.
const RESET: &str = "CLOSE ALL; SET SESSION AUTHORIZATION DEFAULT; RESET ALL; UNLISTEN *; \
                     SELECT pg_advisory_unlock_all(); DISCARD TEMP; DISCARD SEQUENCES";

/// The connections to one database.
pub(super) struct Pool {
    pub(super) address: PostgresAddress,
    permits: Arc<Semaphore>,
    idle: Mutex<Vec<IdleConnection>>,
    /// How many connections are being reset.
    resets: AtomicUsize,
    /// Wakes who waits for one of them.
    was_reset: Notify,
}

struct IdleConnection {
    connection: ServerConnection,
    since: tokio::time::Instant,
}

impl Pool {
    pub(super) fn new(address: PostgresAddress) -> Self {
        Self {
            address,
            permits: Arc::new(Semaphore::new(MAX_CONNECTIONS)),
            idle: Mutex::default(),
            resets: AtomicUsize::new(0),
            was_reset: Notify::new(),
        }
    }

    /// A place for a connection; waits until there is one.
    pub(super) async fn place(self: &Arc<Self>) -> Option<PoolPlace> {
        let permit = Arc::clone(&self.permits).acquire_owned().await.ok()?;
        Some(PoolPlace { pool: Arc::clone(self), permit })
    }

    /// A kept connection; waits a moment for one that is being reset, which is faster than to make one.
    async fn kept(&self) -> Option<ServerConnection> {
        let was_reset = self.was_reset.notified();
        if let Some(connection) = self.take_idle() {
            return Some(connection);
        }
        if self.resets.load(Ordering::SeqCst) > 0 {
            drop(tokio::time::timeout(RESET_WAIT, was_reset).await);
        }
        self.take_idle()
    }

    fn take_idle(&self) -> Option<ServerConnection> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let is_usable = |idle: &IdleConnection| !idle.connection.client.is_closed() && idle.since.elapsed() < MAX_IDLE;
        idle.retain(is_usable);
        idle.pop().map(|idle| idle.connection)
    }

    fn keep(self: &Arc<Self>, connection: ServerConnection) {
        let since = tokio::time::Instant::now();
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(IdleConnection { connection, since });
        let pool = Arc::downgrade(self);
        tokio::spawn(
            async move {
                tokio::time::sleep(MAX_IDLE).await;
                if let Some(pool) = pool.upgrade() {
                    let mut idle = pool.idle.lock().unwrap_or_else(PoisonError::into_inner);
                    idle.retain(|idle| idle.since.elapsed() < MAX_IDLE);
                }
            }
            .boxed(),
        );
    }
}

/// A place for one connection.
pub(super) struct PoolPlace {
    pool: Arc<Pool>,
    permit: OwnedSemaphorePermit,
}

impl PoolPlace {
    /// A connection: one that is kept, or a new one if `is_new`.
    ///
    /// # Errors
    /// When no host of the address answers.
    pub(super) async fn connect(self, is_new: bool) -> Result<PoolLease, ConnectFault> {
        let kept = if is_new { None } else { self.pool.kept().await };
        let connection = match kept {
            Some(connection) => connection,
            None => connect::connect(&self.pool.address).await?,
        };
        Ok(PoolLease { connection: Some(connection), place: Some(self) })
    }
}

/// A connection that one call uses. When it is dropped, what runs on it is stopped, and it is closed.
pub(super) struct PoolLease {
    connection: Option<ServerConnection>,
    place: Option<PoolPlace>,
}

impl PoolLease {
    /// The connection; none after it was given back.
    pub(super) fn connection(&mut self) -> Option<&mut ServerConnection> {
        self.connection.as_mut()
    }

    /// Gives the connection back: nothing runs on it any more. The server forgets what the call set; meanwhile the
    /// caller goes on.
    pub(super) fn give_back(mut self) {
        let (Some(connection), Some(place)) = (self.connection.take(), self.place.take()) else { return };
        connection.budget.fill(RESET_BYTES);
        place.pool.resets.fetch_add(1, Ordering::SeqCst);
        tokio::spawn(
            async move {
                let reset = tokio::time::timeout(RESET_TIME, connection.client.batch_execute(RESET)).await;
                if matches!(reset, Ok(Ok(()))) {
                    place.pool.keep(connection);
                }
                place.pool.resets.fetch_sub(1, Ordering::SeqCst);
                place.pool.was_reset.notify_waiters();
                drop(place.permit);
            }
            .boxed(),
        );
    }
}

impl Drop for PoolLease {
    fn drop(&mut self) {
        let (Some(connection), Some(place)) = (self.connection.take(), self.place.take()) else { return };
        // Outside of a runtime nothing runs on the connection either.
        if let (Ok(runtime), false) = (Handle::try_current(), connection.client.is_closed()) {
            runtime.spawn(
                async move {
                    connect::stop(&place.pool.address, connection).await;
                    drop(place.permit);
                }
                .boxed(),
            );
        }
    }
}
