//! A program that the user of the command line names. It is started as those of actions are: no shell, two variables, a
//! group of its own, bounded output, and nothing of it is left running.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::{PATH, Prepared, find_program, fixed_variables, process};
use crate::drive::tool::output::fault;
use loopctl_engine::event::ToolFault;

/// A program that the user names, with one argument and its input.
pub struct NamedProgram<'a> {
    /// Its file; a name without a slash is searched in the fixed path.
    pub program: &'a Path,
    /// The argument.
    pub argument: &'a str,
    /// The input.
    pub stdin: String,
    /// How long it may take. Then it is killed.
    pub at_most: Duration,
}

impl NamedProgram<'_> {
    /// Runs the program in the current folder to its end. What it prints is discarded.
    ///
    /// # Errors
    /// Why it failed.
    pub async fn run(self) -> Result<(), ToolFault> {
        let named = self.program.display();
        let gone = |error: std::io::Error| fault("program can't be started", format!("{named}: {error}"));
        let has_folder = self.program.parent().is_some_and(|folder| !folder.as_os_str().is_empty());
        let program = if has_folder {
            std::path::absolute(self.program).map_err(gone)?
        } else {
            let found = self.program.to_str().and_then(find_program);
            found.ok_or_else(|| fault("program not found", format!("`{named}` is in none of {PATH}")))?
        };
        let prepared = Prepared {
            program,
            args: vec![self.argument.to_owned()],
            env: fixed_variables(),
            stdin: Some(self.stdin.into_bytes()),
            cwd: PathBuf::from("."),
        };
        match tokio::time::timeout(self.at_most, process::run(&prepared, false)).await {
            Ok(ended) => ended.map(drop).map_err(|raw| raw.fault),
            Err(_) => Err(fault(format!("timed out after {} ms", self.at_most.as_millis()), "")),
        }
    }
}
