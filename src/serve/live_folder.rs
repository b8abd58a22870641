//! What is served now: the folder, the engines of its projects, and who may do what. It is replaced as a whole when the
//! folder is read again, so that no request sees a part of the old one and a part of the new one.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use tokio::sync::watch;

use super::authorizer::Authorizer;
use super::folder::Folder;
use crate::drive::answer_hint::AnswerHints;
use crate::drive::engine::{Engine, EngineBuilder};
use crate::drive::launcher::Launcher;
use crate::drive::model::CallGates;
use crate::drive::run_meter::RunMeters;
use crate::journal::Journal;
use crate::language::Project;

/// What a folder says, as it was read at one moment.
pub struct LiveFolder {
    /// The loops that are served.
    pub folder: Arc<Folder>,
    /// Who may do what.
    pub authorizer: Authorizer,
    /// By the folders of their projects.
    engines: HashMap<PathBuf, Engine>,
}

/// What the engines of all projects have in common.
pub struct EngineParts {
    /// The engine of the program around the server, whose tools and models they have.
    pub host: Option<Engine>,
    /// The store.
    pub journal: Arc<dyn Journal>,
    /// Takes runs that other runs start.
    pub launcher: Arc<dyn Launcher>,
    /// Counts what runs do.
    pub meters: Arc<dyn RunMeters>,
    /// Says how questions that are posted are answered.
    pub hints: Arc<dyn AnswerHints>,
    /// Where requests to models wait for their turn.
    pub gates: Arc<CallGates>,
}

impl LiveFolder {
    /// A folder with engines for its projects.
    pub fn new(folder: Folder, authorizer: Authorizer, parts: &EngineParts) -> Self {
        let engine = |root: &PathBuf, project: &Arc<Project>| {
            let builder = Engine::builder(Arc::clone(project), root);
            let builder = parts.host.iter().fold(builder, EngineBuilder::like).journal(Arc::clone(&parts.journal));
            let builder = builder.launcher(Arc::clone(&parts.launcher)).meters(Arc::clone(&parts.meters));
            builder.answer_hints(Arc::clone(&parts.hints)).gates(Arc::clone(&parts.gates)).build()
        };
        let mut engines = HashMap::new();
        for (root, project) in projects(&folder) {
            engines.entry(root.clone()).or_insert_with(|| engine(root, project));
        }
        Self { folder: Arc::new(folder), authorizer, engines }
    }

    /// Requests to models wait by what the projects of this folder say, also after another one was looked at.
    pub fn read_gates(&self, gates: &CallGates) {
        projects(&self.folder).for_each(|(root, project)| gates.read(project, root));
    }

    /// The folders of its projects.
    pub fn roots(&self) -> impl Iterator<Item = &Path> {
        self.engines.keys().map(PathBuf::as_path)
    }

    /// The engine of a project's folder.
    pub fn engine(&self, root: &Path) -> Option<&Engine> {
        self.engines.get(root).or_else(|| self.engines.get(&self.folder.root))
    }
}

/// The projects of a folder, with their own folders.
fn projects(folder: &Folder) -> impl Iterator<Item = (&PathBuf, &Arc<Project>)> {
    let of_loops = folder.loops.values().map(|offered| (&offered.root, &offered.program.project));
    std::iter::once((&folder.root, &folder.project)).chain(of_loops)
}

/// The folder that is served now, and why it was not replaced when it was read last.
pub struct CurrentFolder {
    now: RwLock<Arc<LiveFolder>>,
    /// Wakes who waits for another folder.
    replaced: watch::Sender<()>,
    fault: Mutex<Option<ReloadFault>>,
}

/// Why a folder that was read again is not served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReloadFault {
    /// Since when, in milliseconds since 1970.
    pub since_ms: i64,
    /// Why, in lines.
    pub why: String,
}

impl CurrentFolder {
    /// This folder is served first.
    pub fn new(served: LiveFolder) -> Self {
        Self { now: RwLock::new(Arc::new(served)), replaced: watch::Sender::new(()), fault: Mutex::default() }
    }

    /// What is served now. Who keeps it for a while keeps all of it.
    pub fn get(&self) -> Arc<LiveFolder> {
        Arc::clone(&self.now.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Serves this from now on.
    pub fn replace(&self, served: LiveFolder) {
        *self.now.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(served);
        *self.fault.lock().unwrap_or_else(PoisonError::into_inner) = None;
        self.replaced.send_replace(());
    }

    /// Says to who listens that other loops can be started: one was switched.
    pub fn announce(&self) {
        self.replaced.send_replace(());
    }

    /// Changes whenever another folder is served, or other loops of it can be started.
    pub fn replacements(&self) -> watch::Receiver<()> {
        self.replaced.subscribe()
    }

    /// Notes why what was read is not served.
    pub fn refuse(&self, fault: ReloadFault) {
        let mut known = self.fault.lock().unwrap_or_else(PoisonError::into_inner);
        let since_ms = known.as_ref().map_or(fault.since_ms, |known| known.since_ms);
        *known = Some(ReloadFault { since_ms, ..fault });
    }

    /// Why the folder is served as it was; none when it was read without a fault.
    pub fn fault(&self) -> Option<ReloadFault> {
        self.fault.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
