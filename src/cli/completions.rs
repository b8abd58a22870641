//! `loopctl completions`.

use clap::{Args, CommandFactory};

use super::exit::Exit;
use super::failure::CommandError;
use super::surface::Surface;

/// What completes the ids of runs.
const RUNS_IN_BASH: &str = include_str!("completions.bash");

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
        if self.shell == clap_complete::Shell::Bash {
            script.extend_from_slice(RUNS_IN_BASH.as_bytes());
        }
        surface.print_bytes(&script)?;
        Ok(Exit::Completed)
    }
}
