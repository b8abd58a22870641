//! What can interrupt an effect: the run's time, a stop, a request to end the run.

use std::time::Duration;

use super::super::clock;
use super::super::fault::Fault;
use super::super::stop::Stop;
use super::super::world::World;
use loopctl_engine::event::{Cancelled, EventKind};

/// The interval of the checks for a request to end the run.
pub(in crate::drive) const CANCEL_POLL_INTERVAL: Duration = Duration::from_millis(250);

/// The event that interrupted an effect.
#[expect(clippy::large_enum_variant, reason = "moved once or twice a step; a box would be an allocation each time")]
pub(in crate::drive) enum Interruption {
    Event(EventKind),
    Stop,
}

/// The request to end the run, if there is one.
pub(super) async fn cancel_request(world: &World, run_id: &str) -> Result<Option<EventKind>, Fault> {
    let request = world.journal.cancel_requested(run_id).await.map_err(Fault::Cut)?;
    Ok(request.map(|request| EventKind::Cancelled(Cancelled { reason: request.reason, by: request.by })))
}

/// What can end the wait for an effect early.
pub(in crate::drive) struct Interrupts<'a> {
    pub world: &'a World,
    pub stop: Option<&'a Stop>,
    pub run_id: &'a str,
    /// The time that the run has left.
    pub left: Duration,
}

/// How a wait ended.
#[expect(clippy::large_enum_variant, reason = "moved once or twice a step; a box would be an allocation each time")]
pub(in crate::drive) enum Waited<T> {
    /// It is done.
    Done(T),
    /// Something else came first.
    Interruption(Interruption),
}

impl Interrupts<'_> {
    /// Waits for a future, or an interruption.
    pub async fn wait<T>(&self, work: impl Future<Output = T>) -> Result<Waited<T>, Fault> {
        let stopped = async {
            match self.stop {
                Some(stop) => stop.asked_now().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            done = work => Ok(Waited::Done(done)),
            () = stopped => Ok(Waited::Interruption(Interruption::Stop)),
            ended = self.ended() => Ok(Waited::Interruption(Interruption::Event(ended?))),
        }
    }

    /// Waits until the run's time is over, or its end was requested. One timer for both: most waits are over
    /// before it fires.
    async fn ended(&self) -> Result<EventKind, Fault> {
        let started_at = clock::instant();
        loop {
            let left = self.left.saturating_sub(clock::elapsed(started_at));
            if left.is_zero() {
                return Ok(EventKind::DeadlinePassed);
            }
            tokio::time::sleep(left.min(CANCEL_POLL_INTERVAL)).await;
            let left = self.left.saturating_sub(clock::elapsed(started_at));
            // A store that hangs does not delay the deadline. On the heap: most waits are over before the first look.
            match Box::pin(tokio::time::timeout(left, cancel_request(self.world, self.run_id))).await {
                Ok(Ok(Some(request))) => return Ok(request),
                Ok(Err(fault)) => return Err(fault),
                Ok(Ok(None)) | Err(_) => {}
            }
        }
    }
}
