//! What a run of a workflow, or of a loop of mode `foreach`, uses at most.

use std::collections::BTreeMap;

use loopctl_lang::program::file_value::MAX_BYTES as MAX_FILE_BYTES;
use loopctl_lang::program::flow::{FlowProgram, FlowStep, Foreach, MAX_OUTPUT_BYTES, StepAction};
use loopctl_lang::program::reference::Field;
use loopctl_lang::program::{Program, ProgramHead, Tool, ToolKind};
use serde_json::Value;

use super::estimator::{Estimator, PartDocument, PartMost, RunMost, chosen};
use super::most_used::MostUsed;
use super::of_loop::{self, CallContext, CallMost};
use super::request_size::{TextValues, ValueSizes};

/// How long a call may wait before its own time begins, and how much later than its deadline it is seen to end.
const CONNECTION_WAIT_MS: u64 = 60_000;
const CALL_GRACE_MS: u64 = 1_000;

/// What the steps of a list use.
#[derive(Clone, Copy)]
struct StepsMost {
    inside: MostUsed,
    launched: MostUsed,
    under_way: MostUsed,
    apart: MostUsed,
    largest_called: MostUsed,
}

/// What is known in a run of a workflow.
#[derive(Clone, Copy)]
struct FlowContext<'c> {
    head: &'c ProgramHead,
    model: Option<&'c str>,
    input: Option<&'c Value>,
    sizes: ValueSizes,
    /// How often the list of steps runs, at most.
    times: u64,
    /// The most items of the lists around: it bounds those of the lists in them together.
    around: Option<u64>,
}

impl StepsMost {
    const NOTHING: Self = Self {
        inside: MostUsed::NOTHING,
        launched: MostUsed::NOTHING,
        under_way: MostUsed::NOTHING,
        apart: MostUsed::NOTHING,
        largest_called: MostUsed::NOTHING,
    };

    fn and(self, other: Self) -> Self {
        Self {
            inside: self.inside.and(other.inside),
            launched: self.launched.and(other.launched),
            apart: self.apart.and(other.apart),
            ..self.or(other)
        }
    }

    /// One of both: which one, nobody knows.
    fn or(self, other: Self) -> Self {
        Self {
            inside: self.inside.or(other.inside),
            launched: self.launched.or(other.launched),
            under_way: self.under_way.or(other.under_way),
            apart: self.apart.or(other.apart),
            largest_called: self.largest_called.or(other.largest_called),
        }
    }

    fn times(self, times: u64) -> Self {
        Self {
            inside: self.inside.times(times),
            launched: self.launched.times(times),
            apart: self.apart.times(times),
            ..self
        }
    }
}

impl From<CallMost> for StepsMost {
    fn from(call: CallMost) -> Self {
        let CallMost { inside, launched, under_way, apart, largest_called, .. } = call;
        Self { inside, launched, under_way, apart, largest_called }
    }
}

impl Estimator {
    pub(super) fn of_flow(&mut self, program: &FlowProgram, model: Option<&str>, values: TextValues<'_>) -> RunMost {
        // A file of the project may be longer than what a step gives.
        let longest =
            if program.documents.is_empty() { MAX_OUTPUT_BYTES } else { MAX_OUTPUT_BYTES.max(MAX_FILE_BYTES) };
        let input = match values {
            TextValues::Given(input) => Some(input),
            TextValues::Sizes(_) => None,
        };
        let sizes = values.sizes(Some(u64::try_from(longest).unwrap_or(u64::MAX)));
        let model = chosen(&program.head, None, model);
        let context = FlowContext { head: &program.head, model, input, sizes, times: 1, around: None };
        let mut parts = Vec::new();
        let steps: Vec<&FlowStep> = program.steps.iter().collect();
        let most = self.steps(&steps, 0, context, &mut PartsOfRun { parts: &mut parts, times: 1, address: "" });
        // Steps of items with budgets of their own may be under way beside each other.
        let over = most.under_way.times(most_beside(program));
        RunMost {
            inside: most.inside.within(program.head.budget.as_ref(), over),
            launched: most.launched,
            under_way: most.under_way,
            apart: most.apart,
            largest_called: most.largest_called,
            parts,
        }
    }

