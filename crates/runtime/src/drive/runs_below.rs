//! Whether the runs below a run continue with it that had ended: what one of them refuses would else be a failure of its step, and the
//! steps for that failure would run.

use std::time::Duration;

use super::clock;
use super::engine::{Resumption, RunToResume};
use super::fault::Fault;
use super::fold;
use super::subrun::SubrunShare;
use super::subrun_id::loop_at;
use super::world::{Engine, Resume};
use crate::journal::StoreError;
use loopctl_engine::event::{Allowance, Event, Moment};
use loopctl_engine::flow::{has_handled_failure, runs_again};
use loopctl_engine::state::{Phase, State};
use loopctl_engine::step::step;
use loopctl_lang::program::Program;

/// More time than any run below needs to continue: how much it is given is known when its step begins.
const ENOUGH_TIME: Duration = Duration::from_hours(24);

impl Engine {
    /// Whether a retry of a run that has ended does again what steps for a failure have taken back: its own, those of an item, or those
    /// of a run below it.
    pub async fn has_handled_failure(&self, program: &Program, state: &State) -> bool {
        if !matches!(state.phase, Phase::Ended(_)) {
            return false;
        }
        let below = async || self.accept_again_below(program, state, false).await;
        has_handled_failure(state) || matches!(below().await, Err(Fault::FailureHandled))
    }

    /// Whether the runs that continue with a run accept that, at any depth.
    ///
    /// # Errors
    /// When one of them does not. Nothing has happened then.
    pub(super) async fn accept_again_below(
        &self,
        program: &Program,
        state: &State,
        after_on_failure: bool,
    ) -> Result<(), Fault> {
        let Some(flow) = program.as_flow() else { return Ok(()) };
        let time_ms = u64::try_from(ENOUGH_TIME.as_millis()).unwrap_or(u64::MAX);
        let share = SubrunShare { time_ms, bound: Allowance::default(), after_on_failure };
        for below in runs_again(state) {
            let Some(called) = loop_at(flow, below.at.as_str()) else { continue };
            let run_id = below.run_id.as_str();
            match self.accepts_again(called, run_id, share).await {
                Err(Fault::Refused(why)) => {
                    return Err(Fault::refused(format!("run {run_id}, which continues with it: {why}")));
                }
                other => other?,
            }
        }
        Ok(())
    }

    async fn accepts_again(&self, program: &Program, run_id: &str, share: SubrunShare) -> Result<(), Fault> {
        let events = match self.events(run_id).await {
            Err(Fault::Store(StoreError::NoSuchRun(_))) => return Ok(()),
            events => events?,
        };
        let is_changed = fold::same_document(program, &events).is_err();
        let former = if is_changed { self.former(program, run_id, &events) } else { None };
        let again = match &former {
            Some((recorded, state)) => share.again(recorded, state),
            None => fold::fold(program, run_id, events.clone())
                .map(|state| share.again(program, &state))
                .unwrap_or_default(),
        };
        if !again.reopens() {
            return Ok(());
        }
        let is_retry = again.raised.is_none();
        let resume = Resume { new_document: true, ..again };
        let held = self.held(program, run_id, RunToResume { events, state: None }, &resume).await?;
        let Resumption::Up { mut state, what, .. } = self.take_up(program, held, &resume).await? else { return Ok(()) };
        // Whether raised limits are enough depends on the share that is left for it.
        for kind in what.into_iter().filter(|_| is_retry) {
            let at = Moment { wall_ms: clock::wall_ms(), active_ms: state.now.active_ms };
            step(program, &mut state, Event { at, kind })?;
        }
        Ok(())
    }
}
