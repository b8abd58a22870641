//! Names in scenarios that the tested document does not have: tools, loops, steps, and what pauses are for.

use std::collections::BTreeSet;

use serde_json::Value;

use super::ScenarioSubject;
use super::endings::programs;
use crate::check::script_calls::unknown_workflows;
use crate::diagnostic::{Diagnostic, Nearest, codes};
use crate::language::scenario::{Expectations, FaultPlan};
use crate::program::flow::{FlowProgram, FlowStep, FoundName, StepAction, find};
use crate::program::{Program, ToolKind, builtin};
use crate::syntax::{quoted, token};

/// The kinds of pauses, as decisions name them.
const KINDS: [&str; 5] = ["approval", "human", "stuck", "uncertain", "model_error"];

struct DocumentNames<'a> {
    tools: BTreeSet<&'a str>,
    loops: BTreeSet<&'a str>,
    llm: BTreeSet<&'a str>,
    /// The names of the top-level steps of a workflow, and the types of all its steps.
    steps: BTreeSet<&'a str>,
    kinds: BTreeSet<&'a str>,
    flow: Option<&'a FlowProgram>,
    /// The workflows that it calls.
    below: Vec<&'a FlowProgram>,
}

/// Whether a workflow has a step at an address, which may be one of a workflow that a step of it runs: `pay/post`.
fn has_step(flow: &FlowProgram, address: &str) -> bool {
    let Some((own, below)) = address.split_once('/') else { return flow.step_at(address).is_some() };
    let called = flow.step_at(own).and_then(FlowStep::called).and_then(|called| called.as_flow());
    called.is_some_and(|called| has_step(called, below))
}

/// The address of the step that an address names by its number in its list, although it has an `id`.
fn address_by_id(flow: &FlowProgram, address: &str) -> Option<String> {
    let (mut steps, mut rest, mut around) = (flow.steps.as_slice(), address, String::new());
    // Each round is one loop deeper.
    while let Some(FoundName { step, below: Some(below) }) = find(steps, rest) {
        let StepAction::Foreach(foreach) = &step.action else { return None };
        let (item, inner) = below.split_once('.')?;
        around.push_str(&format!("{}.{item}.", step.name));
        (steps, rest) = (&foreach.steps, inner);
    }
    let split = |name: &str| {
        name.rsplit_once('.')
            .map_or((String::new(), name.to_owned()), |(list, last)| (list.to_owned(), last.to_owned()))
    };
    let (list, number) = split(rest);
    let step = steps.iter().filter(|step| split(&step.name).0 == list).nth(number.parse().ok()?)?;
    Some(format!("{around}{}", step.name))
}

impl<'a> DocumentNames<'a> {
    /// Whether a step at this address can ask: a step of the workflow, or of one that the loop calls.
    fn has_step(&self, address: &str) -> bool {
        match self.flow {
            Some(flow) => has_step(flow, address),
            None => self.below.iter().any(|flow| has_step(flow, address)),
        }
    }

    /// The loop with a document of its own that a step of this name runs, where no loop has the name.
    fn loop_of_step(&self, name: &str) -> Option<&'a str> {
        let mut found = None;
        if let Some(flow) = self.flow.filter(|_| !self.loops.contains(name)) {
            flow.each(&mut |step| {
                let called = step.called().filter(|_| step.name == name);
                found = found.or(called.map(|called| called.name.as_str()));
            });
        }
        found
    }

    fn of(program: &'a Program) -> Self {
        let mut known = Self {
            tools: builtin::NAMES.into_iter().collect(),
            loops: BTreeSet::new(),
            llm: BTreeSet::new(),
            steps: BTreeSet::new(),
            kinds: BTreeSet::new(),
            flow: program.as_flow(),
            below: Vec::new(),
        };
        for (index, part) in programs(program).into_iter().enumerate() {
            if index > 0 {
                known.loops.insert(&part.name);
                known.below.extend(part.as_flow());
            }
            for tool in part.all_tools() {
                known.tools.insert(&tool.name);
                if let ToolKind::Loop(called) | ToolKind::Launch(called) = &tool.kind {
                    known.loops.insert(&called.name);
                } else if tool.spends() {
                    known.llm.insert(&tool.name);
                }
            }
        }
        // The questions of a workflow that a loop calls have the addresses that their steps have in it.
        let below = known.below.iter().copied().filter(|_| known.flow.is_none());
        for flow in known.flow.into_iter().chain(below) {
            known.steps.extend(flow.steps.iter().map(|step| step.name.as_str()));
            flow.each(&mut |step| {
                known.kinds.insert(&step.kind);
            });
        }
        known
    }

    /// What a call can be of.
    fn called(&self) -> BTreeSet<&'a str> {
        self.tools.union(&self.kinds).copied().collect()
    }

    /// What a pause can be for.
    fn asked(&self) -> BTreeSet<&'a str> {
        let kinds = KINDS.into_iter().collect();
        self.called().union(&self.steps).copied().collect::<BTreeSet<_>>().union(&kinds).copied().collect()
    }
}

