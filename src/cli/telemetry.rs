//! Spans over OTLP/HTTP, if the environment names a collector: made from the notices, by OpenTelemetry's
//! conventions for generative AI. A collector that fails or is absent never stops or slows a run: spans are
//! queued, sent by another thread, and dropped at the end after a time limit.

mod spans;

use std::pin::Pin;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use opentelemetry::KeyValue;
use opentelemetry::trace::TracerProvider as _;
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use opentelemetry_otlp::{SpanExporter, WithHttpConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::SdkTracerProvider;

use self::spans::Spans;
use crate::drive::clock;
use crate::engine::notice::Notice;
use crate::program::Program;

/// The longest time that the end of a command waits for a collector.
const AT_MOST: Duration = Duration::from_secs(2);
/// The time limit of a request to a collector.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);

/// The variables that name a collector, and those that disable it.
const ENDPOINTS: [&str; 2] = ["OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"];
const DISABLED: &str = "OTEL_SDK_DISABLED";
/// The conventions' own switch for content: prompts, thoughts, inputs and results.
const CONTENT: &str = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT";

/// Sends the notices of a run as spans.
pub struct Telemetry {
    provider: SdkTracerProvider,
    spans: Mutex<Spans>,
}

impl Telemetry {
    /// The telemetry that the environment asks for; none without a collector. The error says why a requested
    /// one can't be set up.
    pub fn of_environment(program: &Program) -> Result<Option<Self>, String> {
        let is_true = |name: &str| variable(name).is_some_and(|value| value.eq_ignore_ascii_case("true"));
        if !ENDPOINTS.iter().any(|name| variable(name).is_some()) || is_true(DISABLED) {
            return Ok(None);
        }
        // If another part of the program has set it already, that one is used.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let none = |error: &dyn std::fmt::Display| format!("no spans are sent: {error}");
        let client = reqwest::Client::builder().timeout(REQUEST_TIMEOUT).build().map_err(|error| none(&error))?;
        let runtime = tokio::runtime::Handle::try_current().map_err(|error| none(&error))?;
        let exporter = SpanExporter::builder().with_http().with_http_client(OnRuntime { client, runtime });
        let exporter = exporter.build().map_err(|error| none(&error))?;
        let mut resource =
            Resource::builder().with_attribute(KeyValue::new("service.version", env!("CARGO_PKG_VERSION")));
        if variable("OTEL_SERVICE_NAME").is_none() {
            resource = resource.with_service_name("loopctl");
        }
        let provider =
            SdkTracerProvider::builder().with_batch_exporter(exporter).with_resource(resource.build()).build();
        let tracer = provider.tracer("loopctl");
        let spans = Mutex::new(Spans::new(tracer, program, is_true(CONTENT)));
        Ok(Some(Self { provider, spans }))
    }

    /// Takes a notice in.
    pub fn on(&self, notice: &Notice) {
        let wall_ms = u64::try_from(clock::wall_ms()).unwrap_or(0);
        let now = UNIX_EPOCH.checked_add(Duration::from_millis(wall_ms)).unwrap_or(SystemTime::UNIX_EPOCH);
        // If another thread panicked, at worst a span is missing.
        self.spans.lock().unwrap_or_else(PoisonError::into_inner).on(notice, now);
    }

    /// Sends the rest, and waits at most two seconds for that.
    pub async fn finish(self) {
        let Self { provider, spans } = self;
        drop(spans);
        let sent = tokio::task::spawn_blocking(move || provider.shutdown_with_timeout(AT_MOST));
        // The collector reports nothing to us.
        drop(tokio::time::timeout(AT_MOST, sent).await);
    }
}

#[expect(clippy::disallowed_methods, reason = "OpenTelemetry is set up by the environment")]
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// A client for the sending thread: its requests run on the program's runtime.
#[derive(Debug)]
struct OnRuntime {
    client: reqwest::Client,
    runtime: tokio::runtime::Handle,
}

type Sent<'a> = Pin<Box<dyn Future<Output = Result<Response<Bytes>, HttpError>> + Send + 'a>>;

impl HttpClient for OnRuntime {
    fn send_bytes<'life0, 'async_trait>(&'life0 self, request: Request<Bytes>) -> Sent<'async_trait>
    where
        'life0: 'async_trait,
        Self: 'async_trait,
    {
        let client = self.client.clone();
        let task = self.runtime.spawn(async move { client.send_bytes(request).await });
        Box::pin(async move { task.await? })
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use opentelemetry::trace::TracerProvider as _;
    use opentelemetry_sdk::trace::SdkTracerProvider;
    use serde_json::json;

    use super::spans::Spans;
    use crate::compile::{Texts, compile};
    use crate::diagnostic::Source;
    use crate::engine::notice::Notice;
    use crate::engine::outcome::{Status, Termination};

    #[test]
    fn notices_that_come_without_a_beginning_or_twice_do_no_harm() {
        let document = json!({ "type": "loop", "properties": { "mode": "react", "objective": "x", "tools": [] } });
        let program = compile(&Texts::new(Source::new("loop.json", document.to_string()))).program.unwrap();
        let provider = SdkTracerProvider::builder().build();
        let mut spans = Spans::new(provider.tracer("test"), &program, true);
        let ended = Notice::RunEnded { status: Status::Failed, termination: Termination::Timeout };
        for notice in [ended.clone(), Notice::ModelAsked { iteration: 1 }, ended.clone(), ended] {
            spans.on(&notice, SystemTime::UNIX_EPOCH + Duration::from_secs(1));
        }
    }
}
