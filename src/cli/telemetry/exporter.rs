//! The client that exporters send with: its requests run on the program's runtime, beside the thread of the exporter.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use opentelemetry_otlp::SpanExporter;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{SpanData, SpanExporter as ExportsSpans};
use reqwest::redirect::Policy;

use super::variable;

/// The time limit of a request to a collector, unless `OTEL_EXPORTER_OTLP_TIMEOUT` sets another one.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);

/// A client of a collector.
#[derive(Debug, Clone)]
pub struct CollectorClient {
    client: reqwest::Client,
    runtime: tokio::runtime::Handle,
}

impl CollectorClient {
    /// A client on the present runtime.
    ///
    /// # Errors
    /// When there is no runtime, or the certificates of the system can't be read.
    pub fn new() -> Result<Self, String> {
        // If another part of the program has set it already, that one is used.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let timeout = variable("OTEL_EXPORTER_OTLP_TIMEOUT").and_then(|timeout| timeout.parse().ok());
        let timeout = timeout.map_or(REQUEST_TIMEOUT, Duration::from_millis);
        // What is sent, and the key of the collector, go to no other address.
        let client = reqwest::Client::builder().timeout(timeout).redirect(Policy::none()).build();
        let client = client.map_err(|error| error.to_string())?;
        let runtime = tokio::runtime::Handle::try_current().map_err(|error| error.to_string())?;
        Ok(Self { client, runtime })
    }
}

type Sent<'a> = Pin<Box<dyn Future<Output = Result<Response<Bytes>, HttpError>> + Send + 'a>>;

impl HttpClient for CollectorClient {
    fn send_bytes<'life0, 'async_trait>(&'life0 self, request: Request<Bytes>) -> Sent<'async_trait>
    where
        'life0: 'async_trait,
        Self: 'async_trait,
    {
        let client = self.client.clone();
        let task = self.runtime.spawn(async move { client.send_bytes(request).await });
        Box::pin(async move {
            let sent = task.await?;
            match &sent {
                Ok(answer) if answer.status().is_success() => {}
                Ok(answer) => tracing::warn!(status = answer.status().as_u16(), "the collector refused what was sent"),
                // The address may have a password in it.
                Err(_) => tracing::warn!(
                    "the collector can't be reached, its certificate is not trusted, or it did not answer in time"
                ),
            }
            sent
        })
    }
}

/// The spans that ended, and those that were handed to the collector: what comes faster than it takes them is dropped.
#[derive(Debug)]
pub struct SpanCounts {
    ended: AtomicU64,
    taken: AtomicU64,
    /// How many were said to be lost.
    reported: AtomicU64,
    /// The most that wait to be sent.
    queue: u64,
}

impl SpanCounts {
    /// None so far.
    pub fn new() -> Self {
        let queue = variable("OTEL_BSP_MAX_QUEUE_SIZE").and_then(|size| size.parse().ok()).unwrap_or(2_048);
        Self { ended: AtomicU64::new(0), taken: AtomicU64::new(0), reported: AtomicU64::new(0), queue }
    }

    /// A span ended.
    pub fn add(&self) {
        self.ended.fetch_add(1, Ordering::Relaxed);
    }

    /// Logs how many spans were lost so far, if more were than was said. `waiting`: those that may still be in the queue.
    fn report(&self, waiting: u64) {
        let (ended, taken) = (self.ended.load(Ordering::Relaxed), self.taken.load(Ordering::Relaxed));
        let lost = ended.saturating_sub(taken).saturating_sub(waiting);
        if lost > self.reported.fetch_max(lost, Ordering::Relaxed) {
            tracing::warn!(lost, "spans were lost: they came faster than the collector took them");
        }
    }

    /// Logs what was lost at the end.
    pub fn finish(&self) {
        self.report(0);
    }
}

/// An exporter that counts.
#[derive(Debug)]
pub struct CountingExporter {
    /// The one that sends.
    pub inner: SpanExporter,
    /// What it counts.
    pub counts: Arc<SpanCounts>,
}

impl ExportsSpans for CountingExporter {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        self.counts.taken.fetch_add(u64::try_from(batch.len()).unwrap_or(u64::MAX), Ordering::Relaxed);
        self.counts.report(self.counts.queue);
        self.inner.export(batch).await
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.inner.shutdown_with_timeout(timeout)
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.inner.force_flush()
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.inner.set_resource(resource);
    }
}
