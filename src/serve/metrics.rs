//! Counters for Prometheus about the runs that are driven here, and what the store knows of all. They are computed from the
//! notices of the runs, sub-runs too. Labels are words of this room and the names of the folder's own loops, tools, models and
//! organisations, so no model and no caller can create an unlimited number of series.

mod labels;
mod meter;
mod process;
mod steps;
mod store_values;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use axum::http::{Method, StatusCode};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

pub use self::labels::LabelValues;
use self::labels::{Labels, OTHER, SeriesFamily};
pub use self::meter::MeteredRuns;
use self::steps::StepMetrics;
pub(super) use self::store_values::age_ms;
pub use self::store_values::{StoreLook, StoreValues, wait_moments};
use super::worker_folders::short;
use crate::drive::model::{CallCircuit, CallQueue, CircuitState};
use crate::engine::outcome::Status;

/// The borders of the latency buckets in seconds: from a local call to the longest answer of a model.
pub(super) const BORDERS: [f64; 14] =
    [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0];
/// Those of the store and of requests: from a commit on a fast disk to the longest wait.
const SHORT_BORDERS: [f64; 13] = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0];

/// The most accounts of spending limits that have series.
const MOST_LIMITS: usize = 50;

/// The series that the store knows, and not the process.
const OF_STORE: [&str; 9] = [
    "runs_queued",
    "queue_oldest_seconds",
    "runs_waiting",
    "waiting_oldest_seconds",
    "runs_quarantined",
    "runs_model_away",
    "callbacks_pending",
    "workers",
    "limit_used_ratio",
];

/// The names that have series of their own.
#[derive(Debug, Default)]
pub struct MetricNames {
    /// The loops and workflows of the folder.
    pub loops: LabelValues,
    /// The tools of its loops.
    pub tools: LabelValues,
    /// The models of its projects.
    pub models: LabelValues,
    /// The organisations that have tokens.
    pub orgs: LabelValues,
    /// The webhooks of its workflows.
    pub webhooks: LabelValues,
}

/// The counters since the start of the server.
pub struct Metrics {
    registry: Registry,
    names: MetricNames,
    /// The organisations of the runs that are driven here, by the ids of the runs.
    orgs: Mutex<HashMap<String, DrivenFor>>,
    started: SeriesFamily<Counter>,
    ended: SeriesFamily<Counter>,
    deleted: Family<Labels, Counter>,
    sub_runs_started: SeriesFamily<Counter>,
    sub_runs_ended: SeriesFamily<Counter>,
    paused: SeriesFamily<Counter>,
    iterations: SeriesFamily<Counter>,
    model_retries: SeriesFamily<Counter>,
    tool_retries: SeriesFamily<Counter>,
    tokens: SeriesFamily<Counter>,
    cost: SeriesFamily<Counter<f64, std::sync::atomic::AtomicU64>>,
    model: Histogram,
    first_token: Histogram,
    tool: SeriesFamily<Histogram>,
    steps: StepMetrics,
    http: SeriesFamily<Histogram>,
    store: SeriesFamily<Histogram>,
    posts: SeriesFamily<Counter>,
    given_up: Counter,
    deliveries: SeriesFamily<Counter>,
    refused: Family<Labels, Counter>,
    driven: Gauge,
    queued: Gauge,
    queue_age: Gauge<f64, std::sync::atomic::AtomicU64>,
    quarantined: Gauge,
    model_away: Gauge,
    callbacks_pending: Gauge,
    /// Whether the store answered in time.
    store_up: Gauge,
    waiting: Family<Labels, Gauge>,
    waiting_age: Family<Labels, Gauge<f64, std::sync::atomic::AtomicU64>>,
    workers: Family<Labels, Gauge>,
    limits: Family<Labels, Gauge<f64, std::sync::atomic::AtomicU64>>,
    connections: Family<Labels, Gauge>,
    streams: Gauge,
    /// The requests to models that wait for their turn.
    in_line: Family<Labels, Gauge>,
    in_line_age: Family<Labels, Gauge<f64, std::sync::atomic::AtomicU64>>,
    /// The calls of tools that do.
    calls_in_line: Family<Labels, Gauge>,
    calls_in_line_age: Family<Labels, Gauge<f64, std::sync::atomic::AtomicU64>>,
    circuits: Family<Labels, Gauge>,
    tokens_expiring: Gauge,
    reload_failed: Gauge,
}

