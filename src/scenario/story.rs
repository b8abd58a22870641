//! The story of a run that was played: what expectations are about. It is computed from the journal alone, and from what
//! the stage recorded.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

use serde_json::Value;

use crate::check::scenario::endings::programs;
use crate::drive::stage::StagedCall;
use crate::engine::address::{StepAddress, split_address};
use crate::engine::conversation::Role;
use crate::engine::decision::reported_failure;
use crate::engine::event::{Decided, Decision, Event, EventKind, ModelFaultCode, ToolResult};
use crate::engine::flow::progress::FlowProgress;
use crate::engine::flow::record::StepRecord;
use crate::engine::flow::view::{ItemWindow, StepLog};
use crate::engine::flow::waiting_steps;
use crate::engine::question::Question;
use crate::engine::record::trace;
use crate::engine::state::{LoopState, Phase, State};
use crate::engine::step::step;
use crate::engine::waiting_calls::waiting_calls;
use crate::language::action::OnUncertain;
use crate::program::flow::{FlowStep, StepAction};
use crate::program::{Program, Tool, builtin};
use crate::trace::json::gist;
use crate::trace::steps::shown_step;
use crate::trace::{Redaction, RunResult, Shown, escape, result};

/// What happened in a run.
#[derive(Debug, Clone)]
pub struct RunStory {
    /// Its result, with hidden secrets.
    pub result: RunResult,
    pub memory: BTreeMap<String, Value>,
    /// All calls, in the order of the trace; those of a sub-run follow the call that it is.
    pub calls: Vec<StoryCall>,
    pub pauses: Vec<StoryPause>,
    /// How often the effect of each tool happened: each call that gave a result. Calls of an idempotent tool with the same
    /// key are one effect.
    pub effects: BTreeMap<String, usize>,
    /// The tools whose calls failed after a crash, because their `on_uncertain` says so.
    pub failed_by_document: Vec<String>,
    /// The seconds that it was active, by the played clock.
    pub seconds: f64,
    /// Every text that the model read.
    pub read: Vec<Arc<str>>,
    /// How many replies each part of the script gave: that of the run, and those of called loops by name.
    pub replies: BTreeMap<Option<String>, u64>,
    /// The parts of the script that had no reply left when the model was asked.
    pub ran_out: BTreeSet<Option<String>>,
    /// The events of a workflow, for the steps of its items.
    flow: Option<FlowStory>,
}

