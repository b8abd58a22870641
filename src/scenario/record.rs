//! Makes a recording of a run from its journal: what models said, what tools gave, and what humans decided.

mod decisions;
pub mod finished_recording;
pub mod hidden_secrets;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;

use self::decisions::{DatedDecision, decisions, happened};
use crate::engine::address::StepAddress;
use crate::engine::digest::Digest;
use crate::engine::event::{
    CallId, Event, EventKind, FailedAttempt, Finish, ModelFault, Reply, Tokens, ToolFault, ToolResult,
};
use crate::engine::state::State;
use crate::engine::step::step;
use crate::engine::timestamp::rfc3339;
use crate::language::recording::{
    AskDigest, CalledTool, FailedCall, RawReasoning, RecordedAsk, RecordedCall, RecordedDecision, RecordedFailure,
    RecordedReply, RecordedSaidCall, RecordedTokens, Recording, RecordingEntry,
};
use crate::policy::word::written;
use crate::program::Program;

/// A run with its sub-runs, as a store has them.
pub struct RunJournals<'a> {
    /// The program that the run started with.
    pub program: &'a Arc<Program>,
    pub run_id: &'a str,
    /// The events of all its runs, by id.
    pub events: &'a BTreeMap<String, Vec<Event>>,
    /// Whether reasoning is kept as providers want it back.
    pub is_raw: bool,
}

/// Collects the entries of a recording.
struct EntryCollector<'a> {
    journals: &'a RunJournals<'a>,
    entries: Vec<RecordingEntry>,
    decisions: Vec<DatedDecision>,
    known: BTreeSet<String>,
}

/// The recording of a run, with everything that was said in it. What the models were asked is not in it yet.
///
/// # Errors
/// Why the run can't be played, in a sentence without a final stop.
pub fn extracted(journals: &RunJournals<'_>) -> Result<Recording, String> {
    let program = journals.program;
    let first = journals.events.get(journals.run_id).and_then(|events| events.first());
    let Some(Event { at, kind: EventKind::Started(started) }) = first else {
        return Err("its journal does not begin with the start of the run".to_owned());
    };
    let mut collector = EntryCollector { journals, entries: Vec::new(), decisions: Vec::new(), known: BTreeSet::new() };
    collector.run(program, journals.run_id)?;
    let EntryCollector { mut entries, mut decisions, .. } = collector;
    decisions.sort_by_key(|dated| dated.wall_ms);
    let decided = decisions.into_iter().map(|dated| RecordedDecision { decision: dated.decision });
    entries.extend(decided.map(RecordingEntry::Decision));
    Ok(Recording {
        schema: None,
        recording: Recording::VERSION,
        document: document_digest(program),
        loop_name: program.name.clone(),
        run_id: Some(journals.run_id.to_owned()),
        dialect: program.as_loop().map(|program| program.properties.dialect),
        now: rfc3339(at.wall_ms),
        input: started.given_input(),
        entries,
        texts: BTreeMap::new(),
    })
}

/// The digest of the documents that a program was compiled from.
pub fn document_digest(program: &Program) -> String {
    let mut digest = Digest::new();
    program.sources.iter().for_each(|source| digest.add(&source.text));
    digest.to_string().chars().take(16).collect()
}

