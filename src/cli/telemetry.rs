//! OpenTelemetry: spans and metrics of runs over OTLP/HTTP, if the environment names a collector.

#[cfg(feature = "otel")]
mod contexts;
#[cfg(feature = "otel")]
mod exporter;
#[cfg(feature = "otel")]
mod instruments;
#[cfg(not(feature = "otel"))]
#[path = "telemetry/off.rs"]
mod provider;
#[cfg(feature = "otel")]
mod provider;
#[cfg(feature = "otel")]
mod settings;
#[cfg(feature = "otel")]
mod spans;

pub use self::provider::Telemetry;

/// The variables that name a collector of all signals, of spans, and of metrics.
const ENDPOINT: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";
const SPANS_ENDPOINT: &str = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT";
const METRICS_ENDPOINT: &str = "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT";
const DISABLED: &str = "OTEL_SDK_DISABLED";

/// Which process sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TracedProcess {
    /// A command that drives one run: it may be a step of a trace, as its environment says.
    Command,
    /// A server: the requests for its runs say of which trace they are steps.
    Server,
}

/// Whether the environment names a collector.
fn names_collector() -> bool {
    [ENDPOINT, SPANS_ENDPOINT, METRICS_ENDPOINT].iter().any(|name| variable(name).is_some()) && !is_true(DISABLED)
}

fn is_true(name: &str) -> bool {
    variable(name).is_some_and(|value| value.eq_ignore_ascii_case("true"))
}

#[expect(clippy::disallowed_methods, reason = "OpenTelemetry is set up by the environment")]
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}