/// A run of a workflow, whose steps are looked up.
#[derive(Debug, Clone)]
struct FlowStory {
    program: Arc<Program>,
    events: Arc<[Event]>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct StoryCall {
    /// The iteration, from 1; 0 for a step of a workflow.
    pub iteration: u32,
    /// The address of the step of a workflow that it is.
    pub at: Option<String>,
    /// What the model thought before it.
    pub thought: String,
    /// The tool, or the type of the step; none for a reply that could not be read.
    pub action: Option<String>,
    pub input: Value,
    /// What came of it.
    pub observation: Value,
    /// Whether it did what was asked.
    pub success: bool,
    /// Whether it was made: others were refused, denied, or not reached.
    pub is_made: bool,
    /// How many calls of loops are around it.
    pub depth: usize,
}

impl StoryCall {
    /// Whether it is a call of a tool of the engine.
    pub fn is_builtin(&self) -> bool {
        self.action.as_deref().is_some_and(|action| builtin::NAMES.contains(&action))
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct StoryPause {
    /// Its number in the run.
    pub number: u32,
    /// The tools and the addresses of the steps that waited.
    pub about: Vec<String>,
    /// What the run asked.
    pub question: Question,
}

impl StoryPause {
    /// The pause that a run is in.
    pub fn of(state: &State) -> Option<Self> {
        let Phase::Paused { pause, .. } = &state.phase else { return None };
        let mut about: Vec<String> = waiting_calls(state).into_iter().map(|call| call.action).collect();
        for waiting in waiting_steps(state) {
            about.extend(waiting.calls.iter().map(|call| call.action.clone()));
            about.extend([waiting.at, waiting.action]);
        }
        Some(Self { number: pause.number, about, question: pause.question.clone() })
    }
}

/// The journal of a run and of all its sub-runs.
pub struct Journals<'a> {
    /// The program of the run.
    pub program: &'a Arc<Program>,
    pub run_id: &'a str,
    /// The events of all runs, by id.
    pub events: &'a BTreeMap<String, Vec<Event>>,
}

impl RunStory {
    /// The story of a run.
    ///
    /// # Errors
    /// When an event does not fit: the engine wrote a journal that it can't read.
    pub fn new(journals: &Journals<'_>, staged: &[StagedCall], pauses: Vec<StoryPause>) -> Result<Self, String> {
        let mut collector = Collector {
            journals,
            calls: Vec::new(),
            read: Vec::new(),
            known: HashSet::new(),
            failed_by_document: Vec::new(),
            replies: BTreeMap::new(),
            ran_out: BTreeSet::new(),
        };
        let state = collector.run(journals.program, journals.run_id, 0)?;
        let redact = Redaction::new(&journals.program.project.redact);
        let effects = effects(journals.program, staged);
        let active_ms = u32::try_from(state.now.active_ms).unwrap_or(u32::MAX);
        Ok(Self {
            result: result(Shown::default(), &state, &redact),
            memory: state.as_loop().map(|state| state.memory.clone()).unwrap_or_default(),
            seconds: f64::from(active_ms) / 1000.0,
            calls: collector.calls,
            read: collector.read,
            replies: collector.replies,
            ran_out: collector.ran_out,
            pauses,
            effects,
            failed_by_document: collector.failed_by_document,
            flow: journals.program.as_flow().map(|_| FlowStory {
                program: Arc::clone(journals.program),
                events: journals.events.get(journals.run_id).map(Vec::as_slice).unwrap_or_default().into(),
            }),
        })
    }

    /// The steps at these addresses that are steps of items: what they came to, by their addresses. The events are folded
    /// once for all of them.
    pub fn steps_of_items<'a>(&self, addresses: impl IntoIterator<Item = &'a str>) -> BTreeMap<&'a str, StepRecord> {
        const ALONE: ItemWindow = ItemWindow { from: 0, most: 0, status: None };
        let Some(FlowStory { program, events }) = &self.flow else { return BTreeMap::new() };
        let logs = addresses.into_iter().map(|at| (at, StepLog::new(Some(at.to_owned()))));
        let mut logs: BTreeMap<&str, StepLog> = logs.collect();
        if logs.is_empty() {
            return BTreeMap::new();
        }
        let mut state = State::new(program);
        for event in events.iter() {
            // The story folded them before.
            if step(program, &mut state, event.clone()).is_err() {
                return BTreeMap::new();
            }
            logs.values_mut().for_each(|log| log.take(&state));
        }
        let redact = Redaction::new(&program.project.redact);
        let found = logs.into_iter().filter_map(|(at, log)| {
            let view = log.view(program, &state, false, ALONE).ok()?;
            let record = view.steps.into_iter().next().filter(|record| record.at == at)?;
            Some((at, shown_step(record, &redact)))
        });
        found.collect()
    }

    /// How often the effect of a tool happened.
    pub fn effects_of(&self, action: &str) -> usize {
        self.effects.get(action).copied().unwrap_or_default()
    }

    /// The calls that were made of tools that are not the engine's.
    pub fn made(&self) -> impl Iterator<Item = &StoryCall> {
        self.calls.iter().filter(|call| call.is_made && !call.is_builtin())
    }
}

/// How often the effect of each tool happened.
fn effects(program: &Program, staged: &[StagedCall]) -> BTreeMap<String, usize> {
    let tools = programs(program).into_iter().flat_map(Program::all_tools);
    let idempotent: HashSet<&str> = tools.filter(|tool| tool.idempotent).map(|tool| tool.name.as_str()).collect();
    let (mut effects, mut known) = (BTreeMap::new(), HashSet::new());
    for call in staged.iter().filter(|call| matches!(call.result, Some(ToolResult::Ok(_)))) {
        let is_again = !known.insert((&call.action, &call.key)) && idempotent.contains(call.action.as_str());
        *effects.entry(call.action.clone()).or_default() += usize::from(!is_again);
    }
    effects
}

