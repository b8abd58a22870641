//! What the environment asks for. A collector that fails or is absent never stops or slows a run: spans are queued, sent by
//! another thread, and dropped at the end after a time limit.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use opentelemetry::KeyValue;
use opentelemetry::trace::{Span as _, SpanContext, TracerProvider as _};
use opentelemetry_otlp::{MetricExporter, RetryPolicy, SpanExporter, WithHttpConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::metrics::SdkMeterProvider;
use opentelemetry_sdk::trace::{SdkTracer, SdkTracerProvider, Span};

use super::contexts::{self, TraceContexts};
use super::exporter::{CollectorClient, CountingExporter, SpanCounts};
use super::instruments::Instruments;
use super::settings;
use super::spans::RunSpans;
use super::{ENDPOINT, METRICS_ENDPOINT, SPANS_ENDPOINT, TracedProcess, is_true, names_collector, variable};
use crate::drive::run_meter::{RunMeter, RunMeters, TraceContext};
use crate::engine::state::RunHeader;
use crate::program::Program;
use crate::trace::Redaction;

/// The longest time that the end of a process waits for a collector.
const AT_MOST: Duration = Duration::from_secs(2);
/// The conventions' own switch for content: prompts, thoughts, inputs and results.
const CONTENT: &str = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT";

/// Sends spans and metrics of runs.
pub struct Telemetry {
    traced: Arc<TracedRuns>,
    tracers: Option<SdkTracerProvider>,
    meters: Option<SdkMeterProvider>,
}

/// What the spans of all runs share.
pub struct TracedRuns {
    /// None where no spans are asked for.
    pub tracer: Option<SdkTracer>,
    /// None where no metrics are asked for.
    pub instruments: Option<Instruments>,
    /// Whether prompts, thoughts, inputs and results are sent.
    pub content: bool,
    /// The places of the runs in their traces.
    pub contexts: TraceContexts,
    /// What the process is a step of.
    pub parent: Option<SpanContext>,
    /// The spans that ended, and those that were sent.
    pub counts: Arc<SpanCounts>,
}

impl TracedRuns {
    /// Ends a span.
    pub fn end(&self, mut span: Span, at: SystemTime) {
        if span.span_context().is_sampled() {
            self.counts.add();
        }
        span.end_with_timestamp(at);
    }
}

impl Telemetry {
    /// What the environment asks for; none without a collector. The error says why a requested one can't be set up.
    pub fn of_environment(process: TracedProcess) -> Result<Option<Self>, String> {
        if !names_collector() {
            return Ok(None);
        }
        // An address may have a password in it.
        let none = |error: &dyn std::fmt::Display| {
            format!("no spans are sent: {}", Redaction::default().text(&error.to_string()))
        };
        settings::judge().map_err(|why| none(&why))?;
        let wants = |endpoint: &str, exporter: &str| {
            (variable(ENDPOINT).is_some() || variable(endpoint).is_some())
                && variable(exporter).is_none_or(|exporter| !exporter.eq_ignore_ascii_case("none"))
        };
        let counts = Arc::new(SpanCounts::new());
        // A command that has ended does not wait for a collector to come back.
        let retry = match process {
            TracedProcess::Command => RetryPolicy::disabled(),
            TracedProcess::Server => RetryPolicy::recommended(),
        };
        let client = CollectorClient::new().map_err(|error| none(&error))?;
        let tracers = if wants(SPANS_ENDPOINT, "OTEL_TRACES_EXPORTER") {
            let exporter =
                SpanExporter::builder().with_http().with_http_client(client.clone()).with_retry_policy(retry.clone());
            let inner = exporter.build().map_err(|error| none(&error))?;
            let exporter = CountingExporter { inner, counts: Arc::clone(&counts) };
            Some(SdkTracerProvider::builder().with_batch_exporter(exporter).with_resource(resource()).build())
        } else {
            None
        };
        let meters = if wants(METRICS_ENDPOINT, "OTEL_METRICS_EXPORTER") {
            let exporter = MetricExporter::builder().with_http().with_http_client(client).with_retry_policy(retry);
            let exporter = exporter.build().map_err(|error| none(&error))?;
            Some(SdkMeterProvider::builder().with_periodic_exporter(exporter).with_resource(resource()).build())
        } else {
            None
        };
        let parent = match process {
            TracedProcess::Command => variable("TRACEPARENT")
                .and_then(|parent| contexts::read(&TraceContext { parent, state: variable("TRACESTATE") })),
            TracedProcess::Server => None,
        };
        let traced = TracedRuns {
            tracer: tracers.as_ref().map(|tracers| tracers.tracer("loopctl")),
            instruments: meters.as_ref().map(Instruments::new),
            content: is_true(CONTENT),
            contexts: TraceContexts::default(),
            parent,
            counts,
        };
        Ok(Some(Self { traced: Arc::new(traced), tracers, meters }))
    }

    /// What makes spans and metrics of runs.
    pub fn meters(&self) -> Option<Arc<dyn RunMeters>> {
        let meters: Arc<dyn RunMeters> = Arc::new(Traced(Arc::clone(&self.traced)));
        Some(meters)
    }

    /// Sends the rest, and waits at most two seconds for that.
    pub async fn finish(self) {
        let Self { tracers, meters, traced } = self;
        let spans = tokio::task::spawn_blocking(move || {
            tracers.map(|tracers| tracers.shutdown_with_timeout(AT_MOST)).is_some_and(|sent| sent.is_ok())
        });
        let metrics = tokio::task::spawn_blocking(move || {
            meters.map(|meters| meters.shutdown_with_timeout(AT_MOST)).is_some_and(|sent| sent.is_ok())
        });
        // What was not sent has a line in the log.
        drop(tokio::time::timeout(AT_MOST, async { tokio::join!(spans, metrics) }).await);
        traced.counts.finish();
    }
}

/// What describes the process. `service.name` is that of the environment, if it has one.
fn resource() -> Resource {
    let named = variable("OTEL_SERVICE_NAME").is_some()
        || variable("OTEL_RESOURCE_ATTRIBUTES").is_some_and(|attributes| {
            attributes
                .split(',')
                .any(|pair| pair.split_once('=').is_some_and(|(name, _)| name.trim() == "service.name"))
        });
    let mut resource = Resource::builder().with_attribute(KeyValue::new("service.version", env!("CARGO_PKG_VERSION")));
    if !named {
        resource = resource.with_service_name("loopctl");
    }
    resource.build()
}

/// The runs of an engine, with their spans.
struct Traced(Arc<TracedRuns>);

impl RunMeters for Traced {
    fn created(&self, run: &RunHeader, within: Option<&TraceContext>) {
        if self.0.tracer.is_some() && run.caller.is_none() {
            self.0.contexts.created(&run.run_id, within, run.started_by.as_deref());
        }
    }

    fn of(&self, run: &RunHeader, program: &Program) -> Box<dyn RunMeter> {
        Box::new(RunSpans::new(Arc::clone(&self.0), run, program))
    }

    fn model_retried(&self, _model: &str, _status: Option<u16>) {}

    fn trace_context(&self, run_id: &str, at: &str) -> Option<TraceContext> {
        contexts::written(&self.0.contexts.of_call(run_id, at)?)
    }
}
