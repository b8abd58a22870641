//! The state that all routes share.

use std::sync::Arc;
use std::time::Duration;

use super::authorizer::Authorizer;
use super::callback::{CallbackKey, Callbacks};
use super::compile_pool::CompilePool;
use super::connections::{self, Connections, Room};
use super::folder::Folder;
use super::metrics::Metrics;
use super::middleware::HostNames;
use super::quotas::{Capacity, Quotas};
use super::run_store::RunStore;
use super::scheduler::slots::{RunSlots, SlotLimits};
use super::scheduler::{Scheduler, SchedulerLink};
use super::shown_faults::HiddenPaths;
use crate::drive::launcher::Launcher;
use crate::journal::Journal;

/// The limits of request bodies.
#[derive(Debug, Clone, Copy)]
pub struct BodyLimits {
    /// The longest body in bytes.
    pub bytes: usize,
    /// How long a body may take to arrive.
    pub time: Duration,
}

/// The state that all routes share.
pub struct App {
    /// The loops that are served.
    pub folder: Arc<Folder>,
    /// Who may do what.
    pub authorizer: Authorizer,
    /// The names that `Host` may have.
    pub names: HostNames,
    /// The limits of request bodies.
    pub body: BodyLimits,
    /// Reads runs from the journal.
    pub runs: Arc<RunStore>,
    /// Decides which runs are driven here.
    pub scheduler: Arc<Scheduler>,
    /// What each token and organisation uses.
    pub quotas: Arc<Quotas>,
    /// The connections that are open.
    pub connections: Arc<Connections>,
    /// Posts pauses and results to the URLs of callers.
    pub callbacks: Arc<Callbacks>,
    /// Counters for Prometheus.
    pub metrics: Arc<Metrics>,
    /// Where documents are compiled and checked.
    pub compiler: Arc<CompilePool>,
    /// The folders whose paths no caller sees.
    pub hidden_paths: HiddenPaths,
}

/// The parts of an [`App`].
pub struct AppParts {
    /// The folder.
    pub folder: Folder,
    /// The store.
    pub journal: Arc<dyn Journal>,
    /// Who may do what.
    pub authorizer: Authorizer,
    /// The names that `Host` may have.
    pub names: HostNames,
    /// The limits of request bodies.
    pub body: BodyLimits,
    /// The maximum number of concurrent runs.
    pub max_concurrent_runs: usize,
    /// The key that signs callbacks.
    pub callback_key: Option<CallbackKey>,
}

impl App {
    /// Puts the parts together.
    pub fn new(parts: AppParts) -> Self {
        let AppParts { folder, journal, authorizer, names, body, max_concurrent_runs, callback_key } = parts;
        let folder = Arc::new(folder);
        let limits = &folder.project.serve.limits;
        let room = Room::of(connections::files(), max_concurrent_runs, limits.unknown_connections);
        let whole = Capacity { connections: room.known, places: max_concurrent_runs, orgs: authorizer.orgs() };
        let quotas = Arc::new(Quotas::new(limits, whole, authorizer.is_open()));
        let slots = RunSlots::new(max_concurrent_runs, SlotLimits::of(limits), &authorizer.starters());
        let tools = folder.loops.values().flat_map(|offered| offered.program.all_tools());
        let metrics = Arc::new(Metrics::new(
            folder.loops.keys().cloned().collect(),
            tools.map(|tool| tool.name.clone()).collect(),
        ));
        let compiler = Arc::new(CompilePool::default());
        let link = Arc::new(SchedulerLink::default());
        let launcher: Arc<dyn Launcher> = Arc::<SchedulerLink>::clone(&link);
        let runs = Arc::new(RunStore::new(journal, Arc::clone(&folder), Arc::clone(&compiler), &launcher));
        let callbacks = Arc::new(Callbacks::new(Arc::clone(&runs), &folder.project, callback_key));
        let scheduler =
            Scheduler::new(Arc::clone(&runs), Arc::clone(&callbacks), Arc::clone(&quotas), Arc::clone(&metrics), slots);
        let scheduler = Arc::new(scheduler);
        link.connect(&scheduler);
        Self {
            hidden_paths: HiddenPaths::new(runs.roots()),
            scheduler,
            connections: Connections::new(room, Arc::clone(&quotas)),
            authorizer,
            names,
            body,
            runs,
            quotas,
            callbacks,
            metrics,
            compiler,
            folder,
        }
    }
}
