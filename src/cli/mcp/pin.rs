//! `loopctl mcp pin`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::OpenOptions;
use std::io::{IsTerminal as _, Write as _};

use clap::Args;

use super::tool_text::{head, indented, texts, warnings, whole};
use super::{McpFolder, McpProject, shown_fault};
use crate::cli::exit::Exit;
use crate::cli::failure::CommandError;
use crate::cli::surface::Surface;
use crate::drive::tool::{DriftClass, SurveyedServer, compare_tools};
use crate::language::mcp::{LockedServer, LockedTool, McpLock};
use crate::project;
use crate::trace::{Tone, escape};

/// Ask servers for their tools, and write what they say into mcp.lock.json
///
/// Every text that is new or has changed is shown in full, and nothing is written without a yes. Models and runs read the file,
/// and not the server.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  loopctl mcp pin
  loopctl mcp pin files --yes")]
pub struct McpPinTask {
    /// The servers, by their names in `mcp` of loopctl.json. Default: all
    #[arg(value_name = "SERVER")]
    pub names: Vec<String>,
    /// Write the file without a question
    #[arg(long)]
    pub yes: bool,
    #[command(flatten)]
    pub folder: McpFolder,
}

impl McpPinTask {
    /// Asks the servers, shows what is new, and writes the file.
    ///
    /// # Errors
    /// When the project can't be read, or the file can't be written.
    pub async fn perform(self, surface: &Surface) -> Result<Exit, CommandError> {
        let project = self.folder.open()?;
        let mut names = project.named(&self.names)?;
        if let Some(why) = &project.unread {
            // What it says of the other servers is lost.
            names = project.named(&[])?;
            surface.say(&format!(
                "{} {}: all servers are asked\n",
                surface.err.paint(Tone::Bad, "note:"),
                escape::line(why)
            ));
        }
        let mut lock = project.lock.clone();
        let (mut surveyed, mut failed) = (Vec::new(), Vec::new());
        for name in &names {
            match project.servers.survey(name, None).await {
                Ok(one) => surveyed.push((name, one)),
                Err(fault) => {
                    failed.push(name.as_str());
                    surface.say(&format!("{} {}\n", surface.err.paint(Tone::Bad, "error:"), shown_fault(&fault)));
                }
            }
        }
        // Texts are held against the tools of all servers, those that are new as well.
        let mut all = lock.servers.clone();
        all.extend(surveyed.iter().map(|(name, one)| (String::clone(name), one.server.clone())));
        for (name, one) in surveyed {
            let before = project.lock.servers.get(name);
            surface.say(&review(name, &one, before, &all));
            lock.servers.insert(name.clone(), kept(one.server, before));
        }
        // A server that the project names no more has no tools.
        if self.names.is_empty() {
            lock.servers.retain(|name, _| project.project.mcp.contains_key(name));
        }
        let is_written = self.write(&project, &lock, &failed, surface)?;
        Ok(if !failed.is_empty() || !is_written { Exit::Failed } else { Exit::Completed })
    }

