//! `loopctl man`.

use std::path::PathBuf;

use clap::{Args, CommandFactory};

use super::exit::Exit;
use super::failure::CommandError;

/// Write the man pages of all commands into a folder, for packages
#[derive(Debug, Args)]
#[command(after_help = "Example:
  loopctl man /usr/local/share/man/man1")]
pub struct ManCommand {
    /// The folder, which exists
    pub folder: PathBuf,
}

impl ManCommand {
    /// Writes the pages.
    ///
    /// # Errors
    /// When the folder can't be written.
    pub fn perform(&self) -> Result<Exit, CommandError> {
        let command = super::Arguments::command();
        match clap_mangen::generate_to(command, &self.folder) {
            Ok(()) => Ok(Exit::Completed),
            Err(error) => Err(CommandError::file("written", &self.folder, &error)),
        }
    }
}
