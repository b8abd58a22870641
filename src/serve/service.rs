//! The loops of a folder over HTTP, as a router for any program to mount. [`Server`] adds a listener.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use axum::http::request::Parts;
use futures_util::FutureExt as _;
use tokio::sync::watch;

use super::app::{App, AppParts, BodyLimits};
use super::authorizer::{Authorizer, Caller, HostIdentity};
use super::callback::CallbackKey;
use super::connections::Connections;
use super::folder::{Folder, FolderError};
use super::listener::HttpListener;
use super::middleware::HostNames;
use super::route::RouteGroup;
use super::schedules::ScheduledStarts;
use super::{refusals, reload, retention, route, token_notices, worker_folders};
use crate::drive::engine::Engine;
use crate::drive::requirements::MissingRequirement;
use crate::drive::run_meter::RunMeters;
use crate::drive::secret::Vault;
use crate::drive::{clock, requirements};
use crate::journal::{Journal, StoreError};
use crate::policy::public_url;

/// How to serve. The defaults are those of `loopctl serve`.
#[derive(Debug, Clone)]
pub struct ServerOptions {
    /// The address of the server; port 0 selects a free port. A [`Service`] does not listen: it uses only the IP
    /// address, as the address at which clients reach the router.
    pub listen: SocketAddr,
    /// Names that are accepted in the `Host` header, besides `localhost` and the IP address of `listen`.
    pub hosts: Vec<String>,
    /// The maximum number of concurrent runs; further runs wait in a queue.
    pub max_concurrent_runs: usize,
    /// The maximum size of a request body, in bytes.
    pub max_body_bytes: usize,
    /// The time limit for receiving a request body.
    pub body_timeout: Duration,
    /// The time limit for steps in progress when a [`Server`] stops.
    pub grace: Duration,
}

impl Default for ServerOptions {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 3009)),
            hosts: Vec::new(),
            max_concurrent_runs: 64,
            max_body_bytes: 2 << 20,
            body_timeout: Duration::from_secs(30),
            grace: Duration::from_secs(20),
        }
    }
}

/// Makes a [`Service`] for a folder and the engine of a program: [`Service::builder`] returns one.
pub struct ServiceBuilder {
    folder: PathBuf,
    engine: Engine,
    options: ServerOptions,
    identity: Option<HostIdentity>,
    routes: Vec<RouteGroup>,
}

impl ServiceBuilder {
    /// How to serve. Default: as `loopctl serve`.
    #[must_use]
    pub fn options(mut self, options: ServerOptions) -> Self {
        self.options = options;
        self
    }

    /// Says who sends a request, in place of the tokens of the project: by what a layer of the program around has put into the
    /// extensions of the request, by a header or a cookie. Without a caller, it is answered with 401.
    ///
    /// ```no_run
    /// # use loopctl::{Engine, serve::{Caller, ServeError, Service, TokenScope}};
    /// # #[derive(Clone)] struct User { name: String, team: String }
    /// # fn service(engine: &Engine) -> Result<Service, ServeError> {
    /// let loops = Service::builder("loops", engine).identify(|parts| {
    ///     let user = parts.extensions.get::<User>()?;
    ///     Some(Caller::new(&user.name).org(&user.team).scopes([TokenScope::Run, TokenScope::Read, TokenScope::Decide]))
    /// });
    /// # loops.build()
    /// # }
    /// ```
    #[must_use]
    pub fn identify(mut self, identity: impl Fn(&Parts) -> Option<Caller> + Send + Sync + 'static) -> Self {
        self.identity = Some(Arc::new(identity));
        self
    }

    /// Has these routes, and no others. Default: all of them.
    #[must_use]
    pub fn routes(mut self, routes: impl IntoIterator<Item = RouteGroup>) -> Self {
        self.routes = routes.into_iter().collect();
        self
    }

