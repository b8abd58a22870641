//! Writes runs of a store as lines of a file, each with the runs that it called. Secrets are hidden, unless they are asked
//! for: what is written then comes to the same end, or the run is refused.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use serde_json::value::RawValue;

use super::fault::Fault;
use super::fold;
use super::run_file::{FORMAT, FileEnd, FileHead, RunHeadLine, RunLine, RunLineWriter};
use crate::journal::{Journal, RunFilter, RunSummary, StoreError};
use loopctl_engine::blob::Blob;
use loopctl_engine::digest::{Digest, Sha256};
use loopctl_engine::event::{Event, EventKind};
use loopctl_engine::state::State;
use loopctl_lang::diagnostic::Source;
use loopctl_lang::policy::json_text;
use loopctl_lang::policy::redact::Redaction;
use loopctl_lang::program::Program;

/// The number of runs that are listed at a time.
const PAGE: usize = 200;

/// Why runs are not written.
#[derive(Debug, thiserror::Error)]
pub enum ExportFault {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A run can't be read.
    #[error(transparent)]
    Run(#[from] Fault),
    /// A sentence that says what to do.
    #[error("{0}")]
    Refused(String),
    /// A run comes to something else without its secrets.
    #[error("run {0} comes to something else without its secrets: a value that is hidden decides what happens in it")]
    SecretDecides(String),
    /// The lines can't be written.
    #[error("{0}")]
    Write(std::io::Error),
}

/// Runs that are to be written.
pub struct Export {
    /// Where they are.
    pub journal: Arc<dyn Journal>,
    /// The project file, for runs whose documents need it.
    pub project: Option<Source>,
    /// Whether secrets are hidden.
    pub redacted: bool,
}

/// A function that takes a line.
pub type LineSink<'s> = dyn FnMut(&str) -> std::io::Result<()> + 's;

/// A run as it is written.
struct WrittenRun {
    events: Vec<String>,
    texts: Vec<Blob>,
    /// Whether a value of it is hidden.
    hides: bool,
}

impl Export {
    /// Writes these runs, with those that they called; returns how many all are.
    ///
    /// # Errors
    /// When a run can't be read, was called by another one, or comes to something else without its secrets; and when the
    /// store or the file fails.
    pub async fn write(&self, run_ids: &[String], sink: &mut LineSink<'_>) -> Result<u64, ExportFault> {
        let mut to = LineTarget { writer: RunLineWriter::default(), sink };
        let loopctl = env!("CARGO_PKG_VERSION").to_owned();
        to.put(&RunLine::Runs(FileHead { format: FORMAT, loopctl, redacted: self.redacted }))?;
        let mut runs = 0;
        for run_id in run_ids {
            let run = self.journal.find(run_id).await?.ok_or_else(|| StoreError::NoSuchRun(run_id.clone()))?;
            if let Some(caller) = &run.parent_run_id {
                let why = format!("run {run_id} was called by run {caller}: export that one, and it comes along");
                return Err(ExportFault::Refused(why));
            }
            self.write_run(&run, &mut to).await?;
            runs += 1;
            let mut after = None;
            loop {
                let filter = RunFilter {
                    id_prefix: Some(format!("{run_id}.")),
                    called: true,
                    oldest_first: true,
                    limit: PAGE,
                    after: after.take(),
                    ..RunFilter::default()
                };
                let page = self.journal.list(filter).await?;
                let Some(last) = page.last().map(|run| run.run_id.clone()) else { break };
                for called in page.iter().filter(|called| called.parent_run_id.is_some()) {
                    self.write_run(called, &mut to).await?;
                    runs += 1;
                }
                after = Some(last);
            }
        }
        to.put(&RunLine::End(FileEnd { runs }))?;
        Ok(runs)
    }

    async fn write_run(&self, run: &RunSummary, to: &mut LineTarget<'_, '_>) -> Result<(), ExportFault> {
        if let Some(why) = &run.damaged {
            return Err(ExportFault::Refused(format!("run {} can't be read: {why}", run.run_id)));
        }
        run.is_whole()?;
        let (events, texts) = (self.journal.read(&run.run_id).await?, self.journal.texts(&run.run_id).await?);
        let mut written = self.written(&run.run_id, events, texts)?;
        // A store gives them in no order, and two files of one run are the same.
        written.texts.sort_unstable_by_key(|text| *text.sha256().bytes());
        let count = |number: usize| u64::try_from(number).unwrap_or(u64::MAX);
        to.put(&RunLine::Run(Box::new(RunHeadLine {
            run_id: run.run_id.clone(),
            called_by: run.parent_run_id.clone(),
            org: run.org.clone(),
            identity: run.original_identity().to_owned(),
            hidden: written.hides || run.has_hidden_values(),
            texts: count(written.texts.len()),
            events: count(written.events.len()),
        })))?;
        for text in written.texts {
            to.put(&RunLine::Text((*text).to_owned()))?;
        }
        for event in written.events {
            let event = RawValue::from_string(event).map_err(|error| ExportFault::Refused(error.to_string()))?;
            to.put(&RunLine::Event(event))?;
        }
        Ok(())
    }

