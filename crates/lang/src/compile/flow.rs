//! The steps of a sound document, lowered to a [`FlowProgram`]. The walk through the steps has judged them before.

mod choose;
mod inputs;

use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Map, Value};

use self::choose::{CasePlace, PlacedChoice};
use super::declare::{Declare, StepTerms};
use super::documents;
use super::layout;
use super::notify;
use super::steps::{Inner, Steps};
use super::tool;
use crate::diagnostic::Source;
use crate::language::action::Action;
use crate::language::action::Matcher;
use crate::language::loop_document::LoopProperties;
use crate::language::mcp_offer::McpOffer;
use crate::language::notify::NOTIFY;
use crate::language::step::{Approval, Form, OnRejected, Properties, TableOperation};
use crate::language::tool::ActionTool;
use crate::language::wait::{WAIT, WAIT_FOR_EVENT, Wait, WaitForEvent};
use crate::language::workflow::Definition;
use crate::language::{ForeachProperties, LoopDocument, Project, ReactProperties, Step, WorkflowDocument};
use crate::program::approval::targets;
use crate::program::awaited_event::EventStep;
use crate::program::concurrency::ConcurrencyRule;
use crate::program::condition::CompiledCondition;
use crate::program::denial::{self, DenialRule, StepsAfterNo};
use crate::program::flow::{
    ApprovalStep, CallStep, FlowOutput, FlowProgram, FlowSchedule, FlowStep, Foreach, FormStep, ON_FAILURE, ReactStep,
    StepAction, fields,
};
use crate::program::form::FormAsks;
use crate::program::reference::{Field, as_path};
use crate::program::schema::Schema;
use crate::program::template::{Template, ValueEscape};
use crate::program::timetable::zone;
use crate::program::wait::WaitStep;
use crate::program::webhook::FlowWebhook;
use crate::program::{ProgramHead, Tool};
use crate::syntax::document::{Document, DocumentKind};
use crate::syntax::shape::Unknown;

/// The active time of a workflow that sets none: no run is without a bound.
pub const TIMEOUT_MS: u64 = 24 * 60 * 60 * 1000;

/// The parts of a document around its steps.
pub(super) struct FlowHead {
    pub name: String,
    pub description: Option<String>,
    pub input: Option<Schema>,
    pub mcp: McpOffer,
    pub concurrency: Option<ConcurrencyRule>,
    /// The settings of the project.
    pub project: Arc<Project>,
}

/// Lowers the steps of a document; none when it has faults that were reported before.
pub(super) fn lower(main: &Document, steps: &Steps, declare: &mut Declare<'_>, head: FlowHead) -> Option<FlowProgram> {
    let FlowHead { name, description, input, mcp, concurrency, project } = head;
    let mut lowering = FlowLowering { main, steps, declare, project: Arc::clone(&project) };
    let head = ProgramHead {
        name,
        description,
        input,
        mcp,
        project,
        sources: Vec::new(),
        levels: 1,
        timeout_ms: TIMEOUT_MS,
        budget: None,
        concurrency,
    };
    let mut program = match main.kind? {
        DocumentKind::Workflow => {
            let WorkflowDocument { id, definition, .. } = WorkflowDocument::deserialize(&main.value).ok()?;
            let output = definition.output.as_ref().and_then(|output| Field::compile(output).ok());
            let on_failure = definition
                .on_failure
                .as_deref()
                .map(|steps| ListOnFailure { pointer: "/definition/on_failure", steps });
            let LoweredList { steps, on_failure } =
                lowering.list("/definition/actions", &definition.actions, on_failure)?;
            let inputs = inputs::of(&main.value, &definition, &steps);
            let timeout_ms = definition.timeout_ms.unwrap_or(TIMEOUT_MS);
            let webhook = webhook(&definition, &head.name);
            FlowProgram {
                head: ProgramHead { timeout_ms, budget: definition.budget.clone(), ..head },
                id,
                condition: definition.condition.as_ref().and_then(|written| CompiledCondition::compile(written).ok()),
                steps,
                on_failure,
                on_cancel: definition.on_cancel,
                output: output.map(FlowOutput::Field),
                zone: definition.timezone.as_deref().and_then(zone),
                schedule: definition.schedule.as_ref().and_then(FlowSchedule::of),
                webhook,
                inputs,
                documents: documents::used(main),
            }
        }
        DocumentKind::Loop => {
            let LoopDocument { properties: LoopProperties::Foreach(foreach), .. } =
                LoopDocument::deserialize(&main.value).ok()?
            else {
                return None;
            };
            lowering.alone(head, foreach)?
        }
        _ => return None,
    };
    let called = program.called().into_iter();
    let levels = called.clone().map(|called| called.levels).max().unwrap_or(0).saturating_add(1);
    let mut sources = vec![main.tree.source.clone()];
    let of_loops = called.flat_map(|called| called.sources.iter().cloned());
    for source in declare.used.drain(..).chain(of_loops) {
        if !sources.iter().any(|known: &Source| known.name == source.name) {
            sources.push(source);
        }
    }
    (program.head.levels, program.head.sources) = (levels, sources);
    Some(program)
}