    /// Reads the folder, and checks its documents with the tools of the engine.
    ///
    /// # Errors
    /// All faults of the documents, and those of [`Service::new`]. A tool or a model that a document names, and that neither the
    /// engine nor the project has, is missing.
    pub fn build(self) -> Result<Service, ServeError> {
        let folder = Folder::read_with(&self.folder, self.engine.signatures())?;
        let journal = Arc::clone(self.engine.journal());
        let (engine, identity) = (Some(self.engine), self.identity);
        Service::metered(
            folder,
            HostParts { journal, engine, identity, routes: self.routes, meters: None },
            &self.options,
        )
    }

    /// The same, with a listener at the address of the options.
    ///
    /// # Errors
    /// As those of [`ServiceBuilder::build`], and when the address can't be listened on.
    pub async fn bind(self) -> Result<Server, ServeError> {
        let options = self.options.clone();
        Server::listening(self.build()?, &options).await
    }
}

impl fmt::Debug for ServiceBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServiceBuilder").field("folder", &self.folder).finish_non_exhaustive()
    }
}

impl HostParts {
    /// Those of a server without a program around it.
    fn new(journal: Arc<dyn Journal>) -> Self {
        Self { journal, engine: None, identity: None, routes: RouteGroup::ALL.to_vec(), meters: None }
    }
}

/// What a service has of the program around it.
struct HostParts {
    journal: Arc<dyn Journal>,
    engine: Option<Engine>,
    /// Who says who calls, in place of tokens.
    identity: Option<HostIdentity>,
    routes: Vec<RouteGroup>,
    /// What counts the runs besides the metrics.
    meters: Option<Arc<dyn RunMeters>>,
}

/// Why there is no service or server: a sentence that says what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// The folder can't be read, or its documents have errors.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// There are no tokens, and others can reach the address.
    #[error(
        "without tokens, everyone who reaches {address} could start loops: set `serve.tokens` in loopctl.json \
         (`loopctl token` creates one), or listen on 127.0.0.1"
    )]
    Open {
        /// The address.
        address: IpAddr,
    },
    /// A token, or another setting of who may do what, can't be used.
    #[error("{reason}")]
    Tokens {
        /// Which one, and why.
        reason: String,
    },
    /// The secret that signs callbacks can't be read.
    #[error("{reason}")]
    CallbackSecret {
        /// Why.
        reason: String,
    },
    /// `serve.public_url` is no address that links could have.
    #[error("`serve.public_url` {reason}")]
    PublicUrl {
        /// Why.
        reason: String,
    },
    /// Secrets or models of loops can't be read here.
    #[error("{}", requirements::sentence(.missing))]
    Missing {
        /// Which ones, with the place of each in the project file.
        missing: Vec<MissingRequirement>,
    },
    /// The folder as it is now can't be served; the one that was read before is.
    #[error("{reason}")]
    Reload {
        /// Why.
        reason: String,
    },
    /// The address can't be listened on.
    #[error("{address} can't be listened on: {error}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// Why.
        #[source]
        error: std::io::Error,
    },
}

