//! `loopctl serve`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::exit::Exit;
use super::failure::CommandError;
use super::log::{self, LogFormat};
use super::signals;
use super::store::StorePlace;
use super::surface::Surface;
use super::telemetry::{Telemetry, TracedProcess};
use crate::serve::{Folder, FolderError, Server, ServerOptions};
use crate::trace::units::plural;

/// Serve the loops of a folder over HTTP
///
/// Prints the address on stdout when the server accepts requests. On SIGTERM each run finishes its step and
/// stops. The next server resumes every run that was in progress.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  loopctl serve loops
  loopctl serve loops --listen 0.0.0.0:8080 --host agents.example.com
  curl -s localhost:3009/agents/execute -H 'Content-Type: application/json' -d '{\"loop\":\"triage\"}'")]
pub struct ServeCommand {
    /// The folder with the loops
    #[arg(default_value = ".")]
    pub folder: PathBuf,
    /// The address to listen on; port 0 selects a free port
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:3009", value_parser = address)]
    pub listen: SocketAddr,
    /// The store of the runs: sqlite:PATH, postgres://..., env:VAR, file:PATH or memory. Default: the project's, else .loopctl/runs.db in the folder
    #[arg(long, value_name = "URL")]
    pub store: Option<String>,
    /// The maximum number of concurrent runs; further runs wait in a queue
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub max_concurrent_runs: u32,
    /// A name that the server accepts in the `Host` header, besides the names of this machine; repeatable
    #[arg(long, value_name = "NAME")]
    pub host: Vec<String>,
    /// The maximum size of a request body, in bytes
    #[arg(long, value_name = "N", default_value_t = 2 << 20, value_parser = clap::value_parser!(u32).range(1..))]
    pub max_body_bytes: u32,
    /// The time limit for receiving a request body, in ms
    #[arg(long, value_name = "N", default_value_t = 30_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub body_timeout_ms: u64,
    /// The time limit for steps in progress after SIGTERM, in ms
    #[arg(long, value_name = "N", default_value_t = 20_000)]
    pub grace_ms: u64,
    /// Read the folder again when its documents or its project file change. SIGHUP does that once, without this flag too
    #[arg(long)]
    pub watch: bool,
    /// The format of the log on stderr. Default: that of the variable LOOPCTL_LOG_FORMAT, else text. LOOPCTL_LOG sets what is logged
    #[arg(long, value_name = "FORMAT", value_enum)]
    pub log_format: Option<LogFormat>,
}

impl ServeCommand {
    /// Serves until a signal comes.
    ///
    /// # Errors
    /// When the folder can't be served, or the store fails.
    pub async fn perform(self, surface: &Surface) -> Result<Exit, CommandError> {
        let folder = Folder::read(&self.folder).map_err(|fault| match fault {
            FolderError::Document(unsound) => CommandError::Document(unsound),
            FolderError::Refused(why) => CommandError::usage(why),
        })?;
        let place = StorePlace::of_run(self.store.as_deref(), &folder.project, &folder.root);
        let options = ServerOptions {
            listen: self.listen,
            hosts: self.host,
            max_concurrent_runs: usize::try_from(self.max_concurrent_runs).unwrap_or(1),
            max_body_bytes: usize::try_from(self.max_body_bytes).unwrap_or(usize::MAX),
            body_timeout: Duration::from_millis(self.body_timeout_ms),
            grace: Duration::from_millis(self.grace_ms),
        };
        // Before anybody can know that it is there.
        let signals = signals::SignalCounter::of_server();
        let mut hangups = signals::Hangups::of_server();
        let telemetry = telemetry_of_server();
        let meters = telemetry.as_ref().and_then(Telemetry::meters);
        let server = Server::bind_metered(folder, place.open()?, &options, meters)
            .await
            .map_err(|refusal| CommandError::usage(refusal.to_string()))?;
        surface.print(&format!("http://{}\n", server.address()))?;
        let loops = server.service().loops();
        log::announce(
            surface,
            &format!("serving {}; runs are kept in {}\n", plural(loops.len(), "document"), place.shown()),
        );
        if server.service().is_open() {
            log::announce(
                surface,
                "no tokens: everybody on this machine may start loops; requests from elsewhere are refused\n",
            );
        }
        let service = server.service().clone();
        if self.watch {
            service.watch_folder();
        }
        let reloads = async {
            loop {
                hangups.next().await;
                // Why it failed is in the log.
                drop(service.reload().await);
            }
        };
        let first = async {
            signals.reach(1).await;
            log::announce(surface, "stopping: every run finishes its step; a second signal stops now\n");
        };
        let served = tokio::select! {
            served = server.serve(first) => served,
            () = signals.reach(2) => return Ok(Exit::Completed),
            () = reloads => return Ok(Exit::Completed),
        };
        if let Some(telemetry) = telemetry {
            telemetry.finish().await;
        }
        served?;
        Ok(Exit::Completed)
    }
}

/// What the environment asks a server to send of its runs.
pub(super) fn telemetry_of_server() -> Option<Telemetry> {
    Telemetry::of_environment(TracedProcess::Server).unwrap_or_else(|why| {
        tracing::warn!("{why}");
        None
    })
}

pub(super) fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| "write an IP address and a port, like 127.0.0.1:3009 or [::1]:3009".to_owned())
}
