//! What a played run came to, by the events of its journal and of those of its sub-runs.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::conditions::{self, JudgedCall};
use super::map::{CoverageMap, CoveragePart};
use super::points::{CoverageOutcome, CoveragePoint};
use crate::engine::address::StepAddress;
use crate::engine::event::{CallId, Decision, Event, EventKind, Started, ToolResult};
use crate::engine::flow::progress::{Current, ItemStatus, StepChange, StepFrame};
use crate::engine::flow::record::StepStatus;
use crate::engine::operation::{AskedFor, Call, Progress};
use crate::engine::state::{LoopState, Phase, State};
use crate::engine::step::step;
use crate::engine::stuck::{StepDigest, detect};
use crate::language::ending::StuckPattern;
use crate::language::react::StuckAction;
use crate::program::Program;
use crate::program::flow::{FlowStep, ON_FAILURE, StepAction};

/// The events of a run and of those below it, by id.
pub type PlayedJournals = BTreeMap<String, Vec<Event>>;

/// What the runs of a play came to.
pub fn reached(map: &CoverageMap, journals: &PlayedJournals) -> BTreeSet<CoveragePoint> {
    let mut reached = BTreeSet::new();
    for events in journals.values() {
        if let Some(part) = part_of(map, journals, events, 0) {
            of_run(part, events, &mut reached);
        }
    }
    reached
}

/// The deepest chain of calls that is followed; a program has fewer levels.
const MAX_LEVELS: usize = 32;

/// The part that a run is of: that of the document, or that which its caller calls.
fn part_of<'m>(
    map: &'m CoverageMap,
    journals: &PlayedJournals,
    events: &[Event],
    level: usize,
) -> Option<&'m CoveragePart> {
    let EventKind::Started(started) = &events.first()?.kind else { return None };
    let caller = match started.caller.as_ref().or(started.started_by.as_ref()) {
        Some(_) if level >= MAX_LEVELS => return None,
        Some(call) => Some(part_of(map, journals, journals.get(&call.run_id)?, level + 1)?),
        None => None,
    };
    map.part_of(started, caller)
}

fn of_run(part: &CoveragePart, events: &[Event], reached: &mut BTreeSet<CoveragePoint>) {
    let mut state = State::new(&part.program);
    let mut steps = StepsReached::new(part);
    for event in events {
        let before = state.as_loop().map(|state| LoopBefore::of(part, state));
        // A journal that does not fit is reported where the story of the run is made.
        if step(&part.program, &mut state, event.clone()).is_err() {
            return;
        }
        ending(part, &state, reached);
        match (&state, before) {
            (State::Loop(state), Some(before)) => before.take(part, event, state, reached),
            (state, _) => steps.take(&event.kind, state, reached),
        }
        if let EventKind::Started(started) = &event.kind {
            at_start(part, started, event.at.wall_ms, reached);
        }
    }
    steps.finish(&state, reached);
}

fn at_start(part: &CoveragePart, started: &Started, at_ms: i64, reached: &mut BTreeSet<CoveragePoint>) {
    if !part.program.is_flow() {
        conditions::at_start(part, started, at_ms, reached);
    }
}

/// How the run ends or waits, and what its agent is stuck in.
fn ending(part: &CoveragePart, state: &State, reached: &mut BTreeSet<CoveragePoint>) {
    let (termination, stuck) = match &state.phase {
        // The pattern of a sub-run is its own.
        Phase::Paused { pause, .. } => {
            (pause.question.kind, pause.question.stuck.as_ref().filter(|_| pause.asks.is_none()))
        }
        Phase::Ended(ending) => (ending.termination, ending.stuck.as_ref()),
        _ => return,
    };
    reached.insert(part.ending(termination));
    if let Some(stuck) = stuck.filter(|_| !part.program.is_flow()) {
        reached.insert(part.stuck(stuck.pattern));
    }
}

/// What is needed of the state of a loop before an event.
struct LoopBefore {
    /// The calls that a human must approve.
    awaiting: Vec<(CallId, String)>,
    /// The call that the event may end, by its id.
    calls: Vec<(CallId, String, Value)>,
    /// The steps that stuck detection looks at, where a hint takes them away.
    steps: Vec<StepDigest>,
    hints: usize,
}

