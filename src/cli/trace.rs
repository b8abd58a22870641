//! `loopctl trace`.

use std::ops::ControlFlow;
use std::path::PathBuf;

use clap::Args;
use serde::Serialize;

use super::exit::Exit;
use super::failure::CommandError;
use super::follow;
use super::limits::raising_flags;
use super::model_wait::{self, ShownModelWait};
use super::next_commands::NextCommands;
use super::output::{json_line, shown};
use super::output_file;
use super::recorded_run::{self, RecordedRun};
use super::store::StoreArgs;
use super::surface::Surface;
use crate::drive::clock;
use crate::drive::fold;
use crate::drive::status::complete_row;
use crate::engine::event::{Event, EventKind, Reasoning};
use crate::engine::flow::item_log::ItemLog;
use crate::engine::flow::view::{ItemWindow, StepLog};
use crate::engine::model_requests::{asked, each_asked};
use crate::journal::set_aside::set_aside_by;
use crate::program::Program;
use crate::trace::html::{ShownItems, html, steps_at};
use crate::trace::iteration::{self, IterationView};
use crate::trace::prompts::SentPrompts;
use crate::trace::result::RunResult;
use crate::trace::steps::{shown_items, shown_step, shown_view};
use crate::trace::{About, Look, Redaction, Shown, Tone, escape, result, step_text, text};

/// Show the trace of a run: each thought, tool call and observation
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  loopctl trace triage-7k2m9q4x
  loopctl trace triage-7k2m9q4x --format html -o trace.html
  loopctl trace triage-7k2m9q4x --format json | jq '.trace[] | .action'
  loopctl trace triage-7k2m9q4x --at 3              # what the model was sent for its third reply
  loopctl trace payments-1b9x4k2m --at review.57
  loopctl trace last --follow")]
pub struct TraceCommand {
    /// The run: its id, the beginning of its id, `last` or `last:LOOP`
    pub run: String,
    /// Only this iteration of a loop (`3`): what the model was sent, the memory at that time, and what came of it. Or only the
    /// steps of a workflow at this address: a step, an item of a loop (`review.57`), a step of it (`review.57.1`)
    #[arg(long, value_name = "ITERATION or ADDRESS")]
    pub at: Option<String>,
    /// The format of the trace
    #[arg(long, value_enum, default_value_t)]
    pub format: TraceFormat,
    /// Write the trace to a file
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Show what happens as it happens, also in the runs that it calls, until the run ends. Another process may execute it. The
    /// exit code is that of the run; Ctrl-C ends the command, and not the run
    #[arg(long, conflicts_with_all = ["at", "format", "output", "reasoning"])]
    pub follow: bool,
    /// Add what is sent back to the provider of each reply's reasoning, as it is (with --format json)
    #[arg(long)]
    pub reasoning: bool,
    #[command(flatten)]
    pub store: StoreArgs,
}

/// The format of a trace.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum TraceFormat {
    /// Text for a terminal
    #[default]
    Text,
    /// The result with its trace, as one line of JSON
    Json,
    /// One HTML file that fetches nothing
    Html,
}

impl TraceCommand {
    /// Shows the trace.
    ///
    /// # Errors
    /// When there is no such run, or the output can't be written.
    pub async fn perform(self, surface: &Surface) -> Result<Exit, CommandError> {
        if !self.follow {
            return self.show(surface).await;
        }
        let (journal, place) = self.store.open()?;
        let run = recorded_run::resolve(&*journal, &self.run, &place.shown()).await?;
        follow::follow(&run, &*journal, place.project, surface).await
    }

