//! Loops inside a program of yours: from a document to a runnable loop, in one chain of calls.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;

use crate::diagnostic::{Diagnostic, Source};
use crate::drive::builder::EngineBuilder;
use crate::drive::engine::{Engine, Resume, Watch};
use crate::drive::fault::Fault;
use crate::drive::model::EmbeddedModel;
use crate::drive::run_result::Finished;
use crate::drive::start::Start;
use crate::drive::tool::DynTool;
use crate::engine::outcome::Status;
use crate::journal::{self, CancelRequest, Journal, StoreError};
use crate::language::Script;
use crate::program::Program;
use crate::project;
use crate::project::load::{DocumentError, load_texts};

/// A loop that is ready to run: the compiled document, and the engine that runs it. Cheap to clone.
#[derive(Clone)]
pub struct Loop {
    engine: Engine,
    program: Arc<Program>,
    warnings: Arc<[Diagnostic]>,
}

/// Makes a [`Loop`]: [`Loop::load`] and [`Loop::load_text`] return one.
pub struct LoopBuilder {
    document: DocumentText,
    actions: Vec<PathBuf>,
    store: Option<String>,
    has_journal: bool,
    engine: EngineBuilder,
}

/// Where the text of a loop comes from.
enum DocumentText {
    File(PathBuf),
    Text(Source),
}

/// Why there is no [`Loop`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// The document has errors: each is a [`Diagnostic`] with its code, position and help.
    #[error(transparent)]
    Document(#[from] DocumentError),
    /// The store can't be opened.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Loop {
    /// Loads the loop in the file at `path`, with the project file and the actions that belong to it, as
    /// `loopctl run` does.
    pub fn load(path: impl Into<PathBuf>) -> LoopBuilder {
        LoopBuilder::new(DocumentText::File(path.into()))
    }

    /// Loads a loop from its text. Diagnostics call the text `name`. No file is read: the settings are the defaults.
    pub fn load_text(name: &str, text: impl Into<String>) -> LoopBuilder {
        LoopBuilder::new(DocumentText::Text(Source::new(name, text.into())))
    }
}

impl LoopBuilder {
    fn new(document: DocumentText) -> Self {
        let engine = Engine::builder(Arc::default(), Path::new("."));
        Self { document, actions: Vec::new(), store: None, has_journal: false, engine }
    }

    /// Registers the actions of another file, as `--actions` does.
    #[must_use]
    pub fn actions(mut self, file: impl Into<PathBuf>) -> Self {
        self.actions.push(file.into());
        self
    }

    /// Takes the tools, the models, the key, the script and the store of an engine, so that many loops share them, in place of what
    /// was set before.
    #[must_use]
    pub fn engine(mut self, engine: &Engine) -> Self {
        self.engine = self.engine.like(engine);
        self.has_journal = true;
        self
    }

    /// Registers a tool written in Rust: an [`EmbeddedTool`](crate::EmbeddedTool), or a [`DynTool`].
    #[must_use]
    pub fn tool(mut self, tool: impl DynTool + 'static) -> Self {
        self.engine = self.engine.tool(tool);
        self
    }

    /// Plays a script in place of every model, and of the tools that it names.
    #[must_use]
    pub fn script(mut self, script: Script) -> Self {
        self.engine = self.engine.script(script);
        self
    }

    /// Registers a model written in Rust under a name. A loop that names no model uses it when it is the only one.
    #[must_use]
    pub fn model(mut self, name: impl Into<String>, model: impl EmbeddedModel) -> Self {
        self.engine = self.engine.model(name, model);
        self
    }

    /// Sets the API key for models that the project file gives none. Without it the key comes from the environment,
    /// like `OPENAI_API_KEY`.
    #[must_use]
    pub fn api_key(mut self, key: impl Into<String>) -> Self {
        self.engine = self.engine.api_key(key);
        self
    }

    /// Keeps runs in this journal. Default: the `store` that the project file names; without one in memory, for as long as
    /// the loop lives.
    #[must_use]
    pub fn journal(mut self, journal: Arc<dyn Journal>) -> Self {
        self.engine = self.engine.journal(journal);
        self.has_journal = true;
        self
    }

    /// Keeps runs in the store of this name: `memory`, or `sqlite:PATH`, relative to the project's folder.
    #[must_use]
    pub fn store(mut self, name: impl Into<String>) -> Self {
        self.store = Some(name.into());
        self
    }

    /// Compiles and checks the document.
    ///
    /// # Errors
    /// Every error that `loopctl check` reports, or why the store can't be opened.
    pub fn build(self) -> Result<Loop, LoadError> {
        let mut gathered = match self.document {
            DocumentText::File(path) => project::gather(&path, &self.actions),
            DocumentText::Text(source) => project::alone(source, &self.actions),
        }
        .map_err(|diagnostics| DocumentError { diagnostics, sources: Vec::new() })?;
        gathered.texts.embedded = self.engine.signatures();
        let loaded = load_texts(&gathered.texts, gathered.root)?;
        let mut engine = self.engine.project(Arc::clone(&loaded.program.project), &loaded.root);
        let of_project = || loaded.program.project.store.clone().filter(|_| !self.has_journal);
        if let Some(store) = self.store.or_else(of_project) {
            engine = engine.journal(journal::open(&store, &loaded.root)?);
        }
        Ok(Loop { engine: engine.build(), program: loaded.program, warnings: loaded.warnings.into() })
    }
}

impl Loop {
    /// Runs the loop until it ends or waits for a human.
    ///
    /// # Errors
    /// When the input does not match the loop's, a model or secret is missing, or the store fails.
    pub async fn run(&self, input: Value) -> Result<Finished, Fault> {
        self.start(Start { input, ..Start::default() }, Watch::default()).await
    }

    /// Runs the loop as `start` says, watched by `watch`.
    ///
    /// # Errors
    /// As those of [`Engine::run`].
    pub async fn start(&self, start: Start, watch: Watch<'_>) -> Result<Finished, Fault> {
        self.engine.run(&self.program, start, watch).await
    }

    /// Resumes a run: with a human's decision, or where it was cut off.
    ///
    /// # Errors
    /// As those of [`Engine::resume`].
    pub async fn resume(&self, run_id: &str, resume: Resume) -> Result<Finished, Fault> {
        self.engine.resume(&self.program, run_id, resume, Watch::default()).await
    }

    /// The ids of the runs of the loop that an earlier process left, interrupted or was cut off in, the oldest first:
    /// [`Loop::resume`] continues each of them.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn unfinished(&self) -> Result<Vec<String>, Fault> {
        let runs = self.engine.unfinished(&self.program).await?;
        Ok(runs.into_iter().map(|run| run.run_id).collect())
    }

    /// Ends a run by hand.
    ///
    /// # Errors
    /// As those of [`Engine::cancel`].
    pub async fn cancel(&self, run_id: &str, reason: Option<String>) -> Result<Status, Fault> {
        self.engine.cancel(&self.program, run_id, CancelRequest { reason, by: None }).await
    }

    /// The engine, for everything that has no method here.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// The compiled document.
    pub fn program(&self) -> &Arc<Program> {
        &self.program
    }

    /// The warnings about the document.
    pub fn warnings(&self) -> &[Diagnostic] {
        &self.warnings
    }
}

impl fmt::Debug for Loop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Loop").field("name", &self.program.name).finish_non_exhaustive()
    }
}

impl fmt::Debug for LoopBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LoopBuilder").finish_non_exhaustive()
    }
}
