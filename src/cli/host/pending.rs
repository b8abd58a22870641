//! The driver's contract, as the command line is written against it, until the driver is there: this
//! file goes when `host.rs` names the real ones. Nothing here runs anything: every call says so.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use serde_json::Value;

use crate::compile::Program;
use crate::diagnostic::{Diagnostic, Source};
use crate::engine::event::{Decided, Event};
use crate::engine::notice::Listener;
use crate::engine::outcome::Status;
use crate::engine::state::State;
use crate::journal::{Journal, StoreFault};
use crate::language::{Project, Script};

const MISSING: &str = "this build has no driver: it can't run, resume or read loops";

/// `drive::load::Loaded`.
pub struct Loaded {
    /// The compiled loop.
    pub program: Arc<Program>,
    /// The project's folder, else the document's.
    pub root: PathBuf,
    /// What is likely not what was meant.
    pub warnings: Vec<Diagnostic>,
    /// The texts.
    pub sources: Vec<Source>,
}

/// `drive::load::LoadFault`.
#[derive(Debug)]
pub struct LoadFault {
    /// All faults.
    pub diagnostics: Vec<Diagnostic>,
    /// The texts that they point into.
    pub sources: Vec<Source>,
}

/// `drive::fault::Fault`.
#[derive(Debug, thiserror::Error)]
#[expect(dead_code, reason = "the driver makes them")]
pub enum Fault {
    /// Input or document.
    #[error("the document can't be run")]
    Diagnostics(Vec<Diagnostic>),
    /// Something that a start needs is not there.
    #[error("{0}")]
    Missing(String),
    /// The store failed before the first call.
    #[error(transparent)]
    Store(StoreFault),
    /// The store failed under way.
    #[error("the run stopped: {0}; it can be resumed")]
    Cut(StoreFault),
    /// It does not fit the run.
    #[error("{0}")]
    Refused(String),
    /// The document has changed.
    #[error("{file} has changed since the run began; use --new-document to go on with the new one")]
    Changed {
        /// Which file.
        file: String,
    },
}

/// `drive::start::Start`.
#[derive(Debug, Clone, Default)]
#[expect(dead_code, reason = "the driver reads them")]
pub struct Start {
    /// The run's input; `Null` is the document's own.
    pub input: Value,
    /// The run's id.
    pub run_id: Option<String>,
    /// The session.
    pub session: Option<String>,
    /// The model.
    pub model: Option<String>,
    /// The active time in milliseconds.
    pub timeout_ms: Option<u64>,
}

/// `drive::engine::Resume`.
#[derive(Debug, Clone, Default)]
#[expect(dead_code, reason = "the driver reads them")]
pub struct Resume {
    /// What a human decided.
    pub decided: Option<Decided>,
    /// Whether a changed document is taken.
    pub new_document: bool,
}

/// `drive::stop::Stop`.
#[derive(Debug, Clone, Default)]
pub struct Stop;

impl Stop {
    /// Nothing is asked.
    pub fn new() -> Self {
        Self
    }
    /// After the step under way.
    pub fn after_step(&self) {}
    /// At once.
    pub fn now(&self) {}
}

/// `drive::engine::Watch`.
#[derive(Clone, Default)]
#[expect(dead_code, reason = "the driver reads them")]
pub struct Watch<'a> {
    /// Is told what happens.
    pub listener: Option<&'a dyn Listener>,
    /// Stops the run.
    pub stop: Option<Stop>,
}

/// `drive::engine::Finished`.
pub struct Finished {
    /// The run's state.
    pub state: State,
}

/// `drive::engine::Engine`.
#[derive(Clone)]
pub struct Engine;

/// `drive::engine::EngineBuilder`.
pub struct EngineBuilder;

impl EngineBuilder {
    /// Keeps runs here.
    pub fn journal(self, _journal: Arc<dyn Journal>) -> Self {
        self
    }
    /// Takes the models' place.
    pub fn script(self, _script: Script) -> Self {
        self
    }
    /// The engine.
    pub fn build(self) -> Engine {
        Engine
    }
}

fn missing<T>() -> Result<T, Fault> {
    Err(Fault::Missing(MISSING.to_owned()))
}

#[expect(clippy::unused_async, reason = "the driver's are")]
impl Engine {
    /// Begins an engine.
    pub fn builder(_project: Arc<Project>, _root: &Path) -> EngineBuilder {
        EngineBuilder
    }
    /// Runs.
    pub async fn run(&self, _: &Arc<Program>, _: Start, _: Watch<'_>) -> Result<Finished, Fault> {
        missing()
    }
    /// Goes on.
    pub async fn resume(&self, _: &Arc<Program>, _: &str, _: Resume, _: Watch<'_>) -> Result<Finished, Fault> {
        missing()
    }
    /// Ends by hand.
    pub async fn cancel(&self, _: &Program, _: &str, _: Option<String>) -> Result<Status, Fault> {
        missing()
    }
    /// A run's events.
    pub async fn events(&self, _: &str) -> Result<Vec<Event>, Fault> {
        missing()
    }
    /// A run's state.
    pub async fn state(&self, _: &Program, _: &str) -> Result<State, Fault> {
        missing()
    }
    /// The first request.
    pub fn prompt(&self, _: &Arc<Program>, _: &Start) -> Result<Bytes, Fault> {
        missing()
    }
}

/// `drive::load::load`.
pub fn load(path: &Path, _actions: &[PathBuf]) -> Result<Loaded, LoadFault> {
    let source = Source::new(path.display().to_string(), "");
    let diagnostics = vec![Diagnostic::error("L000", MISSING, "", source.whole())];
    Err(LoadFault { diagnostics, sources: vec![source] })
}

/// `drive::fold::texts` and `compile`.
pub fn recorded(_run_id: &str, _events: &[Event], _project: Option<Source>) -> Result<Arc<Program>, Fault> {
    missing()
}

/// `journal::open::open`.
pub fn open(url: &str, _base: &Path) -> Result<Arc<dyn Journal>, StoreFault> {
    Err(StoreFault::Open { store: url.to_owned(), reason: MISSING.to_owned() })
}

/// `language::schema::schema`.
pub fn schema(_kind: &str) -> Option<Value> {
    None
}