    /// Writes the file where somebody says yes. Returns whether it is as it should be. `failed`: the servers that could not be asked.
    fn write(
        &self,
        project: &McpProject,
        lock: &McpLock,
        failed: &[&str],
        surface: &Surface,
    ) -> Result<bool, CommandError> {
        let path = project.shown_path();
        let of_failed = |before: &str| match failed {
            [] => String::new(),
            [one] => format!("{before}{} is not pinned", escape::line(one)),
            several => format!("{before}{} are not pinned", escape::line(&several.join(", "))),
        };
        if *lock == project.lock && !failed.is_empty() {
            surface.say(&format!("{path} stays as it is: {}\n", of_failed("")));
            return Ok(false);
        }
        if *lock == project.lock && project.text.is_some() && project.unread.is_none() {
            surface.say(&format!("{path} is up to date\n"));
            return Ok(true);
        }
        if *lock == project.lock {
            return Ok(false);
        }
        if !self.yes {
            if !std::io::stdin().is_terminal() || !surface.err_terminal {
                let message = format!("{path} was not written: nobody said yes");
                return Err(CommandError::usage_help(message, "--yes writes it without a question"));
            }
            surface.say(&format!("Write {path}? [y/N] "));
            let mut line = String::new();
            let is_read = std::io::stdin().read_line(&mut line).is_ok();
            if !(is_read && matches!(line.trim(), "y" | "Y" | "yes")) {
                surface.say("Nothing was written.\n");
                return Ok(false);
            }
        }
        let text = serde_json::to_string_pretty(lock).map_err(|error| CommandError::usage(error.to_string()))? + "\n";
        // Characters that nobody sees are written by their number, so that a review of the file shows them.
        let text = text.split('\n').map(|line| escape::json(line).into_owned()).collect::<Vec<_>>().join("\n");
        match &project.text {
            Some(before) => project::replace(&project.path, before, &text)
                .map_err(|fault| CommandError::usage(fault.message.clone()))?,
            None => {
                let opened = OpenOptions::new().write(true).create_new(true).open(&project.path);
                let written = opened.and_then(|mut file| file.write_all(text.as_bytes()));
                written.map_err(|error| CommandError::file("written", &project.path, &error))?;
            }
        }
        surface.say(&format!("{path} is written: keep it in version control{}\n", of_failed("; ")));
        Ok(true)
    }
}

/// What is locked: a tool that differs in notation alone stays as it is written.
fn kept(mut now: LockedServer, before: Option<&LockedServer>) -> LockedServer {
    for (name, tool) in &mut now.tools {
        if let Some(old) = before.and_then(|before| before.tools.get(name))
            && compare_tools(old, Some(tool)).is_empty()
        {
            tool.clone_from(old);
        }
    }
    now
}

/// What is new about a server, in full.
fn review(
    name: &str,
    surveyed: &SurveyedServer,
    before: Option<&LockedServer>,
    all: &BTreeMap<String, LockedServer>,
) -> String {
    let SurveyedServer { server, left_out, noise } = surveyed;
    let mut text = head(name, server) + "\n";
    if let Some(note) = &server.protocol_note {
        let _ = writeln!(text, "  note: {}", escape::line(note));
    }
    if let Some(noise) = noise {
        let _ = writeln!(text, "  note: it writes what is no message: {}", escape::exact_line(noise));
    }
    for why in left_out {
        let _ = writeln!(text, "  left out: {}", escape::exact_line(why));
    }
    if server.instructions != before.and_then(|before| before.instructions.clone()) {
        let _ = writeln!(text, "  instructions, which no model reads here");
        text.push_str(&indented(server.instructions.as_deref().unwrap_or("(none any more)")));
    }
    for (tool_name, tool) in &server.tools {
        let old = before.and_then(|before| before.tools.get(tool_name));
        text.push_str(&of_tool(name, tool_name, tool, old, all));
    }
    let gone =
        before.into_iter().flat_map(|before| before.tools.keys()).filter(|tool| !server.tools.contains_key(*tool));
    for tool in gone {
        let _ = writeln!(text, "  gone     {}", escape::exact_line(tool));
    }
    text
}

fn of_tool(
    server: &str,
    name: &str,
    tool: &LockedTool,
    old: Option<&LockedTool>,
    all: &BTreeMap<String, LockedServer>,
) -> String {
    let shown = escape::exact_line(name);
    let mut text = match old {
        None => format!("  new      {shown}\n{}", whole(tool)),
        Some(old) => {
            let drift = compare_tools(old, Some(tool));
            if drift.is_empty() {
                return String::new();
            }
            let words: Vec<&str> = drift.into_iter().map(DriftClass::word).collect();
            format!("  changed  {shown} ({})\n    was\n{}    is now\n{}", words.join(", "), whole(old), whole(tool))
        }
    };
    for warning in warnings(server, &texts(tool), all) {
        let _ = writeln!(text, "    ! look at it: {}", escape::exact_line(&warning));
    }
    text
}
