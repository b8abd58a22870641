//! What a fork begins with: the first steps of a run, under its document or another one.

use crate::blob::Blob;
use crate::event::{
    CallId, Event, EventKind, Fork, Reply, RunDocument, Started, ToolResult, ToolReturned, documents_sha256,
};
use crate::model_requests::{asks, flat, no_such_iteration};
use crate::state::{Phase, State};
use crate::step::step;
use loopctl_lang::program::Program;
use loopctl_lang::program::builtin::FIND_TOOL;

use super::paired_fold::replay;
use super::restart::restarted;
use super::verdict::{ReplayKind, ReplayVerdict};

/// What is to differ from the run that is forked.
#[derive(Debug, Clone, Default)]
pub struct ForkEdit {
    /// The iteration, from 1: the steps before it are copied.
    pub iteration: u32,
    /// The reply of the model in this iteration.
    pub reply: Option<Reply>,
    /// What the calls of this iteration give, in their order; its reply is copied.
    pub results: Vec<ToolResult>,
    /// The input of the run.
    pub input: Option<serde_json::Value>,
    /// Whether another document than the run's own is given.
    pub new_document: bool,
}

/// Why a run can't be forked.
#[derive(Debug, Clone, PartialEq)]
pub enum ForkFault {
    /// In a sentence.
    Refused(String),
    /// The document decides otherwise in the steps that are copied.
    Differs(Box<ReplayVerdict>),
}

impl From<String> for ForkFault {
    fn from(why: String) -> Self {
        Self::Refused(why)
    }
}

/// The start of a fork, but for its id. `recorded` is the program of the run, `program` that of the fork.
///
/// # Errors
/// Why there can't be one.
pub fn forked(recorded: &Program, program: &Program, events: &[Event], edit: &ForkEdit) -> Result<Started, ForkFault> {
    let events = flat(events)?;
    let Some(EventKind::Started(old)) = events.first().map(|event| &event.kind) else {
        return Err("the journal does not begin with the start of the run".to_owned().into());
    };
    if recorded.is_flow() || program.is_flow() {
        return Err("it is a workflow, which has no iterations: a rerun starts it anew".to_owned().into());
    }
    if old.caller.is_some() {
        return Err("another run called it: fork that one".to_owned().into());
    }
    let (mut prefix, mut state) = prefix(recorded, &events, edit)?;
    if edit.new_document {
        let verdict = replay(recorded, program, &prefix)?;
        if !matches!(verdict.kind, ReplayKind::Same | ReplayKind::OtherPrompt) {
            return Err(ForkFault::Differs(Box::new(verdict)));
        }
    }
    let at = state.now;
    if let Some(reply) = edit.reply.clone() {
        prefix.push(Event { at, kind: EventKind::ModelReplied(reply) });
    }
    for (id, result) in calls(&state).into_iter().zip(&edit.results) {
        let returned = ToolReturned {
            attempts: Vec::new(),
            waited_ms: 0,
            call: id,
            result: result.clone(),
            duration_ms: 0,
            tokens: None,
            cost_usd: None,
            estimated: false,
            at_most: false,
            run_id: None,
        };
        prefix.push(Event { at, kind: EventKind::ToolReturned(returned) });
    }
    let mut first = prefix.remove(0);
    if let (EventKind::Started(started), Some(input)) = (&mut first.kind, &edit.input) {
        (started.input, started.lists) = (input.clone(), Vec::new());
    }
    if edit.new_document || edit.input.is_some() {
        first = restarted(program, &first)?;
    }
    let EventKind::Started(started) = first.kind else {
        return Err("the journal does not begin with the start of the run".to_owned().into());
    };
    let fork = Fork { run_id: old.run_id.clone(), iteration: edit.iteration, events: Fork::text(&prefix)? };
    let documents = program.sources.iter();
    let documents: Vec<RunDocument> = documents
        .map(|source| RunDocument { file: source.name.to_string(), text: Blob::document(source.text.to_string()) })
        .collect();
    let sha256 = Some(documents_sha256(&documents).to_string());
    let started = Started {
        documents,
        documents_sha256: sha256,
        rerun_of: None,
        delivery: None,
        callback_rights: None,
        started_by: None,
        fork: Some(fork),
        ..*started
    };
    // What can't continue is refused before it is written.
    let before = std::mem::replace(&mut state, State::new(program));
    let start =
        Event { at: events.first().map_or(at, |event| event.at), kind: EventKind::Started(Box::new(started.clone())) };
    step(program, &mut state, start).map_err(|why| why.to_string())?;
    finds_the_same(&before, &state)?;
    if let Phase::Ended(ending) = &state.phase
        && edit.reply.is_none()
    {
        let why = crate::outcome::Status::word(ending.status);
        return Err(format!("the copied steps end the run ({why}): nothing is left to do").into());
    }
    Ok(started)
}

/// Refuses a document by which the copied steps would have found other tools.
fn finds_the_same(before: &State, now: &State) -> Result<(), ForkFault> {
    let (State::Loop(one), State::Loop(other)) = (before, now) else { return Ok(()) };
    one.differing_search(other).map_or(Ok(()), |iteration| {
        Err(format!("`{FIND_TOOL}` in iteration {iteration} finds other tools by the document: fork there, or earlier")
            .into())
    })
}

/// The first events, up to where the model is asked for the reply of the iteration; with results, up to its reply.
pub(super) fn prefix(program: &Program, events: &[Event], edit: &ForkEdit) -> Result<(Vec<Event>, State), String> {
    let mut state = State::new(program);
    let wanted = edit.iteration;
    for (at, event) in events.iter().enumerate() {
        step(program, &mut state, event.clone()).map_err(|why| format!("event {at} does not fit: {why}"))?;
        let replied = state.counters.iterations == wanted;
        if asks(&state) == Some(wanted) && edit.results.is_empty() {
            return Ok((events.get(..=at).unwrap_or_default().to_vec(), state));
        }
        if replied && !edit.results.is_empty() {
            let open = calls(&state).len();
            return match &state.phase {
                Phase::Acting { .. } if open == edit.results.len() => {
                    Ok((events.get(..=at).unwrap_or_default().to_vec(), state))
                }
                Phase::Acting { .. } => {
                    Err(format!("iteration {wanted} makes {open} calls: give a JSON list with what each of them gives"))
                }
                _ => Err(format!("iteration {wanted} makes no call whose result could be replaced")),
            };
        }
    }
    let had = state.counters.iterations;
    Err(match edit.results.is_empty() {
        true => no_such_iteration(had, wanted),
        false => format!("it has {had} iterations, and none of the number {wanted}"),
    })
}

/// The calls of the turn that have not ended.
fn calls(state: &State) -> Vec<CallId> {
    let calls = state.turn().map(|turn| turn.calls.as_slice()).unwrap_or_default();
    let open = |call: &&crate::operation::Call| !matches!(call.progress, crate::operation::Progress::Done { .. });
    calls.iter().filter(open).map(|call| call.address).collect()
}
