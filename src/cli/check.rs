//! `loopctl check`.

mod fixes;
mod survey;
mod token_loops;
mod unused_targets;
mod webhook_clashes;

use std::path::{Path, PathBuf};

use clap::Args;

use super::exit::Exit;
use super::failure::CommandError;
use super::found_documents::none_found;
use super::named_document;
use super::remedies;
use super::report::{self, Tally};
use super::surface::Surface;
use fixes::AppliedFixes;
use survey::{Findings, Survey};

/// Report all errors and warnings in documents, without running them
///
/// In a folder, checks every *.json file and skips files that are not documents of loopctl.
/// Exit codes: 0 no errors, 1 errors, 2 wrong arguments, nothing to check, or a path that can't be read or
/// written.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  loopctl check                                     # this folder and all folders below it
  loopctl check triage.json --deny-warnings
  loopctl check loops --format sarif > check.sarif
  loopctl check loops --fix
  loopctl check loops --env                         # before they are served here
  loopctl check loops --connect                     # queries are prepared at their servers
  loopctl check loops --estimate                    # with what a run of each can use at most")]
pub struct CheckCommand {
    /// Documents, or their names (`triage` is triage.json), and folders; `-` reads stdin. Default: the current folder
    pub paths: Vec<PathBuf>,
    /// The output format of the report
    #[arg(long, value_enum, default_value_t)]
    pub format: ReportFormat,
    /// Treat warnings as errors in the exit code
    #[arg(long)]
    pub deny_warnings: bool,
    /// A file of registered actions, in addition to the files found automatically; repeatable
    #[arg(long, value_name = "FILE")]
    pub actions: Vec<PathBuf>,
    /// Apply the safe fixes: those that can't change the meaning of a document
    #[arg(long)]
    pub fix: bool,
    /// Also connect to the servers of datasources and prepare each query there; none is run
    #[arg(long)]
    pub connect: bool,
    /// Also report the secrets and the keys of models that the loops need and that can't be read here
    #[arg(long)]
    pub env: bool,
    /// Also print what a run of each loop and workflow can use at most, as `loopctl estimate` does in full
    #[arg(long)]
    pub estimate: bool,
}

/// The output format of the report.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum ReportFormat {
    /// Text for people, on stderr
    #[default]
    Human,
    /// A JSON array on stdout
    Json,
    /// SARIF 2.1.0 on stdout, for code scanning
    Sarif,
    /// GitHub workflow commands on stdout, which annotate a pull request
    Github,
}

impl CheckCommand {
    /// Checks, and applies fixes with `--fix`.
    ///
    /// # Errors
    /// When the arguments make no sense, or nothing was found to check.
    pub fn perform(&self, surface: &Surface) -> Result<Exit, CommandError> {
        let stdin = self.paths.iter().any(|path| path == Path::new("-"));
        if stdin && self.fix {
            return Err(CommandError::usage_help(
                "--fix can't write to stdin",
                "name the file; --fix then changes the file itself",
            ));
        }
        let here = [PathBuf::from(".")];
        // `triage` is triage.json, as for `run`.
        let named: Vec<PathBuf> = self.paths.iter().map(|path| named_document::resolved(path)).collect();
        let paths: &[PathBuf] = if named.is_empty() { &here } else { &named };
        let mut survey = Survey::new(paths, &self.actions).map_err(|fault| refused(&fault))?;
        survey.with_environment(self.env);
        if self.connect {
            survey.with_servers();
        }
        if self.estimate {
            survey.with_estimates();
        }
        let (found, applied) =
            if self.fix { fixes::apply(&mut survey) } else { (survey.look(), AppliedFixes::default()) };
        if found.tally.files == 0 && found.diagnostics.is_empty() {
            let help = "name the folder with the loops; a file that you name is always checked";
            return Err(none_found("nothing to check", paths, found.tally.skipped.len(), help));
        }
        surface.say(&report::fixed(&applied.fixes, &surface.err));
        found.estimates.iter().for_each(|line| surface.say(&format!("{line}\n")));
        let tally = Tally { fixed: applied.fixes.len(), fixed_files: applied.files, ..found.tally.clone() };
        self.print(surface, &found, &tally)?;
        Ok(self.exit(&found, &applied))
    }

    fn print(&self, surface: &Surface, found: &Findings, tally: &Tally) -> Result<(), CommandError> {
        let Findings { diagnostics, sources, .. } = found;
        match self.format {
            ReportFormat::Human => surface.say(&report::checked(diagnostics, sources, tally, &surface.err)),
            ReportFormat::Json => surface.print(&(report::json(diagnostics) + "\n"))?,
            ReportFormat::Sarif => surface.print(&(report::sarif(diagnostics, sources) + "\n"))?,
            ReportFormat::Github => {
                surface.print(&report::github(diagnostics))?;
                surface.say(&report::tally(diagnostics, tally, &surface.err));
            }
        }
        Ok(())
    }

    fn exit(&self, found: &Findings, applied: &AppliedFixes) -> Exit {
        if found.unreadable || applied.failed {
            Exit::NoRun
        } else if found.diagnostics.iter().any(|fault| self.deny_warnings || fault.is_error()) {
            Exit::Failed
        } else {
            Exit::Completed
        }
    }
}

/// Too many files, or a file of `--actions` that does not exist.
pub fn refused(fault: &crate::Diagnostic) -> CommandError {
    let message = format!("{}: {}", fault.place.file, fault.message);
    CommandError::Usage { message, help: remedies::help(fault) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::worker_threads::{each, each_of};
    use crate::diagnostic::{Diagnostic, Source};

    #[test]
    fn what_is_done_on_all_cores_comes_back_in_order() {
        for count in [0, 1, 7, 8, 100, 1_000] {
            let done = each((0..count).collect(), |number| number * 2);
            assert_eq!(done, (0..count).map(|number| number * 2).collect::<Vec<_>>());
            let by_three = each_of(3, (0..count).collect(), |number| number * 2);
            assert_eq!(by_three, done);
        }
    }

    #[test]
    fn the_exit_code_says_what_was_found() {
        let check = |deny_warnings| CheckCommand {
            connect: false,
            env: false,
            estimate: false,
            paths: vec![],
            format: ReportFormat::Json,
            deny_warnings,
            actions: vec![],
            fix: false,
        };
        let place = Source::new("x", "").whole();
        let found =
            |diagnostics: Vec<Diagnostic>, unreadable| Findings { diagnostics, unreadable, ..Findings::default() };
        let warning = Diagnostic::warning("L072", "x", "", place.clone());
        let error = Diagnostic::error("L010", "x", "", place);
        let fine = AppliedFixes::default();
        assert_eq!(check(false).exit(&found(vec![], false), &fine), Exit::Completed);
        assert_eq!(check(false).exit(&found(vec![warning.clone()], false), &fine), Exit::Completed);
        assert_eq!(check(true).exit(&found(vec![warning], false), &fine), Exit::Failed);
        assert_eq!(check(true).exit(&found(vec![], false), &fine), Exit::Completed);
        assert_eq!(check(false).exit(&found(vec![error.clone()], false), &fine), Exit::Failed);
        assert_eq!(check(false).exit(&found(vec![error], true), &fine), Exit::NoRun);
        assert_eq!(
            check(false).exit(&found(vec![], false), &AppliedFixes { failed: true, ..AppliedFixes::default() }),
            Exit::NoRun
        );
    }
}