    /// Shows the run as it is now.
    async fn show(self, surface: &Surface) -> Result<Exit, CommandError> {
        if self.reasoning && self.format != TraceFormat::Json {
            return Err(CommandError::usage_help("--reasoning is for programs", "add --format json"));
        }
        if self.reasoning && self.at.is_some() {
            return Err(CommandError::usage_help("--reasoning is about a whole run", "leave --at out"));
        }
        let (journal, place) = self.store.open()?;
        let RecordedRun { id: run, program, state, engine } = RecordedRun::named(&self.run, &journal, &place).await?;
        let mut next = NextCommands { raising: raising_flags(&program, &state), ..NextCommands::new(&run, &place) };
        next.is_handled = engine.has_handled_failure(&program, &state).await;
        let redact = Redaction::new(&program.project.redact);
        let look = if self.output.is_some() { Look::plain(surface.out.width) } else { surface.out };
        let summary = engine.find(&run).await.map_err(CommandError::from)?;
        if let Some(summary) = &summary {
            complete_row(&*journal, summary, &program, &state).await;
        }
        next.is_imported = summary.as_ref().is_some_and(|summary| summary.is_imported() || summary.is_unfinished());
        next.is_copy = !next.is_imported && summary.as_ref().is_some_and(|summary| summary.is_read_only_copy());
        let is_quarantined = set_aside_by(&*journal, summary.as_ref()).await?.is_some();
        let driven = summary.as_ref().is_some_and(|summary| summary.driven);
        let result = result(Shown { trace: true, driven, is_quarantined, ..shown(&program) }, &state, &redact);
        let summary = summary.filter(|_| result.finished_at.is_none());
        let (model_wait, behind) = summary.map(|summary| (summary.model_wait, summary.behind)).unwrap_or_default();
        let objective = redact.text(&state.header.objective);
        let about = About {
            loop_name: &state.header.loop_name,
            model: &state.header.model.name,
            objective: &objective,
            active_ms: state.now.active_ms,
        };
        if let Some(at) = &self.at {
            let events = engine.events(&run).await.map_err(CommandError::from)?;
            if !program.is_flow() {
                let page = self.iteration(at, &Asked { program: &program, events: &events, result: &result }, look)?;
                return self.write(surface, &page);
            }
            let mut log = StepLog::new(Some(at.clone()).filter(|at| !at.is_empty()));
            let state = fold::logged(&program, &run, events, &mut log)?;
            let view = log.view(&program, &state, driven, ItemWindow { from: 0, most: usize::MAX, status: None });
            let view = view.map_err(|why| CommandError::usage(why.to_string()))?;
            let view = shown_view(view.quarantined(is_quarantined), &redact);
            let page = match self.format {
                TraceFormat::Text => step_text::view(look, &about, &run, &view),
                TraceFormat::Json => json_line(&view)?,
                TraceFormat::Html => steps_at(&about, &run, &view),
            };
            return self.write(surface, &page);
        }
        let page = match self.format {
            TraceFormat::Text => text::text(look, &about, &result),
            TraceFormat::Json if self.reasoning => {
                let events = engine.events(&run).await.map_err(CommandError::from)?;
                json_line(&WithReasoning { result: &result, reasoning: sealed(&events) })?
            }
            TraceFormat::Json => {
                let model_wait = model_wait.as_ref().map(|wait| ShownModelWait::new(wait, &run));
                json_line(&WithWaits { result: &result, model_wait, behind: behind.as_deref() })?
            }
            TraceFormat::Html => {
                let events = engine.events(&run).await.map_err(CommandError::from)?;
                let prompts = prompts(&program, &events, &redact);
                let items = items(&program, RunEvents { run_id: &run, events, driven }, &redact)?;
                html(&about, &result, &prompts, &items)
            }
        };
        let exit = self.write(surface, &page)?;
        // The status of a run that has not ended is no part of its trace.
        if self.output.is_none() && self.format == TraceFormat::Text && result.finished_at.is_none() {
            let waits = model_wait.iter().map(|wait| model_wait::sentence(wait, &run, clock::wall_ms()));
            let line = behind.iter().map(|first| format!("in its line for run {} to end", escape::line(first)));
            for text in waits.chain(line) {
                surface.say(&format!("\n{}", surface.line(Tone::Warn, "waits", &text)));
            }
            surface.say(&format!("\n{}", next.text(&result, &surface.err)));
        } else if self.output.is_none() && self.format == TraceFormat::Text && state.header.caller.is_none() {
            let ways = next.again(&result);
            surface.say(&ways.iter().map(|(_, command)| format!("  {}\n", escape::line(command))).collect::<String>());
        }
        Ok(exit)
    }

