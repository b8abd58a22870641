//! Counters for Prometheus about the runs that are driven here. They are computed from the notices of the runs.
//! Labels are words of this file and the names of the folder's own loops and tools, so no model and no caller can create an
//! unlimited number of series.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::http::StatusCode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use super::worker_folders::short;
use crate::engine::flow::record::StepRecord;
use crate::engine::notice::Notice;
use crate::engine::outcome::{Status, Termination};
use crate::engine::record::TraceEntry;
use crate::journal::Worker;
use crate::policy::word::written;

/// The borders of the latency buckets in seconds: from a local call to the longest answer of a model.
pub(super) const BORDERS: [f64; 14] =
    [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0];
const MINUTE_MS: u64 = 60_000;
/// How long runs have waited: the words, and the milliseconds below which each is used.
const AGES: [(&str, u64); 3] =
    [("under_5m", 5 * MINUTE_MS), ("under_1h", 60 * MINUTE_MS), ("under_1d", 24 * 60 * MINUTE_MS)];
/// The word for all longer waits.
const OLDEST: &str = "over_1d";
/// The tool or the loop of an agent request that the folder does not have.
const OTHER: &str = "other";

/// The labels of a series.
pub(super) type Labels = Vec<(&'static str, String)>;

/// The series that the store knows, and not the process.
const OF_STORE: [&str; 4] = ["runs_queued", "runs_waiting", "runs_quarantined", "workers"];

/// The types of the steps of workflows that are no actions.
const STEP_TYPES: [&str; 5] = ["loop", "matcher", "custom-table", "PbotApproval", "PbotForm"];

/// The counters since the start of the server.
pub struct Metrics {
    registry: Registry,
    /// The tools that have a series of their own.
    tools: BTreeSet<String>,
    started: Counter,
    ended: Family<Labels, Counter>,
    paused: Family<Labels, Counter>,
    iterations: Counter,
    retries: Counter,
    tool_retries: Counter,
    tokens: Family<Labels, Counter>,
    model: Histogram,
    first_token: Histogram,
    tool: Family<Labels, Histogram, fn() -> Histogram>,
    steps: StepMetrics,
    refused: Family<Labels, Counter>,
    driven: Gauge,
    queued: Gauge,
    quarantined: Gauge,
    /// Whether the store answered in time.
    store_up: Gauge,
    /// The loops that have series of their own, and [`OTHER`].
    loops: BTreeSet<String>,
    waiting: Family<Labels, Gauge>,
    workers: Family<Labels, Gauge>,
    connections: Family<Labels, Gauge>,
    streams: Gauge,
    leaving: AtomicBool,
}

impl Metrics {
    /// All counters at zero. `tools`: those of the folder's loops.
    pub fn new(mut loops: BTreeSet<String>, tools: BTreeSet<String>) -> Self {
        loops.insert(OTHER.to_owned());
        let histogram: fn() -> Histogram = || Histogram::new(BORDERS);
        let mut registry = Registry::with_prefix("loopctl");
        let steps = StepMetrics::registered(&mut registry);
        let mut all = Self {
            registry,
            steps,
            tools,
            started: Counter::default(),
            ended: Family::default(),
            paused: Family::default(),
            iterations: Counter::default(),
            retries: Counter::default(),
            tool_retries: Counter::default(),
            tokens: Family::default(),
            model: histogram(),
            first_token: histogram(),
            tool: Family::new_with_constructor(histogram),
            refused: Family::default(),
            driven: Gauge::default(),
            queued: Gauge::default(),
            quarantined: Gauge::default(),
            store_up: Gauge::default(),
            loops,
            waiting: Family::default(),
            workers: Family::default(),
            connections: Family::default(),
            streams: Gauge::default(),
            leaving: AtomicBool::new(false),
        };
        let to = &mut all.registry;
        to.register("runs_started", "Runs that began", all.started.clone());
        to.register("runs_ended", "Runs that ended, by status and termination", all.ended.clone());
        to.register("pauses", "Pauses that began, by kind", all.paused.clone());
        to.register("iterations", "Replies of models that were read", all.iterations.clone());
        to.register("tool_retries", "Attempts at tool calls that failed and were retried", all.tool_retries.clone());
        to.register("model_retries", "Model calls that failed and were retried", all.retries.clone());
        to.register("tokens", "Tokens that models read (input) and wrote (output)", all.tokens.clone());
        to.register("model_seconds", "How long models took for a reply", all.model.clone());
        let help = "How long models took to the first token of a reply that was streamed";
        to.register("time_to_first_token_seconds", help, all.first_token.clone());
        to.register("tool_seconds", "How long calls of tools took", all.tool.clone());
        to.register("requests_refused", "Requests that got a 429 or 503, by code", all.refused.clone());
        to.register("connections", "Connections that are open now, by kind", all.connections.clone());
        to.register("event_streams", "Streams of events that are open now", all.streams.clone());
        to.register("runs_driven", "Runs that are driven now", all.driven.clone());
        to.register("runs_queued", "Runs that wait for a slot", all.queued.clone());
        let help = "Runs of the store that wait for a human now, by loop and by how long they have waited";
        to.register("runs_waiting", help, all.waiting.clone());
        let help =
            "Processes that drive runs of the store now, by version and by the digest of the folder that they serve";
        to.register("workers", help, all.workers.clone());
        let help = "Quarantined runs of the store: their drivers died again and again";
        to.register("runs_quarantined", help, all.quarantined.clone());
        let help = "Whether the store answered in time: 1, or 0, and then the series that it knows are left out";
        to.register("store_up", help, all.store_up.clone());
        all
    }

    /// A run that nobody drove was cancelled.
    pub fn cancelled(&self) {
        self.ended(Status::Cancelled, Termination::Cancelled);
    }

    /// A request was refused; counted only for used-up quotas and temporary failures.
    pub fn refused(&self, status: StatusCode, code: &str) {
        if matches!(status, StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE) {
            self.refused.get_or_create(&vec![("code", code.to_owned())]).inc();
        }
    }

    /// The server is stopping: a run that is left for the next server ends with a notice of its cancellation,
    /// which is not counted.
    pub fn leave(&self) {
        self.leaving.store(true, Ordering::SeqCst);
    }

    /// The number of waiting runs for each series, also where there is none.
    fn waiting_by_label(&self, runs: &[WaitingRun]) -> BTreeMap<(&str, &'static str), usize> {
        let ages = || AGES.iter().map(|(word, _)| *word).chain([OLDEST]);
        let mut counts: BTreeMap<(&str, &'static str), usize> =
            self.loops.iter().flat_map(|name| ages().map(move |age| ((name.as_str(), age), 0))).collect();
        for run in runs {
            let name = self.loops.get(&run.loop_name).map_or(OTHER, String::as_str);
            *counts.entry((name, run.age())).or_default() += 1;
        }
        counts
    }

    fn ended(&self, status: Status, termination: Termination) {
        self.ended
            .get_or_create(&vec![
                ("status", status.word().to_owned()),
                ("termination", written(&termination).unwrap_or_default()),
            ])
            .inc();
    }

    /// All counters and the gauges, in the text format.
    ///
    /// # Errors
    /// When the text can't be written.
    pub fn text(&self, now: &GaugeValues) -> Result<String, std::fmt::Error> {
        let set = |gauge: &Gauge, count: usize| gauge.set(i64::try_from(count).unwrap_or(i64::MAX));
        set(&self.driven, now.driven);
        set(&self.streams, now.event_streams);
        set(&self.store_up, usize::from(now.store.is_some()));
        // Versions and folders come and go.
        self.workers.clear();
        self.waiting.clear();
        if let Some(store) = &now.store {
            set(&self.queued, store.queued);
            set(&self.quarantined, store.quarantined);
            for ((name, age), count) in self.waiting_by_label(&store.waiting) {
                set(&self.waiting.get_or_create(&vec![("loop", name.to_owned()), ("age", age.to_owned())]), count);
            }
            for worker in store.workers.iter().filter(|worker| worker.is_alive) {
                let version = worker.version.clone().unwrap_or_default();
                let folder = worker.folder.as_deref().map(short).unwrap_or_default().to_owned();
                self.workers.get_or_create(&vec![("version", version), ("folder", folder)]).inc();
            }
        }
        for (kind, count) in [("unknown", now.unknown_connections), ("known", now.known_connections)] {
            set(&self.connections.get_or_create(&vec![("kind", kind.to_owned())]), count);
        }
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &self.registry)?;
        Ok(if now.store.is_some() { text } else { without_store(&text) })
    }
}

/// The text without the series that only the store knows: an old number must not look like one of now.
fn without_store(text: &str) -> String {
    let is_of_store = |line: &&str| {
        let name = line.strip_prefix("# HELP ").or_else(|| line.strip_prefix("# TYPE ")).unwrap_or(line);
        let name = name.split([' ', '{']).next().unwrap_or_default();
        OF_STORE.iter().any(|known| name.strip_prefix("loopctl_") == Some(*known))
    };
    text.split_inclusive('\n').filter(|line| !is_of_store(line)).collect()
}

/// A run that waits for a human.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitingRun {
    pub loop_name: String,
    /// How long it has waited, in milliseconds.
    pub age_ms: u64,
}