    /// The steps of a list that are in these cases and in no other: those of the cases of a choice follow it.
    fn steps(
        &mut self,
        steps: &[&FlowStep],
        depth: usize,
        context: FlowContext<'_>,
        parts: &mut PartsOfRun<'_>,
    ) -> StepsMost {
        let mut all = StepsMost::NOTHING;
        let mut choices: BTreeMap<&str, BTreeMap<usize, Vec<&FlowStep>>> = BTreeMap::new();
        for step in steps.iter().copied() {
            match step.within.get(depth) {
                Some(of) => choices.entry(&of.choose).or_default().entry(of.case).or_default().push(step),
                None => all = all.and(self.step(step, context, parts)),
            }
        }
        for cases in choices.into_values() {
            let has_loops = cases.values().flatten().any(|step| has_loops(step));
            let mut most = StepsMost::NOTHING;
            for case in cases.into_values() {
                let case = self.steps(&case, depth.saturating_add(1), context, parts);
                most = one_of(most, case, context.times > 1 && has_loops);
            }
            all = all.and(most);
        }
        all
    }

    fn step(&mut self, step: &FlowStep, context: FlowContext<'_>, parts: &mut PartsOfRun<'_>) -> StepsMost {
        let FlowContext { head, model, sizes, .. } = context;
        let (own, asks_models) = match &step.action {
            StepAction::Call(call) => {
                let uses_input = |(_, field): &(String, Field)| {
                    let mut used = field.variables().into_iter();
                    used.any(|found| found.variable.path.first().is_some_and(|first| first == "input"))
                };
                let sizes = if call.input.iter().any(uses_input) { sizes.mixed() } else { sizes };
                let call = self.call(&call.tool, CallContext { head, model, sizes });
                let asks_models = call.asks_models;
                (StepsMost::from(call), asks_models)
            }
            StepAction::React(react) => {
                let run = self.called(&react.program, model, sizes);
                let RunMost { inside, launched, under_way, apart, largest_called, .. } = run;
                (StepsMost { inside, launched, under_way, apart, largest_called }, true)
            }
            StepAction::Foreach(foreach) => (self.items(step, foreach, context, parts), false),
            StepAction::Approval(_)
            | StepAction::Form(_)
            | StepAction::Wait(_)
            | StepAction::Choose(_)
            | StepAction::WaitForEvent(_) => (StepsMost::NOTHING, false),
        };
        if asks_models {
            let each = own.inside.and(own.launched);
            let document = step.called().cloned().map(|program| {
                let is_written_here = matches!(step.action, StepAction::React(_));
                let pointer = if is_written_here { step.pointer.clone() } else { String::new() };
                PartDocument { program, pointer }
            });
            let name = format!("{}{}", parts.address, step.name);
            parts.parts.push(PartMost { name, calls: parts.times, each, document });
        }
        let own = if matches!(step.action, StepAction::Foreach(_)) { own } else { own.times(context.times) };
        match &step.otherwise {
            Some(otherwise) => {
                let is_mixed = context.times > 1 && (has_loops(step) || has_loops(otherwise));
                one_of(own, self.step(otherwise, context, parts), is_mixed)
            }
            None => own,
        }
    }

    /// The steps of all items of all runs of a list.
    fn items(
        &mut self,
        step: &FlowStep,
        foreach: &Foreach,
        context: FlowContext<'_>,
        parts: &mut PartsOfRun<'_>,
    ) -> StepsMost {
        let items = context.times.saturating_mul(most_items(foreach, context.input));
        let items = context.around.map_or(items, |around| items.min(around));
        let steps: Vec<&FlowStep> = foreach.steps.iter().collect();
        // An item of the input is as long as the input, at most.
        let is_of_input = foreach.items.first().is_some_and(|first| first == "input");
        let sizes = if is_of_input { context.sizes.mixed() } else { context.sizes };
        let most = u64::from(foreach.max_items);
        let around = Some(context.around.map_or(most, |around| around.min(most)));
        let address = format!("{}{}.", parts.address, step.name);
        let of_items = &mut PartsOfRun { parts: parts.parts, times: items, address: &address };
        if foreach.steps.iter().any(has_loops) {
            return self.steps(&steps, 0, FlowContext { sizes, times: items, around, ..context }, of_items);
        }
        let each = self.steps(&steps, 0, FlowContext { sizes, times: 1, around, ..context }, of_items);
        let inside = each.inside.within(foreach.item_budget.as_ref(), each.under_way);
        StepsMost { inside, ..each }.times(items)
    }
}

