//! A driver leaves a run that has no place in its line.

use super::super::fault::Fault;
use super::super::run_result::Finished;
use super::super::world::Engine;
use super::Driver;
use loopctl_engine::event::EventKind;

impl Driver<'_> {
    /// Leaves a run as it is.
    pub(in crate::drive) async fn leave(self: Box<Self>) -> Result<Finished, Fault> {
        let Self { state, lease, .. } = *self;
        lease.guard.give_back().await.map_err(Fault::Store)?;
        Ok(Finished { state })
    }

    /// Leaves a run that continues after its end and has no place in its line: returns whether it did.
    pub(super) async fn left_in_line(&mut self, engine: &Engine) -> Result<bool, Fault> {
        if Box::pin(engine.without_place(self.program, &self.state, &self.watch)).await?.is_none() {
            return Ok(false);
        }
        // The next driver knows that none of its steps was made.
        self.take(EventKind::Left).await?;
        Ok(true)
    }
}