impl WaitingRun {
    /// The word for how long it has waited.
    fn age(&self) -> &'static str {
        AGES.iter().find(|(_, below_ms)| self.age_ms < *below_ms).map_or(OLDEST, |(word, _)| *word)
    }
}

/// The gauges at a moment.
#[derive(Debug, Clone)]
pub struct GaugeValues {
    /// Runs that are driven.
    pub driven: usize,
    /// What the store knows; none when it did not answer in time.
    pub store: Option<StoreValues>,
    pub event_streams: usize,
    /// Connections that have not shown a token.
    pub unknown_connections: usize,
    /// Connections that have.
    pub known_connections: usize,
}

/// What the store knows at a moment.
#[derive(Debug, Clone, Default)]
pub struct StoreValues {
    /// Runs that wait for a slot.
    pub queued: usize,
    /// Quarantined runs of the store.
    pub quarantined: usize,
    /// Runs of the store that wait for a human.
    pub waiting: Vec<WaitingRun>,
    /// The processes that drive runs of the store.
    pub workers: Vec<Worker>,
}

/// Counts the notices of one run from one driver.
pub struct Meter {
    metrics: Arc<Metrics>,
    /// The calls that are under way: an observation of a call that was never made does not count for a tool.
    calls: Mutex<Vec<(u32, String)>>,
    /// The loop or workflow of the run.
    loop_name: Mutex<String>,
}

