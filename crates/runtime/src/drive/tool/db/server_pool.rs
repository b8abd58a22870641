//! The connections to one database on a server: a bounded number, and those that nothing uses are kept for a while.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::FutureExt as _;
use tokio::runtime::Handle;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

use super::server_call::transient;
use super::{CONNECTION_WAIT, CONNECTIONS};
use crate::drive::tool::output::fault;
use crate::drive::tool::runner::RawFault;

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
    connections: u16,
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
    /// A pool of as many connections, or of the usual number.
    pub(super) fn new(address: C::Address, connections: Option<u16>) -> Self {
        let connections = connections.unwrap_or(CONNECTIONS).max(1);
        Self {
            address,
            connections,
            permits: Arc::new(Semaphore::new(usize::from(connections))),
            idle: Mutex::default(),
            resets: AtomicUsize::new(0),
            was_reset: Notify::new(),
        }
    }

    /// A place for a connection; waits until there is one.
    ///
    /// # Errors
    /// When there was none for a long time.
    pub(super) async fn place(self: &Arc<Self>) -> Result<PoolPlace<C>, RawFault> {
        let waited = tokio::time::timeout(CONNECTION_WAIT, Arc::clone(&self.permits).acquire_owned()).await;
        match waited {
            Ok(Ok(permit)) => Ok(PoolPlace { pool: Arc::clone(self), permit }),
            Ok(Err(_)) => Err(fault("database: failed", "the pool is closed").into()),
            Err(_) => {
                let (count, seconds) = (self.connections, CONNECTION_WAIT.as_secs());
                let of = if count == 1 {
                    "the one connection".to_owned()
                } else {
                    format!("one of the {count} connections")
                };
                let class =
                    format!("database: waited {seconds} s for {of} of the datasource, and the query was not sent");
                Err(transient(&class, "`connections` of the datasource says how many there are".to_owned()))
            }
        }
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
    /// caller continues.
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

#[cfg(test)]
mod tests {
    use super::*;

    struct Connection;

    impl PooledConnection for Connection {
        type Address = ();

        async fn connect((): &()) -> Result<Self, RawFault> {
            Ok(Self)
        }

        fn is_closed(&self) -> bool {
            false
        }

        async fn reset(&mut self) -> bool {
            true
        }

        async fn stop(self, (): &()) {}
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_waits_for_one_of_the_connections_and_not_for_ever() {
        for (connections, count) in [(None, 8), (Some(1), 1), (Some(3), 3)] {
            let pool: Arc<Pool<Connection>> = Arc::new(Pool::new((), connections));
            let mut leases = Vec::new();
            for _ in 0..count {
                leases.push(pool.place().await.unwrap().connect(false).await.unwrap());
            }
            let began = tokio::time::Instant::now();
            let fault = pool.place().await.map(drop).unwrap_err();
            assert_eq!(began.elapsed().as_secs(), CONNECTION_WAIT.as_secs());
            assert!(fault.transient.is_some() && fault.fault.class.contains("waited 60 s"), "{fault:?}");
            assert!(
                fault.fault.class.contains(if count == 1 { "the one connection" } else { "connections" }),
                "{fault:?}"
            );
            leases.pop().unwrap().give_back();
            pool.place().await.unwrap();
        }
    }
}
