//! `loopctl mcp serve`.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;

use super::stdio_session::{SessionParts, serve_session};
use crate::cli::decide_commands::DecideCommands;
use crate::cli::exit::Exit;
use crate::cli::failure::CommandError;
use crate::cli::log;
use crate::cli::next_commands::NextCommands;
use crate::cli::run_drive;
use crate::cli::signals::{SignalCounter, Signals};
use crate::cli::store::StorePlace;
use crate::cli::surface::Surface;
use crate::drive::engine::Engine;
use crate::serve::mcp::offered_tools::McpTools;
use crate::serve::{Folder, FolderError};
use crate::trace::escape;
use crate::trace::units::plural;

/// Offer the loops and workflows of a folder as the tools of an MCP server, over stdin and stdout
///
/// A host such as an editor or an assistant starts this command, and calls the loops and workflows that have a `description`. Each
/// call is a run of the project's store. Stdout carries messages of the protocol and nothing else; the log is on stderr. The end
/// of stdin ends the process: each run finishes its step, and can be resumed.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  loopctl mcp serve loops
  LOOPCTL_LOG=debug loopctl mcp serve loops 2>mcp.log

In the configuration of a host:
  {\"mcpServers\": {\"loops\": {\"command\": \"loopctl\", \"args\": [\"mcp\", \"serve\", \"/path/to/loops\"]}}}")]
pub struct McpServeTask {
    /// The folder with the loops and workflows
    #[arg(default_value = ".")]
    pub folder: PathBuf,
    /// The store of the runs: sqlite:PATH, postgres://..., env:VAR, file:PATH or memory. Default: the project's, else .loopctl/runs.db in the folder
    #[arg(long, value_name = "URL")]
    pub store: Option<String>,
    /// The maximum number of concurrent runs; further calls wait
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub max_concurrent_runs: u32,
}

impl McpServeTask {
    /// Serves until stdin ends or a signal comes.
    ///
    /// # Errors
    /// When the folder can't be served, or has nothing to offer.
    pub async fn perform(self, surface: &Surface) -> Result<Exit, CommandError> {
        let folder = Folder::read(&self.folder).map_err(|fault| match fault {
            FolderError::Document(unsound) => CommandError::Document(unsound),
            FolderError::Refused(why) => CommandError::usage(why),
        })?;
        let tools = McpTools::of(&folder.loops, |_| true);
        for name in &tools.misnamed {
            log::announce_warning(surface, &McpTools::why_not(name));
        }
        let tools = tools.by_name.len();
        if tools == 0 {
            let message =
                format!("no loop or workflow of {} is offered", escape::line(&self.folder.display().to_string()));
            let help = "a host chooses by descriptions: give those that are meant for it a `description`";
            return Err(CommandError::usage_help(message, help));
        }
        let place = StorePlace::of_run(self.store.as_deref(), &folder.project, &folder.root);
        let journal = place.open()?;
        let mut engines: HashMap<PathBuf, Engine> = HashMap::new();
        for offered in folder.loops.values() {
            engines.entry(offered.root.clone()).or_insert_with(|| {
                let hints = Arc::new(DecideCommands(NextCommands::new("", &place)));
                let project = Arc::clone(&offered.program.project);
                run_drive::engine(project, &offered.root, Arc::clone(&journal), None, None, Some(hints))
            });
        }
        let signals = SignalCounter::of(Signals::new());
        log::announce(surface, &format!("offering {}; runs are kept in {}\n", plural(tools, "tool"), place.shown()));
        let runs_at_once = usize::try_from(self.max_concurrent_runs).unwrap_or(1);
        let parts = SessionParts { folder, engines, place, runs_at_once };
        serve_session(parts, tokio::io::stdin(), tokio::io::stdout(), signals).await;
        Ok(Exit::Completed)
    }
}
