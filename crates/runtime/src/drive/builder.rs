//! The builder of an engine.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use secrecy::SecretString;

use super::answer_hint::AnswerHints;
use super::gate;
use super::given_parts::GivenParts;
use super::inbox::DecisionInboxes;
use super::launcher::{Launcher, SpawnedRuns};
use super::long_work;
use super::model::{CallGates, DynModel, Models, ScriptPlayer};
use super::model_waits::ModelWaits;
use super::pending_model_call::Deaths;
use super::run_meter::RunMeters;
use super::secret::Vault;
use super::stage::Stage;
use super::subrun_budget::SubrunBudgets;
use super::texts::SharedTexts;
use super::tool::{AllowedPrograms, DynTool, Toolbox};
use super::world::{Engine, World};
use crate::journal::Journal;
use crate::journal::memory::MemoryJournal;
use loopctl_lang::compile::ToolSignature;
use loopctl_lang::language::Project;
use loopctl_lang::program::long_work::set_departure;

/// Makes an [`Engine`].
pub struct EngineBuilder {
    project: Arc<Project>,
    root: PathBuf,
    journal: Option<Arc<dyn Journal>>,
    given: GivenParts,
    launcher: Option<Arc<dyn Launcher>>,
    meters: Option<Arc<dyn RunMeters>>,
    hints: Option<Arc<dyn AnswerHints>>,
    gates: Arc<CallGates>,
    stage: Option<Arc<Stage>>,
}

impl EngineBuilder {
    /// An engine without tools and script, whose runs are in memory.
    pub(super) fn new(project: Arc<Project>, root: &Path) -> Self {
        Self {
            project,
            root: root.to_owned(),
            journal: None,
            given: GivenParts::default(),
            launcher: None,
            meters: None,
            hints: None,
            gates: Arc::default(),
            stage: None,
        }
    }

    /// The same tools, models, key, script and store as another engine has, for this project.
    #[must_use]
    pub fn like(mut self, engine: &Engine) -> Self {
        self.given = engine.world.given.clone();
        self.journal(Arc::clone(&engine.world.journal))
    }

    /// The tools that another engine has, and nothing else of it.
    #[must_use]
    #[cfg(feature = "simulation")]
    pub fn tools_of(mut self, engine: &Engine) -> Self {
        self.given.tools = engine.world.given.tools.clone();
        self
    }

    /// Keeps runs in this journal. Default: in memory, where every run stays for as long as the engine lives.
    #[must_use]
    pub fn journal(mut self, journal: Arc<dyn Journal>) -> Self {
        self.journal = Some(journal);
        self
    }

    /// Replaces every model by a script, and the tools that it names.
    #[must_use]
    pub fn script(mut self, script: loopctl_lang::language::Script) -> Self {
        self.given.script = Some(Arc::new(ScriptPlayer::new(script)));
        self
    }

    /// Plays everything on a stage: nothing outside is called, and no model is asked unless the stage is live.
    #[must_use]
    #[cfg(feature = "simulation")]
    pub fn stage(mut self, stage: Arc<Stage>) -> Self {
        self.stage = Some(stage);
        self
    }

    /// A tool written in Rust, for loops that declare `{"type": "action", "name": NAME}`. It takes the place of an
    /// earlier one of the same name.
    #[must_use]
    pub fn tool(mut self, tool: impl DynTool + 'static) -> Self {
        self.given.tools.insert(tool.name().to_owned(), Arc::new(tool));
        self
    }

    /// A model written in Rust, by this name. It replaces a model of the project with the same name. A loop
    /// that names no model uses it when it is the only one.
    #[must_use]
    pub fn model(mut self, name: impl Into<String>, model: impl DynModel + 'static) -> Self {
        self.given.models.insert(name.into(), Arc::new(model));
        self
    }

    /// Sets the API key for models that the project gives none. It replaces the provider's environment
    /// variable, like `OPENAI_API_KEY`, and is sent to the same servers.
    #[must_use]
    pub fn api_key(mut self, key: impl Into<String>) -> Self {
        self.given.api_key = Some(SecretString::from(key.into()));
        self
    }