/// Whom a run is driven for, and by how many drivers here: the next one may begin before the last one has left.
struct DrivenFor {
    org: Option<String>,
    drivers: u32,
}

fn model_histogram() -> Histogram {
    Histogram::new(BORDERS)
}

fn short_histogram() -> Histogram {
    Histogram::new(SHORT_BORDERS)
}

impl Metrics {
    /// All counters at zero.
    pub fn new(names: MetricNames) -> Self {
        let mut registry = Registry::with_prefix("loopctl");
        let steps = StepMetrics::registered(&mut registry);
        let counters = || SeriesFamily::new(Counter::default);
        let mut all = Self {
            registry,
            names,
            steps,
            orgs: Mutex::default(),
            started: counters(),
            ended: counters(),
            deleted: Family::default(),
            sub_runs_started: counters(),
            sub_runs_ended: counters(),
            paused: counters(),
            iterations: counters(),
            model_retries: counters(),
            tool_retries: counters(),
            tokens: counters(),
            cost: SeriesFamily::new(Counter::default),
            model: model_histogram(),
            first_token: model_histogram(),
            tool: SeriesFamily::new(model_histogram),
            http: SeriesFamily::new(short_histogram),
            store: SeriesFamily::new(short_histogram),
            posts: counters(),
            given_up: Counter::default(),
            deliveries: counters(),
            refused: Family::default(),
            driven: Gauge::default(),
            queued: Gauge::default(),
            queue_age: Gauge::default(),
            quarantined: Gauge::default(),
            model_away: Gauge::default(),
            callbacks_pending: Gauge::default(),
            store_up: Gauge::default(),
            waiting: Family::default(),
            waiting_age: Family::default(),
            workers: Family::default(),
            limits: Family::default(),
            connections: Family::default(),
            streams: Gauge::default(),
            in_line: Family::default(),
            in_line_age: Family::default(),
            calls_in_line: Family::default(),
            calls_in_line_age: Family::default(),
            circuits: Family::default(),
            tokens_expiring: Gauge::default(),
            reload_failed: Gauge::default(),
        };
        all.register_runs();
        all.register_server();
        all.register_store();
        all
    }

    fn register_runs(&mut self) {
        let to = &mut self.registry;
        to.register("runs_started", "Runs that were created, by loop", self.started.family());
        let help = "Runs that ended, by loop, organisation, status and termination";
        to.register("runs_ended", help, self.ended.family());
        let help = "Runs that were deleted because they ended long ago, by status";
        to.register("runs_deleted", help, self.deleted.clone());
        to.register("sub_runs_started", "Sub-runs that were created, by loop", self.sub_runs_started.family());
        let help = "Sub-runs that ended, by loop, organisation, status and termination";
        to.register("sub_runs_ended", help, self.sub_runs_ended.family());
        to.register("pauses", "Pauses that began, by loop and kind, without those of sub-runs", self.paused.family());
        to.register("iterations", "Replies of models that were read, by loop", self.iterations.family());
        to.register(
            "tool_retries",
            "Attempts at tool calls that failed and were retried, by tool",
            self.tool_retries.family(),
        );
        let help = "Requests to models that failed and were retried, by model and status of the answer";
        to.register("model_retries", help, self.model_retries.family());
        let help = "Tokens, by direction, loop, model and organisation: cached_input and cache_write are parts of input, reasoning of output";
        to.register("tokens", help, self.tokens.family());
        let help = "What the tokens cost in US dollars where prices are known, by loop, model and organisation";
        to.register("cost_usd", help, self.cost.family());
        to.register("model_seconds", "How long models took for a reply", self.model.clone());
        let help = "How long models took to the first token of a reply that was streamed";
        to.register("time_to_first_token_seconds", help, self.first_token.clone());
        to.register("tool_seconds", "How long calls of tools took", self.tool.family());
        to.register("runs_driven", "Runs that are driven now", self.driven.clone());
        let help = "Requests to models that wait here for their turn now, by model";
        to.register("model_requests_waiting", help, self.in_line.clone());
        let help = "How long the oldest of them has waited, by model";
        to.register("model_requests_oldest_seconds", help, self.in_line_age.clone());
        let help = "Calls of tools that wait here for their turn now, by what limits them and its name";
        to.register("tool_calls_waiting", help, self.calls_in_line.clone());
        let help = "How long the oldest of them has waited, by what limits them and its name";
        to.register("tool_calls_oldest_seconds", help, self.calls_in_line_age.clone());
        let help = "The circuits of this process, by what they are of and its name: 0 closed, 1 half open, 2 open";
        to.register("circuit_state", help, self.circuits.clone());
    }

