//! Reads runs from the journal: the row of a run, its events, its program and its state.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use ring::digest;

use super::authorizer::{Caller, OrgReach};
use super::compile_pool::CompilePool;
use super::fold_cache::{FoldCache, FoldedSpan};
use super::folder::{Folder, ServedLoop};
use super::live_folder::{CurrentFolder, LiveFolder};
use super::problem::{DOCUMENT_CHANGED, ProblemDetails};
use super::program_cache::ProgramCache;
use crate::diagnostic::Source;
use crate::drive::clock;
use crate::drive::engine::Engine;
use crate::drive::fault::Fault;
use crate::drive::fold;
use crate::drive::folded_events::FoldedEvents;
use crate::drive::requirements::MissingRequirement;
use crate::drive::status::complete_row;
use crate::drive::stored_events::events_from;
use crate::engine::event::{Event, RunDocument};
use crate::engine::outcome::Status;
use crate::engine::state::State;
use crate::journal::{Callback, Journal, RunSummary};
use crate::program::Program;

/// Reported about a run whose document made the compiler thread panic.
const NOT_COMPILED: &str = "its document could not be compiled";

/// Reads runs from the journal.
pub struct RunStore {
    /// The store.
    pub journal: Arc<dyn Journal>,
    /// What is served now.
    pub current: CurrentFolder,
    compiler: Arc<CompilePool>,
    programs: Mutex<ProgramCache>,
    folds: Mutex<FoldCache>,
}

/// What driving a run needs.
#[derive(Clone)]
pub struct ProgramOfRun {
    /// Its program.
    pub program: Arc<Program>,
    /// The engine of its project.
    pub engine: Engine,
}

/// A run with its state: the fold of its events.
#[derive(Debug)]
pub struct FoldedRun {
    /// Its program.
    pub program: Arc<Program>,
    /// Its state.
    pub state: State,
}

/// A run that somebody decides about: its row, and its events and state, which are read and folded once.
pub struct DecidedRun {
    /// Its row.
    pub row: RunSummary,
    /// Whether the decision is about the run as the row shows it, and about no later end.
    pub as_listed: bool,
    read: Option<FollowedRun>,
}

/// A run with the program that it follows.
pub struct FollowedRun {
    /// Its program.
    pub program: ProgramOfRun,
    /// Its events, and their fold by that program.
    pub run: FoldedEvents,
}

impl DecidedRun {
    /// A run of which nothing but its row is read yet.
    pub fn new(row: RunSummary) -> Self {
        Self { row, as_listed: false, read: None }
    }

    /// A run of a list: the decision is refused once the run has continued since.
    pub fn of_list(row: RunSummary) -> Self {
        Self { as_listed: true, ..Self::new(row) }
    }

    /// What was read of it, if anything was: it is read again after that.
    pub fn take(&mut self) -> Option<FollowedRun> {
        self.read.take()
    }
}

/// What only the row of a run in the store holds, and no event of it.
#[derive(Debug, Clone, Default)]
pub struct RunRow {
    /// The organisation that it belongs to.
    pub org: Option<String>,
    /// The run that called it, when one did.
    pub called_by: Option<String>,
    /// The name of the token that started it.
    pub token: Option<String>,
    /// Where its result is posted, and how far that is.
    pub callback: Option<Callback>,
    /// Whether a living driver has it.
    pub is_driven: bool,
    /// Whether it waits for a driver.
    pub is_queued: bool,
    /// The first run that it waits for in its line.
    pub behind: Option<String>,
    /// Whether it is set aside, because its drivers died again and again.
    pub is_quarantined: bool,
    /// Whether it came in a file, and nobody continues it here.
    pub is_imported: bool,
}

impl From<&RunSummary> for RunRow {
    fn from(run: &RunSummary) -> Self {
        Self {
            org: run.org.clone(),
            called_by: run.parent_run_id.clone(),
            token: run.token.as_deref().map(str::to_owned),
            callback: run.callback.clone(),
            is_driven: run.driven,
            is_queued: run.is_queued(),
            behind: run.behind.as_deref().map(str::to_owned),
            is_quarantined: run.status == Status::Quarantined,
            is_imported: run.is_imported(),
        }
    }
}

impl RunStore {
    /// The runs of a journal, with the loops of a folder.
    pub(crate) fn new(journal: Arc<dyn Journal>, served: LiveFolder, compiler: Arc<CompilePool>) -> Self {
        Self {
            journal,
            current: CurrentFolder::new(served),
            compiler,
            programs: Mutex::default(),
            folds: Mutex::default(),
        }
    }

    /// Serves this folder from now on. Runs that are driven keep their programs and their engines; others are compiled with
    /// the new project when they are next read.
    pub fn replace_folder(&self, served: LiveFolder) {
        let mut programs = self.programs.lock().unwrap_or_else(PoisonError::into_inner);
        self.current.replace(served);
        *programs = ProgramCache::default();
    }

