//! `loopctl-restate`: a program of its own.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use clap::{Parser, Subcommand};

use super::exit::Exit;
use super::failure::CommandError;
use super::serve::telemetry_of_server;
use super::store::StorePlace;
use super::surface::Surface;
use super::telemetry::Telemetry;
use super::{log, process, report_arguments, signals};
use crate::drive::tool::servers_ended;
use crate::journal::Journal;
use crate::restate::{JournalBound, RestateEndpoint};
use crate::serve::{Folder, FolderError};
use crate::trace::units::plural;

/// Run agent loops as workflows of a Restate server
#[derive(Debug, Parser)]
#[command(name = "loopctl-restate", version, max_term_width = 100)]
struct RestateArguments {
    #[command(subcommand)]
    command: RestateCommand,
}

#[derive(Debug, Subcommand)]
enum RestateCommand {
    Serve(RestateServeCommand),
}

/// Serve the loops of a folder to a Restate server
///
/// Prints the address on stdout. Register it once: restate deployments register URL.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  loopctl-restate serve loops
  loopctl-restate serve loops --listen 0.0.0.0:9080 --identity-key publickeyv1_...")]
struct RestateServeCommand {
    /// The folder with the loops
    #[arg(default_value = ".")]
    folder: PathBuf,
    /// The address to listen on; port 0 selects a free port
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:9080")]
    listen: SocketAddr,
    /// The public key of the Restate server; requests of others are refused
    #[arg(long, value_name = "KEY")]
    identity_key: Option<String>,
    /// The most steps that a run may have in a workflow of Restate; beyond them it continues in a further workflow
    #[arg(long, value_name = "N", default_value_t = 5_000, value_parser = clap::value_parser!(u32).range(1..))]
    max_steps: u32,
    /// The most bytes of events that a run may have in Restate's journal; beyond them it is cancelled
    #[arg(long, value_name = "BYTES", default_value_t = 32 << 20, value_parser = clap::value_parser!(u32).range(1..))]
    max_bytes: u32,
    /// The most workflows that a run may have, one after the other; beyond them it is cancelled
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=100))]
    max_parts: u32,
    /// A store that runs are copied to, for trace and runs: sqlite:PATH, postgres://..., env:VAR or file:PATH
    #[arg(long, value_name = "URL")]
    store: Option<String>,
    /// The format of the log on stderr. Default: that of the variable LOOPCTL_LOG_FORMAT, else text. LOOPCTL_LOG sets what is logged
    #[arg(long, value_name = "FORMAT", value_enum)]
    log_format: Option<log::LogFormat>,
}

/// The program: parses the arguments, serves, and returns the exit code.
pub fn main() -> ExitCode {
    if let Some(code) = crate::drive::tool::enter_group() {
        return code;
    }
    let exit = match RestateArguments::try_parse() {
        Ok(RestateArguments { command: RestateCommand::Serve(serve) }) => {
            let surface = Surface::of_process();
            if let Some(fault) = log::init(log::LoggedProcess::Server(serve.log_format)) {
                log::announce_warning(&surface, &fault);
            }
            serve.perform(&surface).unwrap_or_else(|failure| {
                log::announce_error(&surface, &failure.shown(&surface));
                failure.exit()
            })
        }
        Err(error) => report_arguments(error),
    };
    log::finish();
    exit.into()
}

impl RestateServeCommand {
    fn perform(self, surface: &Surface) -> Result<Exit, CommandError> {
        process::keep_private();
        let folder = Folder::read(&self.folder).map_err(|fault| match fault {
            FolderError::Document(unsound) => CommandError::Document(unsound),
            FolderError::Refused(why) => CommandError::usage(why),
        })?;
        let store = self.store.as_deref().map(copy_store).transpose()?;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build()
            .map_err(|error| CommandError::usage(format!("no threads can be started: {error}")))?;
        runtime.block_on(async {
            let _handled = signals::survive_file_limit();
            let most = |number: u32| usize::try_from(number).unwrap_or(usize::MAX);
            let (steps, bytes, parts) = (most(self.max_steps), most(self.max_bytes), most(self.max_parts));
            let bound = JournalBound { steps, bytes, parts };
            let telemetry = telemetry_of_server();
            let meters = telemetry.as_ref().and_then(Telemetry::meters);
            let endpoint =
                RestateEndpoint::bind(folder, self.listen, self.identity_key.as_deref(), bound, store, meters);
            let endpoint = endpoint.map_err(CommandError::usage)?;
            surface.print(&format!("http://{}\n", endpoint.address()))?;
            log::announce(surface, &format!("serving {} to Restate\n", plural(endpoint.documents, "document")));
            let signals = signals::SignalCounter::of(signals::Signals::new());
            endpoint.serve(signals.reach(1)).await;
            if let Some(telemetry) = telemetry {
                telemetry.finish().await;
            }
            servers_ended().await;
            Ok(Exit::Completed)
        })
    }
}

/// The store that runs are copied to.
fn copy_store(url: &str) -> Result<Arc<dyn Journal>, CommandError> {
    let place = StorePlace { url: url.to_owned(), base: PathBuf::from("."), project: None };
    if !place.lasts() {
        return Err(CommandError::usage_help(format!("`{url}` keeps no runs"), "name a store: --store sqlite:PATH"));
    }
    place.open()
}