    fn register_server(&mut self) {
        let to = &mut self.registry;
        to.register("http_request_seconds", "How long requests took to the head of the response", self.http.family());
        to.register("requests_refused", "Requests that got a 429 or 503, by code", self.refused.clone());
        to.register("connections", "Connections that are open now, by kind", self.connections.clone());
        to.register("event_streams", "Streams of events that are open now", self.streams.clone());
        let help = "Tokens of the project file that have expired, or do within 14 days";
        to.register("tokens_expiring", help, self.tokens_expiring.clone());
        let help = "Whether the folder has a fault since it was served, and is served as it was: 1, or 0";
        to.register("reload_failed", help, self.reload_failed.clone());
        to.register("callback_posts", "Posts of pauses and results, by outcome", self.posts.family());
        to.register("callbacks_given_up", "Callbacks of which all tries failed", self.given_up.clone());
        let help = "Deliveries to webhooks, by webhook and outcome, each workflow on its own";
        to.register("webhook_deliveries", help, self.deliveries.family());
        let help = "How long the store took to make an event durable (append), and to answer (claim, look)";
        to.register("store_seconds", help, self.store.family());
    }

    fn register_store(&mut self) {
        let to = &mut self.registry;
        to.register("runs_queued", "Runs that wait for a slot", self.queued.clone());
        to.register("queue_oldest_seconds", "How long the oldest of them has waited", self.queue_age.clone());
        let help = "Runs of the store that wait for a human now, by loop and by how long they have waited";
        to.register("runs_waiting", help, self.waiting.clone());
        let help = "How long the oldest run of the store has waited for a human, by loop";
        to.register("waiting_oldest_seconds", help, self.waiting_age.clone());
        let help = "Runs of the store whose models are away, and that wait until they are asked again";
        to.register("runs_model_away", help, self.model_away.clone());
        let help = "Callbacks of the store that are still to be accepted";
        to.register("callbacks_pending", help, self.callbacks_pending.clone());
        let help =
            "Processes that drive runs of the store now, by version and by the digest of the folder that they serve";
        to.register("workers", help, self.workers.clone());
        let help = "The share of a spending limit that is spent or reserved now, by the limit: the 50 largest";
        to.register("limit_used_ratio", help, self.limits.clone());
        let help = "Quarantined runs of the store: their drivers died again and again";
        to.register("runs_quarantined", help, self.quarantined.clone());
        let help = "Whether the store answered in time: 1, or 0, and then the series that it knows are left out";
        to.register("store_up", help, self.store_up.clone());
    }

    /// A request was refused; counted only for used-up quotas and temporary failures.
    pub fn refused(&self, status: StatusCode, code: &str) {
        if matches!(status, StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE) {
            self.refused.get_or_create(&vec![("code", code.to_owned())]).inc();
        }
    }

    /// A request was answered. `route`: its pattern; none for a path that is no route.
    pub fn answered(&self, route: Option<&str>, method: &Method, status: StatusCode, time: Duration) {
        let method = match *method {
            Method::GET | Method::HEAD | Method::POST | Method::DELETE | Method::OPTIONS => method.as_str(),
            _ => OTHER,
        };
        let class = format!("{}xx", status.as_u16() / 100);
        let labels =
            vec![("route", route.unwrap_or(OTHER).to_owned()), ("method", method.to_owned()), ("status", class)];
        self.http.get(labels, &["route"]).observe(time.as_secs_f64());
    }

