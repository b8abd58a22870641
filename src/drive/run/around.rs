//! What is looked at while an effect is performed: the run's time, a stop, a request to end.

use std::time::Duration;

use super::super::engine::World;
use super::super::fault::Fault;
use super::super::stop::Stop;
use super::{Came, LOOK};
use crate::engine::event::{Cancelled, What};

/// Whether the run's end was asked for.
pub(super) async fn cancel_request(world: &World, run_id: &str) -> Result<Option<What>, Fault> {
    let request = world.journal.cancel_requested(run_id).await.map_err(Fault::Cut)?;
    Ok(request.map(|request| What::Cancelled(Cancelled { reason: request.reason })))
}

/// What ends the wait for an effect before it is done.
pub(in crate::drive) struct Around<'a> {
    pub world: &'a World,
    pub stop: Option<&'a Stop>,
    pub run_id: &'a str,
    /// The run's time that is left.
    pub left: Duration,
}

/// What a wait ended by.
pub(in crate::drive) enum Waited<T> {
    /// It is done.
    Done(T),
    /// Something else came first.
    Came(Came),
}

impl Around<'_> {
    /// Waits for work.
    pub async fn wait<T>(&self, work: impl Future<Output = T>) -> Result<Waited<T>, Fault> {
        let stopped = async {
            match self.stop {
                Some(stop) => stop.asked_now().await,
                None => std::future::pending().await,
            }
        };
        let asked_to_end = async {
            loop {
                tokio::time::sleep(LOOK).await;
                match cancel_request(self.world, self.run_id).await {
                    Ok(None) => {}
                    Ok(Some(what)) => return Ok(what),
                    Err(fault) => return Err(fault),
                }
            }
        };
        tokio::select! {
            biased;
            done = work => Ok(Waited::Done(done)),
            () = stopped => Ok(Waited::Came(Came::Stop)),
            () = tokio::time::sleep(self.left) => Ok(Waited::Came(Came::Event(What::DeadlinePassed))),
            request = asked_to_end => Ok(Waited::Came(Came::Event(request?))),
        }
    }
}
