//! `loopctl explain RUN`: why a run ended so, and which word of its document would change that, tried by replay.

use serde::Serialize;

use crate::cli::exit::Exit;
use crate::cli::failure::CommandError;
use crate::cli::limits::raising_flags;
use crate::cli::model_wait;
use crate::cli::next_commands::NextCommands;
use crate::cli::output::{ListOutput, json_line, shown};
use crate::cli::recorded_run::{RecordedRun, recorded_with};
use crate::cli::replay::run_verdict::sentence;
use crate::cli::store::StorePlace;
use crate::cli::surface::Surface;
use crate::drive::{clock, fold};
use crate::engine::event::Event;
use crate::engine::flow::record::{ItemCounts, StepStatus};
use crate::engine::flow::view::{ItemWindow, StepLog};
use crate::engine::outcome::{Limit, Status, Termination};
use crate::engine::reply::refusal::RefusalCause;
use crate::engine::state::State;
use crate::journal::set_aside::set_aside_by;
use crate::journal::{LineRule, ListedStatus, PlaceInLine, RunSummary};
use crate::language::react::{OnLimit, ReactProperties, StuckAction};
use crate::program::Program;
use crate::replay::paired_fold::replay;
use crate::replay::verdict::{ReplayKind, ReplayVerdict};
use crate::trace::json::gist;
use crate::trace::layout::TextBlock;
use crate::trace::reason::reason;
use crate::trace::step_text::item_row;
use crate::trace::steps::{counted, failure, shown_view};
use crate::trace::text::status;
use crate::trace::units::{count, duration, plural};
use crate::trace::{Look, Redaction, RunResult, Shown, Tone, TraceEntry, escape, result};

/// Why a run ended so.
#[derive(Serialize)]
struct Explained {
    run_id: String,
    status: ListedStatus,
    #[serde(skip_serializing_if = "Option::is_none")]
    termination: Option<Termination>,
    /// Why, in a sentence.
    why: String,
    /// Who cancelled it.
    #[serde(skip_serializing_if = "Option::is_none")]
    cancelled_by: Option<String>,
    /// What shows it, a sentence each.
    evidence: Vec<String>,
    /// The changes of the document that were tried, with what came of them.
    tried: Vec<TriedChange>,
    /// The commands with which it continues, if it waits, or failed, and may.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    next: Vec<String>,
}

/// A change of one word of the document, and what came of it.
#[derive(Serialize)]
struct TriedChange {
    /// The field, with its place in `properties`.
    field: &'static str,
    from: String,
    to: String,
    /// Whether the run would not end so.
    changes: bool,
    #[serde(flatten)]
    verdict: ReplayVerdict,
}

/// The most calls that are shown as evidence.
const MAX_SHOWN_CALLS: usize = 8;

