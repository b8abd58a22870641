//! `loopctl mcp`.

mod call;
mod list;
mod outgoing_lines;
mod pin;
mod serve;
mod stdio_session;
mod tool_text;
mod verify;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::{Args, Subcommand};

use super::exit::Exit;
use super::failure::CommandError;
use super::surface::Surface;
use crate::compile::locked_tools::LockFile;
use crate::diagnostic::{Source, nearest};
use crate::drive::tool::McpServers;
use crate::engine::event::ToolFault;
use crate::language::Project;
use crate::language::mcp::{LockedServer, McpLock};
use crate::project::guarded_read::{self, ReadError};
use crate::project::{self, ProjectFile};
use crate::syntax::MAX_BYTES;
use crate::trace::escape;

/// Pin, compare and try the tools of MCP servers, or be one
///
/// The servers are in `mcp` of loopctl.json. What their tools are, and what they take, is in mcp.lock.json beside it: `pin`
/// writes that file, and runs and `check` read it. `serve` is the other direction: loops and workflows are tools of an editor or
/// an assistant.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  loopctl mcp pin files
  loopctl mcp verify
  loopctl mcp list files
  loopctl mcp call files.read_text_file '{\"path\":\"notes.txt\"}'
  loopctl mcp serve loops")]
pub struct McpCommand {
    #[command(subcommand)]
    pub task: McpTask,
}

/// What can be done with MCP servers.
#[derive(Debug, Subcommand)]
pub enum McpTask {
    Pin(pin::McpPinTask),
    Verify(verify::McpVerifyTask),
    List(list::McpListTask),
    Call(call::McpCallTask),
    Serve(serve::McpServeTask),
}

/// Which project.
#[derive(Debug, Args)]
pub struct McpFolder {
    /// The folder of the project: loopctl.json is there, or above it
    #[arg(long, value_name = "FOLDER", default_value = ".")]
    pub folder: PathBuf,
}

/// The servers of a project, and what is locked of them.
pub struct McpProject {
    pub project: Arc<Project>,
    pub servers: McpServers,
    /// The path of the lock file.
    pub path: PathBuf,
    /// Its text; none when there is none.
    pub text: Option<String>,
    /// What it says; nothing where it can't be read.
    pub lock: McpLock,
    /// Why it can't be read.
    pub unread: Option<String>,
}

impl McpCommand {
    /// Whether it serves a client for as long as that wants.
    pub fn serves(&self) -> bool {
        matches!(self.task, McpTask::Serve(_))
    }

    /// Does the task.
    ///
    /// # Errors
    /// When the project can't be read, or names no such server.
    pub async fn perform(self, surface: &Surface) -> Result<Exit, CommandError> {
        match self.task {
            McpTask::Pin(pin) => pin.perform(surface).await,
            McpTask::Verify(verify) => verify.perform(surface).await,
            McpTask::List(list) => list.perform(surface),
            McpTask::Call(call) => call.perform(surface).await,
            McpTask::Serve(serve) => serve.perform(surface).await,
        }
    }
}

impl McpFolder {
    /// Reads the project and its lock file.
    ///
    /// # Errors
    /// When there is no project file, or one of the two can't be read.
    pub fn read(&self) -> Result<McpProject, CommandError> {
        let project = self.open()?;
        match &project.unread {
            Some(why) => Err(CommandError::usage_help(why.clone(), "`loopctl mcp pin` writes it again")),
            None => Ok(project),
        }
    }

    /// The same where the lock file may say what can't be read: it is to be written again.
    ///
    /// # Errors
    /// When there is no project file, or one of the two is no file of the folder.
    pub fn open(&self) -> Result<McpProject, CommandError> {
        let missing = || {
            let message = format!("there is no project file loopctl.json in {} or above it", self.folder.display());
            CommandError::usage_help(message, "--folder names the folder of the project")
        };
        let file = ProjectFile::find(&self.folder).ok_or_else(missing)?;
        let source = file.read().map_err(|fault| CommandError::text(Source::new("", ""), vec![*fault]))?;
        let settings = project::settings(&source);
        let settings = settings.map_err(|why| CommandError::usage_help(why, "`loopctl check` says where"))?;
        let path = file.folder.join(McpLock::FILE);
        let lock_file = ProjectFile { path: path.clone(), folder: file.folder.clone() };
        if path.symlink_metadata().is_ok() {
            lock_file.inside().map_err(|fault| CommandError::text(Source::new("", ""), vec![*fault]))?;
        }
        let text = read_lock(&path)?;
        let none = McpLock { version: McpLock::VERSION, ..McpLock::default() };
        let read = text.as_ref().map(|text| LockFile::new(Source::new(McpLock::FILE, text.as_str())));
        let (lock, unread) = match read.as_ref().map(LockFile::lock) {
            Some(Ok(lock)) => (lock.clone(), None),
            Some(Err(why)) => (none, Some(format!("{} can't be read: {why}", path.display()))),
            None => (none, None),
        };
        let project = Arc::new(settings);
        Ok(McpProject { servers: McpServers::new(&project, &file.folder), project, path, text, lock, unread })
    }
}

fn read_lock(path: &Path) -> Result<Option<String>, CommandError> {
    match guarded_read::text(path, MAX_BYTES) {
        Ok(text) => Ok(Some(text)),
        Err(ReadError::Failed(error)) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(unread) => Err(CommandError::usage(format!("{}: {}", path.display(), unread.reason(MAX_BYTES)))),
    }
}

impl McpProject {
    /// The path of the lock file, as people read it.
    pub fn shown_path(&self) -> String {
        escape::line(&self.path.strip_prefix(".").unwrap_or(&self.path).display().to_string()).into_owned()
    }

    /// The servers that are meant: those that are named, or all.
    ///
    /// # Errors
    /// When the project has no server of a name, or none at all.
    pub fn named(&self, names: &[String]) -> Result<Vec<String>, CommandError> {
        if self.project.mcp.is_empty() {
            let help =
                "name one: {\"mcp\": {\"files\": {\"command\": \"npx\", \"args\": [\"-y\", \"PACKAGE@VERSION\"]}}}";
            return Err(CommandError::usage_help("loopctl.json names no MCP server", help));
        }
        for name in names {
            if !self.project.mcp.contains_key(name) {
                return Err(self.unknown(name));
            }
        }
        Ok(if names.is_empty() { self.project.mcp.keys().cloned().collect() } else { names.to_vec() })
    }

    fn unknown(&self, name: &str) -> CommandError {
        let names: Vec<&str> = self.project.mcp.keys().map(String::as_str).collect();
        let help = match nearest(name, names.iter().copied()) {
            Some(near) => format!("the nearest name is `{near}`"),
            None => format!("it names: {}", names.join(", ")),
        };
        CommandError::usage_help(format!("loopctl.json names no MCP server `{name}`"), help)
    }

    /// What is locked of a server.
    ///
    /// # Errors
    /// When it is not pinned.
    pub fn locked(&self, name: &str) -> Result<&LockedServer, CommandError> {
        self.lock.servers.get(name).ok_or_else(|| {
            let message = format!("the MCP server `{name}` is not pinned");
            CommandError::usage_help(message, format!("`loopctl mcp pin {name}` asks it, and writes {}", McpLock::FILE))
        })
    }
}

/// A failure of a server, in lines for people.
pub fn shown_fault(fault: &ToolFault) -> String {
    let mut text = escape::terminal(&fault.class).into_owned();
    for part in [&fault.detail, &fault.answer] {
        for line in part.lines() {
            text.push_str("\n    ");
            text.push_str(&escape::line(line));
        }
    }
    text
}
