//! `loopctl mcp call`.

use std::sync::Arc;

use clap::Args;
use serde_json::Value;

use super::{McpFolder, McpProject, shown_fault};
use crate::cli::exit::Exit;
use crate::cli::failure::CommandError;
use crate::cli::output::json_line;
use crate::cli::surface::Surface;
use crate::diagnostic::nearest;
use crate::program::Schema;
use crate::program::file_value::written_json;
use crate::program::mcp::ServedTool;
use crate::program::null_member::without_nulls;
use crate::trace::{Tone, escape};

/// Call a tool of a server, to try it
///
/// The input is judged by the pinned schema before the server is started. Prints what the tool gives as JSON.
#[derive(Debug, Args)]
#[command(after_help = "Example:
  loopctl mcp call files.read_text_file '{\"path\":\"notes.txt\"}'")]
pub struct McpCallTask {
    /// The server and the tool: SERVER.TOOL
    #[arg(value_name = "SERVER.TOOL")]
    pub tool: String,
    /// The input of the call, a JSON object
    #[arg(value_name = "JSON", default_value = "{}")]
    pub input: String,
    #[command(flatten)]
    pub folder: McpFolder,
}

impl McpCallTask {
    /// Calls the tool.
    ///
    /// # Errors
    /// When the project can't be read, the tool is not pinned, or the input does not match its schema.
    pub async fn perform(self, surface: &Surface) -> Result<Exit, CommandError> {
        let project = self.folder.read()?;
        let (server, tool) = split(&project, &self.tool)?;
        let locked = project.locked(server)?;
        if project.project.mcp.get(server).is_some_and(|now| now.connection() != locked.connection) {
            let message = format!("the MCP server `{}` was pinned with other settings", escape::line(server));
            return Err(CommandError::usage_help(message, format!("`loopctl mcp pin {server}` asks it again")));
        }
        let settings = project.project.mcp.get(server).map(|server| &server.tools);
        // Loops know a tool by the name that the project gives it.
        let renamed = settings.and_then(|all| all.iter().find(|(_, one)| one.name.as_deref() == Some(tool)));
        let tool = match renamed {
            Some((own, _)) if locked.tools.contains_key(own) => {
                surface.say(&format!("`{}` is the server's `{}`\n", escape::line(&self.tool), escape::line(own)));
                own.as_str()
            }
            _ => tool,
        };
        let Some(known) = locked.tools.get(tool) else {
            let near = nearest(tool, locked.tools.keys().map(String::as_str));
            let help = near.map_or_else(
                || format!("`loopctl mcp list {server}` shows them"),
                |near| format!("the nearest name is `{near}`"),
            );
            return Err(CommandError::usage_help(
                format!("the MCP server `{server}` has no tool `{tool}`, as it was pinned"),
                help,
            ));
        };
        let input =
            written_json(&self.input).map_err(|why| CommandError::usage(format!("the input of the call: {why}")))?;
        if !input.is_object() {
            return Err(CommandError::usage("the input of a call is a JSON object"));
        }
        let input = fitted(&ServedTool::plain_schema(&known.input_schema), input)?;
        match project.servers.call(server, tool, &input, locked).await {
            Ok(value) => {
                surface.print(&json_line(&value)?)?;
                Ok(Exit::Completed)
            }
            Err(fault) => {
                surface.say(&format!("{} {}\n", surface.err.paint(Tone::Bad, "error:"), shown_fault(&fault)));
                Ok(Exit::Failed)
            }
        }
    }
}

/// The input, judged by a schema. As in a run, a null is left out where the schema takes none and the member may be missing.
fn fitted(schema: &Value, input: Value) -> Result<Value, CommandError> {
    let Some(schema) = Schema::examine(&Arc::new(schema.clone())).rest else { return Ok(input) };
    without_nulls(&schema, &input).ok_or_else(|| {
        let why = schema.faults(&input).first().map(|fault| fault.message.clone()).unwrap_or_default();
        CommandError::usage(format!("the input does not match the schema: {why}"))
    })
}

/// The server and the tool of a name; a server's name may have dots.
fn split<'n>(project: &McpProject, name: &'n str) -> Result<(&'n str, &'n str), CommandError> {
    let fits = |at: usize| {
        let (server, tool) = name.split_at_checked(at)?;
        Some((server, tool.strip_prefix('.')?)).filter(|(server, _)| project.project.mcp.contains_key(*server))
    };
    let found = name.match_indices('.').filter_map(|(at, _)| fits(at)).next_back();
    found.ok_or_else(|| match name.split_once('.') {
        Some((server, _)) => project.unknown(server),
        None => {
            CommandError::usage_help(format!("`{}` names no tool of a server", escape::line(name)), "write SERVER.TOOL")
        }
    })
}
