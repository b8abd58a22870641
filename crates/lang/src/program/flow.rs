//! A compiled workflow: its steps as a tree, and their addresses.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::tz::TimeZone;
use serde_json::{Map, Value};

use super::awaited_event::EventStep;
use super::choose::{CaseOf, ChooseStep};
use super::condition::CompiledCondition;
use super::denial::{ChainLink, DenialRule};
use super::form::FormAsks;
use super::reference::Field;
use super::schema::Schema;
use super::template::Template;
use super::timetable::Timetable;
use super::wait::WaitStep;
use super::webhook::{Delivery, DeliveryOutcome, DeliveryRules, FlowWebhook};
use super::{Program, ProgramHead, Tool, ToolKind};
use crate::language::foreach::{FailureStrategy, OnItemPause};
use crate::language::react::Budget;
use crate::language::step::OnRejected;
use crate::language::workflow::Schedule;

/// The deepest nesting of loops of mode `foreach`.
pub const MAX_LOOPS: usize = 3;
/// The most items of one loop that are worked on at a time.
pub const MAX_CONCURRENCY: u32 = 256;
/// The longest output of a step, as JSON text in bytes.
pub const MAX_OUTPUT_BYTES: usize = 1 << 20;
/// The keys that each approval writes: whether it was given, what the human wrote, and what was shown.
pub const APPROVAL_KEYS: [&str; 3] = ["__approved", "__comment", "__approval_data"];

/// The key of why a list of steps failed, for the steps that run then.
pub const ERROR_KEY: &str = "__error";
/// What the addresses of these steps begin with.
pub const ON_FAILURE: &str = "on_failure";

/// A compiled workflow, or loop of mode `foreach`.
#[derive(Debug)]
pub struct FlowProgram {
    /// What it has in common with loops of mode `react`.
    pub head: ProgramHead,
    /// The id of the workflow.
    pub id: Option<String>,
    /// The workflow runs only when it holds.
    pub condition: Option<CompiledCondition>,
    /// The steps, in their order.
    pub steps: Vec<FlowStep>,
    /// The place of the first of those that run when one of the others has failed.
    pub on_failure: Option<usize>,
    /// Whether these run after a cancel, too.
    pub on_cancel: bool,
    /// What a run answers; none is all keys that its steps wrote.
    pub output: Option<FlowOutput>,
    /// The time zone in which a date alone begins; none for UTC.
    pub zone: Option<TimeZone>,
    /// When a server starts runs of it by itself.
    pub schedule: Option<FlowSchedule>,
    /// The deliveries of another service that start runs of it.
    pub webhook: Option<FlowWebhook>,
    /// What its steps take of the input: the schema of a call, when the document has none.
    pub inputs: Schema,
    /// The files of the project that it reads, by their names.
    pub documents: BTreeSet<String>,
}

/// When a server starts runs of a workflow, and with which input.
#[derive(Debug)]
pub struct FlowSchedule {
    /// The times.
    pub timetable: Timetable,
    /// The input of each run.
    pub input: Map<String, Value>,
    /// How often, as written.
    pub every: String,
    /// The time of the day, as written.
    pub at: Option<String>,
    /// The time zone, as written.
    pub timezone: Option<String>,
}

impl FlowSchedule {
    /// The schedule of a workflow; none when it says no time, which `check` reports.
    pub fn of(written: &Schedule) -> Option<Self> {
        let timetable = Timetable::of(written)?;
        let Schedule { every, at, timezone, input } = written.clone();
        Some(Self { timetable, input: input.unwrap_or_default(), every, at, timezone })
    }
}

/// What a run answers.
#[derive(Debug)]
pub enum FlowOutput {
    /// Values of the context. One that is missing is null.
    Field(Field),
    /// The value of a key, or null.
    Key(String),
}