    /// The store answered an operation: a word of this program.
    pub fn store_answered(&self, operation: &'static str, time: Duration) {
        self.store.get(vec![("operation", operation.to_owned())], &[]).observe(time.as_secs_f64());
    }

    /// A pause or a result was posted, with this outcome: a word of this program.
    pub fn posted(&self, outcome: &'static str) {
        self.posts.get(vec![("outcome", outcome.to_owned())], &[]).inc();
    }

    /// A delivery came to a webhook of the folder, or to a name that none has, with this outcome: a word of this program.
    pub fn delivered(&self, webhook: Option<&str>, outcome: &'static str) {
        let webhook = webhook.map_or(OTHER, |webhook| self.names.webhooks.of(webhook));
        let labels = vec![("webhook", webhook.to_owned()), ("outcome", outcome.to_owned())];
        self.deliveries.get(labels, &["webhook"]).inc();
    }

    /// All tries of a callback failed.
    pub fn gave_up_callback(&self) {
        self.given_up.inc();
    }

    /// Runs of this status were deleted because they ended long ago.
    pub fn deleted(&self, status: Status, runs: u64) {
        self.deleted.get_or_create(&vec![("status", status.word().to_owned())]).inc_by(runs);
    }

    /// A run is driven here from now on, for this organisation.
    pub fn drives(&self, run_id: &str, org: Option<&str>) {
        let mut orgs = self.orgs();
        let known =
            orgs.entry(run_id.to_owned()).or_insert_with(|| DrivenFor { org: org.map(str::to_owned), drivers: 0 });
        known.drivers = known.drivers.saturating_add(1);
    }

    /// A run is not driven here any more.
    pub fn left(&self, run_id: &str) {
        let mut orgs = self.orgs();
        if let Some(known) = orgs.get_mut(run_id) {
            known.drivers = known.drivers.saturating_sub(1);
            if known.drivers == 0 {
                orgs.remove(run_id);
            }
        }
    }

    fn orgs(&self) -> std::sync::MutexGuard<'_, HashMap<String, DrivenFor>> {
        self.orgs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The organisation of a run, or of one that called it; empty for none.
    fn org_of(&self, run_id: &str) -> String {
        let orgs = self.orgs();
        let above = run_id.rmatch_indices('.').filter_map(|(at, _)| run_id.get(..at));
        let known = [run_id].into_iter().chain(above).find_map(|run_id| orgs.get(run_id));
        let org = known.and_then(|known| known.org.as_deref());
        org.map_or_else(String::new, |org| self.names.orgs.of(org).to_owned())
    }

