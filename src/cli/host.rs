//! The only part of the command line that uses the driver, the loader and the stores.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use secrecy::{ExposeSecret as _, SecretString};
use serde_json::Value;

pub use crate::drive::clock;
use crate::drive::copy;
pub use crate::drive::copy::{CopyFault, StorePair};
pub use crate::drive::engine::{Engine, Finished, Resume, Watch};
pub use crate::drive::fault::Fault;
pub use crate::drive::start::Start;
pub use crate::drive::status::complete_row;
pub use crate::drive::stop::Stop;
pub use crate::drive::tool::{ConnectedDatabases, NamedProgram, enter_group};
pub use crate::journal::admin::StoreReport;
pub use crate::project::load::{Loaded, Unsound as LoadFault};

use crate::diagnostic::Source;
use crate::drive::fold;
use crate::drive::secret::Vault;
use crate::engine::event::{Event, RunDocument};
use crate::engine::flow::view::StepLog;
use crate::engine::outcome::Status;
use crate::engine::state::State;
use crate::journal::prune::prune_all;
use crate::journal::{Journal, PruneQuery, StoreFault};
use crate::language::{Project, Script, SecretSource};
use crate::program::Program;

/// Reads and compiles a document and everything that belongs to it.
///
/// # Errors
/// All faults, when it can't be run.
pub fn load(path: &Path, actions: &[PathBuf]) -> Result<Loaded, LoadFault> {
    crate::project::load::load(path, actions)
}

/// How to start a run with the input of an earlier one; `recorded` is the program of that one.
///
/// # Errors
/// When its journal can't be read.
pub fn rerun(run_id: &str, events: &[Event], recorded: Option<&Program>) -> Result<Start, Fault> {
    crate::drive::rerun::start(run_id, events, recorded)
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

/// Opens a store: `memory`, `sqlite:PATH` with a path relative to `base`, or `postgres://...`; or what `env:VAR` or
/// `file:PATH` hold.
///
/// # Errors
/// When it can't be opened.
pub fn open(url: &str, base: &Path) -> Result<Arc<dyn Journal>, StoreFault> {
    crate::journal::open_held(named(url, base)?.expose_secret(), holder(url), base)
}

/// The variable or the file, where one holds the name of a store: messages name it.
fn holder(url: &str) -> Option<&str> {
    matches!(url.split_once(':'), Some(("env" | "file", _))).then_some(url)
}

/// The name of a store; or what `env:VAR` or `file:PATH` hold.
fn named(url: &str, base: &Path) -> Result<SecretString, StoreFault> {
    if holder(url).is_none() {
        return Ok(url.into());
    }
    let named = Vault::new(BTreeMap::new(), base).read(url);
    named.map_err(|reason| StoreFault::Open { store: url.to_owned(), reason })
}

/// The statements that make a store.
///
/// # Errors
/// When its name is not valid.
pub fn store_statements(url: &str, base: &Path) -> Result<String, StoreFault> {
    crate::journal::admin::statements(named(url, base)?.expose_secret(), holder(url), base)
}

/// Looks at a store, and writes nothing.
///
/// # Errors
/// When it can't be reached.
pub fn examine_store(url: &str, base: &Path) -> Result<StoreReport, StoreFault> {
    crate::journal::admin::examine(named(url, base)?.expose_secret(), holder(url), base)
}

/// Refuses to copy a store that a process has open, before it is opened: that may make or migrate its tables.
///
/// # Errors
/// A sentence that says so, or the fault of the store.
pub fn may_be_copied(url: &str, base: &Path) -> Result<(), CopyFault> {
    let living = crate::journal::admin::living(named(url, base)?.expose_secret(), holder(url), base)?;
    living.first().map_or(Ok(()), |name| Err(copy::in_use(name)))
}

/// Copies a store, which may be in use, to a new file.
///
/// # Errors
/// When the store is no file, the new file exists, or one of them fails.
pub fn back_up_store(url: &str, base: &Path, to: &Path) -> Result<(), StoreFault> {
    crate::journal::admin::back_up(named(url, base)?.expose_secret(), holder(url), base, to)
}

/// How the space that deleted runs leave in a store is given back to the system, if it is not by itself.
pub fn space_of_deleted(url: &str, base: &Path) -> Option<&'static str> {
    let name = named(url, base).ok()?;
    crate::journal::admin::give_back(name.expose_secret(), base)
}