fn webhook(definition: &Definition, workflow: &str) -> Option<FlowWebhook> {
    FlowWebhook::of(&definition.trigger.as_ref()?.webhook, workflow)
}

struct FlowLowering<'l, 'a> {
    main: &'l Document,
    steps: &'l Steps,
    declare: &'l mut Declare<'a>,
    project: Arc<Project>,
}

impl FlowLowering<'_, '_> {
    /// A document that is one loop of mode `foreach`: it answers with what the loop gathers, or else with its counts.
    fn alone(&mut self, head: ProgramHead, mut foreach: ForeachProperties) -> Option<FlowProgram> {
        let key = if foreach.collect_results { &mut foreach.result_key } else { &mut foreach.summary_key };
        let output = FlowOutput::Key(key.get_or_insert_with(|| "__result".to_owned()).clone());
        let step = FlowStep {
            name: "0".to_owned(),
            number: 0,
            slot: 0,
            within: Vec::new(),
            pointer: String::new(),
            kind: "loop".to_owned(),
            filter: None,
            otherwise: None,
            output_key: None,
            action: StepAction::Foreach(Box::new(self.foreach("/properties", foreach)?)),
        };
        let documents = documents::used(self.main);
        Some(FlowProgram {
            head,
            id: None,
            condition: None,
            steps: vec![step],
            on_failure: None,
            on_cancel: false,
            output: Some(output),
            zone: None,
            schedule: None,
            webhook: None,
            inputs: Schema::any(),
            documents,
        })
    }

    /// A list of steps, and behind them those that run when one of them has failed.
    fn list(&mut self, pointer: &str, steps: &[Step], failed: Option<ListOnFailure<'_>>) -> Option<LoweredList> {
        let mut lowered = Vec::with_capacity(steps.len());
        self.steps_of(pointer, steps, &CasePlace::default(), &mut lowered)?;
        let on_failure = failed.as_ref().filter(|failed| !failed.steps.is_empty()).map(|_| lowered.len());
        if let Some(failed) = failed {
            self.steps_of(failed.pointer, failed.steps, &CasePlace::on_failure(), &mut lowered)?;
        }
        for (slot, first) in lowered.iter_mut().enumerate() {
            let mut next = Some(first);
            while let Some(step) = next {
                step.slot = slot;
                next = step.otherwise.as_deref_mut();
            }
        }
        judge_denials(&mut lowered);
        Some(LoweredList { steps: lowered, on_failure })
    }

    /// Lowers steps that are written one after the other. Those of the cases of a choice follow it.
    fn steps_of(
        &mut self,
        pointer: &str,
        steps: &[Step],
        around: &CasePlace,
        lowered: &mut Vec<FlowStep>,
    ) -> Option<()> {
        let mut is_whole = Some(());
        for (number, step) in steps.iter().enumerate() {
            let later = steps.get(number + 1..).unwrap_or_default();
            let mut inner = Vec::new();
            let place = StepPlace { number, name: None, later, around };
            // All of them are looked at, so that all faults are found.
            match self.step(&format!("{pointer}/{number}"), step, &place, &mut inner) {
                Some(step) => lowered.push(step),
                None => is_whole = None,
            }
            lowered.append(&mut inner);
        }
        is_whole
    }

