//! A budget in dollars that counts a model without a price.

use std::collections::HashSet;
use std::iter;

use serde_json::Value;

use crate::check::step_tree::{StepNode, tree};
use crate::check::{Cursor, Rule, Subject, model};
use crate::compile::{Compiled, Texts};
use crate::diagnostic::{Diagnostic, codes};
use crate::language::tool::TypedTool;
use crate::language::{Action, ToolDeclaration};
use crate::program::Program;
use crate::syntax::token;

pub const RULE: Rule = Rule { code: codes::COST_WITHOUT_PRICE, check };

/// The budget of a workflow with all of its steps.
const OF_WORKFLOW: &str = "/definition/budget/cost_usd";

/// A model that is asked, and what is reported when it has no price.
struct PaidModel<'s, 'a> {
    /// Its name; none is that of the project.
    name: Option<&'s str>,
    cursor: Cursor<'a>,
}

fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let mut reported = HashSet::new();
    for PaidModel { name, cursor } in of_loop(subject).into_iter().chain(of_steps(subject)) {
        let Some(model) = model::named(subject, name) else { continue };
        let name = model.name;
        let knows = subject.knows_project(&format!("/models/{}/price", token(name)));
        if !knows || model.declared.is_some_and(|model| model.price.is_some()) || reported.contains(name) {
            continue;
        }
        reported.insert(name);
        let fault = cursor.report(&RULE, format!("the budget is in US dollars, and the model `{name}` has no price"));
        let price = "\"price\": {\"input\": ..., \"output\": ...}";
        found.push(fault.help(match model.declared {
            Some(_) => format!("give `models.{name}` of the project what a million tokens cost: {price}"),
            None => format!("declare `{name}` under `models` of `loopctl.json`, with {price} for a million tokens"),
        }));
    }
}

/// The models of a loop with a budget of its own: its own model, those that are asked in its place, those of `llm`
/// actions, and those of the loops that it calls. All are paid for.
fn of_loop<'s, 'a>(subject: &'s Subject<'a>) -> Vec<PaidModel<'s, 'a>> {
    let Some(react) = subject.react(&["budget/cost_usd", "model", "fallback_models"]) else { return Vec::new() };
    if react.budget.as_ref().is_none_or(|budget| budget.cost_usd.is_none()) {
        return Vec::new();
    }
    let own = iter::once((react.model.as_deref(), subject.property("budget/cost_usd")));
    let fallbacks = react.fallback_models.iter().enumerate();
    let fallbacks =
        fallbacks.map(|(at, model)| (Some(model.name()), subject.property(&format!("fallback_models/{at}"))));
    let actions = subject.actions().iter().filter_map(|used| match &*used.action {
        Action::Llm(action) => Some((Some(action.model.as_deref()?), Some(used.at("/model")))),
        _ => None,
    });
    let asked = own.chain(fallbacks).chain(actions).chain(called(subject, react.model.as_deref()));
    asked.filter_map(|(name, cursor)| Some(PaidModel { name, cursor: cursor? })).collect()
}

/// The models of the loops that it calls, also through others: nothing is run where one of them has no price.
fn called<'s, 'a>(subject: &'s Subject<'a>, own: Option<&'s str>) -> Vec<(Option<&'s str>, Option<Cursor<'a>>)> {
    let mut found = Vec::new();
    for (pointer, declaration) in subject.declarations() {
        let (field, name) = match declaration {
            ToolDeclaration::Typed(TypedTool::Loop(tool)) => ("name", tool.name.as_str()),
            ToolDeclaration::Typed(TypedTool::Workflow(tool)) => match (&tool.id, &tool.name) {
                (Some(id), _) => ("id", id.as_str()),
                (None, Some(name)) => ("name", name.as_str()),
                (None, None) => continue,
            },
            _ => continue,
        };
        // The loop itself may have an error: those that it calls are known all the same.
        let is_named = |(_, called): &&(Texts, Compiled)| match field {
            "id" => called.document.value.get("id").and_then(Value::as_str) == Some(name),
            _ => called.program.as_ref().is_some_and(|program| program.name == name),
        };
        let first = subject.compiled.called.iter().find(is_named).and_then(|(_, called)| called.program.as_ref());
        let Some(first) = first else { continue };
        let cursor = || Some(subject.at(&format!("{pointer}/{field}")));
        found.extend(models_of(first, own).into_iter().map(|model| (model, cursor())));
    }
    found
}