/// Explains a run.
pub(super) async fn perform(
    run: RecordedRun,
    place: &StorePlace,
    output: ListOutput,
    surface: &Surface,
) -> Result<Exit, CommandError> {
    let RecordedRun { id: run, program, state, engine } = run;
    let run = run.as_str();
    let events = engine.events(run).await?;
    let redact = Redaction::new(&program.project.redact);
    let summary = engine.find(run).await.map_err(CommandError::from)?;
    let mut commands = NextCommands::new(run, place);
    commands.raising = raising_flags(&program, &state);
    commands.is_handled = engine.has_handled_failure(&program, &state).await;
    commands.is_imported = summary.as_ref().is_some_and(|summary| summary.is_imported() || summary.is_unfinished());
    commands.is_copy = !commands.is_imported && summary.as_ref().is_some_and(|summary| summary.is_read_only_copy());
    let set_aside = set_aside_by(&**engine.journal(), summary.as_ref()).await?;
    let is_quarantined = set_aside.is_some();
    let result = result(Shown { trace: true, is_quarantined, ..shown(&program) }, &state, &redact);
    let line = match result.status {
        Status::Running => engine.line(run).await.map_err(CommandError::from)?,
        _ => PlaceInLine::default(),
    };
    let is_queued = result.status == Status::Running && summary.as_ref().is_some_and(RunSummary::is_queued);
    let model_wait = summary.and_then(|summary| summary.model_wait).filter(|_| result.status == Status::Running);
    let mut tried = Vec::new();
    if state.header.caller.is_none() && matches!(result.status, Status::Failed | Status::Paused) {
        for change in changes(&result, &program) {
            let edited = recorded_with(run, &events, place.project.clone(), |program| (change.apply)(program))?;
            tried.extend(try_change(&program, &edited, &events, change));
        }
    }
    let explained = Explained {
        run_id: result.run_id.clone(),
        status: if is_queued { ListedStatus::Queued } else { result.status.into() },
        termination: result.termination,
        why: model_wait.map_or_else(
            || if line.has_place() { why(&result) } else { waits_in_line(&line) },
            |wait| redact.text(&model_wait::sentence(&wait, run, clock::wall_ms())).into_owned(),
        ),
        cancelled_by: result.cancelled_by.clone(),
        evidence: if let Some(set_aside) = &set_aside {
            way_on(set_aside)
        } else if !line.has_place() {
            ahead(&line)
        } else {
            let mut evidence = evidence(&result, &program, state.now.active_ms);
            evidence.extend(failed_items(&result, &program, run, &events, &redact)?);
            evidence
        },
        tried,
        next: next(&commands, &state, &result),
    };
    match output {
        ListOutput::Json => surface.print(&json_line(&explained)?)?,
        ListOutput::Human => surface.print(&human(&surface.out, &explained))?,
    }
    Ok(Exit::Completed)
}

/// The commands with which a run continues; none for a sub-run, which its caller retries.
fn next(next: &NextCommands, state: &State, result: &RunResult) -> Vec<String> {
    if state.header.caller.is_some() {
        return Vec::new();
    }
    next.continuing(result).into_iter().map(|(_, command)| command).collect()
}

/// Why a run has not begun.
fn waits_in_line(line: &PlaceInLine) -> String {
    let one = match line.limit {
        1 => "one run".to_owned(),
        limit => format!("{limit} runs"),
    };
    let when = match line.rule {
        LineRule::Replace => "it has asked those ahead to end",
        LineRule::Wait | LineRule::Refuse => "it begins in its turn",
    };
    format!("the `concurrency` of its document lets {one} be under way at a time for its key: {when}")
}

/// The runs that a run waits for.
fn ahead(line: &PlaceInLine) -> Vec<String> {
    let shown = line.ahead.iter().take(MAX_SHOWN_CALLS).map(|run| {
        let why = run.termination.map(|why| format!(": {}", reason(why))).unwrap_or_default();
        let driven = if run.status == Status::Running && !run.driven { ", without a driver" } else { "" };
        format!("run {} is ahead, {}{why}{driven}", run.run_id, run.status.word())
    });
    let more = line.ahead.len().saturating_sub(MAX_SHOWN_CALLS);
    shown.chain((more > 0).then(|| format!("and {more} more"))).collect()
}

fn why(result: &RunResult) -> String {
    let error = result.error.as_ref().map(|error| error.message.clone());
    let question = result.pause.as_ref().map(|pause| pause.question.text.clone());
    if result.status == Status::Completed && result.steps.is_empty() {
        return format!("it answered after {}", plural(result.iterations, "iteration"));
    }
    let named = result.termination.map(|why| reason(why).to_owned());
    error.or(question).or(named).unwrap_or_else(|| "it has not ended".to_owned())
}

