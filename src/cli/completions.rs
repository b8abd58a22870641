//! `loopctl completions`.

use clap::{Args, CommandFactory};

use super::exit::Exit;
use super::failure::CommandError;
use super::surface::Surface;

/// Print the completion script for a shell
#[derive(Debug, Args)]
#[command(after_help = "Example:
  loopctl completions bash > ~/.local/share/bash-completion/completions/loopctl")]
pub struct CompletionsCommand {
    /// The shell
    #[arg(value_enum)]
    pub shell: clap_complete::Shell,
}

impl CompletionsCommand {
    /// Prints the script.
    ///
    /// # Errors
    /// When stdout can't be written.
    pub fn perform(&self, surface: &Surface) -> Result<Exit, CommandError> {
        // The generator panics when its writer fails: it writes to memory.
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut super::Arguments::command(), "loopctl", &mut script);
        surface.print_bytes(&script)?;
        Ok(Exit::Completed)
    }
}