/// A step.
#[derive(Debug)]
pub struct FlowStep {
    /// Its name in addresses: its `id`, its number in its list, or the name of the step whose place it takes and an `f`. Of a
    /// step in a case, those of the choice and the case precede it.
    pub name: String,
    /// Its number in its list, from 0: that of the document, of an item, or of a case.
    pub number: usize,
    /// Its place in the list that an engine goes through: the steps of the cases of a choice follow the choice.
    pub slot: usize,
    /// The cases that it is in, the outermost first: it runs only where each of them was chosen.
    pub within: Vec<CaseOf>,
    /// The JSON pointer of it in its document.
    pub pointer: String,
    /// Its `type`, as written; of a step that runs a document by its name, that name.
    pub kind: String,
    /// It runs only when this holds.
    pub filter: Option<CompiledCondition>,
    /// The step that runs in its place otherwise.
    pub otherwise: Option<Box<FlowStep>>,
    /// The key of its output.
    pub output_key: Option<String>,
    /// What it does.
    pub action: StepAction,
}

/// What a step does.
#[derive(Debug)]
pub enum StepAction {
    /// A call of a tool.
    Call(Box<CallStep>),
    /// A run of its own.
    React(ReactStep),
    /// The same steps for each item of a list.
    Foreach(Box<Foreach>),
    /// A human approves, or does not.
    Approval(Box<ApprovalStep>),
    /// A human fills a form in.
    Form(FormStep),
    /// The steps after it wait for a time.
    Wait(WaitStep),
    /// A choice between lists of steps.
    Choose(Box<ChooseStep>),
    /// The steps after it wait for an event.
    WaitForEvent(Box<EventStep>),
}

/// A call of a tool.
#[derive(Debug)]
pub struct CallStep {
    /// The tool.
    pub tool: Tool,
    /// The call's input, by name.
    pub input: Vec<(String, Field)>,
    /// Whether each member of its result is a key of the context, as those of a matcher.
    pub spreads: bool,
}

/// A loop of mode `react`.
#[derive(Debug)]
pub struct ReactStep {
    /// The loop.
    pub program: Arc<Program>,
    /// The key of its answer.
    pub result_key: Option<String>,
}

/// The same steps for each item of a list.
#[derive(Debug)]
pub struct Foreach {
    /// The path of the list.
    pub items: Vec<String>,
    /// The name of the item, beside `item`.
    pub item_name: String,
    /// What an item is called where it is shown.
    pub label: Option<Field>,
    /// The steps.
    pub steps: Vec<FlowStep>,
    /// The place of the first of those that run when one of the others has failed.
    pub on_failure: Option<usize>,
    /// How many items are worked on at a time.
    pub max_concurrency: u32,
    /// What a failing item does to the others.
    pub failure_strategy: FailureStrategy,
    /// How many items may fail, with `continue_on_error`.
    pub max_failures: Option<u32>,
    /// Whether what each item gave is gathered.
    pub collects: bool,
    /// What is gathered of an item; none is what its last step gave.
    pub collect: Option<Field>,
    /// The key of what was gathered.
    pub result_key: Option<String>,
    /// The key of the counts.
    pub summary_key: Option<String>,
    /// The most items.
    pub max_items: u32,
    /// The active time of one item in milliseconds.
    pub item_timeout_ms: Option<u64>,
    /// What one item may use.
    pub item_budget: Option<Budget>,
    /// Whether an item that waits for a human gives its place to the next one.
    pub on_pause: OnItemPause,
}

/// A human approves, or does not.
#[derive(Debug)]
pub struct ApprovalStep {
    /// What the human is asked.
    pub comment: Template,
    /// What the human is shown.
    pub request_payload: Vec<(String, Field)>,
    /// Whether the document says nothing of a no: the steps after it decide what it does.
    pub is_silent: bool,
    /// Whether a no fails the run, or the item.
    pub stops: bool,
    /// The same for the runs of earlier editions: there a filter that may hold for another reason held its step.
    pub stops_loosely: bool,
    /// The same for the runs of the editions before: there the letters of later steps decided it.
    pub stops_by_letters: bool,
    /// After how long somebody is reminded of it, in milliseconds.
    pub reminders_ms: Vec<u64>,
    /// The targets that the question is posted to; none without one.
    pub ask: Option<Arc<[String]>>,
}

