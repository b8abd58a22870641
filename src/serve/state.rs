//! What all requests share: the folder, the store, an engine for each project, and who may.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ring::digest;

use super::callback::Callbacks;
use super::connections::{self, Connections, Room};
use super::desk::Desk;
use super::folder::Folder;
use super::gate::{Caller, Gate};
use super::guard::Names;
use super::judge::Judge;
use super::kept::Kept;
use super::metrics::Metrics;
use super::places::{Most, Places};
use super::problem::Problem;
use super::relative::Hidden;
use super::shares::{Shares, Whole};
use crate::compile::{Compiled, Texts, compile};
use crate::diagnostic::Source;
use crate::drive::engine::Engine;
use crate::drive::fault::Fault;
use crate::drive::fold;
use crate::engine::event::{Event, RunDocument};
use crate::engine::state::State;
use crate::journal::{Journal, RunSummary};
use crate::program::Program;

/// How much a request may take.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// The longest body in bytes.
    pub body_bytes: usize,
    /// How long a body may take to arrive.
    pub body_time: Duration,
}

/// What all requests share.
pub struct Served {
    /// The folder.
    pub folder: Folder,
    /// The store.
    pub journal: Arc<dyn Journal>,
    /// Who may.
    pub gate: Gate,
    /// The names that the server is called by.
    pub names: Names,
    /// How much a request may take.
    pub limits: Limits,
    /// The runs that are driven here.
    pub desk: Desk,
    /// What each token and organisation has taken.
    pub shares: Arc<Shares>,
    /// The connections that are open.
    pub connections: Arc<Connections>,
    /// The results that are posted elsewhere.
    pub callbacks: Callbacks,
    /// What is counted of them.
    pub metrics: Arc<Metrics>,
    /// Where documents are judged.
    pub judge: Judge,
    /// What no caller is shown of where files lie.
    pub(super) hidden: Hidden,
    engines: HashMap<PathBuf, Engine>,
    programs: Mutex<Kept>,
    draining: AtomicBool,
}

/// What a server is made of.
pub struct Parts {
    /// The folder.
    pub folder: Folder,
    /// The store.
    pub journal: Arc<dyn Journal>,
    /// Who may.
    pub gate: Gate,
    /// The names that the server is called by.
    pub names: Names,
    /// How much a request may take.
    pub limits: Limits,
    /// So many runs are driven at once.
    pub most_runs: usize,
    /// The key that posted results are signed with.
    pub callback_key: Option<String>,
}

/// A document's program, or what it is to be compiled from.
enum Ready {
    Kept(Arc<Program>, Engine),
    Texts(Box<Texts>, [u8; 32], Engine),
}

/// What is reported of a run whose document broke the thread that compiled it.
const NOT_COMPILED: &str = "its document could not be compiled";

/// A run as its journal tells it.
pub struct Recorded {
    /// The program that it goes by.
    pub program: Arc<Program>,
    /// The engine of its project.
    pub engine: Engine,
    /// Its events.
    pub events: Vec<Event>,
}

impl Recorded {
    /// Its state.
    ///
    /// # Errors
    /// When the journal's events make no run.
    pub fn state(self) -> Result<State, Fault> {
        let run_id = match self.events.first().map(|event| &event.kind) {
            Some(crate::engine::event::EventKind::Started(started)) => started.run_id.clone(),
            _ => String::new(),
        };
        fold::fold(&self.program, &run_id, self.events)
    }
}

impl Served {
    /// Puts the parts together.
    pub fn new(parts: Parts) -> Self {
        let mut engines = HashMap::new();
        let roots = parts.folder.loops.values().map(|offered| (&offered.root, &offered.program.project));
        for (root, project) in std::iter::once((&parts.folder.root, &parts.folder.project)).chain(roots) {
            engines.entry(root.clone()).or_insert_with(|| {
                Engine::builder(Arc::clone(project), root).journal(Arc::clone(&parts.journal)).build()
            });
        }
        let limits = &parts.folder.project.serve.limits;
        let room = Room::of(connections::files(), parts.most_runs, limits.unknown_connections);
        let whole = Whole { connections: room.known, places: parts.most_runs, orgs: parts.gate.orgs() };
        let shares = Arc::new(Shares::new(limits, whole, parts.gate.is_open()));
        let places = Places::new(parts.most_runs, Most::of(limits), &parts.gate.starters());
        let hidden = Hidden::new(engines.keys().map(PathBuf::as_path));
        let tools = parts.folder.loops.values().flat_map(|offered| &offered.program.tools);
        Self {
            metrics: Arc::new(Metrics::new(tools.map(|tool| tool.name.clone()).collect())),
            callbacks: Callbacks::new(&parts.folder.project.allow, parts.callback_key),
            folder: parts.folder,
            journal: parts.journal,
            gate: parts.gate,
            names: parts.names,
            limits: parts.limits,
            desk: Desk::new(places, Arc::clone(&shares)),
            connections: Connections::new(room, Arc::clone(&shares)),
            shares,
            engines,
            programs: Mutex::default(),
            draining: AtomicBool::new(false),
            judge: Judge::default(),
            hidden,
        }
    }