/// The tools whose calls are under way in a run, and fail when a driver resumes it.
fn fail_when_lost(program: &Program, state: &State) -> Vec<String> {
    let tools: Vec<&Tool> = match state {
        State::Loop(state) => {
            let calls = state.turn().into_iter().flat_map(|turn| &turn.calls);
            calls.filter(|call| call.progress.is_under_way()).filter_map(|call| program.tool(&call.name)).collect()
        }
        State::Flow(state) if matches!(state.phase, Phase::Stepping) => {
            let open = state.progress.open().into_iter().filter(|open| open.progress.is_under_way());
            let steps = open.filter_map(|open| program.as_flow()?.step_at(&open.address));
            steps.filter_map(called_tool).collect()
        }
        State::Flow(_) => Vec::new(),
    };
    let fail = tools.into_iter().filter(|tool| tool.after_crash() == OnUncertain::Fail);
    fail.map(|tool| tool.name.clone()).collect()
}

fn called_tool(step: &FlowStep) -> Option<&Tool> {
    match &step.action {
        StepAction::Call(call) => Some(&call.tool),
        _ => None,
    }
}

/// Collects what happened in a run and those below it.
struct Collector<'a> {
    journals: &'a Journals<'a>,
    calls: Vec<StoryCall>,
    read: Vec<Arc<str>>,
    known: HashSet<Arc<str>>,
    failed_by_document: Vec<String>,
    replies: BTreeMap<Option<String>, u64>,
    ran_out: BTreeSet<Option<String>>,
}

impl Collector<'_> {
    /// Folds a run, and collects its calls and those of its sub-runs.
    fn run(&mut self, program: &Arc<Program>, run_id: &str, depth: usize) -> Result<State, String> {
        let mut state = State::new(program);
        let events = self.journals.events.get(run_id).map(Vec::as_slice).unwrap_or_default();
        let mut steps = Vec::new();
        for (at, event) in events.iter().enumerate() {
            if matches!(event.kind, EventKind::Resumed) {
                self.failed_by_document.extend(fail_when_lost(program, &state));
            }
            let ended = state.as_flow().and_then(|state| EndedStep::of(&event.kind, &state.progress));
            step(program, &mut state, event.clone())
                .map_err(|refused| format!("event {at} of run {run_id} does not fit: {refused}"))?;
            // A decision that does not end the step leaves it open.
            steps.extend(ended.filter(|ended| state.open_step(&StepAddress::new(&ended.at)).is_none()));
            if let State::Loop(state) = &state
                && matches!(state.phase, Phase::Thinking { .. } | Phase::Summarizing { .. })
            {
                self.reads(state);
            }
        }
        let part = state.header.caller.as_ref().map(|_| state.header.loop_name.clone());
        let is_out = |event: &Event| matches!(&event.kind, EventKind::ModelFailed(fault) if fault.code == ModelFaultCode::ScriptExhausted);
        if events.iter().any(is_out) {
            self.ran_out.insert(part.clone());
        }
        let replies = self.replies.entry(part).or_default();
        *replies = u64::from(state.model_calls()).max(*replies);
        for EndedStep { at, kind, input, result, run_id } in steps {
            let found = program.as_flow().and_then(|flow| flow.step_at(&at));
            let called = found.and_then(FlowStep::called).cloned();
            let (observation, success) = outcome(&result);
            self.calls.push(StoryCall {
                iteration: 0,
                at: Some(at),
                thought: String::new(),
                action: Some(kind),
                input,
                observation,
                success,
                is_made: true,
                depth,
            });
            if let (Some(called), Some(run_id)) = (called, &run_id) {
                self.run(&called, run_id, depth + 1)?;
            }
        }
        for entry in trace(&state, false) {
            let is_engine = entry.action.as_deref().is_some_and(|action| builtin::NAMES.contains(&action));
            let tool = entry.action.as_deref().and_then(|action| program.tool(action));
            let called = tool.and_then(|tool| tool.called_loop().or(tool.launched())).cloned();
            self.calls.push(StoryCall {
                iteration: entry.iteration,
                at: None,
                thought: entry.thought,
                action: entry.action,
                input: entry.action_input.unwrap_or_default(),
                observation: entry.observation,
                success: entry.success,
                is_made: entry.called_at_ms.is_some() || is_engine && entry.success,
                depth,
            });
            if let (Some(called), Some(run_id)) = (called, &entry.run_id) {
                self.run(&called, run_id, depth + 1)?;
            }
        }
        Ok(state)
    }

    /// Collects the texts of a conversation that the model is about to read.
    fn reads(&mut self, state: &LoopState) {
        for message in &state.conversation.messages {
            if message.role != Role::Assistant && self.known.insert(Arc::clone(&message.text)) {
                self.read.push(Arc::clone(&message.text));
            }
        }
    }
}

