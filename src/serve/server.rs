//! A [`Service`] with a listener of its own.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use tokio::sync::watch;

use super::folder::Folder;
use super::listener::HttpListener;
use super::service::{ServeError, ServerOptions, Service};
use crate::journal::{Journal, StoreFault};

/// A [`Service`] and the listener for it: what `loopctl serve` runs.
pub struct Server {
    service: Service,
    listener: HttpListener,
    grace: Duration,
}

impl Server {
    /// Listens for requests to the loops of a folder.
    ///
    /// # Errors
    /// Those of [`Service::new`], and when the address can't be listened on.
    pub async fn bind(folder: Folder, journal: Arc<dyn Journal>, options: &ServerOptions) -> Result<Self, ServeError> {
        let service = Service::new(folder, journal, options)?;
        let listener = HttpListener::bind(options.listen)
            .await
            .map_err(|error| ServeError(format!("{} can't be listened on: {error}", options.listen)))?;
        Ok(Self { service, listener, grace: options.grace })
    }

    /// The address that it listens on.
    pub fn address(&self) -> SocketAddr {
        self.listener.address()
    }

    /// The service that it serves.
    pub fn service(&self) -> &Service {
        &self.service
    }

    /// Recovers runs and callbacks, and serves until `stop` is ready. Then it drains the service, and closes the
    /// connections.
    ///
    /// # Errors
    /// When the store can't be read.
    pub async fn serve(self, stop: impl Future<Output = ()>) -> Result<(), StoreFault> {
        let Self { service, listener, grace } = self;
        service.recover().await?;
        let (over, ended) = watch::channel(false);
        let serving = tokio::spawn(listener.serve(service.router(), service.connections(), ended).boxed());
        stop.await;
        service.drain(grace).await;
        over.send_replace(true);
        drop(serving.await);
        Ok(())
    }
}