    /// Begins to end: nothing new is begun.
    pub fn drain(&self) {
        self.draining.store(true, Ordering::SeqCst);
        self.metrics.leave();
    }

    /// Whether the server is about to end.
    pub fn is_draining(&self) -> bool {
        self.draining.load(Ordering::SeqCst)
    }

    /// The engine of a project's folder.
    pub fn engine(&self, root: &PathBuf) -> Option<&Engine> {
        self.engines.get(root).or_else(|| self.engines.get(&self.folder.root))
    }

    /// A run of the caller's organisation.
    ///
    /// # Errors
    /// 404 when there is none, or it is another organisation's.
    pub async fn find(&self, caller: &Caller, run_id: &str) -> Result<RunSummary, Problem> {
        self.journal.find_of(caller.org.as_deref(), run_id).await?.ok_or_else(Problem::no_such_run)
    }

    /// A run with its program and events.
    ///
    /// # Errors
    /// When there is no such run, or its journal can't be read.
    pub async fn recorded(&self, run_id: &str) -> Result<Recorded, Fault> {
        let texts = self.journal.read(run_id).await.map_err(Fault::Store)?;
        let shared = self.journal.texts(run_id).await.map_err(Fault::Store)?;
        let events = fold::events(run_id, &texts, &shared)?;
        let (program, engine) = self.program(run_id, &events).await?;
        Ok(Recorded { program, engine, events })
    }

    /// The program that a run goes by, from the texts in its journal, and the engine of its project.
    ///
    /// # Errors
    /// When the journal has no document, or this version can't read it.
    pub async fn program(&self, run_id: &str, events: &[Event]) -> Result<(Arc<Program>, Engine), Fault> {
        match self.ready(run_id, events)? {
            Ready::Kept(program, engine) => Ok((program, engine)),
            Ready::Texts(texts, key, engine) => {
                let compiled = self.judge.in_turn(move || compile(&texts)).await;
                let broken = |_| Fault::Journal { run: run_id.to_owned(), reason: NOT_COMPILED.to_owned() };
                Ok((self.keep(key, compiled.map_err(broken)?)?, engine))
            }
        }
    }

    fn ready(&self, run_id: &str, events: &[Event]) -> Result<Ready, Fault> {
        let unreadable = |reason: &str| Fault::Journal { run: run_id.to_owned(), reason: reason.to_owned() };
        let documents = fold::documents(events).ok_or_else(|| unreadable("it holds no document"))?;
        let (root, project) = self.home(documents);
        let engine = self.engine(root).ok_or_else(|| unreadable("its project is not there"))?.clone();
        let key = key(root, documents);
        let kept = self.programs.lock().unwrap_or_else(PoisonError::into_inner).get(&key);
        if let Some(program) = kept {
            return Ok(Ready::Kept(program, engine));
        }
        let texts = fold::texts(events, project.cloned()).ok_or_else(|| unreadable("it holds no document"))?;
        Ok(Ready::Texts(Box::new(texts), key, engine))
    }

    /// Keeps a program for the next time. It was judged when its run began: the rules may be newer.
    fn keep(&self, key: [u8; 32], compiled: Compiled) -> Result<Arc<Program>, Fault> {
        let program = compiled.program.ok_or(Fault::Diagnostics(compiled.diagnostics))?;
        self.programs.lock().unwrap_or_else(PoisonError::into_inner).put(key, &program);
        Ok(program)
    }

    /// The project of a document: that of the loop of this file, else the folder's.
    fn home(&self, documents: &[RunDocument]) -> (&PathBuf, Option<&Source>) {
        let file = documents.first().map(|document| document.file.as_str());
        let offered = self
            .folder
            .loops
            .values()
            .find(|offered| offered.program.sources.first().map(|source| &*source.name) == file);
        match offered {
            Some(offered) => (&offered.root, offered.source.as_ref()),
            None => (&self.folder.root, self.folder.source.as_ref()),
        }
    }
}

fn key(root: &std::path::Path, documents: &[RunDocument]) -> [u8; 32] {
    let mut hash = digest::Context::new(&digest::SHA256);
    let mut take = |text: &[u8]| {
        hash.update(&text.len().to_le_bytes());
        hash.update(text);
    };
    take(root.as_os_str().as_encoded_bytes());
    for document in documents {
        take(document.file.as_bytes());
        take(document.text.as_bytes());
    }
    let mut key = [0; 32];
    key.iter_mut().zip(hash.finish().as_ref()).for_each(|(to, from)| *to = *from);
    key
}