impl LoopBefore {
    fn of(part: &CoveragePart, state: &LoopState) -> Self {
        let calls = || state.turn().into_iter().flat_map(|turn| &turn.calls);
        let awaits = |progress: &Progress| matches!(progress, Progress::Asks(AskedFor::Approval(_)));
        let of_loop = part.program.as_loop();
        let gives_hints =
            of_loop.is_some_and(|program| program.properties.on_stuck.action == StuckAction::RetryWithHint);
        Self {
            awaiting: calls()
                .filter(|call| awaits(&call.progress))
                .map(|call| (call.address, call.name.clone()))
                .collect(),
            calls: calls().map(|call| (call.address, call.name.clone(), Value::clone(&call.input))).collect(),
            steps: if gives_hints { state.watch.steps.clone() } else { Vec::new() },
            hints: state.hints.len(),
        }
    }

    fn take(self, part: &CoveragePart, event: &Event, state: &LoopState, reached: &mut BTreeSet<CoveragePoint>) {
        match &event.kind {
            EventKind::ModelReplied(reply) | EventKind::Summarized(reply) => {
                if let Some(model) = &reply.model {
                    reached.insert(part.fallback(model));
                }
                self.builtins(part, state, reached);
            }
            EventKind::ToolReturned(returned) => {
                if let Some((_, name, input)) = self.calls.iter().find(|(id, ..)| *id == returned.call) {
                    let succeeds = matches!(returned.result, ToolResult::Ok(_));
                    reached.insert(
                        part.call(name, if succeeds { CoverageOutcome::Succeeds } else { CoverageOutcome::Fails }),
                    );
                    if let Some(tool) = part.program.tool(name) {
                        let call = JudgedCall {
                            tool,
                            pointer: part.tool(name),
                            input,
                            run_input: &state.header.input,
                            run_id: &state.header.run_id,
                            at_ms: event.at.wall_ms,
                        };
                        conditions::in_call(part, &call, reached);
                    }
                }
            }
            EventKind::Human(decided) => {
                let outcome = match decided.decision {
                    Decision::Approve | Decision::Edit(_) => CoverageOutcome::IsApproved,
                    Decision::Deny(_) => CoverageOutcome::IsDenied,
                    _ => return,
                };
                for (id, tool) in &self.awaiting {
                    let awaits = |call: &Call| matches!(call.progress, Progress::Asks(AskedFor::Approval(_)));
                    if !state.call(*id).is_some_and(awaits) {
                        reached.insert(part.call(tool, outcome));
                    }
                }
            }
            _ => {}
        }
        if state.hints.len() > self.hints {
            reached.insert(part.hint());
            reached.extend(self.hinted(part, state).map(|pattern| part.stuck(pattern)));
        }
    }

    /// The calls of built-in tools, which return with the reply.
    fn builtins(&self, part: &CoveragePart, state: &LoopState, reached: &mut BTreeSet<CoveragePoint>) {
        let Some(last) = state.entries.last() else { return };
        for entry in state.entries.iter().rev().take_while(|entry| entry.iteration == last.iteration) {
            if let Some(name) = entry.action.as_deref().filter(|_| entry.success) {
                reached.insert(part.call(name, CoverageOutcome::Succeeds));
            }
        }
    }

    /// The pattern that a hint was given for: the steps before it, with that of the last turn.
    fn hinted(mut self, part: &CoveragePart, state: &LoopState) -> Option<StuckPattern> {
        let last = state.entries.last()?.iteration;
        let from = state.entries.iter().position(|entry| entry.iteration == last)?;
        let turn = state.entries.get(from..)?;
        let values: Vec<(Value, Value)> =
            turn.iter().map(|entry| (entry.action_input.value(), entry.observation.value())).collect();
        let calls = turn.iter().zip(&values).filter_map(|(entry, (input, observation))| {
            let name = entry.action.as_deref()?;
            let polling = part.program.tool(name).is_some_and(|tool| tool.polling);
            Some((name, input, observation, !entry.success, polling))
        });
        let thought = turn.first().map_or("", |entry| &entry.thought);
        self.steps.push(StepDigest::new(last, thought, calls));
        Some(detect(&self.steps, part.program.as_loop()?.properties.on_stuck.iterations)?.pattern)
    }
}