/// The items of loops that failed, although the run may have completed.
fn failed_items(
    result: &RunResult,
    program: &Program,
    run: &str,
    events: &[Event],
    redact: &Redaction,
) -> Result<Vec<String>, CommandError> {
    let mut shown = Vec::new();
    let has_failed = |items: &ItemCounts| items.failed > 0;
    for step in result.steps.iter().filter(|step| step.error.is_none() && step.items.as_ref().is_some_and(has_failed)) {
        let Some(counts) = &step.items else { continue };
        let mut log = StepLog::new(Some(step.at.clone()));
        let state = fold::logged(program, run, events.to_vec(), &mut log)?;
        let window = ItemWindow { from: 0, most: MAX_SHOWN_CALLS, status: Some(StepStatus::Failed) };
        let Ok(view) = log.view(program, &state, false, window) else { continue };
        shown.push(format!("{}: {}", step.at, counted(counts)));
        shown.extend(shown_view(view, redact).items.iter().flat_map(|items| items.rows.iter().map(item_row)));
    }
    Ok(shown)
}

/// How a run continues that no server takes up.
fn way_on(run: &str) -> Vec<String> {
    vec![
        format!("`loopctl resume {run}` continues it where it was, in a process of its own"),
        format!("`loopctl cancel {run}` ends it; `loopctl store release` lets servers take up all such runs again"),
    ]
}

/// What shows why a run ended so.
fn evidence(result: &RunResult, program: &Program, active_ms: u64) -> Vec<String> {
    let trace = result.trace.as_deref().unwrap_or_default();
    let mut evidence = Vec::new();
    let properties = program.as_loop().map(|program| &program.properties);
    if let Some((stuck, properties)) = result.stuck.as_ref().zip(properties) {
        let (first, last) = stuck.iterations;
        let threshold = properties.on_stuck.iterations;
        evidence.push(format!("with `on_stuck.iterations` {threshold}, these calls are a pattern:"));
        evidence.extend(calls(trace, |entry| (first..=last).contains(&entry.iteration)));
    }
    match result.termination {
        Some(Termination::MaxIterations) => {
            let most = properties.map_or(0, |properties| properties.max_iterations);
            evidence.push(format!("{} of {most} iterations are used", result.iterations));
            evidence.extend(most_called(trace));
        }
        Some(Termination::Timeout) => evidence.push(format!("it was active for {}", duration(active_ms))),
        Some(Termination::Budget) => {
            let tokens = result.usage.input_tokens.saturating_add(result.usage.output_tokens);
            evidence.push(format!("it used {}", plural(tokens, "token")));
            evidence.extend(most_called(trace));
        }
        Some(Termination::InvalidReplies) => {
            let refused = trace.iter().filter(|entry| entry.action.is_none()).rev().take(MAX_SHOWN_CALLS);
            evidence.extend(refused.filter_map(|entry| {
                let fault = entry.error.as_ref()?;
                Some(format!("iteration {}: {}: {}", entry.iteration, fault.class, fault.detail))
            }));
        }
        Some(Termination::ModelError) => {
            let refused = trace.iter().rev().map_while(|entry| {
                entry
                    .error
                    .as_ref()
                    .filter(|fault| fault.class == RefusalCause::Refused.class())
                    .map(|fault| (entry, fault))
            });
            let refused = refused.take(MAX_SHOWN_CALLS);
            evidence.extend(refused.map(|(entry, fault)| {
                format!("iteration {}: {}: {}", entry.iteration, fault.class, gist(&entry.observation, 240))
            }));
            let attempts = result.attempts.iter().rev().take(MAX_SHOWN_CALLS);
            evidence.extend(attempts.map(|attempt| format!("iteration {}: {}", attempt.iteration, attempt.reason)));
        }
        _ => {}
    }
    // Of a call without an outcome nobody knows that it failed.
    let failed =
        || trace.iter().filter(|entry| !entry.success && entry.action.is_some() && entry.call_status.is_none());
    let count = failed().count();
    if count > 0 && result.status != Status::Completed && result.stuck.is_none() {
        evidence.push(format!("{} failed; the last of them:", plural(count, "call")));
        evidence.extend(failed().next_back().map(call));
    }
    let steps = result.steps.iter().filter_map(|step| {
        let error = step.error.as_ref()?;
        Some(format!("step {}: {}: {}", error.step, step.kind, failure(error)))
    });
    evidence.extend(steps.take(MAX_SHOWN_CALLS));
    evidence
}

