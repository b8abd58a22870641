//! `loopctl openapi`.

mod action_files;
mod allowed_hosts;
mod pin;
mod read_page;
mod review;

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};

use super::exit::Exit;
use super::failure::CommandError;
use super::surface::Surface;
use crate::diagnostic::Source;
use crate::language::Project;
use crate::language::openapi::OpenApiLock;
use crate::policy::json_text;
use crate::project::guarded_read::{self, ReadError};
use crate::project::{self, ProjectFile};
use crate::syntax::MAX_BYTES;
use crate::trace::escape;

/// Make actions of the operations of an OpenAPI page
///
/// `pin` writes actions of kind `http` into the folder `actions` beside loopctl.json, and what they were made of into
/// openapi.lock.json. Loops and `check` read the actions, and not the page.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  loopctl openapi pin petstore.json
  loopctl openapi pin github.json --operations 'issues/*' --bearer github_token
  loopctl openapi pin --verify")]
pub struct OpenApiCommand {
    #[command(subcommand)]
    pub task: OpenApiTask,
}

/// What can be done with OpenAPI pages.
#[derive(Debug, Subcommand)]
pub enum OpenApiTask {
    Pin(pin::OpenApiPinTask),
}

impl OpenApiCommand {
    /// Does the task.
    ///
    /// # Errors
    /// When the project or the page can't be read, or a file can't be written.
    pub fn perform(self, surface: &Surface) -> Result<Exit, CommandError> {
        match self.task {
            OpenApiTask::Pin(pin) => pin.perform(surface),
        }
    }
}

/// A project, and what is locked of its pages.
#[derive(Debug)]
struct OpenApiProject {
    /// Its folder, in the user's spelling.
    folder: PathBuf,
    /// The project file.
    file: ProjectFile,
    source: Source,
    settings: Project,
    lock: OpenApiLock,
    /// The text of the lock file; none when there is none.
    lock_text: Option<String>,
}

impl OpenApiProject {
    /// Reads the project file above a folder, and the lock file beside it.
    ///
    /// # Errors
    /// When there is no project file, or one of the two can't be read.
    fn read(folder: &Path) -> Result<Self, CommandError> {
        let missing = || {
            let message = format!("there is no project file loopctl.json in {} or above it", folder.display());
            CommandError::usage_help(message, "--folder names the folder of the project; `{}` is a project file, too")
        };
        let file = ProjectFile::find(folder).ok_or_else(missing)?;
        let source = file.read().map_err(|fault| CommandError::text(Source::new("", ""), vec![*fault]))?;
        let settings = project::settings(&source);
        let settings = settings.map_err(|why| CommandError::usage_help(why, "`loopctl check` says where"))?;
        let folder = file.folder.clone();
        let path = folder.join(OpenApiLock::FILE);
        if path.symlink_metadata().is_ok() {
            let lock_file = ProjectFile { path: path.clone(), folder: folder.clone() };
            lock_file.inside().map_err(|fault| CommandError::text(Source::new("", ""), vec![*fault]))?;
        }
        let lock_text = text_of(&path)?;
        let lock: OpenApiLock = match &lock_text {
            Some(text) => json_text::read(text).map_err(|error| {
                let message = format!("{} can't be read: {error}", path.display());
                CommandError::usage_help(
                    message,
                    "take it from version control, or remove it with the files that it names",
                )
            })?,
            None => OpenApiLock::default(),
        };
        if lock.version != OpenApiLock::VERSION {
            let message = format!("{} has the form {}, which this version does not know", path.display(), lock.version);
            return Err(CommandError::usage_help(message, "a newer loopctl wrote it"));
        }
        Ok(Self { folder, file, source, settings, lock, lock_text })
    }
}

/// The text of a file; none when there is none.
fn text_of(path: &Path) -> Result<Option<String>, CommandError> {
    match guarded_read::text(path, MAX_BYTES) {
        Ok(text) => Ok(Some(text)),
        Err(ReadError::Failed(error)) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(unread) => Err(CommandError::usage(format!("{}: {}", path.display(), unread.reason(MAX_BYTES)))),
    }
}

/// A path as people read it.
fn shown(path: &Path) -> String {
    escape::line(&path.strip_prefix(".").unwrap_or(path).display().to_string()).into_owned()
}