    fn step(&mut self, at: &str, step: &Step, place: &StepPlace<'_>, inner: &mut Vec<FlowStep>) -> Option<FlowStep> {
        let own = Self::name(step, place);
        let otherwise = match &step.on_false {
            Some(other) => {
                let place = StepPlace { name: Some(format!("{own}f")), ..*place };
                Some(Box::new(self.step(&format!("{at}/onFalse"), other, &place, inner)?))
            }
            None => None,
        };
        let name = format!("{}{own}", place.around.prefix);
        let mut output_key = step.output_key.clone();
        let action = match &step.properties {
            Properties::Loop(properties) => match &**properties {
                LoopProperties::React(react) => StepAction::React(self.react(at, react)?),
                LoopProperties::Foreach(foreach) => {
                    StepAction::Foreach(Box::new(self.foreach(&format!("{at}/properties"), foreach.clone())?))
                }
            },
            Properties::Matcher(matcher) => {
                let tool = matcher_tool(matcher)?;
                let sides = [("left", &matcher.left), ("right", &matcher.right)];
                let field = |(name, side): (&str, &Option<Value>)| {
                    Some((name.to_owned(), Field::compile(side.as_ref()?).ok()?))
                };
                let input = sides.into_iter().filter_map(field).collect();
                StepAction::Call(Box::new(CallStep { tool, input, spreads: true }))
            }
            Properties::CustomTable(table) => {
                let Ok(Value::Object(mut written)) = serde_json::to_value(table) else { return None };
                let tool = table_tool(table.operation, written.remove("max_rows"))?;
                StepAction::Call(Box::new(CallStep { tool, input: fields(&written)?, spreads: false }))
            }
            Properties::Approval(approval) => StepAction::Approval(Box::new(approval_step(approval, place.later)?)),
            Properties::Form(form) => StepAction::Form(form_step(form)?),
            Properties::Choose(choose) => StepAction::Choose(Box::new(self.choose(
                &PlacedChoice { at, name: &name, around: place.around },
                choose,
                inner,
            )?)),
            Properties::Named(values) => {
                let named = self.steps.named.get(at)?;
                output_key = output_key.or_else(|| Some(named.key.clone()));
                StepAction::Call(Box::new(CallStep { tool: named.tool()?, input: fields(values)?, spreads: false }))
            }
            Properties::Action(values) if self.is_built_in(WAIT, &step.kind) => {
                let written = Wait::deserialize(&Value::Object(values.clone())).ok()?;
                StepAction::Wait(WaitStep::compile(&written)?)
            }
            Properties::Action(values) if self.is_notify(step) => {
                let target = notify::target(&self.project, values)?;
                let tool = notify::tool(&target, step.timeout_ms, step.retry.as_ref())?;
                StepAction::Call(Box::new(CallStep { tool, input: fields(values)?, spreads: false }))
            }
            Properties::Action(values) if self.is_built_in(WAIT_FOR_EVENT, &step.kind) => {
                let written = WaitForEvent::deserialize(&Value::Object(values.clone())).ok()?;
                StepAction::WaitForEvent(Box::new(EventStep::compile(&written)?))
            }
            Properties::Action(values) => {
                let (tool, key) = self.tool(step)?;
                output_key = output_key.or(key);
                StepAction::Call(Box::new(CallStep { tool, input: fields(values)?, spreads: false }))
            }
        };
        Some(FlowStep {
            name,
            number: place.number,
            slot: 0,
            within: place.around.within.clone(),
            pointer: at.to_owned(),
            kind: step.name.as_ref().unwrap_or(&step.kind).clone(),
            filter: step.filter.as_ref().and_then(|filter| CompiledCondition::compile(&filter.condition).ok()),
            otherwise,
            output_key: output_key.map(|key| key.trim_start_matches('@').to_owned()),
            action,
        })
    }

    /// Whether a type means the built-in step of this word: an action of this name keeps its meaning.
    fn is_built_in(&self, word: &str, kind: &str) -> bool {
        kind == word && self.declare.catalog.find(word).is_empty()
    }

    /// Whether a step sends a text to a target of the project. A registered action of this name comes first.
    fn is_notify(&self, step: &Step) -> bool {
        step.kind == NOTIFY && self.declare.catalog.find(NOTIFY).is_empty()
    }

