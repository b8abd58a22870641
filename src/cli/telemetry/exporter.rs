//! The client that exporters send with: its requests run on the program's runtime, beside the thread of the exporter.

use std::pin::Pin;
use std::time::Duration;

use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};

/// The time limit of a request to a collector.
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
        let client = reqwest::Client::builder().timeout(REQUEST_TIMEOUT).build().map_err(|error| error.to_string())?;
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
                Err(_) => tracing::warn!("the collector can't be reached, or did not answer in time"),
            }
            sent
        })
    }
}
