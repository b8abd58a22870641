//! One run replayed: its verdict, as text or JSON.

use std::sync::Arc;

use serde::Serialize;

use super::{Reader, Replay, ReplayCommand};
use crate::cli::exit::Exit;
use crate::cli::failure::CommandError;
use crate::cli::output::{ListOutput, json_line};
use crate::cli::recorded_run;
use crate::cli::surface::Surface;
use crate::drive::verified_fold::Refolded;
use crate::engine::event::{Event, EventKind};
use crate::program::Program;
use crate::replay::paired_fold;
use crate::replay::verdict::{ReplayKind, ReplayVerdict};
use crate::trace::layout::TextBlock;
use crate::trace::reason::reason;
use crate::trace::units::{count, plural};
use crate::trace::{Look, Redaction, Tone, escape};

#[derive(Serialize)]
struct JsonVerdict<'a> {
    run_id: &'a str,
    #[serde(flatten)]
    verdict: &'a ReplayVerdict,
}

#[derive(Serialize)]
struct JsonRefold<'a> {
    run_id: &'a str,
    verdict: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<&'a str>,
    events: usize,
    state: String,
    requests: Vec<JsonRequest>,
}

#[derive(Serialize)]
struct JsonRequest {
    iteration: u32,
    messages: usize,
    digest: String,
}

/// Replays one run, and reports it.
pub(super) async fn perform(
    command: &ReplayCommand,
    reader: Reader,
    run: &str,
    surface: &Surface,
) -> Result<Exit, CommandError> {
    let store = reader.place.shown();
    let run = recorded_run::resolve(&**reader.engine.journal(), run, &store).await?;
    let events = reader.engine.events(&run).await.map_err(|fault| CommandError::from(fault).in_store(&store))?;
    let recorded = recorded_run::recorded(&run, &events, reader.place.project.clone())?;
    let Some(against) = &reader.against else {
        let refolded = reader.engine.refold(&recorded, &run).await?;
        return refold(command, &run, &refolded, surface);
    };
    let verdict = verdict(&recorded, against, &events).map_err(|why| not_replayed(&run, &why))?;
    match command.output {
        ListOutput::Json => surface.print(&json_line(&JsonVerdict { run_id: &run, verdict: &verdict })?)?,
        ListOutput::Human => surface.print(&human(&surface.out, &run, &verdict))?,
    }
    Ok(command.exit(&[Ok(verdict)]))
}

/// What comes of a run, whose texts then show no secret.
pub(super) fn verdict(recorded: &Arc<Program>, against: &Arc<Program>, events: &[Event]) -> Replay {
    if let Some(EventKind::Started(started)) = events.first().map(|event| &event.kind)
        && started.caller.is_some()
    {
        return Err("another run called it: replay that one".to_owned());
    }
    if recorded.is_flow() != against.is_flow() {
        let (old, new) = if recorded.is_flow() { ("workflow", "loop") } else { ("loop", "workflow") };
        return Err(format!("the run is one of a {old}, and the document is a {new}"));
    }
    let redact = Redaction::new(&against.project.redact);
    let verdict = paired_fold::replay(recorded, against, events)?;
    Ok(ReplayVerdict { why: verdict.why.map(|why| redact.text(&why).into_owned()), ..verdict })
}

pub(super) fn not_replayed(run: &str, why: &str) -> CommandError {
    CommandError::usage(format!("{run} can't be replayed: {why}"))
}

fn refold(command: &ReplayCommand, run: &str, refolded: &Refolded, surface: &Surface) -> Result<Exit, CommandError> {
    let same = refolded.differs.is_none();
    let verdict = if same { "same" } else { "differs" };
    match command.output {
        ListOutput::Json => {
            let requests = refolded.requests.iter().map(|request| JsonRequest {
                iteration: request.iteration,
                messages: request.messages,
                digest: request.digest.to_string(),
            });
            surface.print(&json_line(&JsonRefold {
                run_id: run,
                verdict,
                why: refolded.differs.as_deref(),
                events: refolded.events,
                state: refolded.state.to_string(),
                requests: requests.collect(),
            })?)?;
        }
        ListOutput::Human => {
            let look = &surface.out;
            let (tone, mark) = if same { (Tone::Good, "✓") } else { (Tone::Bad, "✗") };
            let what = format!("{}, {}", plural(refolded.events, "event"), plural(refolded.requests.len(), "request"));
            let mut text =
                format!("{} {}  {what}\n", look.paint(tone, &format!("{mark} {verdict}")), escape::line(run));
            if let Some(why) = &refolded.differs {
                text.push_str(&format!("  {}\n", escape::line(why)));
            }
            text.push_str(&look.paint(Tone::Dim, &format!("  state {}", refolded.state)));
            text.push('\n');
            surface.print(&text)?;
        }
    }
    Ok(if same { Exit::Completed } else { Exit::Failed })
}

pub(super) fn tone(kind: ReplayKind) -> Tone {
    match kind {
        ReplayKind::Same => Tone::Good,
        ReplayKind::OtherPrompt | ReplayKind::GoesOn => Tone::Warn,
        ReplayKind::RefusedNow | ReplayKind::EndsEarlier | ReplayKind::OtherEnding => Tone::Bad,
    }
}

fn human(look: &Look, run: &str, verdict: &ReplayVerdict) -> String {
    let mut text = format!("{}  {}\n", look.paint(tone(verdict.kind), verdict.kind.words()), escape::line(run));
    let why = sentence(verdict);
    if !why.is_empty() {
        let block = TextBlock { lead: ("  ", 2), tone: None, tail: "", lines: 12 };
        text.push_str(&look.block(&escape::line(&why), &block));
    }
    let until =
        format!("  {} compared, {} tokens until there\n", plural(verdict.events, "event"), count(verdict.tokens));
    text.push_str(&look.paint(Tone::Dim, until.trim_end_matches('\n')));
    text.push('\n');
    text
}

/// What differs, and where, in a line that is not yet escaped.
pub fn sentence(verdict: &ReplayVerdict) -> String {
    let mut parts = Vec::new();
    match (&verdict.at, verdict.iteration) {
        (Some(at), _) => parts.push(format!("step {at}:")),
        (None, Some(0)) => parts.push("at the start:".to_owned()),
        (None, Some(iteration)) => parts.push(format!("iteration {iteration}:")),
        (None, None) => {}
    }
    parts.extend(verdict.action.as_ref().map(|action| format!("{action}:")));
    // A reason may be a list, a line each.
    parts.extend(verdict.why.as_ref().map(|why| why.replace("\n- ", " ").replace('\n', " ")));
    let mut sentence = parts.join(" ");
    if let Some(termination) = verdict.termination {
        sentence.push_str(&format!(" ({})", reason(termination)));
    } else if let Some(limit) = verdict.limit {
        sentence.push_str(&format!(" ({})", reason(limit.into())));
    }
    sentence
}