    /// The name of a step in addresses.
    fn name(step: &Step, place: &StepPlace<'_>) -> String {
        let name = step.id.as_ref().or(place.name.as_ref());
        name.cloned().unwrap_or_else(|| place.number.to_string())
    }

    fn react(&self, at: &str, react: &ReactProperties) -> Option<ReactStep> {
        let pointer = format!("{at}/properties/objective");
        let is_it = |inner: &&Inner| inner.layout.pointer("objective") == pointer;
        let program = self.steps.loops.iter().find(is_it)?.program.as_ref()?;
        Some(ReactStep { program: Arc::clone(program), result_key: react.result_key.clone() })
    }

    fn foreach(&mut self, at: &str, foreach: ForeachProperties) -> Option<Foreach> {
        let pointer = format!("{at}/{ON_FAILURE}");
        let failed = foreach.on_failure.as_deref().map(|steps| ListOnFailure { pointer: &pointer, steps });
        let LoweredList { steps, on_failure } =
            self.list(&format!("{at}/actions_to_execute"), &foreach.actions_to_execute, failed)?;
        Some(Foreach {
            items: as_path(&foreach.items_path)?,
            item_name: foreach.item_variable_name,
            label: foreach.item_label.and_then(|label| Field::compile(&Value::from(label)).ok()),
            steps,
            on_failure,
            max_concurrency: foreach.max_concurrency,
            failure_strategy: foreach.failure_strategy,
            max_failures: foreach.max_failures,
            collects: foreach.collect_results,
            collect: foreach.collect.as_ref().and_then(|written| Field::compile(written).ok()),
            result_key: foreach.result_key,
            summary_key: foreach.summary_key,
            max_items: foreach.max_items,
            item_timeout_ms: foreach.item_timeout_ms,
            item_budget: foreach.item_budget,
            on_pause: foreach.on_pause,
        })
    }

    /// The tool of a registered action, of an MCP server or of the program, and the key of its output.
    fn tool(&mut self, step: &Step) -> Option<(Tool, Option<String>)> {
        if let Some(provided) = self.declare.provided(&step.kind) {
            let tool = self.declare.tool_of_step(provided, StepTerms { timeout_ms: step.timeout_ms })?;
            let retry = step.retry.clone().filter(|_| tool.idempotent);
            return Some((Tool { retry, ..tool }, self.steps.provided.get(&step.kind)?.key.clone()));
        }
        let registered = *self.declare.catalog.find(&step.kind).first()?;
        let action = registered.read()?;
        let declaration = ActionTool { name: step.kind.clone(), timeout_ms: step.timeout_ms, ..ActionTool::default() };
        let properties = layout::defaults()?;
        // The walk through the steps has reported its faults.
        let (mut tool, _) = tool::declared(&declaration, &action, &properties, &Unknown::default()).ok()?;
        if let Some(retry) = step.retry.as_ref().filter(|_| tool.idempotent) {
            tool.retry = Some(retry.clone());
        }
        let own = registered.value.get("outputKey").and_then(Value::as_str);
        Some((tool, Some(own.unwrap_or(&step.kind).to_owned())))
    }
}

/// The steps that run when a list has failed.
struct ListOnFailure<'l> {
    pointer: &'l str,
    steps: &'l [Step],
}

/// A list of steps, lowered.
struct LoweredList {
    steps: Vec<FlowStep>,
    /// The place of the first of those that run when one of the others has failed.
    on_failure: Option<usize>,
}

/// The place of a step in its list.
struct StepPlace<'l> {
    number: usize,
    /// Its name, when it takes the place of another step.
    name: Option<String>,
    /// The steps after it.
    later: &'l [Step],
    /// The case that it is in.
    around: &'l CasePlace,
}

/// The tool of a matcher that is a step: its lists are the step's, and come with each call.
fn matcher_tool(matcher: &Matcher) -> Option<Tool> {
    let Ok(Value::Object(mut settings)) = serde_json::to_value(matcher) else { return None };
    settings.remove("left");
    settings.remove("right");
    built_in("matcher", settings)
}

