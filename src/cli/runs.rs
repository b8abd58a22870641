//! `loopctl runs`.

use clap::{Args, Subcommand};
use serde::Serialize;

use super::exit::Exit;
use super::failure::CommandError;
use super::model_wait::ShownModelWait;
use super::output::{ListOutput, json_line};
use super::run_filter::RunFilterArgs;
use super::store::{StoreArgs, StorePlace};
use super::surface::Surface;
use crate::drive::clock;
use crate::engine::outcome::Termination;
use crate::journal::{ListedStatus, RunFilter, RunSummary, set_aside};
use crate::trace::escape;
use crate::trace::units::{plural, rfc3339};
use table::ShownRuns;

mod erase;
mod prune;
mod table;
mod watch;

/// List the runs of a store, newest first
///
/// A terminal shows as many columns as it has room for; a pipe or a file gets all of them, and no text is cut.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  loopctl runs --waiting --failed
  loopctl runs --loop refund-check --since 24h --search \"order a-17\"
  loopctl runs --watch
  loopctl runs --output json | jq -r '.[].run_id'
  loopctl runs prune --older-than 30d --dry-run")]
#[command(args_conflicts_with_subcommands = true)]
pub struct RunsCommand {
    #[command(subcommand)]
    pub task: Option<RunsTask>,
    #[command(flatten)]
    pub which: RunFilterArgs,
    /// The maximum number of runs; 0 lists all
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub limit: usize,
    /// List sub-runs too
    #[arg(long)]
    pub called: bool,
    #[command(flatten)]
    pub store: StoreArgs,
    /// Print only the ids, one on each line, for scripts and completions. An id that a shell would have to quote is left out
    #[arg(long, conflicts_with = "output")]
    pub ids: bool,
    /// Show the list anew every two seconds; where stdout is no terminal, a line for each run that changed. Ctrl-C ends it
    #[arg(long, conflicts_with = "ids")]
    pub watch: bool,
    /// The output format
    #[arg(long, value_enum, default_value_t)]
    pub output: ListOutput,
}

/// What else can be done with runs.
#[derive(Debug, Subcommand)]
pub enum RunsTask {
    Erase(erase::EraseTask),
    Prune(prune::PruneTask),
}

/// A run in the list, for machines.
#[derive(Serialize)]
struct Row<'a> {
    run_id: &'a str,
    loop_name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    session: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    called_by: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    token: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    org: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<&'a str>,
    status: ListedStatus,
    /// Whether a human is waited for.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    waiting: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    termination: Option<Termination>,
    iterations: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cost_usd: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    model_wait: Option<ShownModelWait<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    question: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    due_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    schedule: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    scheduled_for: Option<String>,
    /// The first run that it waits for, by the `concurrency` of its document.
    #[serde(skip_serializing_if = "Option::is_none")]
    behind: Option<&'a str>,
    driven: bool,
    started_at: String,
    updated_at: String,
    /// From its start to its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    duration_ms: Option<i64>,
}

impl RunsCommand {
    /// Lists the runs.
    ///
    /// # Errors
    /// When the store can't be read.
    pub async fn perform(self, surface: &Surface) -> Result<Exit, CommandError> {
        match self.task {
            Some(RunsTask::Erase(task)) => return task.perform(surface).await,
            Some(RunsTask::Prune(task)) => return task.perform(surface).await,
            None => {}
        }
        let place = self.store.place()?;
        if self.watch {
            return watch::watch(&self, &place, surface).await;
        }
        // Without runs there may be no store, and listing must not create one.
        let runs = if place.exists() {
            let journal = place.open()?;
            set_aside::all_shown(&*journal, journal.list(self.filter()).await?).await?
        } else if self.store.store.is_some() {
            return Err(CommandError::usage(format!("there is no store {}", place.shown())));
        } else {
            Vec::new()
        };
        let now_ms = clock::wall_ms();
        match self.output {
            _ if self.ids => {
                let (plain, left_out) = ids(&runs);
                surface.print(&plain)?;
                if left_out > 0 {
                    surface.say(&format!("{} left out: a shell would have to quote the id\n", plural(left_out, "run")));
                }
            }
            ListOutput::Json => {
                surface.print(&json_line(&runs.iter().map(row).collect::<Vec<_>>())?)?;
            }
            ListOutput::Human if runs.is_empty() => {
                surface.say(&none(&place, self.which.is_any(), self.store.store.is_some()));
            }
            ListOutput::Human => {
                surface.print(&ShownRuns { look: surface.out, columns: surface.out_columns, now_ms }.shown(&runs))?;
            }
        }
        Ok(Exit::Completed)
    }

    /// The filter as of now.
    fn filter(&self) -> RunFilter {
        RunFilter { limit: self.limit, called: self.called, ..self.which.filter() }
    }
}

/// The ids that are plain words to a shell, one on each line, and how many are none.
fn ids(runs: &[RunSummary]) -> (String, u64) {
    // Those of schedules have an `@`.
    let is_plain = |c: char, at: usize| {
        c.is_ascii_alphanumeric() || matches!(c, '_' | '.') || at > 0 && matches!(c, '-' | '@' | ':')
    };
    let is_word = |id: &str| id.chars().enumerate().all(|(at, c)| is_plain(c, at));
    let (plain, others): (Vec<&str>, Vec<&str>) =
        runs.iter().map(|run| run.run_id.as_str()).partition(|id| is_word(id));
    (plain.iter().map(|id| format!("{id}\n")).collect(), u64::try_from(others.len()).unwrap_or(u64::MAX))
}

fn row(run: &RunSummary) -> Row<'_> {
    Row {
        run_id: &run.run_id,
        loop_name: &run.loop_name,
        session: run.session.as_deref(),
        called_by: run.parent_run_id.as_deref(),
        token: run.token.as_deref(),
        org: run.org.as_deref(),
        title: run.title.as_deref(),
        status: run.listed_status(),
        waiting: run.waits_for_human(),
        termination: run.termination,
        iterations: run.iterations,
        tokens: run.tokens,
        cost_usd: run.cost_usd,
        error: run.error.as_deref(),
        model_wait: run.model_wait.as_ref().map(|wait| ShownModelWait::new(wait, &run.run_id)),
        question: run.question.as_deref(),
        due_at: run.due_at_ms.map(rfc3339),
        schedule: run.schedule.as_deref(),
        scheduled_for: run.scheduled_for_ms.map(rfc3339),
        behind: run.behind.as_deref(),
        driven: run.driven,
        started_at: rfc3339(run.started_at_ms),
        updated_at: rfc3339(run.updated_at_ms),
        duration_ms: run.duration_ms(),
    }
}

/// The message for an empty list, and where other runs may be.
fn none(place: &StorePlace, is_filtered: bool, store_given: bool) -> String {
    let of = if is_filtered { "no such runs" } else { "no runs" };
    let mut text = format!("{of} in {}\n", escape::line(&place.shown()));
    if !store_given && !is_filtered {
        text.push_str("runs are kept beside their document: name it with --document FILE, or --store sqlite:PATH\n");
    }
    text
}