impl EntryCollector<'_> {
    /// Collects the entries of a run, and those of its sub-runs before the calls that they are.
    fn run(&mut self, program: &Arc<Program>, run_id: &str) -> Result<(), String> {
        let events = self.journals.events.get(run_id).map(Vec::as_slice).unwrap_or_default();
        let path = run_id.strip_prefix(self.journals.run_id).unwrap_or(run_id).trim_start_matches('.').to_owned();
        let mut state = State::new(program);
        for (at, event) in events.iter().enumerate() {
            if let Some((below, run_id)) = sub_run(program, &state, &event.kind)
                && self.known.insert(run_id.clone())
            {
                self.run(&below, &run_id)?;
            }
            let of = RunOf { program, path: &path, is_root: run_id == self.journals.run_id };
            self.event(&of, &state, event)?;
            step(program, &mut state, event.clone())
                .map_err(|refused| format!("event {at} of run {run_id} does not fit: {refused}"))?;
        }
        Ok(())
    }

    fn event(&mut self, of: &RunOf<'_>, state: &State, event: &Event) -> Result<(), String> {
        match &event.kind {
            EventKind::ModelReplied(reply) | EventKind::Summarized(reply) => self.replied(of, reply),
            // One that was given up is the silence before the deadline.
            EventKind::AttemptsFailed(attempts) => {
                let followed = attempts.iter().position(FailedAttempt::is_given_up).unwrap_or(attempts.len());
                self.attempts(of, attempts.get(..followed).unwrap_or_default(), true);
            }
            EventKind::DeadlinePassed if !of.program.is_flow() && state.turn().is_none() => {
                self.ask(of, RecordedAsk::default());
            }
            EventKind::ModelFailed(fault) => self.failed(of, fault),
            EventKind::ToolReturned(returned) => {
                let usage = used(returned.tokens, returned.cost_usd);
                let made = MadeCall { usage, took_ms: returned.duration_ms, ..of_call(state, returned.call) };
                self.call(of, made, &returned.result);
            }
            // What came of a lost call is what a human says of it.
            EventKind::ToolRetried(retried) if !retried.lost => {
                let made = MadeCall { took_ms: retried.duration_ms, ..of_call(state, retried.call) };
                self.call(of, made, &ToolResult::Failed(retried.error.clone()));
            }
            EventKind::StepReturned(returned) => {
                let usage = used(returned.tokens, returned.cost_usd);
                let made = MadeCall { usage, took_ms: returned.duration_ms, ..of_step(state, &returned.at) };
                self.call(of, made, &returned.result);
            }
            EventKind::StepRetried(retried) if !retried.lost => {
                let made = MadeCall { took_ms: retried.duration_ms, ..of_step(state, &retried.at) };
                self.call(of, made, &ToolResult::Failed(retried.error.clone()));
            }
            // It is played as the server gave it.
            EventKind::ToolAsks(asked) => {
                self.call(of, of_call(state, asked.call), &ToolResult::Ok(asked.asks.as_result()));
            }
            EventKind::StepAsks(asked) => {
                self.call(of, of_step(state, &asked.at), &ToolResult::Ok(asked.asks.as_result()));
            }
            EventKind::LimitsRaised(_) => return Err("its limits were raised while it ran".to_owned()),
            EventKind::NewDocument(_) => return Err("it continued with an edited document".to_owned()),
            EventKind::Cancelled(_) => return Err("it was cancelled, and nobody cancels a scenario".to_owned()),
            _ => {}
        }
        if let Some((made, result)) = happened(state, &event.kind) {
            self.call(of, made, &result);
        }
        self.decisions.extend(decisions(state, event, of.is_root));
        Ok(())
    }

    fn ask(&mut self, of: &RunOf<'_>, recorded: RecordedAsk) {
        let ask = AskDigest { run: of.path.to_owned(), ..AskDigest::default() };
        self.entries.push(RecordingEntry::Ask(RecordedAsk { ask, ..recorded }));
    }

    fn replied(&mut self, of: &RunOf<'_>, reply: &Reply) {
        self.attempts(of, &reply.attempts, true);
        let waited: u64 = reply.attempts.iter().map(|attempt| attempt.delay_ms).sum();
        let reasoning = reply.reasoning.as_deref();
        let raw = reasoning.filter(|reasoning| self.journals.is_raw && !reasoning.sealed.is_empty());
        let finish = match reply.finish {
            Finish::Stop => None,
            Finish::Length => Some("length".to_owned()),
            Finish::Filtered => Some("filtered".to_owned()),
        };
        let calls = reply.calls.iter().map(|call| RecordedSaidCall {
            id: call.id.clone(),
            name: call.name.clone(),
            arguments: call.arguments.clone(),
        });
        let said = RecordedReply {
            text: reply.text.clone(),
            calls: calls.collect(),
            reasoning: reasoning.map(|reasoning| reasoning.text.clone()).unwrap_or_default(),
            raw: raw.map(|raw| RawReasoning { origin: raw.origin.clone(), sealed: raw.sealed.clone() }),
            finish,
            refusal: reply.refusal.as_deref().filter(|words| !words.is_empty()).map(str::to_owned),
            usage: used(reply.usage, None),
        };
        let took_ms = reply.duration_ms.saturating_sub(waited);
        self.ask(of, RecordedAsk { reply: Some(said), took_ms, ..RecordedAsk::default() });
    }

    /// Requests that failed. Behind the last one, the model was asked once more if `is_followed`.
    fn attempts(&mut self, of: &RunOf<'_>, attempts: &[FailedAttempt], is_followed: bool) {
        for (at, attempt) in attempts.iter().enumerate() {
            let next = attempts.get(at + 1);
            // A failure that lasts hands over to the next model at once.
            let same = next.is_some_and(|next| next.model == attempt.model) || next.is_none() && is_followed;
            let failure = RecordedFailure {
                code: "model_unreachable".to_owned(),
                message: attempt.reason.clone(),
                retryable: same,
                usage: used(attempt.usage, None),
                ..RecordedFailure::default()
            };
            self.ask(of, RecordedAsk { failed: Some(failure), ..RecordedAsk::default() });
        }
    }

    fn failed(&mut self, of: &RunOf<'_>, fault: &ModelFault) {
        let earlier = fault.failed.len().saturating_sub(1);
        self.attempts(of, fault.failed.get(..earlier).unwrap_or_default(), true);
        let last = fault.failed.last();
        let failure = RecordedFailure {
            code: written(&fault.code).unwrap_or_default(),
            message: last.map_or_else(|| fault.message.clone(), |last| last.reason.clone()),
            retryable: fault.retryable,
            window: fault.window,
            prompt_tokens: fault.prompt_tokens,
            usage: used(last.and_then(|last| last.usage), None),
        };
        self.ask(of, RecordedAsk { failed: Some(failure), ..RecordedAsk::default() });
    }

    /// A call that is no sub-run: those are played.
    fn call(&mut self, of: &RunOf<'_>, made: MadeCall, result: &ToolResult) {
        if made.is_subrun {
            return;
        }
        let call = CalledTool { run: of.path.to_owned(), at: made.at, action: made.action, input: made.input };
        let (gave, failed) = match result {
            ToolResult::Ok(value) => (Some(value.clone()), None),
            ToolResult::Failed(ToolFault { class, detail, answer }) => {
                (None, Some(FailedCall { class: class.clone(), detail: detail.clone(), answer: answer.clone() }))
            }
        };
        let MadeCall { usage, took_ms, .. } = made;
        self.entries.push(RecordingEntry::Call(RecordedCall { call, gave, failed, usage, took_ms }));
    }
}