/// The tool of a custom table that is a step: the table and all else come with each call.
fn table_tool(operation: Option<TableOperation>, max_rows: Option<Value>) -> Option<Tool> {
    let read_only = ("read_only".to_owned(), Value::Bool(false));
    let settings = max_rows.map(|most| ("max_rows".to_owned(), most)).into_iter().chain([read_only]).collect();
    let tool = built_in("custom-table", settings)?;
    let read_only = operation == Some(TableOperation::Read);
    let idempotent = read_only || operation == Some(TableOperation::Upsert);
    Some(Tool { read_only, idempotent, ..tool })
}

/// The tool of a step whose type is a kind of action.
fn built_in(kind: &str, mut settings: Map<String, Value>) -> Option<Tool> {
    settings.insert("action_name".to_owned(), kind.into());
    settings.insert("kind".to_owned(), kind.into());
    let action = Action::read(&Value::Object(settings)).ok()?;
    let declaration = ActionTool { name: kind.to_owned(), ..ActionTool::default() };
    let (tool, _) = tool::declared(&declaration, &action, &layout::defaults()?, &Unknown::default()).ok()?;
    Some(tool)
}

/// Decides of the approvals in a list that say nothing of it whether a no stops the run, or the item: the steps after them
/// decide that. After the steps of a case come those behind its choice.
fn judge_denials(lowered: &mut [FlowStep]) {
    let mut verdicts = Vec::new();
    for (number, first) in lowered.iter().enumerate() {
        let follows = |step: &&FlowStep| first.within.starts_with(&step.within);
        let later =
            || lowered.iter().skip(number.saturating_add(1)).filter(follows).map(FlowStep::chain).collect::<Vec<_>>();
        let stops = |step: &FlowStep, rule| {
            matches!(step.action, StepAction::Approval(_))
                && !denial::runs_on(StepsAfterNo::new(step.filter.as_ref(), rule), &later())
        };
        let mut next = Some(first);
        let mut of_chain = Vec::new();
        while let Some(step) = next {
            of_chain.push([DenialRule::Firm, DenialRule::Loose].map(|rule| stops(step, rule)));
            next = step.otherwise.as_deref();
        }
        verdicts.push(of_chain);
    }
    for (first, verdicts) in lowered.iter_mut().zip(verdicts) {
        let mut next = Some(first);
        for stops in verdicts {
            let Some(step) = next else { break };
            if let StepAction::Approval(approval) = &mut step.action
                && approval.is_silent
            {
                [approval.stops, approval.stops_loosely] = stops;
            }
            next = step.otherwise.as_deref_mut();
        }
    }
}

fn approval_step(approval: &Approval, later: &[Step]) -> Option<ApprovalStep> {
    let payload = approval.request_payload.as_ref();
    let names = |step: &Step| serde_json::to_string(step).is_ok_and(|text| text.contains(denial::DECIDED));
    let stops = approval.on_rejected != Some(OnRejected::GoOn);
    Some(ApprovalStep {
        comment: Template::compile(&approval.comment, ValueEscape::Plain).ok()?,
        request_payload: payload.map_or(Some(Vec::new()), fields)?,
        is_silent: approval.on_rejected.is_none(),
        stops,
        stops_loosely: stops,
        stops_by_letters: stops && (approval.on_rejected.is_some() || !later.iter().any(names)),
        reminders_ms: all_milliseconds(approval.reminder_intervals.as_deref()),
        ask: targets(approval.ask.as_deref()),
    })
}

fn all_milliseconds(seconds: Option<&[f64]>) -> Vec<u64> {
    seconds.unwrap_or_default().iter().filter_map(|seconds| milliseconds(*seconds)).collect()
}

/// Seconds in milliseconds; none for a number that is no time.
fn milliseconds(seconds: f64) -> Option<u64> {
    std::time::Duration::try_from_secs_f64(seconds).ok().and_then(|time| u64::try_from(time.as_millis()).ok())
}

fn form_step(form: &Form) -> Option<FormStep> {
    Some(FormStep {
        asks: FormAsks::of(form)?,
        ttl_ms: form.ttl_seconds.and_then(milliseconds),
        reminders_ms: all_milliseconds(form.reminder_intervals.as_deref()),
        ask: targets(form.ask.as_deref()),
    })
}
