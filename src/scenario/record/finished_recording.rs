//! Finishes a recording: plays it once, which shows whether it ends as the run did, and writes what models are asked.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use super::hidden_secrets::{self, HiddenCount};
use super::{RunJournals, extracted};
use crate::check::scenario::endings::programs;
use crate::drive::model::recording::RecordedPlayer;
use crate::drive::stage::StagePlan;
use crate::engine::event::{EDITION, EventKind};
use crate::language::recording::{Recording, RecordingEntry};
use crate::policy::word::written;
use crate::program::{Program, ToolKind};
use crate::scenario::play::{Play, PlayError, moment_ms};
use crate::scenario::story::{Journals, RunStory};
use crate::trace::Redaction;
use crate::trace::json::laid_out;

/// The columns of JSON in a recording.
const JSON_COLUMNS: usize = 120;

/// A recording that can be played.
pub struct FinishedRecording {
    pub recording: Recording,
    /// What was hidden in it.
    pub hidden: HiddenCount,
    /// The story of the run that plays it.
    pub story: RunStory,
    /// The tools that the document declares, without those of the engine.
    pub tools: BTreeSet<String>,
}

/// The recording of a run of this store, with what models are asked when it is played.
///
/// # Errors
/// Why the run can't be recorded, in a sentence without a final stop.
pub fn recorded(journals: &RunJournals<'_>, root: &Path) -> Result<FinishedRecording, String> {
    let redact = Redaction::new(&journals.program.project.redact);
    let mut recording = extracted(journals)?;
    let hidden = hidden_secrets::hide(&mut recording, &redact);
    let player = Arc::new(RecordedPlayer::new(&recording, journals.run_id));
    let decisions = recording.decisions();
    let play = Play {
        program: journals.program,
        run_id: journals.run_id,
        root,
        plan: StagePlan { recorded: Some(Arc::clone(&player)), ..StagePlan::default() },
        input: Some(recording.input.clone()),
        start_ms: moment_ms(&recording.now),
        decisions: &decisions,
        is_left_waiting: false,
        host: None,
        crash: None,
        #[cfg(test)]
        stores_late: false,
    };
    let played = play.perform();
    if let Some(fault) = played.faults.first() {
        return Err(match fault {
            PlayError::Run(why) | PlayError::Decision(_, why) => format!("it can't be played: {why}"),
            PlayError::UnusedDecisions(_) if was_retried(journals) => {
                "it was retried, and a play ends where it failed first".to_owned()
            }
            PlayError::UnusedDecisions(_) => "not all its decisions are needed when it is played".to_owned(),
        });
    }
    let story = played.story.ok_or("it can't be played: it does not start")?;
    let of_run = Journals { program: journals.program, run_id: journals.run_id, events: journals.events };
    let before = RunStory::new(&of_run, &[], Vec::new())?;
    if let Some(why) = differs(&before, &story) {
        let older = if is_older(journals) {
            ". The run was started by an older version of loopctl, which decided some things otherwise, and a recording is \
             played by this one"
        } else {
            ""
        };
        return Err(format!("it does not come out alike when it is played: {why}{older}"));
    }
    let recording = with_requests(&recording, &player, journals.program);
    let declared = programs(journals.program).into_iter().flat_map(Program::all_tools);
    let declared = declared.filter(|tool| !matches!(tool.kind, ToolKind::Builtin(_)));
    let tools = declared.map(|tool| tool.name.clone()).collect();
    Ok(FinishedRecording { recording, hidden, story, tools })
}

/// Whether a human had the run try again after it had failed.
fn was_retried(journals: &RunJournals<'_>) -> bool {
    let events = journals.events.get(journals.run_id).into_iter().flatten();
    events.into_iter().any(|event| matches!(event.kind, EventKind::Retried(_)))
}

/// Whether the engine decided some things otherwise when the run was started.
fn is_older(journals: &RunJournals<'_>) -> bool {
    let mut events = journals.events.get(journals.run_id).into_iter().flatten();
    events.any(|event| matches!(&event.kind, EventKind::Started(started) if started.edition < EDITION))
}

/// What is otherwise in the run that plays a recording.
fn differs(before: &RunStory, after: &RunStory) -> Option<String> {
    let end = |story: &RunStory| {
        let why = written(&story.result.termination).unwrap_or_default();
        format!("{} ({why})", story.result.status.word())
    };
    let (was, is) = (end(before), end(after));
    if was != is {
        return Some(format!("the run is {is} and not {was}"));
    }
    let made = |story: &RunStory| -> Vec<String> {
        story.made().filter_map(|call| call.action.clone()).collect::<BTreeSet<_>>().into_iter().collect()
    };
    let (was, is) = (made(before), made(after));
    (was != is).then(|| format!("it calls {} and not {}", is.join(", "), was.join(", ")))
}

/// A recording with what models are asked when it is played, under a program.
pub fn with_requests(recording: &Recording, player: &RecordedPlayer, program: &Program) -> Recording {
    let redact = Redaction::new(&program.project.redact);
    let mut recording = recording.clone();
    let asked = player.asked();
    let mut places: BTreeMap<String, usize> = BTreeMap::new();
    let mut used = BTreeSet::new();
    for entry in &mut recording.entries {
        let RecordingEntry::Ask(ask) = entry else { continue };
        let place = places.entry(ask.ask.run.clone()).or_default();
        if let Some(digest) = asked.get(&(ask.ask.run.clone(), *place)) {
            ask.ask = digest.clone();
        }
        *place += 1;
        used.extend(ask.ask.messages.iter().cloned());
    }
    let texts = player.texts().into_iter().filter(|(digest, _)| used.contains(digest));
    let lines = |text: &str| hidden_secrets::shown(text, &redact).split('\n').map(str::to_owned).collect();
    recording.texts = texts.map(|(digest, text)| (digest, lines(&text))).collect();
    recording.document = super::document_digest(program);
    recording
}

/// The text of a recording's file.
pub fn text(recording: &Recording) -> String {
    let value = serde_json::to_value(recording).unwrap_or_default();
    format!("{}\n", laid_out(&value, JSON_COLUMNS))
}
