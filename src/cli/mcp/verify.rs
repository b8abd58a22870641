//! `loopctl mcp verify`.

use std::fmt::Write as _;

use clap::Args;

use super::tool_text::head;
use super::{McpFolder, McpProject, shown_fault};
use crate::cli::exit::Exit;
use crate::cli::failure::CommandError;
use crate::cli::surface::Surface;
use crate::drive::tool::{DriftClass, compare_tools};
use crate::language::mcp::LockedServer;
use crate::trace::{Tone, escape};

/// Compare servers with mcp.lock.json; exit code 1 when one has changed
///
/// A change of notation is none: the order of keys, titles. Tools that are new are named, and are no failure: no loop can call
/// them.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  loopctl mcp verify
  loopctl mcp verify files")]
pub struct McpVerifyTask {
    /// The servers, by their names in `mcp` of loopctl.json. Default: all
    #[arg(value_name = "SERVER")]
    pub names: Vec<String>,
    #[command(flatten)]
    pub folder: McpFolder,
}

impl McpVerifyTask {
    /// Asks the servers, and says what has changed.
    ///
    /// # Errors
    /// When the project can't be read.
    pub async fn perform(self, surface: &Surface) -> Result<Exit, CommandError> {
        let project = self.folder.read()?;
        let mut is_same = true;
        for name in project.named(&self.names)? {
            match compared(&project, &name).await {
                Ok((text, same)) => {
                    surface.print(&text)?;
                    is_same &= same;
                }
                Err(text) => {
                    surface.say(&format!("{} {text}\n", surface.err.paint(Tone::Bad, "error:")));
                    is_same = false;
                }
            }
        }
        Ok(if is_same { Exit::Completed } else { Exit::Failed })
    }
}

/// What has changed of a server, and whether nothing has.
async fn compared(project: &McpProject, name: &str) -> Result<(String, bool), String> {
    let Some(pinned) = project.lock.servers.get(name) else {
        return Err(format!("the MCP server `{}` is not pinned", escape::line(name)));
    };
    let is_other = project.project.mcp.get(name).is_none_or(|server| server.connection() != pinned.connection);
    if is_other {
        return Err(format!("the MCP server `{}` was pinned with other settings", escape::line(name)));
    }
    let surveyed = project.servers.survey(name, Some(pinned.protocol)).await.map_err(|fault| shown_fault(&fault))?;
    let (lines, is_same) = differences(pinned, &surveyed.server);
    let verdict = if is_same { "as pinned" } else { "changed since it was pinned" };
    Ok((format!("{}: {verdict}\n{lines}", head(name, &surveyed.server)), is_same))
}

fn differences(pinned: &LockedServer, now: &LockedServer) -> (String, bool) {
    let (mut lines, mut is_same) = (String::new(), true);
    let mut line = |word: &str, tool: &str| {
        let _ = writeln!(lines, "  {word:<12} {}", escape::exact_line(tool));
    };
    for (name, tool) in &pinned.tools {
        for class in compare_tools(tool, now.tools.get(name)) {
            line(class.word(), name);
            is_same = false;
        }
    }
    for name in now.tools.keys().filter(|name| !pinned.tools.contains_key(*name)) {
        line(DriftClass::New.word(), name);
    }
    // Only one that says who it is at its start can be compared.
    if now.instructions.is_some() && now.instructions != pinned.instructions {
        line("instructions", "no model reads them here");
        is_same = false;
    }
    (lines, is_same)
}
