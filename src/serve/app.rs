//! The state that all routes share.

use std::sync::Arc;
use std::time::Duration;

use super::authorizer::Authorizer;
use super::callback::{CallbackKey, Callbacks, CallbacksLink};
use super::compile_pool::CompilePool;
use super::connections::{Connections, Room};
use super::folder::Folder;
use super::live_folder::{EngineParts, LiveFolder};
use super::mcp::call_registry::McpCallRegistry;
use super::metrics::{LabelValues, MeteredRuns, MetricNames, Metrics, StoreLook, StoreValues};
use super::middleware::HostNames;
use super::quotas::{Capacity, Quotas};
use super::refusals::Refusals;
use super::run_store::RunStore;
use super::scheduler::slots::{RunSlots, SlotLimits};
use super::scheduler::{Scheduler, SchedulerLink};
use super::shown_faults::HiddenPaths;
use super::switches::Switches;
use crate::drive::answer_hint::AnswerHints;
use crate::drive::descriptors;
use crate::drive::engine::Engine;
use crate::drive::launcher::Launcher;
use crate::drive::run_meter::{MeterPair, RunMeters};
use crate::journal::{Journal, Worker};

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
    /// The names that `Host` may have.
    pub names: HostNames,
    /// The limits of request bodies.
    pub body: BodyLimits,
    /// What engines of a folder that is read again are made of.
    pub(super) engine_parts: EngineParts,
    /// Held while the folder is read again.
    pub(super) reloading: tokio::sync::Mutex<()>,
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
    /// The loops that are switched off.
    pub switches: Switches,
    /// What callers were refused.
    pub refusals: Refusals,
    /// The calls of tools that clients may cancel.
    pub mcp_calls: Arc<McpCallRegistry>,
    /// Counters for Prometheus.
    pub metrics: Arc<Metrics>,
    /// What the store knows for the metrics, while it is looked up.
    pub store_values: StoreLook<StoreValues>,
    /// What the store knows for `/readyz`, while it is looked up.
    pub readiness: StoreLook<StoreReadiness>,
    /// Where documents are compiled and checked.
    pub compiler: Arc<CompilePool>,
    /// The folders whose paths no caller sees.
    pub hidden_paths: HiddenPaths,
}

/// The parts of an [`App`].
pub struct AppParts {
    /// The folder.
    pub folder: Folder,
    /// The engine of the program around the server.
    pub host: Option<Engine>,
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
    /// What counts the runs besides the metrics.
    pub meters: Option<Arc<dyn RunMeters>>,
}

impl App {
    /// Puts the parts together.
    pub fn new(parts: AppParts) -> Self {
        let AppParts { folder, host, journal, authorizer, names, body, max_concurrent_runs, callback_key, meters } =
            parts;
        let project = Arc::clone(&folder.project);
        let limits = &project.serve.limits;
        let room = Room::of(descriptors::limit(), max_concurrent_runs, limits.unknown_connections);
        let whole = Capacity { connections: room.known, places: max_concurrent_runs, orgs: authorizer.orgs() };
        let quotas = Arc::new(Quotas::new(limits, whole, authorizer.is_open()));
        let slots = RunSlots::new(max_concurrent_runs, SlotLimits::of(limits), &authorizer.starters());
        let metrics = Arc::new(Metrics::new(metric_names(&folder, &authorizer)));
        let compiler = Arc::new(CompilePool::default());
        let link = Arc::new(SchedulerLink::default());
        let launcher: Arc<dyn Launcher> = Arc::<SchedulerLink>::clone(&link);
        let own: Arc<dyn RunMeters> = Arc::new(MeteredRuns(Arc::clone(&metrics)));
        let meters = match meters {
            Some(second) => Arc::new(MeterPair { first: own, second }),
            None => own,
        };
        let callbacks_link = Arc::new(CallbacksLink::default());
        let hints: Arc<dyn AnswerHints> = Arc::<CallbacksLink>::clone(&callbacks_link);
        let engine_parts =
            EngineParts { host, journal: Arc::clone(&journal), launcher, meters, hints, gates: Arc::default() };
        let served = LiveFolder::new(folder, authorizer, &engine_parts);
        let hidden_paths = HiddenPaths::new(served.roots());
        let runs = Arc::new(RunStore::new(journal, served, Arc::clone(&compiler)));
        let callbacks = Arc::new(Callbacks::new(Arc::clone(&runs), &project, callback_key, Arc::clone(&metrics)));
        callbacks_link.connect(&callbacks);
        let scheduler =
            Scheduler::new(Arc::clone(&runs), Arc::clone(&callbacks), Arc::clone(&quotas), Arc::clone(&metrics), slots);
        let scheduler = Arc::new(scheduler);
        link.connect(&scheduler);
        Self {
            hidden_paths,
            engine_parts,
            reloading: tokio::sync::Mutex::default(),
            scheduler,
            connections: Connections::new(room, Arc::clone(&quotas)),
            names,
            body,
            runs,
            quotas,
            callbacks,
            switches: Switches::default(),
            refusals: Refusals::default(),
            mcp_calls: Arc::default(),
            metrics,
            store_values: StoreLook::default(),
            readiness: StoreLook::default(),
            compiler,
        }
    }

    /// What is served now. A request that asks once has all of one moment.
    pub fn served(&self) -> Arc<LiveFolder> {
        self.runs.current.get()
    }

    /// The loops that are served now.
    pub fn folder(&self) -> Arc<Folder> {
        Arc::clone(&self.served().folder)
    }
}

/// What the store knows for `/readyz`.
#[derive(Debug, Default)]
pub struct StoreReadiness {
    /// The runs that wait for a driver.
    pub queued: usize,
    /// The processes that drive runs of the store.
    pub workers: Vec<Worker>,
}

/// The names that have series of their own.
fn metric_names(folder: &Folder, authorizer: &Authorizer) -> MetricNames {
    let programs = || folder.loops.values().map(|offered| &offered.program);
    let tools = programs().flat_map(|program| program.all_tools()).map(|tool| tool.name.clone());
    let projects = programs().map(|program| &program.project).chain([&folder.project]);
    let models = projects.flat_map(|project| project.models.keys().cloned().chain(project.model.clone()));
    MetricNames {
        loops: LabelValues::new(folder.loops.keys().cloned()),
        tools: LabelValues::new(tools),
        models: LabelValues::new(models),
        webhooks: LabelValues::new(folder.hooks.keys().cloned()),
        orgs: LabelValues::new(authorizer.starters().into_iter().filter_map(|owner| owner.org)),
    }
}