/// A human fills a form in.
#[derive(Debug)]
pub struct FormStep {
    /// What it asks for.
    pub asks: FormAsks,
    /// How long the form is open, in milliseconds.
    pub ttl_ms: Option<u64>,
    /// After how long somebody is reminded of it, in milliseconds.
    pub reminders_ms: Vec<u64>,
    /// The targets that the question is posted to; none without one.
    pub ask: Option<Arc<[String]>>,
}

impl FlowProgram {
    /// What comes of a delivery to its webhook; none without one.
    ///
    /// # Errors
    /// A sentence without a final stop: why that can't be judged.
    pub fn outcome_of(&self, delivery: &Delivery) -> Option<Result<DeliveryOutcome, String>> {
        let hidden = &self.head.project.redact;
        let rules = DeliveryRules { schema: self.head.input.as_ref(), zone: self.zone.as_ref(), hidden };
        self.webhook.as_ref().map(|webhook| webhook.outcome(delivery, &rules))
    }

    /// The step at an address like `review.57.1`: the names of steps, and the number of the item after each loop.
    pub fn step_at(&self, address: &str) -> Option<&FlowStep> {
        self.walk(address, &mut |_| {})
    }

    /// The same; visits the loops around it and the step itself.
    pub fn walk<'f>(&'f self, address: &str, visit: &mut dyn FnMut(&'f FlowStep)) -> Option<&'f FlowStep> {
        let (mut steps, mut rest) = (self.steps.as_slice(), address);
        // Each round is one loop deeper.
        loop {
            let FoundName { step, below } = find(steps, rest)?;
            visit(step);
            let Some(below) = below else { return Some(step) };
            let StepAction::Foreach(foreach) = &step.action else { return None };
            let (item, inner) = below.split_once('.')?;
            item.parse::<u32>().ok()?;
            (steps, rest) = (&foreach.steps, inner);
        }
    }

    /// Whether it is a workflow, and no loop of mode `foreach`: that answers with a key of its own.
    pub fn is_workflow(&self) -> bool {
        !matches!(self.output, Some(FlowOutput::Key(_)))
    }

    /// Whether a step of it asks a human.
    pub fn asks_humans(&self) -> bool {
        let mut asks = false;
        self.each(&mut |step| asks |= matches!(step.action, StepAction::Approval(_) | StepAction::Form(_)));
        asks
    }

    /// All steps, those in loops and those that take another one's place too.
    pub fn each<'f>(&'f self, visit: &mut dyn FnMut(&'f FlowStep)) {
        each_step(&self.steps, visit);
    }

    /// Whether a step asks models.
    pub fn spends(&self) -> bool {
        let mut spends = false;
        self.each(&mut |step| spends |= step.spends());
        spends
    }

    /// Visits all steps, each with whether a budget in US dollars counts it: that of the workflow, or one of the items
    /// around it.
    pub fn each_priced<'f>(&'f self, visit: &mut dyn FnMut(&'f FlowStep, bool)) {
        each_priced_step(&self.steps, in_dollars(self.head.budget.as_ref()), visit);
    }

    /// The loops that are written in it as steps.
    pub fn loops(&self) -> Vec<&Arc<Program>> {
        let mut loops = Vec::new();
        self.each(&mut |step| {
            if let StepAction::React(react) = &step.action {
                loops.push(&react.program);
            }
        });
        loops
    }

    /// The loops and workflows that its steps run or start: those that are written in it, and those that have a document of
    /// their own.
    pub fn called(&self) -> Vec<&Arc<Program>> {
        let mut called = Vec::new();
        self.each(&mut |step| called.extend(step.called()));
        called
    }

    /// The tools that its steps call.
    pub fn tools(&self) -> Vec<&Tool> {
        let mut tools = Vec::new();
        self.each(&mut |step| {
            if let StepAction::Call(call) = &step.action {
                tools.push(&call.tool);
            }
        });
        tools
    }
}

impl ApprovalStep {
    /// What a no does, by the rule of the run.
    pub fn on_rejected(&self, rule: DenialRule) -> OnRejected {
        let stops = match rule {
            DenialRule::Letters => self.stops_by_letters,
            DenialRule::Loose => self.stops_loosely,
            DenialRule::Firm => self.stops,
        };
        if stops { OnRejected::Stop } else { OnRejected::GoOn }
    }
}

impl FlowStep {
    /// The targets that its question is posted to: that of the step itself, or of the approval of its call.
    pub fn ask(&self) -> Option<&Arc<[String]>> {
        match &self.action {
            StepAction::Approval(approval) => approval.ask.as_ref(),
            StepAction::Form(form) => form.ask.as_ref(),
            StepAction::Call(call) => call.tool.approval.ask.as_ref(),
            _ => None,
        }
    }