/// What the steps of a run came to so far.
pub(super) struct StepsReached<'m> {
    part: &'m CoveragePart,
    /// The addresses of the steps that ran.
    ran: BTreeSet<String>,
    /// The case that each choice chose, by its address.
    cases: BTreeMap<String, String>,
    /// What waits for a human: the address of each step, and whether it is a form.
    waiting: BTreeMap<String, bool>,
}

impl<'m> StepsReached<'m> {
    pub fn new(part: &'m CoveragePart) -> Self {
        Self { part, ran: BTreeSet::new(), cases: BTreeMap::new(), waiting: BTreeMap::new() }
    }

    /// Takes an event that was folded.
    pub fn take(&mut self, event: &EventKind, state: &State, reached: &mut BTreeSet<CoveragePoint>) {
        self.decided(event, state, reached);
        for change in state.step_changes() {
            match change {
                StepChange::Started { at, .. } => self.note(at, CoverageOutcome::Runs, reached),
                StepChange::Retried { .. } | StepChange::ItemEnded { .. } => {}
                StepChange::Ended(record) => {
                    let fails = record.status == StepStatus::Failed;
                    self.cases.extend(record.case.iter().map(|case| (record.at.clone(), case.clone())));
                    self.note(&record.at, CoverageOutcome::Runs, reached);
                    if fails {
                        self.note(&record.at, CoverageOutcome::Fails, reached);
                    }
                    if let Some(input) = &record.input {
                        self.judge(&record.at, input, state, reached);
                    }
                }
                StepChange::ItemsEnded { at, statuses } => {
                    for (index, status) in statuses.iter().enumerate() {
                        self.item(at, index, *status, reached);
                    }
                }
            }
        }
        self.waiting = state
            .open_steps()
            .into_iter()
            .filter_map(|open| match open.progress {
                Progress::Asks(AskedFor::Approval(_)) | Progress::Asks(AskedFor::Consent { .. }) => {
                    Some((open.address.to_string(), false))
                }
                Progress::Asks(AskedFor::Form { .. }) => Some((open.address.to_string(), true)),
                _ => None,
            })
            .collect();
    }

    /// The conditions of the texts of a call.
    fn judge(&self, at: &str, input: &serde_json::Value, state: &State, reached: &mut BTreeSet<CoveragePoint>) {
        let Some((placed, FlowStep { action: StepAction::Call(call), .. })) = self.part.step(at) else { return };
        let call = JudgedCall {
            tool: &call.tool,
            pointer: placed.pointer.clone(),
            input,
            run_input: &state.header.input,
            run_id: &state.header.run_id,
            at_ms: state.now.wall_ms,
        };
        conditions::in_call(self.part, &call, reached);
    }

    /// What a human decided about steps that waited, or did not.
    fn decided(&self, event: &EventKind, state: &State, reached: &mut BTreeSet<CoveragePoint>) {
        let outcome = |is_form: bool| match event {
            EventKind::Human(decided) => match decided.decision {
                Decision::Approve | Decision::Edit(_) => Some(CoverageOutcome::IsApproved),
                Decision::Deny(_) => Some(CoverageOutcome::IsDenied),
                Decision::Answer(_) if is_form => Some(CoverageOutcome::IsFilledIn),
                _ => None,
            },
            EventKind::ApprovalExpired if is_form => Some(CoverageOutcome::Expires),
            _ => None,
        };
        for (at, is_form) in &self.waiting {
            let waits = |progress: &Progress| {
                progress.is_approval() || matches!(progress, Progress::Asks(AskedFor::Form { .. }))
            };
            let still = state.open_step(&StepAddress::new(at)).is_some_and(|open| waits(&open.progress));
            if let Some(outcome) = outcome(*is_form).filter(|_| !still)
                && let Some((placed, _)) = self.part.step(at)
            {
                reached.insert(self.part.of_step(placed, outcome));
            }
        }
    }

