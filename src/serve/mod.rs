//! HTTP: the loop as a step of anything that speaks it. Hyphen's agents API over our engine; every route
//! is a file in `route`.

pub mod app;
pub mod authorizer;
mod callback;
mod compile_pool;
mod connections;
pub mod feed;
pub mod folder;
mod hidden_paths;
mod listen;
mod metrics;
pub mod middleware;
mod openapi;
mod problem;
mod program_cache;
mod quotas;
mod request;
pub mod route;
pub mod run_store;
pub mod scheduler;
mod socket;
mod view;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use app::{App, AppParts, BodyLimits};
use authorizer::Authorizer;
use folder::Folder;
use listen::HttpListener;
use middleware::HostNames;

use crate::drive::secret::Vault;
use crate::journal::{Journal, StoreFault};
use secrecy::ExposeSecret as _;

/// How to serve.
#[derive(Debug, Clone)]
pub struct ServerOptions {
    /// The address that is listened on; port 0 is a free one.
    pub listen: SocketAddr,
    /// Names that the server is called by, beside its own.
    pub hosts: Vec<String>,
    /// So many runs are driven at once.
    pub most_runs: usize,
    /// The longest body in bytes.
    pub body_bytes: usize,
    /// How long a body may take to arrive.
    pub body_time: Duration,
    /// How long steps that are under way may take at the end.
    pub grace: Duration,
}

/// A server that listens, and serves when it is told to.
pub struct Server {
    app: Arc<App>,
    listener: HttpListener,
    grace: Duration,
}

/// Why there is no server.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    /// A sentence that says what to do.
    #[error("{0}")]
    Refused(String),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreFault),
}

impl Server {
    /// Listens for a folder's loops.
    ///
    /// # Errors
    /// When a token can't be used, the address may not or can't be listened on, or a secret is missing.
    pub async fn bind(folder: Folder, journal: Arc<dyn Journal>, options: ServerOptions) -> Result<Self, BindError> {
        let authorizer = Authorizer::new(&folder.project.serve).map_err(BindError::Refused)?;
        if !authorizer.may_listen(options.listen.ip()) {
            return Err(BindError::Refused(format!(
                "without tokens everybody who reaches {} could start loops: give `serve.tokens` in loopctl.json \
                 (`loopctl token` makes one), or listen on 127.0.0.1",
                options.listen.ip()
            )));
        }
        let vault = Vault::new(folder.project.orgconfig.clone(), &folder.root);
        let secret = folder.project.serve.callback_secret.as_deref().map(|source| vault.read(source)).transpose();
        let secret = secret.map_err(|why| BindError::Refused(format!("`serve.callback_secret`: {why}")))?;
        let listener = HttpListener::bind(options.listen)
            .await
            .map_err(|error| BindError::Refused(format!("{} can't be listened on: {error}", options.listen)))?;
        let app = App::new(AppParts {
            folder,
            journal,
            authorizer,
            names: HostNames::new(listener.address(), &options.hosts),
            body: BodyLimits { bytes: options.body_bytes, time: options.body_time },
            most_runs: options.most_runs,
            callback_key: secret.map(|secret| secret.expose_secret().to_owned()),
        });
        Ok(Self { app: Arc::new(app), listener, grace: options.grace })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.listener.address()
    }

    /// Whether everybody on this machine is let in.
    pub fn is_open(&self) -> bool {
        self.app.authorizer.is_open()
    }

    /// The names of the loops that it serves.
    pub fn loops(&self) -> Vec<String> {
        self.app.folder.loops.keys().cloned().collect()
    }

    /// Serves until `stop` comes: then it is no longer ready, every run ends its step and is left for the
    /// next server, and the connections end. Runs that were under way are taken up first.
    ///
    /// # Errors
    /// When the store can't be read.
    pub async fn serve(self, stop: impl Future<Output = ()>) -> Result<(), StoreFault> {
        let Self { app, listener, grace } = self;
        app.scheduler.recover_all().await?;
        app.callbacks.recover_all().await?;
        let (over, ended) = watch::channel(false);
        let serving = tokio::spawn(listener.serve(route::router(&app), Arc::clone(&app.connections), ended));
        stop.await;
        app.scheduler.drain();
        // What is not done by then is cut off, as by a crash: its journal has what was acknowledged.
        drop(tokio::time::timeout(grace, app.scheduler.leave_all()).await);
        over.send_replace(true);
        drop(serving.await);
        Ok(())
    }
}
