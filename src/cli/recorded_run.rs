//! Runs as their journals record them: the program that a run started with, and its state.

use std::path::Path;
use std::sync::Arc;

use super::failure::CommandError;
use super::run_ref;
use super::store::StorePlace;
use crate::diagnostic::Source;
use crate::drive::engine::Engine;
use crate::drive::fault::Fault;
use crate::drive::fold;
use crate::engine::event::Event;
use crate::engine::state::State;
use crate::journal::Journal;
use crate::program::Program;

/// A run, without the files of its document.
pub struct RecordedRun {
    pub id: String,
    /// The program that it started with.
    pub program: Arc<Program>,
    pub state: State,
    /// The engine for its store.
    pub engine: Engine,
}

impl RecordedRun {
    /// Reads the run that a text names: an id, the beginning of one, `last` or `last:LOOP`.
    ///
    /// # Errors
    /// When it names no run, or several, or the journal can't be read.
    pub async fn named(given: &str, journal: &Arc<dyn Journal>, place: &StorePlace) -> Result<Self, CommandError> {
        let id = run_ref::resolve(&**journal, given, &place.shown()).await?;
        let read = Self::read(id, Arc::clone(journal), place.project.clone()).await;
        read.map_err(|fault| CommandError::from(fault).in_store(&place.shown()))
    }

    async fn read(id: String, journal: Arc<dyn Journal>, project: Option<Source>) -> Result<Self, Fault> {
        let engine = reader(journal);
        let program = recorded(&id, &engine.events(&id).await?, project)?;
        let state = engine.state(&program, &id).await?;
        Ok(Self { id, program, state, engine })
    }
}

/// An engine that only reads runs.
pub fn reader(journal: Arc<dyn Journal>) -> Engine {
    Engine::builder(Arc::default(), Path::new(".")).journal(journal).build()
}

/// The program that a run started with, from the documents in its journal.
///
/// # Errors
/// When the journal has no document, or this version can't read it.
pub fn recorded(run_id: &str, events: &[Event], project: Option<Source>) -> Result<Arc<Program>, Fault> {
    fold::recorded(&fold::texts(run_id, events, project)?)
}

/// The same with other properties than its document has.
///
/// # Errors
/// As those of [`recorded`].
pub fn recorded_with(
    run_id: &str,
    events: &[Event],
    project: Option<Source>,
    change: impl FnOnce(&mut Program),
) -> Result<Arc<Program>, Fault> {
    let mut program = recorded(run_id, events, project)?;
    // It was compiled just now, for this caller.
    if let Some(program) = Arc::get_mut(&mut program) {
        change(program);
    }
    Ok(program)
}