    fn note(&mut self, at: &str, outcome: CoverageOutcome, reached: &mut BTreeSet<CoveragePoint>) {
        if let Some((placed, _)) = self.part.step(at) {
            self.ran.insert(at.to_owned());
            reached.insert(self.part.of_step(placed, outcome));
        }
    }

    /// The filters of an item that ended with all of its steps.
    fn item(&self, of: &str, index: usize, status: ItemStatus, reached: &mut BTreeSet<CoveragePoint>) {
        if matches!(status, ItemStatus::Completed | ItemStatus::Skipped)
            && let Some((_, FlowStep { action: StepAction::Foreach(foreach), .. })) = self.part.step(of)
        {
            self.passed(&foreach.steps, &format!("{of}.{index}."), reached);
        }
    }

    /// The filters of steps that are over: one that did not run was left out by its filter, and so was each whose place
    /// another one took.
    fn passed<'s>(
        &self,
        steps: impl IntoIterator<Item = &'s FlowStep>,
        prefix: &str,
        reached: &mut BTreeSet<CoveragePoint>,
    ) {
        for step in steps.into_iter().filter(|step| self.was_due(step, prefix)) {
            let mut next = Some(step);
            while let Some(step) = next {
                let at = format!("{prefix}{}", step.name);
                if self.ran.contains(&at) {
                    break;
                }
                let may_be_skipped = step.filter.is_some() || matches!(step.action, StepAction::Choose(_));
                if let Some((placed, _)) = self.part.step(&at).filter(|_| may_be_skipped) {
                    reached.insert(self.part.of_step(placed, CoverageOutcome::IsSkipped));
                }
                next = step.otherwise.as_deref();
            }
        }
    }

    /// Whether the case was chosen that a step is in.
    fn was_due(&self, step: &FlowStep, prefix: &str) -> bool {
        let Some(of) = step.within.last() else { return true };
        let at = format!("{prefix}{}", of.choose);
        if *of.choose == *ON_FAILURE {
            return self.ran.iter().any(|ran| ran.strip_prefix(&at).is_some_and(|rest| rest.starts_with('.')));
        }
        // The name of a step in a case begins with that of its choice and of the case.
        let case = step.name.strip_prefix(&*of.choose).and_then(|rest| rest.strip_prefix('.')?.split('.').next());
        case.is_some() && self.cases.get(&at).map(String::as_str) == case
    }

    /// Takes the state at the end of the journal: lists that have not ended, or failed.
    pub fn finish(&self, state: &State, reached: &mut BTreeSet<CoveragePoint>) {
        if let (Program::Flow(program), State::Flow(state)) = (&*self.part.program, state) {
            self.frame(&program.steps, &state.progress.root, "", reached);
        }
    }

    /// Loops are at most three deep: the recursion ends.
    fn frame(&self, steps: &[FlowStep], frame: &StepFrame, prefix: &str, reached: &mut BTreeSet<CoveragePoint>) {
        self.passed(steps.iter().filter(|step| step.slot < frame.next), prefix, reached);
        let current = steps.iter().find(|step| step.slot == frame.next);
        // The step that took the place of the present one is open, or failed.
        self.passed(current.filter(|step| self.took_place(step, prefix)), prefix, reached);
        let Current::Items(items) = &frame.current else { return };
        let Some((_, FlowStep { action: StepAction::Foreach(foreach), .. })) = self.part.step(&items.at) else {
            return;
        };
        for (index, status) in &items.ended {
            self.item(&items.at, usize::try_from(*index).unwrap_or(usize::MAX), *status, reached);
        }
        for (index, frame) in items.open.iter().chain(&items.unfinished) {
            self.frame(&foreach.steps, frame, &format!("{}.{index}.", items.at), reached);
        }
    }

    /// Whether a step in the place of this one ran.
    fn took_place(&self, step: &FlowStep, prefix: &str) -> bool {
        let mut next = step.otherwise.as_deref();
        while let Some(step) = next {
            if self.ran.contains(&format!("{prefix}{}", step.name)) {
                return true;
            }
            next = step.otherwise.as_deref();
        }
        false
    }
}