impl Meter {
    /// A meter for a run.
    pub fn new(metrics: Arc<Metrics>) -> Self {
        Self { metrics, calls: Mutex::default(), loop_name: Mutex::default() }
    }

    /// Counts a notice.
    pub fn record(&self, notice: &Notice) {
        let metrics = &self.metrics;
        match notice {
            Notice::RunStarted { loop_name, .. } => {
                metrics.started.inc();
                self.loop_name().clone_from(loop_name);
            }
            Notice::RunResumed { loop_name, .. } => self.loop_name().clone_from(loop_name),
            Notice::ModelReplied { usage, duration_ms, time_to_first_token_ms, .. } => {
                metrics.iterations.inc();
                metrics.model.observe(seconds(*duration_ms));
                if let Some(first) = time_to_first_token_ms {
                    metrics.first_token.observe(seconds(*first));
                }
                if let Some(usage) = usage {
                    for (direction, count) in [("input", usage.input_tokens), ("output", usage.output_tokens)] {
                        metrics.tokens.get_or_create(&vec![("direction", direction.to_owned())]).inc_by(count);
                    }
                }
            }
            Notice::ModelRetried { .. } => {
                metrics.retries.inc();
            }
            Notice::ToolRetried { .. } => {
                metrics.tool_retries.inc();
            }
            Notice::ToolCalled { call, action, .. } => self.calls().push((call.iteration, action.clone())),
            Notice::Observed {
                entry: TraceEntry { iteration, action: Some(action), success, duration_ms, call_status: None, .. },
                ..
            } => {
                let mut calls = self.calls();
                let Some(at) = calls.iter().position(|(of, tool)| of == iteration && tool == action) else { return };
                calls.swap_remove(at);
                let tool = if metrics.tools.contains(action) { action } else { OTHER };
                let success = if *success { "true" } else { "false" };
                let labels = vec![("tool", tool.to_owned()), ("success", success.to_owned())];
                metrics.tool.get_or_create(&labels).observe(seconds(*duration_ms));
            }
            Notice::StepEnded { record } => self.step_ended(record),
            Notice::Paused { question, .. } => {
                metrics.paused.get_or_create(&vec![("kind", written(&question.kind).unwrap_or_default())]).inc();
            }
            Notice::RunEnded { status: Status::Cancelled, .. } if metrics.leaving.load(Ordering::SeqCst) => {}
            Notice::RunEnded { status, termination } => metrics.ended(*status, *termination),
            Notice::Observed { .. }
            | Notice::StepStarted { .. }
            | Notice::Decided { .. }
            | Notice::Retried { .. }
            | Notice::LimitsRaised { .. }
            | Notice::ModelAsked { .. }
            | Notice::ModelDelta { .. }
            | Notice::Progress { .. }
            | Notice::BudgetWarning { .. }
            | Notice::HistoryTrimmed { .. } => {}
        }
    }

