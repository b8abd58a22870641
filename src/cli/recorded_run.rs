//! Runs as their journals record them: which one a user means, the program that it started with, and its state.

use std::path::Path;
use std::sync::Arc;

use super::failure::CommandError;
use super::store::StorePlace;
use crate::diagnostic::{Source, nearest};
use crate::drive::engine::Engine;
use crate::drive::fault::Fault;
use crate::drive::fold;
use crate::engine::event::Event;
use crate::engine::state::State;
use crate::journal::{Journal, RunFilter, RunSummary, StoreError};
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
        let id = resolve(&**journal, given, &place.shown()).await?;
        let read = Self::read(id, Arc::clone(journal), place.project.clone()).await;
        read.map_err(|fault| CommandError::from(fault).in_store(&place.shown()))
    }

    /// Reads the run of an id.
    ///
    /// # Errors
    /// When there is none, or its journal can't be read.
    pub async fn read(id: String, journal: Arc<dyn Journal>, project: Option<Source>) -> Result<Self, Fault> {
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

/// The newest run.
const LAST: &str = "last";
/// The most runs that a message lists.
const MAX_LISTED_RUNS: usize = 8;
/// The number of the newest runs among which the nearest id is looked for.
const MAX_COMPARED_RUNS: usize = 500;
/// Shorter texts are near to everything.
const MIN_COMPARED_CHARACTERS: usize = 5;

/// The id of the run that a text names: an id, the beginning of one id alone, `last`, or `last:LOOP`. `store` is the
/// store as a message names it.
///
/// # Errors
/// When it names no run, or several, or the store can't be read.
pub async fn resolve(journal: &dyn Journal, given: &str, store: &str) -> Result<String, CommandError> {
    // A run may have any id that its caller gave it.
    if journal.find(given).await?.is_some() {
        return Ok(given.to_owned());
    }
    if given == LAST {
        let newest = journal.list(RunFilter { limit: 1, ..RunFilter::default() }).await?;
        return first(newest).ok_or_else(|| CommandError::usage(format!("there are no runs in {store}")));
    }
    if let Some(name) = given.strip_prefix(LAST).and_then(|rest| rest.strip_prefix(':')) {
        return last_of(journal, name, store).await;
    }
    let with_prefix =
        RunFilter { id_prefix: Some(given.to_owned()), limit: MAX_LISTED_RUNS + 1, ..RunFilter::default() };
    let mut runs = if given.is_empty() { Vec::new() } else { journal.list(with_prefix.clone()).await? };
    if runs.is_empty() && given.contains('.') {
        runs = journal.list(RunFilter { called: true, ..with_prefix }).await?;
    }
    match runs.as_slice() {
        [] => Err(unknown(journal, given, store).await?),
        [only] => Ok(only.run_id.clone()),
        _ => Err(ambiguous(given, &runs)),
    }
}

fn first(runs: Vec<RunSummary>) -> Option<String> {
    runs.into_iter().next().map(|run| run.run_id)
}

async fn last_of(journal: &dyn Journal, name: &str, store: &str) -> Result<String, CommandError> {
    let of = RunFilter { loop_name: Some(name.to_owned()), limit: 1, ..RunFilter::default() };
    if let Some(run_id) = first(journal.list(of).await?) {
        return Ok(run_id);
    }
    let runs = newest(journal).await?;
    let near = nearest(name, runs.iter().map(|run| run.loop_name.as_str()));
    let near = near.map_or_else(String::new, |near| format!("; did you mean `last:{near}`?"));
    Err(CommandError::usage(format!("there is no run of a loop `{name}` in {store}{near}")))
}

async fn newest(journal: &dyn Journal) -> Result<Vec<RunSummary>, StoreError> {
    journal.list(RunFilter { limit: MAX_COMPARED_RUNS, ..RunFilter::default() }).await
}

async fn unknown(journal: &dyn Journal, given: &str, store: &str) -> Result<CommandError, CommandError> {
    let runs = newest(journal).await?;
    let ids = || runs.iter().map(|run| run.run_id.as_str());
    // What was given may be the beginning of an id, with a slip in it.
    let starts_alike = |id: &str| id.get(..given.len()).is_some_and(|head| nearest(given, [head]).is_some());
    let near =
        nearest(given, ids()).or_else(|| ids().find(|id| given.len() > MIN_COMPARED_CHARACTERS && starts_alike(id)));
    let near = near.map_or_else(String::new, |near| format!("; did you mean {near}?"));
    Ok(CommandError::usage_help(
        format!("there is no run {given} in {store}{near}"),
        "`loopctl runs` lists the runs of a store; --store or --document selects another store",
    ))
}

fn ambiguous(given: &str, runs: &[RunSummary]) -> CommandError {
    let listed: Vec<&str> = runs.iter().take(MAX_LISTED_RUNS).map(|run| run.run_id.as_str()).collect();
    let more = if runs.len() > MAX_LISTED_RUNS { ", and more" } else { "" };
    CommandError::usage_help(
        format!("several runs begin with {given}: {}{more}", listed.join(", ")),
        "give more of the id, or the whole id",
    )
}