    /// The step, and those that take its place, as an approval before them sees them.
    pub fn chain(&self) -> Vec<ChainLink<'_>> {
        let mut chain = Vec::new();
        let mut next = Some(self);
        while let Some(step) = next {
            let asks = matches!(step.action, StepAction::Approval(_));
            match &step.action {
                StepAction::Choose(choose) => chain.extend(choose.links()),
                _ => chain.push(ChainLink { asks, filter: step.filter.as_ref(), writes: step.written_keys() }),
            }
            next = step.otherwise.as_deref();
        }
        chain
    }

    /// The keys of the context that it writes, and those of the steps inside it.
    pub(crate) fn written_keys(&self) -> Vec<String> {
        let mut keys: Vec<String> = self.output_key.iter().cloned().collect();
        match &self.action {
            StepAction::Call(call) => match &call.tool.kind {
                ToolKind::Matcher(matcher) if call.spreads => keys.extend(matcher.keys().map(str::to_owned)),
                _ => {}
            },
            StepAction::React(react) => keys.extend(react.result_key.clone()),
            StepAction::Foreach(foreach) => {
                keys.extend(foreach.result_key.iter().chain(&foreach.summary_key).cloned());
                each_step(&foreach.steps, &mut |step| keys.extend(step.written_keys()));
            }
            StepAction::Approval(_) => keys.extend(APPROVAL_KEYS.map(str::to_owned)),
            StepAction::Wait(_) | StepAction::WaitForEvent(_) => {}
            StepAction::Form(form) => keys.extend(form.asks.keys().map(str::to_owned)),
            // Its steps write theirs themselves.
            StepAction::Choose(_) => {}
        }
        keys
    }

    /// Whether it writes a key of the context; the steps of a loop write theirs themselves.
    pub fn writes(&self, key: &str) -> bool {
        let is = |written: &Option<String>| written.as_deref() == Some(key);
        let writes = match &self.action {
            StepAction::Call(call) => match &call.tool.kind {
                ToolKind::Matcher(matcher) => call.spreads && matcher.keys().contains(&key),
                _ => false,
            },
            StepAction::React(react) => is(&react.result_key),
            StepAction::Foreach(foreach) => (foreach.collects && is(&foreach.result_key)) || is(&foreach.summary_key),
            StepAction::Approval(_) => APPROVAL_KEYS.contains(&key),
            StepAction::Wait(_) | StepAction::WaitForEvent(_) => false,
            StepAction::Form(form) => form.asks.keys().any(|asked| asked == key),
            StepAction::Choose(_) => false,
        };
        writes || is(&self.output_key)
    }

    /// The loop or workflow of which it is a run, and whose end it waits for.
    pub fn subrun(&self) -> Option<&Arc<Program>> {
        match &self.action {
            StepAction::React(react) => Some(&react.program),
            StepAction::Call(call) => call.tool.called_loop(),
            StepAction::Foreach(_)
            | StepAction::Approval(_)
            | StepAction::Form(_)
            | StepAction::Wait(_)
            | StepAction::Choose(_)
            | StepAction::WaitForEvent(_) => None,
        }
    }

