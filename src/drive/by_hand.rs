//! A run's end by hand: at once when nobody drives it, else by its driver.

use super::clock;
use super::engine::{Engine, Finished, Watch, status_record};
use super::fault::Fault;
use super::fold::{self, written};
use super::lease_guard::LeaseGuard;
use super::subrun;
use crate::engine::event::{Cancelled, Event, EventKind, Moment};
use crate::engine::notice::Baseline;
use crate::engine::outcome::Status;
use crate::engine::state::Phase;
use crate::engine::step::step;
use crate::journal::{Append, StoreFault};
use crate::program::Program;

impl Engine {
    /// Ends a run by hand: at once when nobody drives it, else its driver is asked to. Gives the status
    /// that the run has then.
    ///
    /// # Errors
    /// When there is no such run, it has ended, or the store fails.
    pub async fn cancel(&self, program: &Program, run_id: &str, reason: Option<String>) -> Result<Status, Fault> {
        let journal = &self.world.journal;
        let lease = match journal.lease(run_id).await {
            Ok(lease) => lease,
            Err(StoreFault::Driven(_)) => {
                journal.request_cancel(run_id, reason.clone()).await.map_err(Fault::Store)?;
                // The driver may have left before it could see the request.
                match journal.lease(run_id).await {
                    Ok(lease) => lease,
                    Err(StoreFault::Driven(_)) => return Ok(Status::Running),
                    Err(fault) => return Err(Fault::Store(fault)),
                }
            }
            Err(fault) => return Err(Fault::Store(fault)),
        };
        let hold = LeaseGuard::new(journal, run_id, &lease);
        let ended = self.end_by_hand(program, run_id, reason, lease.fence).await;
        // What came of it is what the caller must hear; a lease that could not be given back expires.
        drop(hold.give_back().await);
        ended
    }

    async fn end_by_hand(
        &self,
        program: &Program,
        run_id: &str,
        reason: Option<String>,
        fence: u64,
    ) -> Result<Status, Fault> {
        let events = self.events(run_id).await?;
        let seq = u64::try_from(events.len()).unwrap_or(u64::MAX);
        let mut state = fold::fold(program, run_id, events)?;
        subrun::close(&self.world, program, &state).await?;
        let at = Moment { wall_ms: clock::wall_ms(), active_ms: state.now.active_ms };
        let event = Event { at, kind: EventKind::Cancelled(Cancelled { reason }) };
        let text = written(&event)?;
        step(program, &mut state, event)?;
        let append = Append {
            run_id: run_id.to_owned(),
            fence,
            seq,
            event: text,
            texts: Vec::new(),
            status_record: Some(status_record(&state)),
            remember: Vec::new(),
        };
        self.world.journal.append(append).await.map_err(Fault::Store)?;
        Ok(state.status())
    }

    /// A run that its driver has left: when its end was asked for too late for the driver to see, it ends
    /// now.
    pub(super) async fn left(
        &self,
        program: &Program,
        finished: Finished,
        watch: &Watch<'_>,
    ) -> Result<Finished, Fault> {
        if matches!(finished.state.phase, Phase::Ended(_)) {
            return Ok(finished);
        }
        let run_id = &finished.state.header.run_id;
        let Some(request) = self.world.journal.cancel_requested(run_id).await.map_err(Fault::Store)? else {
            return Ok(finished);
        };
        match self.cancel(program, run_id, request.reason).await {
            // It has ended, or is with another driver, who sees the request.
            Ok(_) | Err(Fault::Refused(_)) => {}
            Err(fault) => return Err(fault),
        }
        let state = self.state(program, run_id).await?;
        if let Some(listener) = watch.listener {
            for notice in Baseline::of_state(&finished.state).changes(&state) {
                listener.on(notice);
            }
        }
        Ok(Finished { state })
    }
}
