//! What a run of a workflow, or of a loop of mode `foreach`, uses at most.

use std::collections::BTreeMap;

use loopctl_lang::program::ProgramHead;
use loopctl_lang::program::flow::{FlowProgram, FlowStep, Foreach, MAX_OUTPUT_BYTES, StepAction};
use serde_json::Value;

use super::estimator::{Estimator, PartMost, RunMost, chosen};
use super::most_used::MostUsed;
use super::of_loop::{CallContext, CallMost};
use super::request_size::{TextValues, ValueSizes};

/// What the steps of a list use.
#[derive(Clone, Copy)]
struct StepsMost {
    inside: MostUsed,
    launched: MostUsed,
    under_way: MostUsed,
}

/// What is known in a run of a workflow.
#[derive(Clone, Copy)]
struct FlowContext<'c> {
    head: &'c ProgramHead,
    model: Option<&'c str>,
    input: Option<&'c Value>,
    sizes: ValueSizes,
}

impl StepsMost {
    const NOTHING: Self = Self { inside: MostUsed::NOTHING, launched: MostUsed::NOTHING, under_way: MostUsed::NOTHING };

    fn and(self, other: Self) -> Self {
        Self {
            inside: self.inside.and(other.inside),
            launched: self.launched.and(other.launched),
            under_way: self.under_way.or(other.under_way),
        }
    }

    /// One of both: which one, nobody knows.
    fn or(self, other: Self) -> Self {
        Self {
            inside: self.inside.or(other.inside),
            launched: self.launched.or(other.launched),
            under_way: self.under_way.or(other.under_way),
        }
    }
}

impl From<CallMost> for StepsMost {
    fn from(call: CallMost) -> Self {
        Self { inside: call.inside, launched: call.launched, under_way: call.under_way }
    }
}

impl Estimator {
    pub(super) fn of_flow(&mut self, program: &FlowProgram, model: Option<&str>, values: TextValues<'_>) -> RunMost {
        // A file of the project is as long as it is.
        let output = program.documents.is_empty().then(|| u64::try_from(MAX_OUTPUT_BYTES).unwrap_or(u64::MAX));
        let input = match values {
            TextValues::Given(input) => Some(input),
            TextValues::Sizes(_) => None,
        };
        let sizes = values.sizes(output);
        let context = FlowContext { head: &program.head, model: chosen(&program.head, None, model), input, sizes };
        let mut parts = Vec::new();
        let steps: Vec<&FlowStep> = program.steps.iter().collect();
        let most = self.steps(&steps, 0, context, &mut PartsOfRun { parts: &mut parts, times: 1 });
        // Steps of items with budgets of their own may be under way beside each other.
        let over = most.under_way.times(most_beside(program));
        RunMost {
            inside: most.inside.within(program.head.budget.as_ref(), over),
            launched: most.launched,
            under_way: most.under_way,
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
            let mut most = StepsMost::NOTHING;
            for case in cases.into_values() {
                most = most.or(self.steps(&case, depth.saturating_add(1), context, parts));
            }
            all = all.and(most);
        }
        all
    }

    fn step(&mut self, step: &FlowStep, context: FlowContext<'_>, parts: &mut PartsOfRun<'_>) -> StepsMost {
        let FlowContext { head, model, sizes, .. } = context;
        let (own, asks_models) = match &step.action {
            StepAction::Call(call) => {
                let call = self.call(&call.tool, CallContext { head, model, sizes: sizes.mixed() });
                let asks_models = call.asks_models;
                (call.into(), asks_models)
            }
            StepAction::React(react) => {
                let run = self.called(&react.program, model, sizes);
                (StepsMost { inside: run.inside, launched: run.launched, under_way: run.under_way }, true)
            }
            StepAction::Foreach(foreach) => (self.items(foreach, context, parts), false),
            StepAction::Approval(_)
            | StepAction::Form(_)
            | StepAction::Wait(_)
            | StepAction::Choose(_)
            | StepAction::WaitForEvent(_) => (StepsMost::NOTHING, false),
        };
        if asks_models {
            let each = own.inside.and(own.launched);
            parts.parts.push(PartMost { name: step.name.clone(), calls: parts.times, each });
        }
        match &step.otherwise {
            Some(otherwise) => own.or(self.step(otherwise, context, parts)),
            None => own,
        }
    }

    fn items(&mut self, foreach: &Foreach, context: FlowContext<'_>, parts: &mut PartsOfRun<'_>) -> StepsMost {
        let items = most_items(foreach, context.input);
        let steps: Vec<&FlowStep> = foreach.steps.iter().collect();
        // An item of the input is as long as the input, at most.
        let context = FlowContext { sizes: context.sizes.mixed(), ..context };
        let of_item = &mut PartsOfRun { parts: parts.parts, times: parts.times.saturating_mul(items) };
        let each = self.steps(&steps, 0, context, of_item);
        let budget = foreach.item_budget.as_ref().filter(|_| !has_loops(&foreach.steps));
        let inside = each.inside.within(budget, each.under_way);
        StepsMost { inside: inside.times(items), launched: each.launched.times(items), under_way: each.under_way }
    }
}

/// Where parts are gathered, and how often the list around them runs.
struct PartsOfRun<'l> {
    parts: &'l mut Vec<PartMost>,
    times: u64,
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

fn has_loops(steps: &[FlowStep]) -> bool {
    steps.iter().any(|step| {
        let inside = matches!(step.action, StepAction::Foreach(_));
        inside || step.otherwise.as_deref().is_some_and(|other| has_loops(std::slice::from_ref(other)))
    })
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
