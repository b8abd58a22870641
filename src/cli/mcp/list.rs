//! `loopctl mcp list`.

use std::fmt::Write as _;

use clap::Args;
use serde_json::json;

use super::McpFolder;
use super::tool_text::head;
use crate::cli::exit::Exit;
use crate::cli::failure::CommandError;
use crate::cli::output::{ListOutput, json_line};
use crate::cli::surface::Surface;
use crate::language::mcp::{LockedTool, McpToolSettings};
use crate::trace::escape;

/// The most characters of a description in a line.
const MAX_SHOWN_CHARS: usize = 70;

/// List the pinned tools; no server is asked
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  loopctl mcp list
  loopctl mcp list files --output json")]
pub struct McpListTask {
    /// The servers, by their names in `mcp` of loopctl.json. Default: all
    #[arg(value_name = "SERVER")]
    pub names: Vec<String>,
    #[command(flatten)]
    pub folder: McpFolder,
    /// The output format
    #[arg(long, value_enum, default_value_t)]
    pub output: ListOutput,
}

impl McpListTask {
    /// Lists what is pinned.
    ///
    /// # Errors
    /// When the project can't be read, or a named server is not pinned.
    pub fn perform(self, surface: &Surface) -> Result<Exit, CommandError> {
        let project = self.folder.read()?;
        let mut text = String::new();
        for name in project.named(&self.names)? {
            if self.names.is_empty() && !project.lock.servers.contains_key(&name) {
                surface.say(&format!("{}: not pinned\n", escape::line(&name)));
                continue;
            }
            let server = project.locked(&name)?;
            if self.output == ListOutput::Json {
                text.push_str(&json_line(&json!({ "server": name, "pinned": server }))?);
                continue;
            }
            let _ = writeln!(text, "{}", head(&name, server));
            let width = server.tools.keys().map(|tool| tool.chars().count()).max().unwrap_or_default();
            for (tool_name, tool) in &server.tools {
                let hints = hints(tool, project.project.mcp.get(&name).and_then(|server| server.tools.get(tool_name)));
                let _ = writeln!(text, "  {:width$}  {}{hints}", escape::exact_line(tool_name), first_line(tool));
            }
        }
        surface.print(&text)?;
        Ok(Exit::Completed)
    }
}

fn first_line(tool: &LockedTool) -> String {
    let line = tool.description.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    let shown: String = line.chars().take(MAX_SHOWN_CHARS).collect();
    let cut = if shown.len() < line.len() { "..." } else { "" };
    format!("{}{cut}", escape::exact_line(&shown))
}

fn hints(tool: &LockedTool, settings: Option<&McpToolSettings>) -> String {
    let said = [("readOnlyHint", "reads"), ("destructiveHint", "destructive"), ("idempotentHint", "idempotent")];
    let called = settings.and_then(|settings| settings.name.as_deref());
    let called = called.map(|name| format!("in loops: {}", escape::exact_line(name)));
    let words: Vec<&str> = called
        .as_deref()
        .into_iter()
        .chain(said.into_iter().filter_map(|(name, word)| (tool.hint(name) == Some(true)).then_some(word)))
        .collect();
    if words.is_empty() { String::new() } else { format!(" ({})", words.join(", ")) }
}