fn calls(trace: &[TraceEntry], is: impl Fn(&TraceEntry) -> bool) -> Vec<String> {
    let found: Vec<&TraceEntry> = trace.iter().filter(|entry| is(entry)).collect();
    let mut shown: Vec<String> = found.iter().take(MAX_SHOWN_CALLS).map(|entry| call(entry)).collect();
    if found.len() > MAX_SHOWN_CALLS {
        shown.push(format!("and {} more", found.len() - MAX_SHOWN_CALLS));
    }
    shown
}

fn call(entry: &TraceEntry) -> String {
    let input = entry.action_input.as_ref().map_or_else(String::new, |input| format!(" {}", gist(input, 120)));
    let gave = gist(&entry.observation, 120);
    let title = || RefusalCause::title(entry.error.as_ref().map_or("", |error| &error.class));
    let action = entry.action.as_deref().unwrap_or_else(title);
    format!("iteration {}: {action}{input} gave {gave}", entry.iteration)
}

/// The tool that was called most.
fn most_called(trace: &[TraceEntry]) -> Option<String> {
    let mut counts = std::collections::BTreeMap::new();
    for action in trace.iter().filter_map(|entry| entry.action.as_deref()) {
        *counts.entry(action).or_insert(0_u64) += 1;
    }
    let (action, calls) = counts.into_iter().max_by_key(|(_, calls)| *calls)?;
    (calls > 1).then(|| format!("{action} was called {} times", count(calls)))
}

/// A change of one word, to be tried.
struct PropertyChange {
    field: &'static str,
    from: String,
    to: String,
    apply: Box<dyn Fn(&mut Program)>,
}

impl PropertyChange {
    fn new<T: std::fmt::Display>(field: &'static str, from: T, to: T, apply: impl Fn(&mut Program) + 'static) -> Self {
        Self { field, from: from.to_string(), to: to.to_string(), apply: Box::new(apply) }
    }

    /// A change of a property that only a loop has.
    fn of_loop<T: std::fmt::Display>(
        field: &'static str,
        from: T,
        to: T,
        apply: impl Fn(&mut ReactProperties) + 'static,
    ) -> Self {
        Self::new(field, from, to, move |program: &mut Program| {
            if let Some(properties) = program.properties_mut() {
                apply(properties);
            }
        })
    }
}

