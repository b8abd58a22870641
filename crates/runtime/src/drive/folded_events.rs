//! The events of a run that are read and folded once; what comes later is added to them.

use super::fault::Fault;
use super::fold;
use super::world::Engine;
use loopctl_engine::event::Event;
use loopctl_engine::state::State;
use loopctl_engine::step::step;
use loopctl_lang::program::Program;

/// A run as it was read: its events, and their fold.
#[derive(Debug)]
pub struct FoldedEvents {
    /// All events that were read.
    pub events: Vec<Event>,
    /// Their fold by the document that the run follows.
    pub state: State,
}

impl FoldedEvents {
    /// Folds the events of a run.
    ///
    /// # Errors
    /// When one does not fit.
    pub fn new(program: &Program, run_id: &str, events: Vec<Event>) -> Result<Self, Fault> {
        let state = fold::fold(program, run_id, events.clone())?;
        Ok(Self { events, state })
    }

    /// How many events were read.
    pub fn seen(&self) -> u64 {
        u64::try_from(self.events.len()).unwrap_or(u64::MAX)
    }
}

impl Engine {
    /// Reads a run.
    ///
    /// # Errors
    /// When there is no such run, it follows another document, or its journal can't be read.
    pub async fn read(&self, program: &Program, run_id: &str) -> Result<FoldedEvents, Fault> {
        let events = self.events(run_id).await?;
        fold::same_document(program, &events)?;
        FoldedEvents::new(program, run_id, events)
    }

    /// Reads what has come since, and nothing else. Gives the events.
    ///
    /// # Errors
    /// When the run follows another document since, or its journal can't be read.
    pub async fn catch_up<'r>(
        &self,
        program: &Program,
        run_id: &str,
        run: &'r mut FoldedEvents,
    ) -> Result<&'r [Event], Fault> {
        let journal = self.journal();
        let seen = run.events.len();
        let texts = journal.read_from(run_id, run.seen(), usize::MAX).await.map_err(Fault::Store)?;
        // Most events name no long text.
        let news = match fold::events(run_id, &texts, &[]) {
            Ok(news) => news,
            Err(_) => fold::events(run_id, &texts, &journal.texts(run_id).await.map_err(Fault::Store)?)?,
        };
        fold::same_document(program, &news)?;
        for event in news {
            let at = run.events.len();
            step(program, &mut run.state, event.clone()).map_err(|refused| fold::does_not_fit(run_id, at, &refused))?;
            run.events.push(event);
        }
        Ok(run.events.get(seen..).unwrap_or_default())
    }
}
