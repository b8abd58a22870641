//! Many runs at once: which ones a filter finds, up to a bound, and what became of each.

use std::io::IsTerminal as _;
use std::sync::Arc;

use clap::Args;
use serde_json::json;

use super::exit::Exit;
use super::failure::CommandError;
use super::output::{ListOutput, json_line};
use super::run_filter::RunBoundsArgs;
use super::surface::Surface;
use crate::journal::{Journal, ListedStatus, RunFilter, RunSummary};
use crate::trace::escape;
use crate::trace::units::plural;

/// The most runs that are counted.
const MAX_COUNTED_RUNS: usize = 10_000;
/// The most runs that are named before the question.
const MAX_NAMED_RUNS: usize = 5;

/// Which of the runs, and how many.
#[derive(Debug, Clone, Args)]
pub struct ManyRunsArgs {
    #[command(flatten)]
    bounds: RunBoundsArgs,
    /// Only runs that have this text in the beginning of their objective or input; the case of letters does not matter
    #[arg(long, value_name = "TEXT")]
    search: Option<String>,
    /// The maximum number of runs; the oldest come first
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    limit: u32,
    /// Say which runs, and do nothing
    #[arg(long)]
    dry_run: bool,
    /// Do not ask
    #[arg(long)]
    yes: bool,
}

/// The runs that were found.
pub struct ManyRuns {
    /// Those that are meant, the oldest first.
    pub runs: Vec<RunSummary>,
    matched: usize,
    is_dry: bool,
}

/// What became of the runs.
#[derive(Default)]
pub struct ManyResults {
    done: Vec<String>,
    failed: Vec<(String, String)>,
}

impl ManyRunsArgs {
    /// Finds the runs of these statuses that `is_meant` takes. `called`: those too that other runs called.
    ///
    /// # Errors
    /// When the store can't be read.
    pub async fn find(
        &self,
        journal: &Arc<dyn Journal>,
        statuses: &[ListedStatus],
        called: bool,
        is_meant: impl Fn(&RunSummary) -> bool,
    ) -> Result<ManyRuns, CommandError> {
        let filter = RunFilter {
            search: self.search.clone(),
            called,
            oldest_first: true,
            limit: MAX_COUNTED_RUNS,
            ..self.bounds.bound(RunFilter::of_statuses(statuses))
        };
        let mut runs = journal.list(filter).await?;
        runs.retain(|run| run.damaged.is_none() && is_meant(run));
        let matched = runs.len();
        runs.truncate(usize::try_from(self.limit).unwrap_or(usize::MAX));
        Ok(ManyRuns { runs, matched, is_dry: self.dry_run })
    }

    /// Whether nothing is to be done.
    pub fn is_dry(&self) -> bool {
        self.dry_run
    }

    /// Refuses what chooses among many runs beside a run that is named. `flag` is the one that means many.
    ///
    /// # Errors
    /// When such a flag was given.
    pub fn refuse(&self, flag: &str) -> Result<(), CommandError> {
        if self.bounds.is_any() || self.search.is_some() || self.dry_run || self.yes {
            let message = format!("--loop, --since, --until, --search, --org, --dry-run and --yes go with {flag}");
            return Err(CommandError::usage_help(message, "leave out the run, or these"));
        }
        Ok(())
    }

    /// Whether it is to be done: a person is asked, unless that was answered before.
    ///
    /// # Errors
    /// When nobody can be asked.
    pub fn is_confirmed(&self, verb: &str, found: &ManyRuns, surface: &Surface) -> Result<bool, CommandError> {
        if self.dry_run || found.runs.is_empty() {
            return Ok(false);
        }
        if self.yes {
            return Ok(true);
        }
        if !std::io::stdin().is_terminal() || !surface.err_terminal {
            let message = format!("{} would be {verb}", plural(found.runs.len(), "run"));
            return Err(CommandError::usage_help(
                message,
                "--yes does it without a question, --dry-run says which runs",
            ));
        }
        surface.say(&found.summary(verb));
        surface.say("Do it? [y/N] ");
        let mut line = String::new();
        let is_read = std::io::stdin().read_line(&mut line).is_ok();
        Ok(is_read && matches!(line.trim(), "y" | "Y" | "yes"))
    }
}

impl ManyRuns {
    /// How many more match than the bound takes, in words.
    pub fn left(&self) -> String {
        let left = self.matched.saturating_sub(self.runs.len());
        if left > 0 { format!("; {left} more match") } else { String::new() }
    }

    /// How many match, and which ones are meant.
    pub fn summary(&self, verb: &str) -> String {
        let count = plural(self.runs.len(), "run");
        let mut said = match self.matched.checked_sub(self.runs.len()) {
            Some(left) if left > 0 => {
                format!("{} match; the oldest {count} would be {verb}\n", plural(self.matched, "run"))
            }
            _ => format!("{count} would be {verb}\n"),
        };
        for run in self.runs.iter().take(MAX_NAMED_RUNS) {
            said.push_str(&format!("  {}  {}\n", escape::line(&run.run_id), escape::line(&run.loop_name)));
        }
        if self.runs.len() > MAX_NAMED_RUNS {
            said.push_str(&format!("  and {} more\n", self.runs.len() - MAX_NAMED_RUNS));
        }
        said
    }
}

impl ManyResults {
    /// Notes what became of a run.
    pub fn add<E: std::fmt::Display>(&mut self, run_id: String, done: Result<(), E>) {
        match done {
            Ok(()) => self.done.push(run_id),
            Err(why) => self.failed.push((run_id, why.to_string())),
        }
    }

    /// Prints what became of the runs; in a dry run, which ones are meant. 1 when something could not be done.
    ///
    /// # Errors
    /// When stdout can't be written.
    pub fn print(
        self,
        verb: &str,
        found: &ManyRuns,
        output: ListOutput,
        surface: &Surface,
    ) -> Result<Exit, CommandError> {
        let exit = if self.failed.is_empty() { Exit::Completed } else { Exit::Failed };
        if output == ListOutput::Json {
            let meant: Vec<&String> = found.runs.iter().map(|run| &run.run_id).collect();
            let done = if found.is_dry { json!(meant) } else { json!(self.done) };
            let failed = self.failed.iter().map(|(run_id, why)| json!({ "run_id": run_id, "why": why }));
            let line = json!({ "matched": found.matched, "dry_run": found.is_dry, "done": done,
                "failed": failed.collect::<Vec<_>>() });
            surface.print(&json_line(&line)?)?;
            return Ok(exit);
        }
        if found.runs.is_empty() {
            surface.say("no run matches\n");
        } else if found.is_dry {
            surface.print(&found.summary(verb))?;
        } else {
            let lines = self.done.iter().map(|run_id| format!("{verb}  {}\n", escape::line(run_id)));
            surface.print(&lines.collect::<String>())?;
            for (run_id, why) in &self.failed {
                surface.say(&format!("{}: {}\n", escape::line(run_id), escape::line(why)));
            }
            let more = found.left();
            let (done, failed) = (plural(self.done.len(), "run"), self.failed.len());
            let failures = if failed > 0 { format!(", {failed} failed") } else { String::new() };
            surface.say(&format!("{done} {verb}{failures}{more}\n"));
        }
        Ok(exit)
    }
}