/// The words that may have ended a run, each with another value.
fn changes(result: &RunResult, program: &Program) -> Vec<PropertyChange> {
    let limit = result.limit.map(Termination::from).or(result.termination);
    let mut changes = Vec::new();
    let properties = program.as_loop().map(|program| &program.properties);
    match (limit, properties) {
        (Some(Termination::MaxIterations), Some(properties)) => {
            let from = properties.max_iterations;
            let to = from.saturating_mul(2).min(1000);
            changes.push(PropertyChange::of_loop("max_iterations", from, to, move |other| other.max_iterations = to));
        }
        (Some(Termination::Timeout), _) => {
            let from = program.timeout_ms;
            let to = from.saturating_mul(2);
            changes.push(PropertyChange::new("timeout_ms", from, to, move |other| other.head_mut().timeout_ms = to));
        }
        (Some(Termination::Budget), _) => {
            let budget = program.budget.as_ref();
            if let Some(from) = budget.and_then(|budget| budget.tokens) {
                let used = result.usage.input_tokens.saturating_add(result.usage.output_tokens);
                let to = from.max(used).saturating_mul(2);
                changes.push(PropertyChange::new("budget.tokens", from, to, move |other| {
                    other.head_mut().budget.iter_mut().for_each(|budget| budget.tokens = Some(to));
                }));
            }
            if let Some(from) = budget.and_then(|budget| budget.cost_usd) {
                let to = from.max(result.usage.cost_usd.unwrap_or_default()) * 2.0;
                changes.push(PropertyChange::new("budget.cost_usd", from, to, move |other| {
                    other.head_mut().budget.iter_mut().for_each(|budget| budget.cost_usd = Some(to));
                }));
            }
        }
        (Some(Termination::Stuck), Some(properties)) => {
            let from = properties.on_stuck.iterations;
            for to in [from.saturating_add(1), from.saturating_mul(2)] {
                changes.push(PropertyChange::of_loop("on_stuck.iterations", from, to, move |other| {
                    other.on_stuck.iterations = to
                }));
            }
            if properties.on_stuck.action == StuckAction::Fail {
                changes.push(PropertyChange::of_loop("on_stuck.action", "fail", "retry_with_hint", |other| {
                    other.on_stuck.action = StuckAction::RetryWithHint;
                }));
            }
        }
        _ => {}
    }
    if limit.is_some_and(|limit| Limit::ALL.into_iter().any(|one| Termination::from(one) == limit))
        && properties.is_some_and(|properties| properties.on_limit == OnLimit::Fail)
    {
        changes.push(PropertyChange::of_loop("on_limit", "fail", "answer", |other| {
            other.on_limit = OnLimit::Answer;
        }));
    }
    changes
}

/// Tries a change; none when the run can't be replayed.
fn try_change(recorded: &Program, edited: &Program, events: &[Event], change: PropertyChange) -> Option<TriedChange> {
    let verdict = replay(recorded, edited, events).ok()?;
    let changes = matches!(verdict.kind, ReplayKind::GoesOn | ReplayKind::OtherEnding);
    let PropertyChange { field, from, to, .. } = change;
    Some(TriedChange { field, from, to, changes, verdict })
}

fn human(look: &Look, explained: &Explained) -> String {
    let run = escape::line(&explained.run_id);
    let named = explained.termination.map_or_else(String::new, |why| format!("  {}", reason(why)));
    let word = match explained.status {
        ListedStatus::Queued => look.paint(Tone::Dim, ListedStatus::Queued.word()),
        other => status(look, other.status(), 0),
    };
    let mut text = format!("{word}  {run}{named}\n");
    let block = |lead: &str, line: &str| {
        let block = TextBlock { lead: (lead, 2), tone: None, tail: "", lines: 6 };
        look.block(&escape::terminal(line), &block)
    };
    text.push_str(&block("  ", &explained.why));
    if let Some(by) = &explained.cancelled_by {
        text.push_str(&block("  ", &format!("cancelled by {by}")));
    }
    if !explained.evidence.is_empty() {
        text.push('\n');
        text.extend(explained.evidence.iter().map(|line| block("- ", line)));
    }
    let changing: Vec<&TriedChange> = explained.tried.iter().filter(|tried| tried.changes).collect();
    if !changing.is_empty() {
        text.push_str(&format!("\n{}\n", look.paint(Tone::Bold, "What would change it, tried by replay:")));
        for tried in changing {
            let verdict = sentence(&tried.verdict);
            text.push_str(&block(
                "- ",
                &format!("{}: {} → {}: {}; {verdict}", tried.field, tried.from, tried.to, tried.verdict.kind.words()),
            ));
        }
    } else if !explained.tried.is_empty() {
        let fields: Vec<String> = explained.tried.iter().map(|tried| format!("{} {}", tried.field, tried.to)).collect();
        text.push_str(&format!("\nNo word of the document that was tried changes it: {}\n", fields.join(", ")));
    }
    if !explained.next.is_empty() {
        text.push_str(&format!("\n{}\n", look.paint(Tone::Bold, "It can continue:")));
        text.extend(explained.next.iter().map(|command| format!("  {}\n", escape::line(command))));
    }
    text
}