/// Deletes runs that ended before a moment, or counts them; returns how many.
///
/// # Errors
/// When the store fails.
pub async fn prune(
    journal: &dyn Journal,
    before_ms: i64,
    statuses: &[Status],
    dry_run: bool,
) -> Result<u64, StoreFault> {
    if dry_run {
        let which = PruneQuery { before_ms, statuses: statuses.to_vec(), most: 0, dry_run };
        return journal.prune(which).await;
    }
    prune_all(journal, before_ms, statuses).await
}

/// An engine for a store; a script replaces every model.
pub fn engine(project: Arc<Project>, root: &Path, journal: Arc<dyn Journal>, script: Option<Script>) -> Engine {
    let builder = Engine::builder(project, root).journal(journal);
    match script {
        Some(script) => builder.script(script).build(),
        None => builder.build(),
    }
}

/// An engine that only reads runs.
pub fn reader(journal: Arc<dyn Journal>) -> Engine {
    engine(Arc::default(), Path::new("."), journal, None)
}

/// After how long something is said of a run that waits, when a test says so.
pub fn quiet() -> Option<std::time::Duration> {
    crate::journal::failpoint::time("quiet")
}

/// How long a program may take that is notified of a pause: 30 s, or less when a test says so.
pub fn on_pause() -> std::time::Duration {
    crate::journal::failpoint::time("on_pause").unwrap_or(std::time::Duration::from_secs(30))
}

/// Whether a secret of the project is in a text, in a spelling that we know.
pub fn holds_secret(project: &Project, root: &Path, text: &str) -> bool {
    let vault = Vault::new(project.orgconfig.clone(), root);
    vault.find_all();
    let sources = project.models.values().flat_map(|model| model.api_key.iter().chain(model.headers.values()));
    let is_source = |text: &&str| crate::policy::model_header::is_source(text);
    for key in sources.filter_map(SecretSource::written).filter(is_source) {
        // A key that is not set here is in no run of this machine.
        drop(vault.read(key));
    }
    vault.scrub(text.to_owned()) != text
}

/// Leaves a store open until the process ends: closing it waits for pending writes, and that may hang. What was
/// acknowledged is stored, and the next driver sees that this one has gone.
pub fn leave_open(journal: Arc<dyn Journal>) {
    std::mem::forget(journal);
}

/// The JSON Schema of a kind of document, or of the events.
pub fn schema(kind: &str) -> Option<Value> {
    if kind == "events" {
        return Some(crate::trace::events::schema());
    }
    crate::language::schema::published(kind)
}

/// A run as its journal records it, without the document's files.
pub struct RecordedRun {
    /// The program that it started with.
    pub program: Arc<Program>,
    /// Its state.
    pub state: State,
    /// The engine for its store.
    pub engine: Engine,
}

/// Reads a run from its store.
///
/// # Errors
/// When there is no such run, or its journal can't be read.
pub async fn read(journal: Arc<dyn Journal>, run_id: &str, project: Option<Source>) -> Result<RecordedRun, Fault> {
    let engine = reader(journal);
    let events = engine.events(run_id).await?;
    let program = recorded(run_id, &events, project)?;
    let state = engine.state(&program, run_id).await?;
    Ok(RecordedRun { program, state, engine })
}

/// The state of a run, and what its events say of the steps at an address; an empty one stands for all steps.
///
/// # Errors
/// When the events do not fit together.
pub fn step_log(program: &Program, run_id: &str, events: Vec<Event>, at: &str) -> Result<(State, StepLog), Fault> {
    let mut log = StepLog::new(Some(at.to_owned()).filter(|at| !at.is_empty()));
    let state = fold::logged(program, run_id, events, &mut log)?;
    Ok((state, log))
}

/// The current document of a run: the one that it started with, or a newer one that it was resumed with.
pub fn document(events: &[Event]) -> Option<&RunDocument> {
    fold::documents(events)?.first()
}