    /// The loop or workflow that it runs or starts.
    pub fn called(&self) -> Option<&Arc<Program>> {
        let launched = || match &self.action {
            StepAction::Call(call) => call.tool.launched(),
            _ => None,
        };
        self.subrun().or_else(launched)
    }

    /// After how long somebody is reminded of it, in milliseconds.
    pub fn reminders_ms(&self) -> &[u64] {
        match &self.action {
            StepAction::Approval(approval) => &approval.reminders_ms,
            StepAction::Form(form) => &form.reminders_ms,
            StepAction::Call(_)
            | StepAction::React(_)
            | StepAction::Foreach(_)
            | StepAction::Wait(_)
            | StepAction::Choose(_)
            | StepAction::WaitForEvent(_) => &[],
        }
    }

    /// Whether it asks models: its cost counts for the run's budget.
    pub fn spends(&self) -> bool {
        match &self.action {
            StepAction::Call(call) => call.tool.spends(),
            StepAction::React(_) => true,
            StepAction::Foreach(_)
            | StepAction::Approval(_)
            | StepAction::Form(_)
            | StepAction::Wait(_)
            | StepAction::Choose(_)
            | StepAction::WaitForEvent(_) => false,
        }
    }
}

/// A step that an address begins with.
#[derive(Debug, Clone, Copy)]
pub struct FoundName<'f, 'a> {
    /// The step.
    pub step: &'f FlowStep,
    /// What follows its name: the number of an item, and more.
    pub below: Option<&'a str>,
}

/// The step of a list, or one in the place of another, that has this name, or is a loop that the address leads into.
pub fn find<'f, 'a>(steps: &'f [FlowStep], address: &'a str) -> Option<FoundName<'f, 'a>> {
    steps.iter().find_map(|first| {
        let mut next = Some(first);
        while let Some(step) = next {
            match address.strip_prefix(step.name.as_str()) {
                Some("") => return Some(FoundName { step, below: None }),
                Some(rest) if let Some(below) = rest.strip_prefix('.') => {
                    if matches!(step.action, StepAction::Foreach(_)) {
                        return Some(FoundName { step, below: Some(below) });
                    }
                }
                _ => {}
            }
            next = step.otherwise.as_deref();
        }
        None
    })
}

/// Visits steps, those in loops and those that take another one's place too.
pub(crate) fn each_step<'f>(steps: &'f [FlowStep], visit: &mut dyn FnMut(&'f FlowStep)) {
    for step in steps {
        let mut next = Some(step);
        while let Some(step) = next {
            visit(step);
            if let StepAction::Foreach(foreach) = &step.action {
                each_step(&foreach.steps, visit);
            }
            next = step.otherwise.as_deref();
        }
    }
}

/// Visits steps as [`each_step`]; `priced`: whether a budget in US dollars counts them.
fn each_priced_step<'f>(steps: &'f [FlowStep], priced: bool, visit: &mut dyn FnMut(&'f FlowStep, bool)) {
    for step in steps {
        let mut next = Some(step);
        while let Some(step) = next {
            visit(step, priced);
            if let StepAction::Foreach(foreach) = &step.action {
                each_priced_step(&foreach.steps, priced || in_dollars(foreach.item_budget.as_ref()), visit);
            }
            next = step.otherwise.as_deref();
        }
    }
}

fn in_dollars(budget: Option<&Budget>) -> bool {
    budget.is_some_and(|budget| budget.cost_usd.is_some())
}

/// The fields of an object, in their order.
pub(crate) fn fields(written: &Map<String, Value>) -> Option<Vec<(String, Field)>> {
    written.iter().map(|(name, value)| Some((name.clone(), Field::compile(value).ok()?))).collect()
}
