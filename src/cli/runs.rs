//! `loopctl runs`.

use std::borrow::Cow;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand};
use serde::Serialize;
use unicode_width::UnicodeWidthStr as _;

use super::exit::Exit;
use super::failure::CommandError;
use super::model_wait::{self, ShownModelWait};
use super::output::{ListOutput, json_line};
use super::store::{StoreArgs, StorePlace};
use super::surface::Surface;
use crate::drive::clock;
use crate::engine::outcome::{Status, Termination};
use crate::journal::{RunFilter, RunSummary};
use crate::trace::layout::{cut, pad};
use crate::trace::reason::reason;
use crate::trace::text::status;
use crate::trace::units::{dollars, plural, rfc3339};
use crate::trace::{Look, Tone, escape};

pub(super) mod prune;

/// The least width of a reason in the table; with less, a run takes several lines.
const MIN_REASON_COLUMNS: usize = 10;

/// List the runs of a store, newest first
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  loopctl runs --status paused
  loopctl runs --output json | jq -r '.[].run_id'
  loopctl runs prune --older-than 30d --dry-run")]
#[command(args_conflicts_with_subcommands = true)]
pub struct RunsCommand {
    #[command(subcommand)]
    pub task: Option<RunsTask>,
    /// List only runs with this status
    #[arg(long, value_parser = status_parser(), value_name = "STATUS")]
    pub status: Option<Status>,
    /// List only runs that have this text in the beginning of their objective or input; the case of letters does not matter
    #[arg(long, value_name = "TEXT")]
    pub search: Option<String>,
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
    /// The output format
    #[arg(long, value_enum, default_value_t)]
    pub output: ListOutput,
}

/// What else can be done with runs.
#[derive(Debug, Subcommand)]
pub enum RunsTask {
    Prune(prune::PruneTask),
}

/// Reads a status by its word.
fn status_parser() -> impl TypedValueParser<Value = Status> {
    let words = Status::ALL.map(|status| {
        let help = match status {
            Status::Running => "In progress, or interrupted",
            Status::Paused => "Waits for a human, also while other parts of it are under way",
            Status::Completed => "Ended with an answer",
            Status::Failed => "Ended without an answer",
            Status::Cancelled => "Cancelled by a human or by a signal",
            Status::Quarantined => "Interrupted too often: servers do not resume it",
        };
        PossibleValue::new(status.word()).help(help)
    });
    PossibleValuesParser::new(words)
        .try_map(|word| Status::ALL.into_iter().find(|status| status.word() == word).ok_or("this is no status"))
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
    status: Status,
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
    driven: bool,
    started_at: String,
    updated_at: String,
}

impl RunsCommand {
    /// Lists the runs.
    ///
    /// # Errors
    /// When the store can't be read.
    pub async fn perform(self, surface: &Surface) -> Result<Exit, CommandError> {
        if let Some(RunsTask::Prune(task)) = self.task {
            return task.perform(surface).await;
        }
        let place = self.store.place()?;
        // Without runs there may be no store, and listing must not create one.
        let runs = if place.exists() {
            let filter = RunFilter {
                status: self.status.filter(|status| *status != Status::Paused),
                waiting: self.status == Some(Status::Paused),
                limit: self.limit,
                called: self.called,
                search: self.search.clone(),
                ..RunFilter::default()
            };
            place.open()?.list(filter).await?
        } else if self.store.store.is_some() {
            return Err(CommandError::usage(format!("there is no store {}", place.shown())));
        } else {
            Vec::new()
        };
        match self.output {
            _ if self.ids => surface.print(&ids(&runs))?,
            ListOutput::Json => surface.print(&json_line(&runs.iter().map(row).collect::<Vec<_>>())?)?,
            ListOutput::Human if runs.is_empty() => {
                surface.say(&none(&place, self.status.is_some() || self.search.is_some(), self.store.store.is_some()));
            }
            ListOutput::Human => surface.print(&table(&runs, &surface.out, clock::wall_ms()))?,
        }
        Ok(Exit::Completed)
    }
}

/// The ids that are plain words, one on each line.
fn ids(runs: &[RunSummary]) -> String {
    let is_plain = |id: &&str| {
        !id.starts_with('-') && id.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
    };
    runs.iter().map(|run| run.run_id.as_str()).filter(is_plain).map(|id| format!("{id}\n")).collect()
}

fn row(run: &RunSummary) -> Row<'_> {
    Row {
        run_id: &run.run_id,
        loop_name: &run.loop_name,
        session: run.session.as_deref(),
        called_by: run.parent_run_id.as_deref(),
        token: run.token.as_deref(),
        status: run.status,
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
        driven: run.driven,
        started_at: rfc3339(run.started_at_ms),
        updated_at: rfc3339(run.updated_at_ms),
    }
}