/// The models that a run of a program asks, with those of its sub-runs; `caller`: the model of what calls it.
fn models_of<'s>(program: &'s Program, caller: Option<&'s str>) -> Vec<Option<&'s str>> {
    let mut found = Vec::new();
    let mut seen = HashSet::new();
    let mut open = vec![(program, caller)];
    while let Some((program, caller)) = open.pop() {
        let model = program.model().or(program.project.model.as_deref()).or(caller);
        if !seen.insert((program.sources.first().map(|source| &*source.name), program.name.as_str(), model)) {
            continue;
        }
        // The main model of a workflow answers nothing by itself.
        if !program.is_flow() {
            found.push(model);
            found.extend(program.fallback_models().iter().map(|model| Some(model.name())));
        }
        let tools = program.all_tools();
        found.extend(tools.iter().filter(|tool| tool.asks_model()).map(|tool| tool.model().or(model)));
        // A run of its own has a budget of its own.
        let called = tools.into_iter().filter_map(|tool| tool.called_loop()).chain(program.step_loops());
        open.extend(called.map(|called| (&**called, model)));
    }
    found
}

/// The models of the steps that a budget of the workflow counts, or one of the items around them.
fn of_steps<'s, 'a>(subject: &'s Subject<'a>) -> Vec<PaidModel<'s, 'a>> {
    let mut found = Vec::new();
    for node in &tree(subject) {
        node.each(&mut Vec::new(), &mut |node, around| {
            let of_items = around.iter().rev().map(|node| format!("{}/cost_usd", node.step.property("item_budget")));
            let mut bounds = iter::once(OF_WORKFLOW.to_owned()).chain(of_items);
            let is_bound = |at: &String| subject.at(at).is_written() && !subject.is_faulty(at);
            if let Some(bound) = bounds.find(is_bound) {
                of_step(subject, node, &subject.at(&bound), &mut found);
            }
        });
    }
    found
}

/// The models that a step asks; `bound`: the budget that counts them.
fn of_step<'s, 'a>(
    subject: &'s Subject<'a>,
    node: &StepNode<'a>,
    bound: &Cursor<'a>,
    found: &mut Vec<PaidModel<'s, 'a>>,
) {
    let step = &node.step;
    if let Some(named) = subject.compiled.steps.named.get(step.at) {
        let (models, waits) = (named.program.as_ref().map(|program| models_of(program, None)), named.waits());
        let cursor = subject.at(&format!("{}/name", step.at));
        let asked = models.into_iter().flatten().filter(|_| waits);
        found.extend(asked.map(|name| PaidModel { name, cursor: cursor.clone() }));
        return;
    }
    if step.kind == "loop" && !step.is_foreach() {
        let properties = format!("{}/properties", step.at);
        let inner = subject
            .compiled
            .steps
            .loops
            .iter()
            .find(|inner| inner.layout.pointer("model") == format!("{properties}/model"));
        // One with a budget of its own in dollars is judged by that.
        let Some(program) = inner.and_then(|inner| inner.program.as_deref()) else { return };
        if program.budget.as_ref().is_some_and(|budget| budget.cost_usd.is_some()) {
            return;
        }
        let own = subject.at(&format!("{properties}/model"));
        let cursor = if own.is_written() { own } else { bound.clone() };
        found.extend(models_of(program, None).into_iter().map(|name| PaidModel { name, cursor: cursor.clone() }));
        return;
    }
    let Some(used) = subject.action(step.kind) else { return };
    if let Action::Llm(action) = &*used.action {
        let name = action.model.as_deref();
        let cursor = if name.is_some() { used.at("/model") } else { bound.clone() };
        found.push(PaidModel { name, cursor });
    }
}