    fn step_ended(&self, record: &StepRecord) {
        let metrics = &self.metrics;
        let is_call = metrics.tools.contains(&record.kind);
        if is_call {
            let success = if record.error.is_none() { "true" } else { "false" };
            let labels = vec![("tool", record.kind.clone()), ("success", success.to_owned())];
            metrics.tool.get_or_create(&labels).observe(seconds(record.duration_ms()));
        }
        let is_known = is_call || STEP_TYPES.contains(&record.kind.as_str());
        let kind = if is_known { record.kind.as_str() } else { OTHER };
        let workflow = metrics.loops.get(&*self.loop_name()).map_or(OTHER, String::as_str);
        metrics.steps.record(workflow, kind, record);
    }

    fn loop_name(&self) -> std::sync::MutexGuard<'_, String> {
        self.loop_name.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn calls(&self) -> std::sync::MutexGuard<'_, Vec<(u32, String)>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(super) fn seconds(ms: u64) -> f64 {
    Duration::from_millis(ms).as_secs_f64()
}

/// The counters since the start of the server.
pub struct StepMetrics {
    ended: Family<Labels, Counter>,
    seconds: Family<Labels, Histogram, fn() -> Histogram>,
    items: Family<Labels, Counter>,
}

impl StepMetrics {
    /// All counters at zero, in a registry.
    pub fn registered(registry: &mut Registry) -> Self {
        let histogram: fn() -> Histogram = || Histogram::new(BORDERS);
        let all = Self {
            ended: Family::default(),
            seconds: Family::new_with_constructor(histogram),
            items: Family::default(),
        };
        let help = "Steps of workflows that ended, those of items too, by workflow, type and status";
        registry.register("steps", help, all.ended.clone());
        registry.register("step_seconds", "How long steps of workflows took, waits included", all.seconds.clone());
        let help = "Items of loops that ended, by workflow and status";
        registry.register("items", help, all.items.clone());
        all
    }

    /// Counts a step that ended. `workflow` and `kind` are words that the folder knows.
    pub fn record(&self, workflow: &str, kind: &str, step: &StepRecord) {
        let labels = vec![("workflow", workflow.to_owned()), ("type", kind.to_owned())];
        self.seconds.get_or_create(&labels).observe(seconds(step.duration_ms()));
        let status = [labels, vec![("status", step.status.word().to_owned())]].concat();
        self.ended.get_or_create(&status).inc();
        let Some(items) = &step.items else { return };
        let counts = [
            ("completed", items.completed),
            ("failed", items.failed),
            ("skipped", items.skipped),
            ("cancelled", items.cancelled),
        ];
        for (status, number) in counts.into_iter().filter(|(_, number)| *number > 0) {
            let labels = vec![("workflow", workflow.to_owned()), ("status", status.to_owned())];
            self.items.get_or_create(&labels).inc_by(u64::from(number));
        }
    }
}