    /// One iteration of a loop.
    fn iteration(&self, at: &str, run: &Asked<'_>, look: Look) -> Result<String, CommandError> {
        let number: u32 = at.parse().map_err(|_| {
            CommandError::usage_help(
                format!("{at:?} is no iteration, and the run is no workflow, whose steps have addresses"),
                "name an iteration by its number, from 1: --at 3",
            )
        })?;
        let state = asked(run.program, run.events, number).map_err(CommandError::usage)?;
        let view = IterationView::new(
            number,
            &state,
            state.selected_names(run.program),
            run.result,
            &Redaction::new(&run.program.project.redact),
        );
        match self.format {
            TraceFormat::Text => Ok(iteration::text(look, &view, run.result)),
            TraceFormat::Json => Ok(json_line(&view)?),
            TraceFormat::Html => Err(CommandError::usage_help(
                "an iteration has no HTML page of its own",
                "leave --at out: the page of the run goes through its iterations one by one, with what the model was sent for \
                 each; or take --format json",
            )),
        }
    }

    fn write(&self, surface: &Surface, page: &str) -> Result<Exit, CommandError> {
        match &self.output {
            None => surface.print(page)?,
            Some(file) => output_file::write(file, page)?,
        }
        Ok(Exit::Completed)
    }
}

/// What the model of a loop was sent for each reply; nothing for a workflow.
fn prompts(program: &Program, events: &[Event], redact: &Redaction) -> SentPrompts {
    let mut prompts = SentPrompts::default();
    if !program.is_flow() {
        let folded = each_asked(program, events, |iteration, state| {
            prompts.add(iteration, state, state.selected_names(program), redact);
            ControlFlow::Continue(())
        });
        prompts.missing = folded.err();
    }
    prompts
}

/// The events of a run, and whether a driver has it now.
struct RunEvents<'a> {
    run_id: &'a str,
    events: Vec<Event>,
    driven: bool,
}

/// The items of a workflow's loops with their steps; none of a loop.
fn items(program: &Program, run: RunEvents<'_>, redact: &Redaction) -> Result<ShownItems, CommandError> {
    if !program.is_flow() {
        return Ok(ShownItems::default());
    }
    let mut log = ItemLog::new(program);
    let state = fold::seen(program, run.run_id, run.events, |state| log.take(state))?;
    let loops =
        log.loops(program, &state, run.driven).into_iter().map(|of_loop| shown_items(of_loop, redact)).collect();
    let steps = log.steps().iter().map(|(at, step)| (at.clone(), shown_step(step.clone(), redact)));
    Ok(ShownItems { steps: steps.collect(), loops, left_out: log.left_out() })
}

/// A run whose iteration is shown.
struct Asked<'a> {
    program: &'a Program,
    events: &'a [Event],
    result: &'a RunResult,
}

/// A result with what is sent back of its replies' reasoning.
#[derive(Serialize)]
struct WithReasoning<'a> {
    #[serde(flatten)]
    result: &'a RunResult,
    reasoning: Vec<SealedReasoning<'a>>,
}

/// A result with what the run waits for outside of it: the model that failed and is asked again, or the run before it in its line.
#[derive(Serialize)]
struct WithWaits<'a> {
    #[serde(flatten)]
    result: &'a RunResult,
    #[serde(skip_serializing_if = "Option::is_none")]
    model_wait: Option<ShownModelWait<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    behind: Option<&'a str>,
}

/// What is sent back of one reply's reasoning.
#[derive(Serialize)]
struct SealedReasoning<'a> {
    iteration: usize,
    origin: &'a str,
    sealed: &'a str,
}

fn sealed(events: &[Event]) -> Vec<SealedReasoning<'_>> {
    let mut iteration = 0;
    let mut parts = Vec::new();
    for event in events {
        let EventKind::ModelReplied(reply) = &event.kind else { continue };
        iteration += 1;
        if let Some(Reasoning { origin, sealed, .. }) = reply.reasoning.as_deref()
            && !sealed.is_empty()
        {
            parts.push(SealedReasoning { iteration, origin, sealed });
        }
    }
    parts
}
