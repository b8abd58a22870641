//! `loopctl check`.

mod fixes;
mod parallel;
mod survey;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use clap::Args;

use super::exit::Exit;
use super::failure::Failure;
use super::report::{self, Tally};
use super::surface::Surface;
use crate::check::RULES;
use crate::trace::units::plural;
use fixes::Mended;
use survey::{Found, Survey};

/// Tell all that is wrong with documents, without running them
///
/// Folders are looked through for *.json; files that are no documents of loopctl are passed by there.
/// The exit code says what was found: 0 all are sound, 1 errors, 2 wrong arguments or a path that can't
/// be read.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  loopctl check                                     # all that is in this folder and below it
  loopctl check triage.json --deny-warnings
  loopctl check loops --format sarif > check.sarif
  loopctl check loops --fix")]
pub struct Check {
    /// Documents and folders; `-` is stdin. Default: the current folder
    pub paths: Vec<PathBuf>,
    /// How faults are told
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
    /// Warnings count as errors for the exit code
    #[arg(long)]
    pub deny_warnings: bool,
    /// A file of registered actions beside those that are found
    #[arg(long, value_name = "FILE")]
    pub actions: Vec<PathBuf>,
    /// Write the suggestions that can't change a meaning into the files
    #[arg(long)]
    pub fix: bool,
}

/// How faults are told.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// For people, on stderr
    #[default]
    Human,
    /// One JSON array on stdout
    Json,
    /// SARIF 2.1.0 on stdout, for code scanning
    Sarif,
    /// Workflow commands on stdout, which annotate a pull request on GitHub
    Github,
}

impl Check {
    /// Checks, and mends where that is asked for.
    ///
    /// # Errors
    /// When the arguments make no sense, or nothing was found to check.
    pub fn perform(&self, surface: &Surface) -> Result<Exit, Failure> {
        let stdin = self.paths.iter().any(|path| path == Path::new("-"));
        if stdin && self.fix {
            return Err(Failure::usage_help(
                "--fix can't write to stdin",
                "name the file, and it is mended in its place",
            ));
        }
        let here = [PathBuf::from(".")];
        let paths: &[PathBuf] = if self.paths.is_empty() { &here } else { &self.paths };
        let mut survey = Survey::new(paths, &self.actions).map_err(refused)?;
        let (found, mended) = if self.fix { fixes::mend(&mut survey) } else { (survey.look(), Mended::default()) };
        if found.tally.files == 0 && found.diagnostics.is_empty() {
            return Err(nothing(paths, found.tally.skipped));
        }
        surface.say(&report::fixed(&mended.fixes, &surface.err));
        let tally = Tally { fixed: mended.fixes.len(), fixed_files: mended.files, ..found.tally };
        self.tell(surface, &found, &tally)?;
        Ok(self.exit(&found, &mended))
    }

    fn tell(&self, surface: &Surface, found: &Found, tally: &Tally) -> Result<(), Failure> {
        let Found { diagnostics, sources, .. } = found;
        match self.format {
            Format::Human => surface.say(&report::checked(diagnostics, sources, tally, &surface.err)),
            Format::Json => surface.print(&(report::json(diagnostics) + "\n"))?,
            Format::Sarif => surface.print(&(report::sarif(diagnostics, sources, RULES) + "\n"))?,
            Format::Github => {
                surface.print(&report::github(diagnostics))?;
                surface.say(&report::tally(diagnostics, tally, &surface.err));
            }
        }
        Ok(())
    }

    fn exit(&self, found: &Found, mended: &Mended) -> Exit {
        if found.unreadable || mended.failed {
            Exit::NoRun
        } else if found.diagnostics.iter().any(|fault| self.deny_warnings || fault.is_error()) {
            Exit::Failed
        } else {
            Exit::Completed
        }
    }
}

/// More than is looked at, or a file of `--actions` that is not there.
fn refused(fault: Box<crate::Diagnostic>) -> Failure {
    let message = format!("{}: {}", fault.place.file, fault.message);
    Failure::Usage { message, help: fault.help }
}

/// A pipeline that checks nothing must not take that for sound.
fn nothing(paths: &[PathBuf], skipped: usize) -> Failure {
    let names: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
    let passed = match skipped {
        0 => "no JSON file is there".to_owned(),
        1 => "the one JSON file there is no document of loopctl".to_owned(),
        more => format!("none of the {} there is a document of loopctl", plural(more, "JSON file")),
    };
    Failure::usage_help(
        format!("nothing to check in {}: {passed}", names.join(", ")),
        "name the folder that holds loops; a file that is named itself is judged whatever it holds",
    )
}
