//! Ends a run on request: at once when nobody drives it, otherwise through its driver.

use super::audit;
use super::clock;
use super::fault::Fault;
use super::fold::{self, written};
use super::lease_guard::{Leased, LeasedRun};
use super::run::run_log;
use super::run_result::Finished;
use super::status::status_record;
use super::subrun;
use super::unused_events::pass_on_unused;
use super::world::{Engine, Watch};
use crate::drive::notices::report;
use crate::journal::{Append, CancelRequest};
use loopctl_engine::event::{Cancelled, Event, EventKind, Moment};
use loopctl_engine::notice::Baseline;
use loopctl_engine::outcome::Status;
use loopctl_engine::state::{Phase, State};
use loopctl_engine::step::step;
use loopctl_lang::program::Program;

impl Engine {
    /// Cancels a run: at once when nobody drives it, otherwise by a request to its driver. Returns the status
    /// of the run after that.
    ///
    /// # Errors
    /// When there is no such run, it has ended, or the store fails.
    pub async fn cancel(&self, program: &Program, run_id: &str, request: CancelRequest) -> Result<Status, Fault> {
        if let Some(state) = self.cancel_here(program, run_id, &request).await? {
            return Ok(state.status());
        }
        let run = self.world.journal.find(run_id).await.map_err(Fault::Store)?;
        Ok(run.map_or(Status::Running, |run| run.status))
    }

    /// Cancels a run that nobody drives: its state after that. `None`: its driver was asked to.
    pub(super) async fn cancel_here(
        &self,
        program: &Program,
        run_id: &str,
        request: &CancelRequest,
    ) -> Result<Option<State>, Fault> {
        let Some(leased) = Leased::to_cancel(&self.world.journal, run_id, request).await? else { return Ok(None) };
        let events = self.events(run_id).await?;
        let run = LeasedRun { leased, events, state: None };
        self.cancel_leased(program, run, request.clone()).await.map(Some)
    }

    /// Cancels a run that is leased to the caller, and releases the lease. Returns its state.
    ///
    /// # Errors
    /// When it has ended, or the store fails.
    pub async fn cancel_leased(
        &self,
        program: &Program,
        run: LeasedRun,
        request: CancelRequest,
    ) -> Result<State, Fault> {
        let LeasedRun { leased, events, .. } = run;
        let ended = self.end_by_hand(program, &leased, events, request).await;
        // The caller needs the outcome of the cancellation; a lease that could not be released expires.
        drop(leased.give_back().await);
        ended
    }

    async fn end_by_hand(
        &self,
        program: &Program,
        leased: &Leased,
        events: Vec<Event>,
        request: CancelRequest,
    ) -> Result<State, Fault> {
        let run_id = leased.run_id.as_str();
        let seq = u64::try_from(events.len()).unwrap_or(u64::MAX);
        let mut state = fold::fold(program, run_id, events)?;
        subrun::close(&self.world, program, &state).await?;
        let at = Moment { wall_ms: clock::wall_ms(), active_ms: state.now.active_ms };
        let CancelRequest { reason, by } = request;
        let cancelled = Cancelled { reason, by };
        let event = Event { at, kind: EventKind::Cancelled(cancelled.clone()) };
        let (text, audit) = (written(&event)?, audit::of_event(&event));
        step(program, &mut state, event)?;
        let status_record = Some(status_record(program, &state));
        let fence = leased.lease.fence;
        let takes_cancel = !matches!(state.phase, Phase::Ended(_));
        let append = Append { status_record, audit, takes_cancel, ..Append::new(run_id.to_owned(), fence, seq, text) };
        let mut entries = vec![append];
        if takes_cancel {
            // The steps that it has for a cancel wait for a driver, who knows that none of them was made.
            let left = Event { at, kind: EventKind::Left };
            let text = written(&left)?;
            step(program, &mut state, left)?;
            entries.push(Append::new(run_id.to_owned(), fence, seq.saturating_add(1), text));
        }
        self.world.journal.append_all(entries).await.map_err(Fault::Store)?;
        pass_on_unused(&*self.world.journal, &state).await;
        run_log::cancelled(&state, &cancelled);
        if let (Some(meters), Phase::Ended(ending)) = (&self.world.meters, &state.phase) {
            meters.of(&state.header, program).ended(ending);
        }
        Ok(state)
    }

    /// Called when a driver has left a run: if its end was requested too late for the driver to see, the run
    /// ends now.
    pub(super) async fn left(
        &self,
        program: &Program,
        finished: Finished,
        watch: &Watch<'_>,
    ) -> Result<Finished, Fault> {
        match finished.state.phase {
            Phase::Ended(_) => Ok(finished),
            // On the heap: every run that is driven holds the common path only.
            _ => Box::pin(self.left_open(program, finished, watch)).await,
        }
    }

    async fn left_open(&self, program: &Program, finished: Finished, watch: &Watch<'_>) -> Result<Finished, Fault> {
        let run_id = &finished.state.header.run_id;
        let Some(request) = self.world.journal.cancel_requested(run_id).await.map_err(Fault::Store)? else {
            return Ok(finished);
        };
        match self.cancel(program, run_id, request).await {
            // It has ended, or another driver has it and sees the request.
            Ok(_) | Err(Fault::Refused(_)) => {}
            Err(fault) => return Err(fault),
        }
        let state = self.state(program, run_id).await?;
        if let Some(listener) = watch.listener {
            for notice in Baseline::of_state(&finished.state).changes(&state) {
                report(listener, notice);
            }
        }
        Ok(Finished { state })
    }
}
