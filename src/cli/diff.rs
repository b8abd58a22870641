//! `loopctl diff`.

use std::path::PathBuf;

use clap::Args;
use unicode_width::UnicodeWidthStr as _;

use super::exit::Exit;
use super::failure::CommandError;
use super::output::{json_line, shown};
use super::output_file;
use super::recorded_run::RecordedRun;
use super::store::{StoreArgs, StorePlace};
use super::surface::Surface;
use crate::engine::state::State;
use crate::journal::Journal;
use crate::trace::compare::{CallDifference, ComparedCall, ComparedRun, RunComparison, compare};
use crate::trace::html::{beside, difference_words};
use crate::trace::json::gist;
use crate::trace::layout::{TextBlock, pad};
use crate::trace::units::plural;
use crate::trace::{Look, Redaction, RunResult, Shown, Tone, escape, result};

/// Compare two runs: the first call that differs, and what each of them came to
///
/// Calls are compared by their position, with their inputs and whether they succeeded; what models say is not.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  loopctl diff triage-7k2m9q4x last
  loopctl diff triage-7k2m9q4x last --format html -o diff.html")]
pub struct DiffCommand {
    /// One run: its id, the beginning of its id, `last` or `last:LOOP`
    pub run: String,
    /// The other run, named in the same way
    pub other: String,
    /// The format of the comparison
    #[arg(long, value_enum, default_value_t)]
    pub format: DiffFormat,
    /// Write the comparison to a file
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    #[command(flatten)]
    pub store: StoreArgs,
}

/// The format of a comparison.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum DiffFormat {
    /// Text for a terminal
    #[default]
    Text,
    /// The comparison as one line of JSON
    Json,
    /// One HTML file that fetches nothing
    Html,
}

impl DiffCommand {
    /// Compares the runs.
    ///
    /// # Errors
    /// When a run can't be read, or the output can't be written.
    pub async fn perform(self, surface: &Surface) -> Result<Exit, CommandError> {
        let (journal, place) = self.store.open()?;
        let (left, right) = (read(&journal, &place, &self.run).await?, read(&journal, &place, &self.other).await?);
        let of = |run: &'_ (State, RunResult)| -> RunResult { run.1.clone() };
        let (one, other) = (of(&left), of(&right));
        let comparison =
            compare(ComparedRun { state: &left.0, result: &one }, ComparedRun { state: &right.0, result: &other });
        let look = if self.output.is_some() { Look::plain(surface.out.width) } else { surface.out };
        let page = match self.format {
            DiffFormat::Text => text(&look, &comparison),
            DiffFormat::Json => json_line(&comparison)?,
            DiffFormat::Html => beside(&comparison),
        };
        match &self.output {
            None => surface.print(&page)?,
            Some(file) => output_file::write(file, &page)?,
        }
        Ok(Exit::Completed)
    }
}

async fn read(
    journal: &std::sync::Arc<dyn Journal>,
    place: &StorePlace,
    run: &str,
) -> Result<(State, RunResult), CommandError> {
    let RecordedRun { program, state, .. } = RecordedRun::named(run, journal, place).await?;
    let redact = Redaction::new(&program.project.redact);
    let result = result(Shown { trace: true, ..shown(&program) }, &state, &redact);
    Ok((state, result))
}

fn text(look: &Look, comparison: &RunComparison) -> String {
    let mut shown = match &comparison.first_difference {
        None => {
            let noun = noun(comparison);
            let same = look.paint(Tone::Good, &format!("✓ the same {noun}s"));
            format!("{same}  {}\n", plural(comparison.same_calls, noun))
        }
        Some(difference) => difference_text(look, comparison, difference),
    };
    let [left, right] = &comparison.runs;
    let ids = [left, right].map(|run| escape::line(&run.run_id).into_owned());
    let rows: Vec<_> = left.rows().into_iter().zip(right.rows()).collect();
    let width = rows.iter().map(|((_, one), _)| one.width()).chain([ids[0].width()]).max().unwrap_or(0);
    let head = format!("{}  {}  {}", pad("", 10), pad(&ids[0], width), ids[1]);
    shown.push_str(&format!("\n{}\n", look.paint(Tone::Dim, &head)));
    for ((name, one), (_, other)) in rows {
        let line = format!("{}  {}  {other}", pad(name, 10), pad(&one, width));
        let tone = if one == other { Tone::Dim } else { Tone::Bold };
        shown.push_str(&format!("{}\n", look.paint(tone, line.trim_end())));
    }
    shown
}

/// What is compared: in a workflow, the steps.
fn noun(comparison: &RunComparison) -> &'static str {
    let mut calls = comparison.calls.iter().flatten().peekable();
    if calls.peek().is_some() && calls.all(|call| call.at.is_some()) { "step" } else { "call" }
}

fn difference_text(look: &Look, comparison: &RunComparison, difference: &CallDifference) -> String {
    let words = format!(
        "{} the same, then another {}",
        plural(comparison.same_calls, noun(comparison)),
        difference_words(difference.what)
    );
    let mut shown = format!("{}\n", look.paint(Tone::Warn, &words));
    for (run, call) in comparison.runs.iter().zip(&difference.calls) {
        let lead = format!("  {}: ", escape::line(&run.run_id));
        let call = call.as_ref().map_or_else(|| "no call".to_owned(), call_text);
        let block = TextBlock { lead: (&lead, lead.width().min(24)), tone: None, tail: "", lines: 4 };
        shown.push_str(&look.block(&escape::line(&call), &block));
    }
    shown
}

/// A call in a line that is not yet escaped.
fn call_text(call: &ComparedCall) -> String {
    let mut text = match (&call.at, call.iteration) {
        (Some(at), _) => format!("{at} "),
        (None, Some(iteration)) => format!("{iteration} "),
        (None, None) => String::new(),
    };
    text.push_str(call.action.as_deref().unwrap_or("a reply that could not be taken"));
    if let Some(input) = &call.action_input {
        text.push_str(&format!(" {}", gist(input, 240)));
    }
    text + if call.success { "" } else { " (failed)" }
}
