//! A call of a server's database: on a connection that is kept or new.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::Value;

use super::server_pool::{Pool, PoolPlace, PooledConnection};
use crate::drive::retry::Transient;
use crate::drive::tool::output::fault;
use crate::drive::tool::runner::RawFault;
use crate::drive::tool::timed_out;

/// The class of a call whose connection was lost before it changed anything.
pub(super) const LOST: &str = "database: connection lost";
/// The class of a call whose connection was lost when it may have changed something.
const UNKNOWN: &str = "database: connection lost, and it is not known whether the statement was done";

/// How a call ended that has no result.
pub(super) enum CallFailure {
    /// The connection was lost, and the statement had not been sent.
    Unsent(String),
    /// The server refused it and is ready for the next one.
    Refused(RawFault),
    /// What the connection does is not known.
    Broken(RawFault),
}

/// The result of a call, and whether its connection is ready for the next one.
pub(super) struct CallResult {
    pub(super) value: Value,
    pub(super) is_ready: bool,
}

/// A call that needs a connection.
pub(super) trait ServerCall<C: PooledConnection>: Sync {
    /// Makes it.
    fn perform(&self, connection: &mut C) -> impl Future<Output = Result<CallResult, CallFailure>> + Send;
}

/// The failure of a call whose connection was lost.
pub(super) fn lost(read_only: bool, detail: String) -> RawFault {
    if read_only { transient(LOST, detail) } else { transient(UNKNOWN, detail).sent() }
}

/// A failure after which the same call may succeed.
pub(super) fn transient(class: &str, detail: String) -> RawFault {
    RawFault { transient: Some(Transient::default()), ..RawFault::from(fault(class, detail)) }
}

/// Makes a call within its time, which begins when there is a connection for it. A connection that is lost before the
/// statement was sent is replaced, once.
///
/// # Errors
/// That of the call, or of the new connection; when it waited too long for one, or takes too long.
pub(super) async fn run<C: PooledConnection>(
    pool: &Arc<Pool<C>>,
    limit: Duration,
    call: &impl ServerCall<C>,
) -> Result<Value, RawFault> {
    // The wait for another connection, where one was lost, is part of the call's time.
    let place = pool.place().await?;
    let is_sent = AtomicBool::new(false);
    let made = tokio::time::timeout(limit, make(pool, place, call, &is_sent)).await;
    made.unwrap_or_else(|_| Err(RawFault { is_uncertain: is_sent.load(Ordering::Relaxed), ..timed_out(limit) }))
}

async fn make<C: PooledConnection>(
    pool: &Arc<Pool<C>>,
    place: PoolPlace<C>,
    call: &impl ServerCall<C>,
    is_sent: &AtomicBool,
) -> Result<Value, RawFault> {
    let mut first = Some(place);
    for is_new in [false, true] {
        let place = match first.take() {
            Some(place) => place,
            None => pool.place().await?,
        };
        let mut lease = place.connect(is_new).await?;
        let Some(connection) = lease.connection() else { continue };
        is_sent.store(true, Ordering::Relaxed);
        match call.perform(connection).await {
            Ok(CallResult { value, is_ready }) => {
                if is_ready {
                    lease.give_back();
                }
                return Ok(value);
            }
            Err(CallFailure::Unsent(why)) if is_new => return Err(transient(LOST, why)),
            Err(CallFailure::Unsent(_)) => is_sent.store(false, Ordering::Relaxed),
            Err(CallFailure::Refused(fault)) => {
                lease.give_back();
                return Err(fault);
            }
            Err(CallFailure::Broken(fault)) => return Err(fault),
        }
    }
    Err(transient(LOST, String::new()))
}