    /// Gives a secret by its key, in place of `orgconfig` of the project: documents write `orgconfig:KEY`. As each secret, it is removed
    /// from what is stored and shown.
    #[must_use]
    pub fn secret(mut self, key: impl Into<String>, secret: impl Into<SecretString>) -> Self {
        self.given.secrets.insert(key.into(), secret.into());
        self
    }

    /// The keys of the secrets that it gives.
    pub fn secret_keys(&self) -> Vec<String> {
        self.given.secrets.keys().cloned().collect()
    }

    /// Who drives the runs that a run starts without waiting for them. Default: a task for each, in this process.
    #[must_use]
    pub fn launcher(mut self, launcher: Arc<dyn Launcher>) -> Self {
        self.launcher = Some(launcher);
        self
    }

    /// Says how people answer the questions that are posted to targets of `ask`. Default: they do not say it.
    #[must_use]
    pub fn answer_hints(mut self, hints: Arc<dyn AnswerHints>) -> Self {
        self.hints = Some(hints);
        self
    }

    /// Where requests to models wait for their turn, in common with other engines: that of a folder that is read again has those of the
    /// one before. Default: gates of its own.
    #[must_use]
    pub fn gates(mut self, gates: Arc<CallGates>) -> Self {
        self.gates = gates;
        self
    }

    /// What counts what happens in runs, and in their sub-runs. Default: nothing does.
    #[must_use]
    pub fn meters(mut self, meters: Arc<dyn RunMeters>) -> Self {
        self.meters = Some(meters);
        self
    }

    /// The registered tools, as the compiler knows them.
    pub fn signatures(&self) -> Vec<ToolSignature> {
        self.given.tools.values().map(|tool| tool.signature()).collect()
    }

    /// The same for another project in its folder.
    pub fn project(mut self, project: Arc<Project>, root: &Path) -> Self {
        self.project = project;
        self.root = root.to_owned();
        self
    }

    /// The engine.
    pub fn build(self) -> Engine {
        set_departure(long_work::leave);
        let addresses = self.project.notify.values().filter_map(|target| target.url.as_deref());
        let given = self.given.secrets.clone();
        let mut vault =
            Vault::new(self.project.orgconfig.clone(), &self.root).with_given(given).with_addresses(addresses);
        if self.stage.as_ref().is_none_or(|stage| stage.is_live) {
            let programs = AllowedPrograms::new(&self.project.allow.commands, &self.root);
            vault = vault.with_programs(Arc::new(programs));
        }
        let vault = Arc::new(vault);
        let is_staged = self.stage.is_some();
        let given = self.given.clone();
        let is_scripted = given.script.is_some() && !is_staged;
        let played = self.stage.as_ref().filter(|stage| !stage.is_live).map(|stage| Arc::clone(&stage.player));
        let script = played.or(self.given.script);
        let mut models =
            Models::new(&self.project, &self.root, &vault, script.clone()).with_embedded(self.given.models);
        models = models.with_gates(Arc::clone(&self.gates));
        if let Some(key) = self.given.api_key {
            models = models.with_key(key);
        }
        let models = Arc::new(models);
        let mut toolbox = Toolbox::new(&self.project, &self.root, &vault, &models, self.given.tools);
        if let Some(script) = script.filter(|_| !is_staged) {
            toolbox = toolbox.with_script(script);
        }
        if let Some(stage) = self.stage {
            toolbox = toolbox.with_stage(stage);
        }
        let journal = self.journal.unwrap_or_else(|| Arc::new(MemoryJournal::new()));
        let limits_calls = gate::limits_calls(&self.project);
        let spawned = Arc::new(SpawnedRuns::default());
        let launcher = self.launcher.unwrap_or_else(|| Arc::<SpawnedRuns>::clone(&spawned));
        Engine {
            world: Arc::new(World {
                given,
                gates: self.gates,
                limits_calls,
                model_waits: ModelWaits::new(Arc::clone(&journal), self.meters.clone()),
                meters: self.meters,
                deaths: Deaths::new(Arc::clone(&journal)),
                hints: self.hints,
                journal,
                models,
                toolbox,
                vault,
                texts: SharedTexts::default(),
                subrun_budgets: SubrunBudgets::default(),
                inboxes: DecisionInboxes::default(),
                root: self.root,
                is_scripted,
                launcher,
                spawned,
            }),
        }
    }
}
