//! The connections to one database on a server: at most so many, and those that nothing uses are kept for a while.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::FutureExt as _;
use tokio::runtime::Handle;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

use crate::drive::tool::runner::RawFault;

/// The most connections to one database.
const MAX_CONNECTIONS: usize = 8;
/// How long a connection that nothing uses is kept.
const MAX_IDLE: Duration = Duration::from_secs(60);
/// How long a server may take to forget what a call set.
const RESET_TIME: Duration = Duration::from_secs(5);
/// How long a call waits for a connection that is being reset.
const RESET_WAIT: Duration = Duration::from_millis(100);

/// A connection to a server.
pub(super) trait PooledConnection: Sized + Send + 'static {
    /// Where the server is.
    type Address: Send + Sync + 'static;

    /// Connects.
    fn connect(address: &Self::Address) -> impl Future<Output = Result<Self, RawFault>> + Send;

    /// Whether the connection is gone.
    fn is_closed(&self) -> bool;

    /// Lets the server forget what a call set; whether it did.
    fn reset(&mut self) -> impl Future<Output = bool> + Send;

    /// Asks the server to stop what runs on the connection, and closes it.
    fn stop(self, address: &Self::Address) -> impl Future<Output = ()> + Send;
}

/// The connections to one database.
pub(super) struct Pool<C: PooledConnection> {
    address: C::Address,
    permits: Arc<Semaphore>,
    idle: Mutex<Vec<IdleConnection<C>>>,
    /// How many connections are being reset.
    resets: AtomicUsize,
    /// Wakes who waits for one of them.
    was_reset: Notify,
}

struct IdleConnection<C> {
    connection: C,
    since: tokio::time::Instant,
}

impl<C: PooledConnection> Pool<C> {
    pub(super) fn new(address: C::Address) -> Self {
        Self {
            address,
            permits: Arc::new(Semaphore::new(MAX_CONNECTIONS)),
            idle: Mutex::default(),
            resets: AtomicUsize::new(0),
            was_reset: Notify::new(),
        }
    }

    /// A place for a connection; waits until there is one.
    pub(super) async fn place(self: &Arc<Self>) -> Option<PoolPlace<C>> {
        let permit = Arc::clone(&self.permits).acquire_owned().await.ok()?;
        Some(PoolPlace { pool: Arc::clone(self), permit })
    }

    /// A kept connection; waits a moment for one that is being reset, which is faster than to make one.
    async fn kept(&self) -> Option<C> {
        let was_reset = self.was_reset.notified();
        if let Some(connection) = self.take_idle() {
            return Some(connection);
        }
        if self.resets.load(Ordering::SeqCst) > 0 {
            drop(tokio::time::timeout(RESET_WAIT, was_reset).await);
        }
        self.take_idle()
    }

    fn take_idle(&self) -> Option<C> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let is_usable = |idle: &IdleConnection<C>| !idle.connection.is_closed() && idle.since.elapsed() < MAX_IDLE;
        idle.retain(is_usable);
        idle.pop().map(|idle| idle.connection)
    }

    fn keep(self: &Arc<Self>, connection: C) {
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
pub(super) struct PoolPlace<C: PooledConnection> {
    pool: Arc<Pool<C>>,
    permit: OwnedSemaphorePermit,
}

impl<C: PooledConnection> PoolPlace<C> {
    /// A connection: one that is kept, or a new one if `is_new`.
    ///
    /// # Errors
    /// When no host of the address answers.
    pub(super) async fn connect(self, is_new: bool) -> Result<PoolLease<C>, RawFault> {
        let kept = if is_new { None } else { self.pool.kept().await };
        let connection = match kept {
            Some(connection) => connection,
            None => C::connect(&self.pool.address).await?,
        };
        Ok(PoolLease { connection: Some(connection), place: Some(self) })
    }
}

/// A connection that one call uses. When it is dropped, what runs on it is stopped, and it is closed.
pub(super) struct PoolLease<C: PooledConnection> {
    connection: Option<C>,
    place: Option<PoolPlace<C>>,
}

impl<C: PooledConnection> PoolLease<C> {
    /// The connection; none after it was given back.
    pub(super) fn connection(&mut self) -> Option<&mut C> {
        self.connection.as_mut()
    }

    /// Gives the connection back: nothing runs on it any more. The server forgets what the call set; meanwhile the
    /// caller goes on.
    pub(super) fn give_back(mut self) {
        let (Some(mut connection), Some(place)) = (self.connection.take(), self.place.take()) else { return };
        place.pool.resets.fetch_add(1, Ordering::SeqCst);
        tokio::spawn(
            async move {
                let reset = tokio::time::timeout(RESET_TIME, connection.reset()).await;
                if matches!(reset, Ok(true)) {
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

impl<C: PooledConnection> Drop for PoolLease<C> {
    fn drop(&mut self) {
        let (Some(connection), Some(place)) = (self.connection.take(), self.place.take()) else { return };
        // Outside of a runtime nothing runs on the connection either.
        if let (Ok(runtime), false) = (Handle::try_current(), connection.is_closed()) {
            runtime.spawn(
                async move {
                    connection.stop(&place.pool.address).await;
                    drop(place.permit);
                }
                .boxed(),
            );
        }
    }
}
