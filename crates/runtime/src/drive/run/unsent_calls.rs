//! The calls of which a driver sent nothing before it died, although it had started them: its requests waited for their turns, for
//! room in a spending limit or for the next attempt. Nobody needs to be asked whether they happened: they are made.

use super::Driver;
use crate::drive::fault::Fault;
use loopctl_engine::address::StepAddress;
use loopctl_engine::event::{EventKind, StepLeft, ToolLeft};
use loopctl_engine::state::Phase;

impl Driver<'_> {
    /// The events that take such calls back, if these events resume the run after a crash.
    pub(super) async fn left_unsent(&self, what: &[EventKind]) -> Result<Vec<EventKind>, Fault> {
        let is_under_way = matches!(self.state.phase, Phase::Acting { .. } | Phase::Stepping);
        let resumes = what.iter().any(|kind| matches!(kind, EventKind::Resumed));
        if !is_under_way || !resumes || !self.has_calls_under_way() {
            return Ok(Vec::new());
        }
        let run = self.world.journal.find(&self.lease.run_id).await.map_err(Fault::Store)?;
        let unsent = run.map(|run| run.unsent).unwrap_or_default();
        Ok(unsent.iter().filter_map(|at| self.left(at)).collect())
    }

    /// The row no longer says that nothing of them was sent: from now on, they are made.
    pub(super) async fn forget_unsent(&self) -> Result<(), Fault> {
        let noted = self.world.journal.note_model_wait(&self.lease.run_id, self.lease.fence, None);
        noted.await.map_err(Fault::Cut)
    }

    fn has_calls_under_way(&self) -> bool {
        let of_turn = self.state.turn().is_some_and(|turn| turn.calls.iter().any(|call| call.progress.is_under_way()));
        of_turn || self.state.open_steps().iter().any(|open| open.progress.is_under_way())
    }

    fn left(&self, at: &str) -> Option<EventKind> {
        let (tokens, cost_usd) = (None, None);
        if self.program.is_flow() {
            let open = self.state.open_step(&StepAddress::new(at))?;
            let left = StepLeft { at: at.to_owned(), tokens, cost_usd };
            return open.progress.is_under_way().then_some(EventKind::StepLeft(left));
        }
        let call = self.state.call(at.parse().ok()?)?;
        let left = ToolLeft { call: call.address, tokens, cost_usd };
        call.progress.is_under_way().then_some(EventKind::ToolLeft(left))
    }
}