/// The loops of a folder over HTTP, without a listener.
///
/// [`Service::router`] has all routes of `loopctl serve`. Call [`Service::recover`] once before the first request,
/// and [`Service::drain`] before the process ends.
///
/// ```no_run
/// use std::path::Path;
/// use std::time::Duration;
///
/// use axum::Router;
/// use loopctl::serve::{Folder, ServerOptions, Service};
///
/// # async fn host(stop: impl Future<Output = ()> + Send + 'static) -> Result<(), Box<dyn std::error::Error>> {
/// let folder = Folder::read(Path::new("loops"))?;
/// let journal = loopctl::journal::open("sqlite:runs.db", Path::new("."))?;
/// let options = ServerOptions { hosts: vec!["shop.example".to_owned()], ..ServerOptions::default() };
/// let loops = Service::new(folder, journal, &options)?;
/// loops.recover().await?;
///
/// let app = Router::new().nest("/loops/", loops.router()); // POST /loops/agents/execute; the page is at /loops/
/// let listener = tokio::net::TcpListener::bind("127.0.0.1:8080").await?;
/// // Drained within the shutdown: it ends the streams of those who follow a run, for which the server waits.
/// let draining = loops.clone();
/// let stopped = async move {
///     stop.await;
///     draining.drain(Duration::from_secs(20)).await;
/// };
/// axum::serve(listener, app).with_graceful_shutdown(stopped).await?;
/// # Ok(())
/// # }
/// ```
///
/// # What the router checks, and what the listener must do
///
/// The router checks each request as `loopctl serve` does: the name in `Host` (against DNS rebinding), pages of other
/// sites, the token and its scopes, quotas, and the size and the duration of the body. A prefix that ends in `/`
/// keeps the relative links of the page correct.
///
/// [`Server`] does the following below the router. A program that mounts the router must do it itself, or be
/// behind a proxy that does:
///
/// - It refuses to listen on an address that others can reach while there are no tokens. [`Service::new`] refuses the
///   same for [`ServerOptions::listen`], but it can't see which address the program listens on. Without tokens,
///   everyone who reaches the router may start loops.
/// - It limits the time for the head of a request (10 s), its headers (100, 64 KiB), and the time in which the client
///   must read what is written to it (30 s).
/// - It limits the number of connections to the file descriptors of the process, keeps most of them for clients with
///   a token, and closes idle ones first. `serve.limits.connections` and `serve.limits.unknown_connections` of the
///   project have no effect without it, and the metrics count no connections.
#[derive(Clone)]
pub struct Service {
    app: Arc<App>,
    /// Where its server listens.
    address: Option<SocketAddr>,
    routes: Arc<[RouteGroup]>,
}

impl Service {
    /// A service for the loops of a folder, with their runs in this journal.
    ///
    /// # Errors
    /// When a token can't be used, a secret is missing, or everyone could start loops: `options.listen` can be reached
    /// from other machines, and there are no tokens.
    pub fn new(folder: Folder, journal: Arc<dyn Journal>, options: &ServerOptions) -> Result<Self, ServeError> {
        Self::metered(folder, HostParts::new(journal), options)
    }

    /// A service for the loops of a folder that has the tools, the models, the key and the store of an engine: documents name a
    /// tool of the program as a step or among the tools of a loop, and `check` of them knows it.
    pub fn builder(folder: impl Into<PathBuf>, engine: &Engine) -> ServiceBuilder {
        let (options, routes) = (ServerOptions::default(), RouteGroup::ALL.to_vec());
        ServiceBuilder { folder: folder.into(), engine: engine.clone(), options, identity: None, routes }
    }

    fn metered(folder: Folder, host: HostParts, options: &ServerOptions) -> Result<Self, ServeError> {
        let HostParts { journal, engine, identity, routes, meters } = host;
        let address = options.listen.ip();
        let authorizer = Authorizer::new(&folder.project.serve).map_err(|reason| ServeError::Tokens { reason })?;
        let authorizer = authorizer.with_host(identity);
        if !authorizer.may_listen(address) {
            return Err(ServeError::Open { address });
        }
        let vault = Vault::new(folder.project.orgconfig.clone(), &folder.root);
        let secret = folder.project.serve.callback_secret.clone();
        let callback_key = secret
            .map(|source| CallbackKey::new(vault, source))
            .transpose()
            .map_err(|reason| ServeError::CallbackSecret { reason })?;
        let public_url = folder.project.serve.public_url.as_deref();
        if let Some(reason) = public_url.and_then(public_url::fault) {
            return Err(ServeError::PublicUrl { reason: reason.to_owned() });
        }
        // Who posts an answer reaches the server under this name.
        let hosts: Vec<String> =
            options.hosts.iter().cloned().chain(public_url.map(|url| public_url::host(url).to_owned())).collect();
        let app = App::new(AppParts {
            folder,
            host: engine,
            journal,
            authorizer,
            names: HostNames::new(address, &hosts),
            body: BodyLimits { bytes: options.max_body_bytes, time: options.body_timeout },
            max_concurrent_runs: options.max_concurrent_runs,
            callback_key,
            meters,
        });
        let missing = app.runs.missing();
        if !missing.is_empty() {
            return Err(ServeError::Missing { missing });
        }
        Ok(Self { app: Arc::new(app), address: None, routes: routes.into() })
    }