/// One of two cases. `is_mixed`: some runs of the list may take the one, and some the other, and both may use more together than one
/// of them alone.
fn one_of(one: StepsMost, other: StepsMost, is_mixed: bool) -> StepsMost {
    if is_mixed { one.and(other) } else { one.or(other) }
}

/// How long a workflow works on when its time is over, in milliseconds: the longest call of a step ends, and so does the last call of
/// a loop.
pub(super) fn over_time_ms(program: &FlowProgram) -> u64 {
    let mut longest = 0;
    program.each(&mut |step| {
        let own = match &step.action {
            StepAction::Call(call) => match &call.tool.kind {
                ToolKind::Loop(called) => over_time_of(called),
                _ => call.tool.timeout_ms.saturating_add(grace_ms(&call.tool)),
            },
            StepAction::React(react) => over_time_of(&react.program),
            StepAction::Foreach(_)
            | StepAction::Approval(_)
            | StepAction::Form(_)
            | StepAction::Wait(_)
            | StepAction::Choose(_)
            | StepAction::WaitForEvent(_) => 0,
        };
        longest = longest.max(own);
    });
    longest
}

fn grace_ms(tool: &Tool) -> u64 {
    match tool.kind {
        ToolKind::Db(_) | ToolKind::Action(_) => CONNECTION_WAIT_MS,
        _ => CALL_GRACE_MS,
    }
}

fn over_time_of(called: &Program) -> u64 {
    match called {
        Program::Loop(program) => of_loop::last_call_ms(program),
        Program::Flow(program) => over_time_ms(program),
    }
}

/// Where parts are gathered, and how often the list around them runs.
struct PartsOfRun<'l> {
    parts: &'l mut Vec<PartMost>,
    times: u64,
    /// The lists around, each with a dot.
    address: &'l str,
}

/// The most items: as many as the input has, where it is known.
pub(super) fn most_items(foreach: &Foreach, input: Option<&Value>) -> u64 {
    let most = u64::from(foreach.max_items);
    given_items(foreach, input).map_or(most, |given| given.min(most))
}

/// How many items the input has, if they are a list of it.
pub(super) fn given_items(foreach: &Foreach, input: Option<&Value>) -> Option<u64> {
    let (first, below) = foreach.items.split_first()?;
    if first != "input" {
        return None;
    }
    let found = below.iter().try_fold(input?, |value, name| value.get(name))?;
    u64::try_from(found.as_array()?.len()).ok()
}

/// Whether a step is a list of items, or one that takes its place is.
fn has_loops(step: &FlowStep) -> bool {
    matches!(step.action, StepAction::Foreach(_)) || step.otherwise.as_deref().is_some_and(has_loops)
}

/// How many steps that ask models may be under way when the budget of the run is spent: one, unless items have budgets of
/// their own.
fn most_beside(program: &FlowProgram) -> u64 {
    let mut has_budgets = false;
    program.each(&mut |step| {
        has_budgets |= matches!(&step.action, StepAction::Foreach(foreach) if foreach.item_budget.is_some());
    });
    if has_budgets { beside(&program.steps) } else { 1 }
}

/// How many steps may be under way at once.
fn beside(steps: &[FlowStep]) -> u64 {
    steps.iter().fold(1, |most, step| {
        let own = match &step.action {
            StepAction::Foreach(foreach) => {
                u64::from(foreach.max_concurrency.max(1)).saturating_mul(beside(&foreach.steps))
            }
            _ => 1,
        };
        let other = step.otherwise.as_deref().map_or(1, |other| beside(std::slice::from_ref(other)));
        most.max(own).max(other)
    })
}
