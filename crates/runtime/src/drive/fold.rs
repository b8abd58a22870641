//! The fold: computes a run's state from its journal, the same way that live events take.

use std::sync::Arc;

use serde_json::Value;

use loopctl_engine::blob::Blob;
use loopctl_engine::event::{Event, EventKind, RunDocument};
use loopctl_engine::flow::view::StepLog;
use loopctl_engine::state::{Phase, State};
use loopctl_engine::step::{Refused, step};
use loopctl_lang::compile::embedded_tools;
use loopctl_lang::compile::locked_tools::LockedTools;
use loopctl_lang::compile::{Texts, compile};
use loopctl_lang::diagnostic::{Diagnostic, Source};
use loopctl_lang::policy::json_text;
use loopctl_lang::program::Program;

use super::fault::Fault;

/// The events of a journal, with the long texts that they name.
///
/// # Errors
/// When one is no event, or names a text that is not there.
pub fn events(run_id: &str, events: &[String], texts: &[Blob]) -> Result<Vec<Event>, Fault> {
    events
        .iter()
        .enumerate()
        .map(|(at, event)| {
            let fault = |why: String| Fault::Journal { run: run_id.to_owned(), reason: format!("event {at}: {why}") };
            let mut event = Event::read(event).map_err(|why| fault(why.to_string()))?;
            event.kind.put_back(texts).map_err(|why| fault(why.to_string()))?;
            Ok(event)
        })
        .collect()
}

/// The state after these events.
///
/// # Errors
/// When an event does not fit: the journal is damaged, or the document is not the run's.
pub fn fold(program: &Program, run_id: &str, events: Vec<Event>) -> Result<State, Fault> {
    logged(program, run_id, events, &mut StepLog::default())
}

/// The same, with what the events say of the steps at an address.
///
/// # Errors
/// As [`fold`].
pub fn logged(program: &Program, run_id: &str, events: Vec<Event>, log: &mut StepLog) -> Result<State, Fault> {
    seen(program, run_id, events, |state| log.take(state))
}

/// The state of a run, of which `see` sees each state on the way.
///
/// # Errors
/// As [`fold`].
pub fn seen(program: &Program, run_id: &str, events: Vec<Event>, mut see: impl FnMut(&State)) -> Result<State, Fault> {
    let mut state = State::new(program);
    for (at, event) in events.into_iter().enumerate() {
        step(program, &mut state, event).map_err(|refused| does_not_fit(run_id, at, &refused))?;
        see(&state);
    }
    Ok(state)
}

/// The fault of a journal of which an event does not fit.
pub(super) fn does_not_fit(run_id: &str, at: usize, refused: &Refused) -> Fault {
    Fault::Journal { run: run_id.to_owned(), reason: format!("event {at}{UNFIT}{refused}") }
}

/// Between the number of an event and why it does not fit.
const UNFIT: &str = " does not fit: ";

/// The state of a run under a document that is new to it.
///
/// # Errors
/// When earlier events do not fit the new document, or would have ended the run. `had_ended`: it has ended by its former one;
/// `reopens`: a failed step or a limit is dealt with, so that it may continue.
pub fn adoptable(folded: Result<State, Fault>, had_ended: bool, reopens: bool) -> Result<State, Fault> {
    let refused = |why: String| {
        Fault::refused(format!("the run can't go on with the new document: {why}; put the old text back"))
    };
    let has_ended = folded.as_ref().is_ok_and(|state| matches!(state.phase, Phase::Ended(_)));
    match folded {
        Ok(_) if has_ended && had_ended && !reopens => Err(Fault::refused(
            "the run has ended: it continues with a new document when what failed is retried with it, or the limit is raised \
             that ended it"
                .to_owned(),
        )),
        Ok(_) if has_ended && !reopens => Err(refused("by it, the run has ended already".to_owned())),
        Err(Fault::Journal { reason, .. }) => {
            let why = reason.split_once(UNFIT).map_or(reason.as_str(), |(_, why)| why);
            Err(refused(format!(
                "by it, the run would not have come to where it is ({why}). What its calls and replies depended on stays as it was; \
                 what follows may be changed"
            )))
        }
        other => other,
    }
}

/// From this size on, in bytes, an event text takes no more memory than it needs.
const LARGE: usize = 64 << 10;