/// A step of a workflow that ends by an event.
struct EndedStep {
    at: String,
    kind: String,
    input: Value,
    result: ToolResult,
    run_id: Option<String>,
}

impl EndedStep {
    /// The step that an event ends: its outcome, or what a human says of a call of unknown outcome.
    fn of(event: &EventKind, flow: &FlowProgress) -> Option<Self> {
        let (at, result, run_id) = match event {
            EventKind::StepReturned(returned) => {
                (returned.at.clone(), returned.result.clone(), returned.run_id.clone())
            }
            // That of a run below ends a step there.
            EventKind::Human(Decided { at: Some(at), .. }) if split_address(at).1.is_some() => return None,
            EventKind::Human(Decided { at, decision, .. }) => {
                let result = match decision {
                    Decision::Happened(value) => ToolResult::Ok(value.clone()),
                    Decision::Failed(reason) => ToolResult::failed(reported_failure(reason)),
                    _ => return None,
                };
                let waits = || flow.open().into_iter().find(|open| open.progress.waits_for_human());
                (at.clone().or_else(|| Some(waits()?.address.to_string()))?, result, None)
            }
            _ => return None,
        };
        let open = flow.open_at(&StepAddress::new(&at));
        let kind = open.map(|open| open.name.clone()).unwrap_or_default();
        Some(Self { kind, input: open.map_or(Value::Null, |open| Value::clone(&open.input)), at, result, run_id })
    }
}

fn outcome(result: &ToolResult) -> (Value, bool) {
    match result {
        ToolResult::Ok(value) => (value.clone(), true),
        ToolResult::Failed(fault) => (Value::from(fault.observation()), false),
    }
}

const VALUE_COLUMNS: usize = 70;

/// A line for each call.
pub fn trace_lines(story: &RunStory, redact: &Redaction) -> Vec<String> {
    story.calls.iter().map(|call| line(call, redact)).collect()
}

fn line(call: &StoryCall, redact: &Redaction) -> String {
    let indent = "  ".repeat(call.depth);
    let number = match &call.at {
        Some(at) => at.clone(),
        None => call.iteration.to_string(),
    };
    let value = |value: &Value| gist(&redact.value(value), VALUE_COLUMNS);
    let outcome = match (&call.observation, call.success, call.is_made) {
        (Value::Null, true, _) => String::new(),
        (observation, true, _) => format!(" -> {}", value(observation)),
        (observation, false, true) => format!(" failed: {}", value(observation)),
        (observation, false, false) => format!(" not made: {}", value(observation)),
    };
    let text = match &call.action {
        Some(action) => format!("{indent}{number}  {action} {}{outcome}", value(&call.input)),
        None => format!("{indent}{number}  a reply that can't be read{outcome}"),
    };
    escape::line(&text).into_owned()
}