    /// What is written of a run.
    fn written(&self, run_id: &str, events: Vec<String>, texts: Vec<Blob>) -> Result<WrittenRun, ExportFault> {
        let (program, state) = folded(run_id, &events, &texts, self.project.clone())?;
        if !self.redacted {
            return Ok(WrittenRun { events, texts, hides: false });
        }
        let redact = Redaction::new(&program.project.redact);
        let documents = documents(&fold::events(run_id, &events, &texts)?);
        let (mut hidden, mut names) = (Vec::new(), BTreeMap::new());
        for text in texts {
            // A run is bound to the text of its documents, which hold no secrets.
            let shown = if documents.contains(&text.sha256()) { None } else { hidden_text(&text, &redact) };
            let shown = shown.map(Blob::new).inspect(|shown| {
                for old in [text.name().to_string(), Digest::of(&text).to_string()] {
                    names.insert(old, shown.name().to_string());
                }
            });
            hidden.push(shown.unwrap_or(text));
        }
        let stored = events;
        let events: Vec<String> = stored.iter().map(|event| hidden_event(event, &redact, &names)).collect();
        let hides = !names.is_empty() || events != stored;
        // What is hidden may have decided what happened: then the events do not fit each other any more.
        let is_same = folded(run_id, &events, &hidden, self.project.clone())
            .is_ok_and(|(_, without)| summary(&without) == summary(&state));
        if !is_same {
            return Err(ExportFault::SecretDecides(run_id.to_owned()));
        }
        Ok(WrittenRun { events, texts: hidden, hides })
    }
}

/// Where lines go.
struct LineTarget<'t, 's> {
    writer: RunLineWriter,
    sink: &'t mut LineSink<'s>,
}

impl LineTarget<'_, '_> {
    fn put(&mut self, line: &RunLine) -> Result<(), ExportFault> {
        let line = self.writer.line(line).map_err(|error| ExportFault::Refused(error.to_string()))?;
        (self.sink)(&line).map_err(ExportFault::Write)
    }
}

/// The program and the state that events come to.
///
/// # Errors
/// When they can't be read, or do not fit together.
pub(super) fn folded(
    run_id: &str,
    events: &[String],
    texts: &[Blob],
    project: Option<Source>,
) -> Result<(Arc<Program>, State), Fault> {
    let events: Vec<Event> = fold::events(run_id, events, texts)?;
    let program = fold::recorded(&fold::texts(run_id, &events, project)?)?;
    let state = fold::fold(&program, run_id, events)?;
    Ok((program, state))
}

/// What a run came to, without what it said.
fn summary(state: &State) -> impl PartialEq + use<> {
    let phase = std::mem::discriminant(&state.phase);
    let tokens = state.counters.tokens;
    (phase, state.status(), state.counters.iterations, tokens.input, tokens.output, state.decisions.len(), state.pauses)
}

/// The texts of the documents that a run ever followed.
fn documents(events: &[Event]) -> HashSet<Sha256> {
    let of = |event: &Event| match &event.kind {
        EventKind::Started(started) => started.documents.iter().map(|document| document.text.sha256()).collect(),
        EventKind::NewDocument(documents) => documents.iter().map(|document| document.text.sha256()).collect(),
        _ => Vec::new(),
    };
    events.iter().flat_map(of).collect()
}

/// A text without its secrets; none when it has none. The long lists of an input, and the events of a fork, are a line of
/// JSON each.
fn hidden_text(text: &str, redact: &Redaction) -> Option<String> {
    let whole = redact.text(text);
    let shown: String = match *whole == *text {
        true => text.split('\n').map(|line| redact.text(line)).collect::<Vec<_>>().join("\n"),
        false => whole.into_owned(),
    };
    (shown != text).then_some(shown)
}

/// An event without its secrets, that names its texts as they are now.
fn hidden_event(event: &str, redact: &Redaction, names: &BTreeMap<String, String>) -> String {
    let Ok(value) = json_text::unchecked(event) else { return event.to_owned() };
    let shown = redact.value(&value);
    let mut text = if shown == value { event.to_owned() } else { shown.to_string() };
    for (old, new) in names {
        text = text.replace(old, new);
    }
    text
}