/// The text of an event in the journal.
pub(super) fn written(event: &Event) -> Result<String, Fault> {
    let refused = |error: &dyn std::fmt::Display| Fault::refused(format!("the event can't be written: {error}"));
    // Most events fit into this capacity.
    let mut bytes = Vec::with_capacity(1000);
    serde_json::to_writer(&mut bytes, event).map_err(|error| refused(&error))?;
    if bytes.len() > LARGE {
        // It grew by doubling.
        bytes.shrink_to_fit();
    }
    String::from_utf8(bytes).map_err(|error| refused(&error))
}

/// The documents that define a run: those that it started with, or those that replaced them since.
pub fn documents(events: &[Event]) -> Option<&[RunDocument]> {
    events.iter().rev().find_map(|event| match &event.kind {
        EventKind::Started(started) => Some(started.documents.as_slice()),
        EventKind::NewDocument(documents) => Some(documents.as_slice()),
        _ => None,
    })
}

/// The documents that define a run, as its journal holds them.
///
/// # Errors
/// When the journal has no document.
pub fn texts(run_id: &str, events: &[Event], project: Option<Source>) -> Result<Texts, Fault> {
    let source = |document: &RunDocument| Source::new(document.file.as_str(), Arc::clone(document.text.shared()));
    let mut sources: Vec<Source> = documents(events).unwrap_or_default().iter().map(source).collect();
    let locked = LockedTools::recorded(&mut sources);
    let embedded = embedded_tools::recorded(&mut sources);
    let mut sources = sources.into_iter();
    match sources.next() {
        Some(main) => {
            let step = step_of(events);
            Ok(Texts { project, extra_actions: sources.collect(), locked, embedded, step, ..Texts::new(main) })
        }
        None => Err(Fault::Journal { run: run_id.to_owned(), reason: "it holds no document".to_owned() }),
    }
}

/// The program of the documents in a journal. The rules checked them when the run began; they do not apply
/// here, because they may be newer and do not know the project.
///
/// # Errors
/// When this version can't compile it.
pub fn recorded(texts: &Texts) -> Result<Arc<Program>, Fault> {
    let compiled = compile(texts);
    let program = match &texts.step {
        Some(address) => compiled.step(address),
        None => compiled.program,
    };
    program.ok_or_else(|| {
        if compiled.diagnostics.iter().any(Diagnostic::is_error) {
            return Fault::Diagnostics(compiled.diagnostics);
        }
        // Nothing is refused without a word.
        let reason = "its documents can't be read here: the project file may not be that of the run".to_owned();
        Fault::Journal { run: texts.main.name.to_string(), reason }
    })
}

/// The address of the step that a run is, if it is the run of a step that is written in the documents of the run.
pub fn step_of(events: &[Event]) -> Option<String> {
    match &events.first()?.kind {
        EventKind::Started(started) => started.caller.as_ref().filter(|caller| !caller.by_name)?.at.clone(),
        _ => None,
    }
}

/// Whether two texts of a document mean the same for a run: white space, `$schema` and the description of the loop itself
/// mean nothing for it. The description of another loop, and that of an action, is read by the model.
fn means_the_same(one: &str, other: &str, is_main: bool) -> bool {
    let meaning = |text: &str| {
        let mut value: Value = json_text::read(text).ok()?;
        if let Some(members) = value.as_object_mut() {
            members.remove("$schema");
            if is_main {
                members.remove("description");
            }
        }
        Some(value)
    };
    one == other || meaning(one).is_some_and(|one| Some(one) == meaning(other))
}

/// Whether the program was compiled from the documents of the run, or from ones that mean the same.
///
/// # Errors
/// The name of the first file that differs.
pub fn same_document(program: &Program, events: &[Event]) -> Result<(), Fault> {
    let Some(documents) = documents(events) else { return Ok(()) };
    // The journals of earlier versions keep no tools of the program.
    let keeps_tools = documents.iter().any(|document| embedded_tools::is_recorded(&document.text));
    let is_compared = |source: &&Source| keeps_tools || !embedded_tools::is_recorded(&source.text);
    let sources: Vec<&Source> = program.sources.iter().filter(is_compared).collect();
    let same = |at: usize, source: &Source| {
        documents.get(at).is_some_and(|document| means_the_same(&document.text, &source.text, at == 0))
    };
    for (at, source) in sources.iter().enumerate() {
        if !same(at, source) {
            return Err(Fault::Changed { file: source.name.to_string() });
        }
    }
    match documents.get(sources.len()) {
        Some(gone) => Err(Fault::Changed { file: gone.file.clone() }),
        None => Ok(()),
    }
}
