//! A call of a server's database: on a connection that is kept or new.

use std::sync::Arc;

use serde_json::Value;

use super::server_pool::{Pool, PooledConnection};
use crate::drive::retry::Transient;
use crate::drive::tool::output::fault;
use crate::drive::tool::runner::RawFault;

/// The class of a call whose connection was lost before it changed anything.
pub(super) const LOST: &str = "database: connection lost";
/// The class of a call whose connection was lost when it may have changed something.
pub(super) const UNKNOWN: &str = "database: connection lost, and it is not known whether the statement was done";

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

/// A failure after which the same call may succeed.
pub(super) fn transient(class: &str, detail: String) -> RawFault {
    RawFault { fault: fault(class, detail), answer: None, transient: Some(Transient::default()) }
}

/// Makes a call. A connection that is lost before the statement was sent is replaced, once.
///
/// # Errors
/// That of the call, or of the new connection.
pub(super) async fn run<C: PooledConnection>(
    pool: &Arc<Pool<C>>,
    call: &impl ServerCall<C>,
) -> Result<Value, RawFault> {
    for is_new in [false, true] {
        let place = pool.place().await.ok_or_else(|| fault("database: failed", "the pool is closed"))?;
        let mut lease = place.connect(is_new).await?;
        let Some(connection) = lease.connection() else { continue };
        match call.perform(connection).await {
            Ok(CallResult { value, is_ready }) => {
                if is_ready {
                    lease.give_back();
                }
                return Ok(value);
            }
            Err(CallFailure::Unsent(why)) if is_new => return Err(transient(LOST, why)),
            Err(CallFailure::Unsent(_)) => {}
            Err(CallFailure::Refused(fault)) => {
                lease.give_back();
                return Err(fault);
            }
            Err(CallFailure::Broken(fault)) => return Err(fault),
        }
    }
    Err(transient(LOST, String::new()))
}