/// The message for an empty list, and where other runs may be.
fn none(place: &StorePlace, some_status: bool, store_given: bool) -> String {
    let of = if some_status { "no such runs" } else { "no runs" };
    let mut text = format!("{of} in {}\n", escape::line(&place.shown()));
    if !store_given && !some_status {
        text.push_str("runs are kept beside their document: name it with --document FILE, or --store sqlite:PATH\n");
    }
    text
}

/// The runs as a table; ids are shown whole, because they are copied. If a row does not fit, it takes two or
/// three lines.
fn table(runs: &[RunSummary], look: &Look, now_ms: i64) -> String {
    let ids: Vec<_> = runs.iter().map(|run| escape::line(&run.run_id)).collect();
    let names: Vec<_> = runs.iter().map(|run| cut(&escape::line(&run.loop_name), 24)).collect();
    let id_width = ids.iter().map(|id| id.width()).max().unwrap_or(0).max(3);
    let name_width = names.iter().map(|name| name.width()).max().unwrap_or(0).max(4);
    // The rest of the width for the reason, after the columns and their separators.
    let room = look.width.saturating_sub(id_width + name_width + 45);
    if room < MIN_REASON_COLUMNS {
        return runs.iter().zip(&ids).zip(&names).map(|((run, id), name)| lines(run, id, name, look, now_ms)).collect();
    }
    let head =
        format!("{}  {}  STATUS       ITER.  COST      AGE      WHY", pad("RUN", id_width), pad("LOOP", name_width));
    let mut shown = look.paint(Tone::Dim, &head) + "\n";
    for ((run, id), name) in runs.iter().zip(&ids).zip(&names) {
        let line = format!(
            "{}  {}  {}  {:>5}  {}  {}  {}",
            pad(id, id_width),
            pad(name, name_width),
            status(look, run.status, 11),
            run.iterations,
            pad(&cost(run), 8),
            pad(&age(now_ms, run.started_at_ms), 7),
            look.paint(Tone::Dim, &cut(&why(run, now_ms), room)),
        );
        shown.push_str(line.trim_end());
        shown.push('\n');
    }
    shown
}

/// A run on several lines, for a narrow terminal.
fn lines(run: &RunSummary, id: &str, name: &str, look: &Look, now_ms: i64) -> String {
    // Without the header of a table, the text must say that it is no duration.
    let age = match age(now_ms, run.started_at_ms) {
        now if now == NOW => now,
        age => format!("{age} ago"),
    };
    let cost = Some(cost(run)).filter(|cost| !cost.is_empty()).map(|cost| format!(", {cost}"));
    let facts = format!("  {name}, {}{}, {age}", plural(run.iterations, "iteration"), cost.unwrap_or_default());
    let facts = look.paint(Tone::Dim, &cut(&facts, look.width.saturating_sub(11)));
    let mut shown = format!("{id}\n  {}{facts}\n", status(look, run.status, 9));
    let why = why(run, now_ms);
    if !why.is_empty() {
        shown.push_str(&format!("  {}\n", look.paint(Tone::Dim, &cut(&why, look.width.saturating_sub(2)))));
    }
    shown
}

/// What a run cost, where that is known.
fn cost(run: &RunSummary) -> String {
    run.cost_usd.filter(|cost| *cost > 0.0).map(dollars).unwrap_or_default()
}

/// What a run asks, why it failed, or that its model is away; otherwise the reason for its status, where the status alone does not say it.
fn why(run: &RunSummary, now_ms: i64) -> Cow<'_, str> {
    if let (Some(wait), None) = (&run.model_wait, &run.question) {
        return escape::line(&model_wait::brief(wait, now_ms)).into_owned().into();
    }
    let own = run.question.as_deref().or(run.error.as_deref());
    match (own, run.status) {
        (Some(text), Status::Running) => format!("{}: {}", reason_of(run), escape::line(text)).into(),
        (Some(text), Status::Paused | Status::Failed | Status::Cancelled) => escape::line(text),
        _ => Cow::Borrowed(reason_of(run)),
    }
}

fn reason_of(run: &RunSummary) -> &'static str {
    match (run.status, run.termination) {
        (Status::Cancelled, None) if run.is_read_only_copy() => "under way in Restate",
        (Status::Running, _) if run.waits_since_ms.is_some() => "a part of it waits for a human",
        (Status::Running, _) if !run.driven => "interrupted; resumable",
        (Status::Quarantined, _) => "its process died 3 times or more; resumable",
        (Status::Cancelled, None) => "stopped; resumable",
        (Status::Completed | Status::Running, None) => "",
        (_, Some(Termination::Complete | Termination::Cancelled)) => "",
        (_, why) => why.map_or("", reason),
    }
}