/// The run that an event is of.
struct RunOf<'a> {
    program: &'a Program,
    path: &'a str,
    is_root: bool,
}

/// A call that was made.
#[derive(Default)]
struct MadeCall {
    at: String,
    action: String,
    input: Value,
    is_subrun: bool,
    usage: Option<RecordedTokens>,
    took_ms: u64,
}

fn of_call(state: &State, id: CallId) -> MadeCall {
    let call = state.call(id);
    MadeCall {
        at: id.to_string(),
        action: call.map(|call| call.name.clone()).unwrap_or_default(),
        input: call.map(|call| Value::clone(&call.input)).unwrap_or_default(),
        is_subrun: call.is_some_and(|call| call.is_subrun || call.run_id.is_some()),
        ..MadeCall::default()
    }
}

fn of_step(state: &State, at: &str) -> MadeCall {
    let open = state.open_step(&StepAddress::new(at));
    MadeCall {
        at: at.to_owned(),
        action: open.map(|open| open.name.clone()).unwrap_or_default(),
        input: open.map(|open| Value::clone(&open.input)).unwrap_or_default(),
        is_subrun: open.is_some_and(|open| open.run_id.is_some()),
        ..MadeCall::default()
    }
}

/// The run below that an event is about, and its program.
fn sub_run(program: &Program, state: &State, event: &EventKind) -> Option<(Arc<Program>, String)> {
    let of_call = |call: CallId| {
        let tool = program.tool(&state.call(call)?.name)?;
        tool.called_loop().or(tool.launched()).cloned()
    };
    let of_step = |at: &str| program.as_flow()?.step_at(at)?.called().cloned();
    match event {
        EventKind::ToolReturned(returned) => Some((of_call(returned.call)?, returned.run_id.clone()?)),
        EventKind::ToolPaused(paused) => Some((of_call(paused.call)?, paused.run_id.clone())),
        EventKind::StepReturned(returned) => Some((of_step(&returned.at)?, returned.run_id.clone()?)),
        EventKind::StepPaused(paused) => Some((of_step(&paused.at)?, paused.run_id.clone())),
        _ => None,
    }
}

fn used(tokens: Option<Tokens>, cost_usd: Option<f64>) -> Option<RecordedTokens> {
    let Tokens { input, output, cached_input, cache_write, reasoning } = tokens?;
    Some(RecordedTokens { input, output, cached_input, cache_write, reasoning, cost_usd })
}