    /// All counters and the gauges, in the text format.
    ///
    /// # Errors
    /// When the text can't be written.
    pub fn text(&self, now: &GaugeValues<'_>) -> Result<String, std::fmt::Error> {
        set(&self.driven, now.driven);
        set(&self.streams, now.event_streams);
        set(&self.tokens_expiring, now.tokens_expiring);
        set(&self.reload_failed, usize::from(now.reload_failed));
        set(&self.store_up, usize::from(now.store.is_some()));
        // Versions and folders come and go.
        self.workers.clear();
        self.limits.clear();
        self.waiting.clear();
        self.waiting_age.clear();
        if let Some(store) = now.store {
            self.set_store(store);
        }
        self.set_lines(&now.queues);
        self.set_circuits(&now.circuits);
        for (kind, count) in [("unknown", now.unknown_connections), ("known", now.known_connections)] {
            set(&self.connections.get_or_create(&vec![("kind", kind.to_owned())]), count);
        }
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &self.registry)?;
        let text = if now.store.is_some() { text } else { without_store(&text) };
        let own = text.strip_suffix("# EOF\n").unwrap_or(&text);
        Ok(format!("{own}{}# EOF\n", process::text()))
    }

    fn set_lines(&self, queues: &[CallQueue]) {
        self.in_line.clear();
        self.in_line_age.clear();
        self.calls_in_line.clear();
        self.calls_in_line_age.clear();
        let (models, calls): (Vec<_>, Vec<_>) = queues.iter().partition(|queue| queue.of.is_model());
        for queue in calls {
            let labels = vec![("of", queue.of.word().to_owned()), ("name", queue.name.clone())];
            self.calls_in_line.get_or_create(&labels).inc_by(i64::try_from(queue.requests).unwrap_or(i64::MAX));
            let age = self.calls_in_line_age.get_or_create(&labels);
            age.set(age.get().max(seconds(age_ms(queue.since_ms))));
        }
        for queue in models {
            let labels = vec![("model", self.names.models.of(&queue.name).to_owned())];
            self.in_line.get_or_create(&labels).inc_by(i64::try_from(queue.requests).unwrap_or(i64::MAX));
            let age = self.in_line_age.get_or_create(&labels);
            age.set(age.get().max(seconds(age_ms(queue.since_ms))));
        }
    }

    /// Of two projects' circuits of one name, the one that lets less through counts.
    fn set_circuits(&self, circuits: &[CallCircuit]) {
        self.circuits.clear();
        for circuit in circuits {
            let value = match circuit.state {
                CircuitState::Closed => 0,
                CircuitState::HalfOpen => 1,
                CircuitState::Open => 2,
            };
            let gauge = self
                .circuits
                .get_or_create(&vec![("of", circuit.of.word().to_owned()), ("name", circuit.name.clone())]);
            gauge.set(gauge.get().max(value));
        }
    }

    fn set_store(&self, store: &StoreValues) {
        set(&self.queued, store.queued);
        self.queue_age.set(store.queue_age.as_secs_f64());
        set(&self.quarantined, store.runs.quarantined);
        set(&self.model_away, store.runs.model_away);
        set(&self.callbacks_pending, store.runs.callbacks_pending);
        for ((name, age), count) in store.waiting_by_label(&self.names.loops) {
            set(&self.waiting.get_or_create(&vec![("loop", name.to_owned()), ("age", age.to_owned())]), count);
        }
        let mut oldest: BTreeMap<&str, Duration> =
            self.names.loops.with_other().map(|name| (name, Duration::ZERO)).collect();
        for waiting in &store.runs.waiting {
            let known = oldest.entry(self.names.loops.of(&waiting.loop_name)).or_default();
            *known = (*known).max(Duration::from_millis(age_ms(waiting.oldest_ms)));
        }
        for (name, age) in oldest {
            self.waiting_age.get_or_create(&vec![("loop", name.to_owned())]).set(age.as_secs_f64());
        }
        for worker in store.workers.iter().filter(|worker| worker.is_alive) {
            let version = worker.version.clone().unwrap_or_default();
            let folder = worker.folder.as_deref().map(short).unwrap_or_default().to_owned();
            self.workers.get_or_create(&vec![("version", version), ("folder", folder)]).inc();
        }
        for limit in store.limits.iter().take(MOST_LIMITS) {
            let labels = vec![("of", limit.of.clone()), ("every", limit.every.clone())];
            // Of two limits that are in other words the same, the fuller one counts.
            let gauge = self.limits.get_or_create(&labels);
            gauge.set(gauge.get().max(limit.used));
        }
    }
}

fn set(gauge: &Gauge, count: impl TryInto<i64>) {
    gauge.set(count.try_into().unwrap_or(i64::MAX));
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

/// The gauges at a moment.
#[derive(Debug, Clone)]
pub struct GaugeValues<'v> {
    /// Runs that are driven.
    pub driven: usize,
    /// What the store knows; none when it did not answer in time.
    pub store: Option<&'v StoreValues>,
    pub event_streams: usize,
    /// The requests to models that wait for their turn.
    pub queues: Vec<CallQueue>,
    /// The circuits of this process.
    pub circuits: Vec<CallCircuit>,
    /// Tokens that have expired, or do soon.
    pub tokens_expiring: usize,
    /// Whether the folder was read again and is served as it was.
    pub reload_failed: bool,
    /// Connections that have not shown a token.
    pub unknown_connections: usize,
    /// Connections that have.
    pub known_connections: usize,
}

pub(super) fn seconds(ms: u64) -> f64 {
    Duration::from_millis(ms).as_secs_f64()
}