    /// The engine of a project's folder.
    pub fn engine(&self, root: &Path) -> Option<Engine> {
        self.current.get().engine(root).cloned()
    }

    /// What the loops of the folder need and can't be read: see [`Engine::missing`].
    pub fn missing(&self) -> Vec<MissingRequirement> {
        missing(&self.current.get())
    }

    /// What the loops of the folder need of programs, and that they do not give now: see [`Engine::not_given`].
    pub async fn not_given(&self) -> Vec<MissingRequirement> {
        let (mut missing, served) = (BTreeSet::new(), self.current.get());
        for offered in served.folder.loops.values() {
            if let Some(engine) = served.engine(&offered.root) {
                missing.extend(engine.not_given(&offered.program).await);
            }
        }
        missing.into_iter().collect()
    }

    /// A run of the caller's organisation.
    ///
    /// # Errors
    /// 404 when there is none, or it is another organisation's.
    pub async fn find(&self, caller: &Caller, run_id: &str) -> Result<RunSummary, ProblemDetails> {
        let found = match caller.reach {
            OrgReach::All => self.journal.find(run_id),
            OrgReach::Own | OrgReach::Chosen => self.journal.find_of(caller.org.as_deref(), run_id),
        };
        found.await?.ok_or_else(ProblemDetails::no_such_run)
    }

    /// A run's events.
    ///
    /// # Errors
    /// When its journal can't be read.
    pub async fn events(&self, run_id: &str) -> Result<Vec<Event>, Fault> {
        let events = self.journal.read(run_id).await.map_err(Fault::Store)?;
        let texts = self.journal.texts(run_id).await.map_err(Fault::Store)?;
        fold::events(run_id, &events, &texts)
    }

    /// The events of a run from this number on, until they amount to a number of bytes; at least one if there is
    /// one.
    ///
    /// # Errors
    /// When its journal can't be read.
    pub async fn events_from(&self, run_id: &str, from: usize, most_bytes: usize) -> Result<Vec<Event>, Fault> {
        events_from(&*self.journal, run_id, u64::try_from(from).unwrap_or(u64::MAX), most_bytes).await
    }