    /// Its routes, to be served as they are or under a prefix ([`axum::Router::nest`]).
    pub fn router(&self) -> axum::Router {
        route::router(&self.app, &self.routes)
    }

    /// Claims the runs of the journal that no living process drives, now and from now on several times a second: those
    /// that were in progress when a process ended, and those in which an approval expires. Starts the runs of schedules, and posts
    /// the pauses and results that no living process posts. Deletes runs that are older than `serve.keep_days`.
    ///
    /// # Errors
    /// When the store can't be read.
    pub async fn recover(&self) -> Result<(), StoreError> {
        let served = self.app.folder();
        let folder = &served.digest;
        let address = self.address.map(|address| address.to_string());
        self.app.runs.journal.introduce(folder, address.as_deref()).await?;
        if let Some(sentence) = worker_folders::differing(&self.app.runs.journal.workers().await?, folder) {
            tracing::warn!("{sentence}");
        }
        self.app.scheduler.recover_all().await?;
        self.app.scheduler.watch_queue();
        ScheduledStarts::since(clock::wall_ms()).watch(&self.app, clock::wall_ms);
        self.app.callbacks.watch();
        retention::watch(&self.app);
        token_notices::watch(&self.app);
        refusals::watch(&self.app);
        Ok(())
    }

    /// Reads the folder again: its loops, tokens, settings and secrets are replaced together. Runs that are under way keep their
    /// documents. `serve.limits`, `serve.callback_secret`, `serve.public_url` and `store` stay as they were.
    ///
    /// # Errors
    /// Why the folder is served as it was.
    pub async fn reload(&self) -> Result<(), ServeError> {
        reload::reload(&self.app, self.address).await
    }

    /// From now on, reads the folder again whenever its documents or its project file have changed.
    pub fn watch_folder(&self) {
        reload::watch(&self.app, self.address);
    }

    /// Starts no more runs, and returns when each run has finished its step, or after this time. `/readyz` returns 503
    /// from now on. The next process that serves the journal resumes the runs.
    pub async fn drain(&self, grace: Duration) {
        self.app.scheduler.drain();
        // A longer step is cut off, as in a crash: the journal has what was acknowledged.
        drop(tokio::time::timeout(grace, self.app.scheduler.leave_all()).await);
        refusals::write(&self.app).await;
    }

    /// Whether there are no tokens, so that everyone who reaches the router may start loops.
    pub fn is_open(&self) -> bool {
        self.app.served().authorizer.is_open()
    }

    /// The names of the loops that it serves.
    pub fn loops(&self) -> Vec<String> {
        self.app.folder().loops.keys().cloned().collect()
    }

    /// The connections that a listener counts.
    pub(super) fn connections(&self) -> Arc<Connections> {
        Arc::clone(&self.app.connections)
    }
}

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
        Self::bind_metered(folder, journal, options, None).await
    }

    /// The same, with something that counts the runs besides the metrics.
    pub(crate) async fn bind_metered(
        folder: Folder,
        journal: Arc<dyn Journal>,
        options: &ServerOptions,
        meters: Option<Arc<dyn RunMeters>>,
    ) -> Result<Self, ServeError> {
        Self::listening(Service::metered(folder, HostParts { meters, ..HostParts::new(journal) }, options)?, options)
            .await
    }

    async fn listening(mut service: Service, options: &ServerOptions) -> Result<Self, ServeError> {
        let listener = HttpListener::bind(options.listen)
            .await
            .map_err(|error| ServeError::Listen { address: options.listen, error })?;
        service.address = Some(listener.address());
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
    pub async fn serve(self, stop: impl Future<Output = ()>) -> Result<(), StoreError> {
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