/// Reports names that are not known.
struct NameReport<'s, 'a> {
    subject: &'s ScenarioSubject<'a>,
    nearest: Nearest,
    found: &'s mut Vec<Diagnostic>,
}

impl NameReport<'_, '_> {
    /// Reports a name that is not among `known`: the value at the pointer, or its key.
    fn name(&mut self, name: &str, known: &BTreeSet<&str>, place: NamePlace<'_>) {
        if known.contains(name) {
            return;
        }
        let NamePlace { pointer, is_key, what } = place;
        let tree = &self.subject.document.tree;
        let at = if is_key { tree.key_place(&pointer) } else { tree.place(&pointer) };
        let message = format!("the tested document has no {what} `{name}`");
        let fault = Diagnostic::error(codes::SCENARIO_NAME, message, pointer, at);
        let near = self.nearest.field(name, known.iter().copied().collect::<Vec<_>>());
        self.found.push(match near {
            Some((near, true)) => fault.help(format!("the nearest name is `{near}`")).suggest(quoted(near)),
            Some((near, false)) => fault.help(format!("the nearest name is `{near}`")),
            None if known.is_empty() => fault.help(format!("it has no {what} at all")),
            None => fault.help("name it as the document does"),
        });
    }

    /// Reports the id of a step in the place of the name of the loop that it runs.
    fn named_by_step(&mut self, step: &str, called: &str, place: NamePlace<'_>) {
        let at = self.subject.document.tree.key_place(&place.pointer);
        let message = format!("the step `{step}` runs the loop `{called}`, whose replies are under its own name");
        let fault = Diagnostic::error(codes::SCENARIO_NAME, message, place.pointer, at);
        self.found.push(fault.help(format!("the key is `{called}`")).suggest(quoted(called)));
    }

    fn step(&mut self, address: &str, known: &DocumentNames<'_>, place: NamePlace<'_>) {
        let Some(flow) = known.flow else { return self.name(address, &known.steps, place) };
        if flow.step_at(address).is_some() {
            return;
        }
        if let Some(own) = address.rsplit('/').next().filter(|_| address.contains('/') && has_step(flow, address)) {
            let at = self.subject.document.tree.place(&place.pointer);
            let message = format!("`{address}` is a step of a run below, of which only the calls are expected");
            let fault = Diagnostic::error(codes::SCENARIO_NAME, message, place.pointer, at);
            self.found.push(fault.help(format!("`calls` has it at the address of its own run: `\"at\": \"{own}\"`")));
            return;
        }
        let Some(meant) = address_by_id(flow, address) else { return self.name(address, &known.steps, place) };
        let at = self.subject.document.tree.place(&place.pointer);
        let message = format!("the tested document has no step `{address}`");
        let fault = Diagnostic::error(codes::SCENARIO_NAME, message, place.pointer, at);
        self.found
            .push(fault.help(format!("a step that has an `id` is named by it: `{meant}`")).suggest(quoted(&meant)));
    }
}

/// Where a name is, and what it names.
struct NamePlace<'a> {
    pointer: String,
    is_key: bool,
    what: &'a str,
}

fn value(pointer: String, what: &str) -> NamePlace<'_> {
    NamePlace { pointer, is_key: false, what }
}

fn key(pointer: String, what: &str) -> NamePlace<'_> {
    NamePlace { pointer, is_key: true, what }
}

