//! `loopctl completions`.

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use super::exit::Exit;
use super::failure::CommandError;
use super::surface::Surface;

/// What completes the ids of runs.
const RUNS_IN_BASH: &str = include_str!("completions.bash");
const RUNS_IN_FISH: &str = include_str!("completions.fish");
const RUNS_IN_ZSH: &str = include_str!("completions.zsh");

/// Print the completion script for a shell
#[derive(Debug, Args)]
#[command(after_help = "Example:
  loopctl completions bash > ~/.local/share/bash-completion/completions/loopctl")]
pub struct CompletionsCommand {
    /// The shell
    #[arg(value_enum)]
    pub shell: Shell,
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
        match self.shell {
            Shell::Bash => script.extend_from_slice(RUNS_IN_BASH.as_bytes()),
            Shell::Fish => script.extend_from_slice(RUNS_IN_FISH.as_bytes()),
            Shell::Zsh => script = with_runs_in_zsh(&String::from_utf8_lossy(&script)).into_bytes(),
            _ => {}
        }
        surface.print_bytes(&script)?;
        Ok(Exit::Completed)
    }
}

/// The script of zsh with a function that offers runs, in the place of the one that offers files.
fn with_runs_in_zsh(script: &str) -> String {
    let mut lines = script.lines();
    // The first line says which command the script is for.
    let mut all = format!("{}\n{RUNS_IN_ZSH}", lines.next().unwrap_or_default());
    for line in lines {
        let takes_run =
            ["':run -- ", "':other -- ", "'::code -- ", "'*::runs -- "].iter().any(|name| line.starts_with(name))
                || line.starts_with("'::run -- ");
        let line = if takes_run { line.replace(":_default'", ":_loopctl_runs'") } else { line.to_owned() };
        all.push_str(&line);
        all.push('\n');
    }
    all
}