    /// A run that somebody decides about, as it was when it was read first.
    ///
    /// # Errors
    /// When its journal can't be read, or its events do not fit together.
    pub async fn read<'r>(&self, run: &'r mut DecidedRun) -> Result<&'r mut FollowedRun, Fault> {
        let DecidedRun { row, read, .. } = run;
        match read {
            Some(read) => Ok(read),
            None => {
                let run_id = row.run_id.as_str();
                let events = self.events(run_id).await?;
                let program = self.program(run_id, &events).await?;
                let run = FoldedEvents::new(&program.program, run_id, events)?;
                Ok(read.insert(FollowedRun { program, run }))
            }
        }
    }

    /// The same as it is now: what came since is read; all of it, if it follows another document since.
    ///
    /// # Errors
    /// When its journal can't be read, or its events do not fit together.
    pub async fn read_on<'r>(&self, run: &'r mut DecidedRun) -> Result<&'r mut FollowedRun, Fault> {
        if let Some(FollowedRun { program: ProgramOfRun { program, engine }, run: read }) = &mut run.read {
            match engine.catch_up(program, &run.row.run_id, read).await.map(drop) {
                Err(Fault::Changed { .. }) => run.read = None,
                caught_up => caught_up?,
            }
        }
        self.read(run).await
    }

    /// A run's program, and its state.
    ///
    /// # Errors
    /// When its journal can't be read, or its events do not fit together.
    pub async fn folded(&self, run_id: &str) -> Result<FoldedRun, Fault> {
        let events = self.events(run_id).await?;
        let ProgramOfRun { program, .. } = self.program(run_id, &events).await?;
        let state = fold::fold(&program, run_id, events)?;
        Ok(FoldedRun { program, state })
    }

    /// The same, for one of many who look at the run: what took long to fold is folded once.
    ///
    /// # Errors
    /// As those of [`RunStore::folded`].
    pub async fn looked_at(&self, run_id: &str) -> Result<Arc<FoldedRun>, Fault> {
        let events = self.events(run_id).await?;
        let ProgramOfRun { program, .. } = self.program(run_id, &events).await?;
        let span = FoldedSpan::of(run_id, &events);
        let kept = || self.folds.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(run) = kept().get(&span, &program) {
            return Ok(run);
        }
        let since = clock::instant();
        let state = fold::fold(&program, run_id, events)?;
        let run = Arc::new(FoldedRun { program, state });
        kept().put(span, &run, since);
        Ok(run)
    }

    /// The same of a run whose row is known: it is completed if an older version wrote it.
    ///
    /// # Errors
    /// As those of [`RunStore::folded`].
    pub async fn folded_of(&self, run: &RunSummary) -> Result<Arc<FoldedRun>, Fault> {
        let folded = self.looked_at(&run.run_id).await?;
        complete_row(&*self.journal, run, &folded.program, &folded.state).await;
        Ok(folded)
    }

    /// The program of a run, from the documents in its journal, and the engine of its project.
    ///
    /// # Errors
    /// When the journal has no document, or this version can't read it.
    pub async fn program(&self, run_id: &str, events: &[Event]) -> Result<ProgramOfRun, Fault> {
        let unreadable = |reason: &str| Fault::Journal { run: run_id.to_owned(), reason: reason.to_owned() };
        let documents = fold::documents(events).ok_or_else(|| unreadable("it holds no document"))?;
        let served = self.current.get();
        let (root, project) = project_of(&served.folder, documents);
        let engine = served.engine(root).ok_or_else(|| unreadable("its project is not there"))?.clone();
        let key = key(root, documents, fold::step_of(events).as_deref());
        let program = match self.cached(&key) {
            Some(program) => program,
            None => {
                let mut texts = fold::texts(run_id, events, project.cloned())?;
                texts.add_embedded(served.folder.embedded.clone());
                let compiled = self.compiler.run(move || fold::recorded(&texts)).await;
                let program = compiled.map_err(|_| unreadable(NOT_COMPILED))??;
                self.programs.lock().unwrap_or_else(PoisonError::into_inner).put(key, &program);
                program
            }
        };
        Ok(ProgramOfRun { program, engine })
    }

    /// The program that continues a run, by what a human says of its document: the new one, the recorded one, or
    /// nothing.
    ///
    /// # Errors
    /// When the folder has changed the loop since, and the human did not say which one it is to be.
    pub async fn chosen(
        &self,
        run_id: &str,
        events: &[Event],
        new_document: Option<bool>,
    ) -> Result<ProgramOfRun, ProblemDetails> {
        let recorded = self.program(run_id, events).await?;
        let file = fold::documents(events).and_then(|documents| documents.first()).map(|main| main.file.as_str());
        let served = self.current.get();
        let mut offered = served.folder.loops.values();
        let offered = offered.find(|offered| offered.program.sources.first().map(|source| &*source.name) == file);
        let Some(offered) = offered.filter(|_| new_document != Some(false)) else { return Ok(recorded) };
        match (fold::same_document(&offered.program, events), new_document) {
            (Err(Fault::Changed { file }), None) => Err(ProblemDetails::conflict(
                DOCUMENT_CHANGED,
                format!(
                    "{file} has changed since the run started: send `\"new_document\": true` to continue with the new text, \
                     or `\"new_document\": false` to continue with the recorded one"
                ),
            )),
            (Err(_), Some(true)) => Ok(ProgramOfRun { program: Arc::clone(&offered.program), engine: recorded.engine }),
            _ => Ok(recorded),
        }
    }

    fn cached(&self, key: &[u8; 32]) -> Option<Arc<Program>> {
        self.programs.lock().unwrap_or_else(PoisonError::into_inner).get(key)
    }
}

/// What the loops of a folder need and can't be read: see [`Engine::missing`].
pub fn missing(served: &LiveFolder) -> Vec<MissingRequirement> {
    let of = |offered: &ServedLoop| {
        let engine = served.engine(&offered.root)?;
        let mut missing = engine.missing(&offered.program, None);
        if let Some(webhook) = offered.program.as_flow().and_then(|flow| flow.webhook.as_ref()) {
            missing.extend(engine.missing_secrets(&webhook.secrets, &webhook.said()));
        }
        Some(missing)
    };
    let missing: BTreeSet<_> = served.folder.loops.values().filter_map(of).flatten().collect();
    missing.into_iter().collect()
}

/// The project of a document: that of the loop with this file, or else the folder's.
fn project_of<'f>(folder: &'f Folder, documents: &[RunDocument]) -> (&'f PathBuf, Option<&'f Source>) {
    let file = documents.first().map(|document| document.file.as_str());
    let is_of = |offered: &&ServedLoop| offered.program.sources.first().map(|source| &*source.name) == file;
    match folder.loops.values().find(is_of) {
        Some(offered) => (&offered.root, offered.source.as_ref()),
        None => (&folder.root, folder.source.as_ref()),
    }
}

fn key(root: &Path, documents: &[RunDocument], step: Option<&str>) -> [u8; 32] {
    let mut hash = digest::Context::new(&digest::SHA256);
    let mut take = |text: &[u8]| {
        hash.update(&text.len().to_le_bytes());
        hash.update(text);
    };
    take(root.as_os_str().as_encoded_bytes());
    take(step.unwrap_or_default().as_bytes());
    for document in documents {
        take(document.file.as_bytes());
        take(document.text.as_bytes());
    }
    let mut key = [0; 32];
    key.iter_mut().zip(hash.finish().as_ref()).for_each(|(to, from)| *to = *from);
    key
}