/// Reports the names.
pub(super) fn check(subject: &ScenarioSubject<'_>, found: &mut Vec<Diagnostic>) {
    let Some(program) = subject.program else { return };
    let known = DocumentNames::of(program);
    let mut report = NameReport { subject, nearest: Nearest::default(), found };
    let played: BTreeSet<&str> = known.tools.iter().copied().filter(|name| !builtin::NAMES.contains(name)).collect();
    let file = subject.file;
    let own = [(String::new(), &file.tools, &file.loops, &file.models)];
    let scenarios = file.scenarios.iter().enumerate();
    let of = scenarios.map(|(at, one)| (format!("/scenarios/{at}"), &one.tools, &one.loops, &one.models));
    for (at, tools, loops, models) in own.into_iter().chain(of) {
        tools.keys().for_each(|name| report.name(name, &played, key(format!("{at}/tools/{}", token(name)), "tool")));
        for name in loops.keys() {
            let place = key(format!("{at}/loops/{}", token(name)), "loop");
            match known.loop_of_step(name) {
                Some(called) => report.named_by_step(name, called, place),
                None => report.name(name, &known.loops, place),
            }
        }
        let llm = "action of kind llm";
        models.keys().for_each(|name| report.name(name, &known.llm, key(format!("{at}/models/{}", token(name)), llm)));
    }
    for (index, scenario) in file.scenarios.iter().enumerate() {
        let at = format!("/scenarios/{index}");
        for (number, decision) in scenario.decisions.iter().enumerate() {
            if let Some(name) = decision.about.as_deref().filter(|name| !known.has_step(name)) {
                report.name(
                    name,
                    &known.asked(),
                    value(format!("{at}/decisions/{number}/for"), "tool, step or kind of pause"),
                );
            }
            if let Some(address) = &decision.at
                && !known.has_step(address)
            {
                report.step(address, &known, value(format!("{at}/decisions/{number}/at"), "step"));
            }
        }
        if let Some(FaultPlan::Listed(faults)) = &scenario.faults {
            for (number, fault) in faults.iter().enumerate() {
                if let Some(name) = &fault.action {
                    report.name(name, &played, value(format!("{at}/faults/{number}/action"), "tool"));
                }
            }
        }
        for (number, reply) in scenario.replies.iter().flatten().enumerate() {
            said(&mut report, &known, reply, &format!("{at}/replies/{number}"));
        }
        let replies = scenario.replies.as_deref().unwrap_or_default();
        report.found.extend(unknown_workflows(subject.document, replies, &format!("{at}/replies"), program));
    }
    for placed in subject.expectations() {
        expected(&mut report, &known, placed.expect, &placed.at);
    }
}

/// Warns of a tool that the model asks for, if it is nearly one of the document. Another one may be meant to be refused.
fn said(report: &mut NameReport<'_, '_>, known: &DocumentNames<'_>, reply: &Value, at: &str) {
    let of = |value: &Value| value.get("action").and_then(Value::as_str).map(str::to_owned);
    let calls = reply.get("calls").and_then(Value::as_array).into_iter().flatten().enumerate();
    let calls = calls.filter_map(|(index, call)| Some((format!("{at}/calls/{index}/action"), of(call)?)));
    let named = of(reply).map(|name| (format!("{at}/action"), name)).into_iter().chain(calls);
    for (pointer, name) in named.filter(|(_, name)| !known.tools.contains(name.as_str())).collect::<Vec<_>>() {
        let Some(near) = report.nearest.of(&name, known.tools.iter().copied()) else { continue };
        let message = format!("the tested document has no tool `{name}`: the call is refused");
        let fault = report.subject.warning(codes::SCENARIO_NAME, pointer, message);
        report.found.push(fault.help(format!("the nearest name is `{near}`")));
    }
}

fn expected(report: &mut NameReport<'_, '_>, known: &DocumentNames<'_>, expect: &Expectations, at: &str) {
    let called = known.called();
    for (index, call) in expect.calls.iter().flatten().enumerate() {
        if let Some(name) = &call.action {
            report.name(name, &called, value(format!("{at}/calls/{index}/action"), "tool or step"));
        }
        if let Some(address) = &call.at {
            // The calls of a run below have the addresses that they have in it.
            if !known.below.iter().any(|flow| flow.step_at(address).is_some()) {
                report.step(address, known, value(format!("{at}/calls/{index}/at"), "step"));
            }
        }
    }
    for (index, never) in expect.never.iter().enumerate() {
        let of_call = matches!(never, crate::language::scenario::NeverEntry::Call(_));
        let pointer = format!("{at}/never/{index}{}", if of_call { "/action" } else { "" });
        report.name(never.action(), &called, value(pointer, "tool"));
    }
    for (list, name) in [(&expect.never_asked, "never_asked"), (&expect.once, "once")] {
        for (index, action) in list.iter().enumerate() {
            report.name(action, &called, value(format!("{at}/{name}/{index}"), "tool"));
        }
    }
    for (index, pause) in expect.pauses.iter().flatten().enumerate() {
        let Some(name) = &pause.about else { continue };
        if !known.has_step(name) {
            report.name(name, &known.asked(), value(format!("{at}/pauses/{index}/for"), "tool or step"));
        }
    }
    for address in expect.steps.keys() {
        report.step(address, known, key(format!("{at}/steps/{}", token(address)), "step"));
    }
}
