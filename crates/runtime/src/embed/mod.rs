//! What a program around the engine types: from a document to a loop in one chain of calls, its runs by handles, and what keeps
//! them going.

mod handle;
mod keeper;
mod notices;
mod outcome;
mod spawn;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use secrecy::SecretString;
use serde_json::Value;

pub use self::handle::RunHandle;
pub use self::keeper::Keeper;
pub use self::notices::{Notices, RunNotice};
pub use self::outcome::{Outcome, PauseOutcome, PausedCall};
pub use self::spawn::{ResumeRun, StartRun};
use crate::drive::builder::EngineBuilder;
use crate::drive::engine::Engine;
use crate::drive::fault::Fault;
use crate::drive::model::DynModel;
use crate::drive::tool::DynTool;
use crate::journal::{self, Journal, StoreError};
use crate::project;
use crate::project::load::{DocumentError, load_texts};
use loopctl_lang::compile::Texts;
use loopctl_lang::diagnostic::{Diagnostic, Source};
use loopctl_lang::language::{Project, Script};
use loopctl_lang::program::Program;
use loopctl_lang::syntax::document::{self, DocumentKind};

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
    /// Documents beside it, in memory.
    beside: Vec<Source>,
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

    /// Loads a loop from its text. Diagnostics call the text `name`. No file is read: the settings are the defaults, unless
    /// [`LoopBuilder::document`] gives a project file.
    pub fn load_text(name: &str, text: impl Into<String>) -> LoopBuilder {
        LoopBuilder::new(DocumentText::Text(Source::new(name, text.into())))
    }
}

impl LoopBuilder {
    fn new(document: DocumentText) -> Self {
        let engine = Engine::builder(Arc::default(), Path::new("."));
        Self { document, actions: Vec::new(), beside: Vec::new(), store: None, has_journal: false, engine }
    }

    /// Registers the actions of another file, as `--actions` does.
    #[must_use]
    pub fn actions(mut self, file: impl Into<PathBuf>) -> Self {
        self.actions.push(file.into());
        self
    }

    /// Puts a document in memory beside it, under the name that a file would have: a loop or a workflow that it calls, actions, or the
    /// project file (`loopctl.json`), which then takes the place of the one in its folder.
    #[must_use]
    pub fn document(mut self, name: &str, text: impl Into<String>) -> Self {
        self.beside.push(Source::new(name, text.into()));
        self
    }

    /// Takes the tools, the models, the keys, the script and the store of an engine, so that many loops share them, in place of what
    /// was set before.
    #[must_use]
    pub fn engine(mut self, engine: &Engine) -> Self {
        self.engine = self.engine.like(engine);
        self.has_journal = true;
        self
    }

    /// Registers a tool written in Rust: an [`EmbeddedTool`](crate::drive::tool::EmbeddedTool), or a [`DynTool`].
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

    /// Registers a model written in Rust under a name: an [`EmbeddedModel`](crate::drive::model::EmbeddedModel), or a [`DynModel`]. A loop
    /// that names no model uses it when it is the only one.
    #[must_use]
    pub fn model(mut self, name: impl Into<String>, model: impl DynModel + 'static) -> Self {
        self.engine = self.engine.model(name, model);
        self
    }

    /// Gives a secret by its key in `orgconfig`, in place of the project: an action writes `orgconfig:KEY`. Nothing shows it.
    #[must_use]
    pub fn secret(mut self, key: impl Into<String>, secret: impl Into<SecretString>) -> Self {
        self.engine = self.engine.secret(key, secret);
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

    /// Keeps runs in the store of this name: `memory`, or `sqlite:PATH`, relative to the project's folder. Loops of one process that name
    /// the same store share it.
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
        let texts = &mut gathered.texts;
        (texts.embedded, texts.secrets) = (self.engine.signatures(), self.engine.secret_keys());
        self.beside.into_iter().for_each(|source| put_beside(texts, source));
        let loaded = load_texts(&gathered.texts, gathered.root)?;
        let mut engine = self.engine.project(Arc::clone(&loaded.program.project), &loaded.root);
        let of_project = || loaded.program.project.store.clone().filter(|_| !self.has_journal);
        if let Some(store) = self.store.or_else(of_project) {
            engine = engine.journal(journal::open_shared(&store, &loaded.root)?);
        }
        Ok(Loop { engine: engine.build(), program: loaded.program, warnings: loaded.warnings.into() })
    }
}

/// Puts a document in memory among those that belong to another one.
fn put_beside(texts: &mut Texts, source: Source) {
    let is_project = Path::new(&*source.name).file_name().is_some_and(|name| name == Project::FILE);
    match document::read(&source).kind {
        _ if is_project => texts.project = Some(source),
        Some(DocumentKind::Workflow) => texts.workflows.insert(0, source),
        Some(DocumentKind::Actions) => texts.extra_actions.push(source),
        // What is no document at all is reported as a loop that can't be called.
        _ => texts.loops.insert(0, source),
    }
}

impl Loop {
    /// Starts a run: `orders.start(input).id("order-7").await?` waits until it ends or waits for a human, and
    /// `orders.start(input).spawn().await?` gives a handle as soon as it is durable.
    pub fn start(&self, input: Value) -> StartRun {
        StartRun::new(self.clone(), input)
    }

    /// Resumes a run: with a human's decision, as `orders.resume("order-7").answer("Yes.").await?`, or where it was cut off.
    pub fn resume(&self, run_id: impl Into<String>) -> ResumeRun {
        ResumeRun::new(self.clone(), run_id.into())
    }

    /// The run of this id: to read, to wait for, or to cancel. Nothing is resumed by it.
    pub fn handle(&self, run_id: impl Into<String>) -> RunHandle {
        RunHandle::new(self.clone(), run_id.into())
    }

    /// The ids of the runs of the loop that an earlier process left, interrupted or was cut off in, the oldest first:
    /// [`Loop::resume`] continues each of them, and [`Engine::keep`] all but the interrupted ones by itself.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn unfinished(&self) -> Result<Vec<String>, Fault> {
        let runs = self.engine.unfinished(&self.program).await?;
        Ok(runs.into_iter().map(|run| run.run_id).collect())
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
