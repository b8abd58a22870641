//! The previous run that a new one names: found in the same store, and read by the fold of its journal.

use super::fault::Fault;
use super::fold;
use super::start::Start;
use super::world::Engine;
use loopctl_engine::previous::Earlier;
use loopctl_engine::state::State;
use loopctl_lang::program::Program;

impl Engine {
    /// The previous run that a start or its document names.
    ///
    /// # Errors
    /// When there is no such run of the same organisation, it has not ended, or its journal can't be read.
    pub(super) async fn earlier(&self, program: &Program, start: &Start) -> Result<Option<Earlier>, Fault> {
        let Some(run_id) = start.previous_run_id.as_deref().or(program.previous_run_id()) else {
            return Ok(None);
        };
        // Another organisation's run is reported like one that does not exist.
        let found = self.world.journal.find_of(start.org.as_deref(), run_id).await.map_err(Fault::Store)?;
        let Some(run) = found else { return Err(Fault::NoPrevious(run_id.to_owned())) };
        let state = self.ended(program, run_id).await?;
        // A secret may have become known since that run was written.
        self.world.vault.find_all();
        match Earlier::of(&state, |value| self.world.vault.scrub_value(value)) {
            Some(earlier) => Ok(Some(earlier)),
            None => Err(Fault::refused(format!(
                "run {run_id} has not ended ({}): an earlier run is one that has ended",
                run.status.word()
            ))),
        }
    }

    /// The state of a run by the documents in its journal: the document of the new run may be another one.
    async fn ended(&self, program: &Program, run_id: &str) -> Result<State, Fault> {
        let events = self.events(run_id).await?;
        if fold::same_document(program, &events).is_ok() {
            return fold::fold(program, run_id, events);
        }
        // The settings of its project change nothing about what happened.
        let mut texts = fold::texts(run_id, &events, None)?;
        texts.add_embedded(self.world.toolbox.signatures());
        let recorded = fold::recorded(&texts).map_err(|_| Fault::Journal {
            run: run_id.to_owned(),
            reason: "this version can't read the document that it holds".to_owned(),
        })?;
        fold::fold(&recorded, run_id, events)
    }
}