/// The age of a run that started in this second.
const NOW: &str = "now";

/// The age of a run; a clock that went back makes it "now".
fn age(now_ms: i64, then_ms: i64) -> String {
    let elapsed = u64::try_from(now_ms.saturating_sub(then_ms)).unwrap_or(0);
    match elapsed {
        0..1_000 => NOW.to_owned(),
        1_000..60_000 => format!("{} s", elapsed / 1_000),
        60_000..3_600_000 => format!("{} min", elapsed / 60_000),
        3_600_000..172_800_000 => format!("{} h", elapsed / 3_600_000),
        _ => plural(elapsed / 86_400_000, "day"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(id: &str, status: Status, termination: Option<Termination>) -> RunSummary {
        RunSummary {
            run_id: id.to_owned(),
            loop_name: "refund-check".to_owned(),
            session: None,
            status,
            termination,
            iterations: 3,
            started_at_ms: 1_769_941_800_000,
            updated_at_ms: 1_769_941_800_000,
            tokens: None,
            cost_usd: None,
            error: None,
            model_wait: None,
            question: None,
            due_at_ms: None,
            schedule: None,
            scheduled_for_ms: None,
            is_complete: true,
            driven: false,
            waits_since_ms: None,
            damaged: None,
            identity: String::new(),
            parent_run_id: None,
            org: None,
            token: None,
            callback: None,
        }
    }

    #[test]
    fn runs_stand_in_a_table() {
        let runs = [
            RunSummary { cost_usd: Some(0.0421), ..run("agent-1", Status::Completed, Some(Termination::Complete)) },
            run("agent-2", Status::Failed, Some(Termination::Stuck)),
            run("agent-3", Status::Paused, Some(Termination::Human)),
            run("agent-4", Status::Running, None),
            run("agent-5", Status::Cancelled, None),
            run("agent-6", Status::Cancelled, Some(Termination::Cancelled)),
            run("agent-7", Status::Quarantined, None),
            RunSummary {
                error: Some("the model answered 401".to_owned()),
                cost_usd: Some(12.3),
                ..run("agent-8", Status::Failed, Some(Termination::ModelError))
            },
            RunSummary {
                question: Some("Refund 40 EUR?".to_owned()),
                ..run("agent-9", Status::Paused, Some(Termination::Human))
            },
        ];
        let text = table(&runs, &Look::plain(110), 1_769_941_800_000 + 5 * 60_000);
        insta::assert_snapshot!(text, @r#"
    RUN      LOOP          STATUS       ITER.  COST      AGE      WHY
    agent-1  refund-check  completed        3  $0.0421   5 min
    agent-2  refund-check  failed           3            5 min    the agent is stuck
    agent-3  refund-check  paused           3            5 min    a question for a human
    agent-4  refund-check  running          3            5 min    interrupted; resumable
    agent-5  refund-check  cancelled        3            5 min    stopped; resumable
    agent-6  refund-check  cancelled        3            5 min
    agent-7  refund-check  quarantined      3            5 min    its process died 3 times or more; resumable
    agent-8  refund-check  failed           3  $12.30    5 min    the model answered 401
    agent-9  refund-check  paused           3            5 min    Refund 40 EUR?
    "#);
    }

    #[test]
    fn a_narrow_terminal_gets_a_few_lines_a_run() {
        let runs =
            [run("agent-1", Status::Completed, Some(Termination::Complete)), run("agent-2", Status::Running, None)];
        insta::assert_snapshot!(table(&runs, &Look::plain(50), 1_769_941_800_000 + 5 * 60_000), @r#"
    agent-1
      completed  refund-check, 3 iterations, 5 min ago
    agent-2
      running    refund-check, 3 iterations, 5 min ago
      interrupted; resumable
    "#);
    }

    #[test]
    fn a_hostile_id_is_one_harmless_line() {
        let text = table(&[run("a\u{1b}[2J\nb", Status::Failed, None)], &Look::plain(100), 0);
        assert_eq!(text.lines().count(), 2);
        assert!(!text.contains(escape::is_hidden));
    }

    #[test]
    fn a_clock_that_went_back_makes_it_now() {
        assert_eq!(age(0, 5_000), "now");
        assert_eq!(age(0, -2 * 86_400_000), "2 days");
    }
}
