//! A budget in dollars for a model without a price.

use std::collections::HashSet;
use std::iter;

use serde_json::Value;

use crate::check::{Cursor, Rule, Subject, model};
use crate::compile::{Compiled, Texts};
use crate::diagnostic::{Diagnostic, codes};
use crate::language::tool::TypedTool;
use crate::language::{Action, ToolDeclaration};
use crate::program::Program;
use crate::syntax::token;

pub const RULE: Rule = Rule { code: codes::COST_WITHOUT_PRICE, check };

fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let Some(react) = subject.react(&["budget/cost_usd", "model", "fallback_models"]) else { return };
    if react.budget.as_ref().is_none_or(|budget| budget.cost_usd.is_none()) {
        return;
    }
    // The loop's own model, those that are asked in its place, and those of `llm` actions: all are paid for.
    let own = iter::once((react.model.as_deref(), subject.property("budget/cost_usd")));
    let fallbacks = react.fallback_models.iter().enumerate();
    let fallbacks =
        fallbacks.map(|(at, name)| (Some(name.as_str()), subject.property(&format!("fallback_models/{at}"))));
    let actions = subject.actions().iter().filter_map(|used| match &*used.action {
        Action::Llm(action) => Some((Some(action.model.as_deref()?), Some(used.at("/model")))),
        _ => None,
    });
    let mut reported = HashSet::new();
    let called = called(subject, react.model.as_deref());
    for (written, cursor) in own.chain(fallbacks).chain(actions).chain(called) {
        let (Some(cursor), Some(model)) = (cursor, model::named(subject, written)) else { continue };
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

/// The models of the loops that it calls, also through others: nothing is run where one of them has no price.
fn called<'s, 'a>(subject: &'s Subject<'a>, own: Option<&'s str>) -> Vec<(Option<&'s str>, Option<Cursor<'a>>)> {
    let mut found = Vec::new();
    let mut seen = HashSet::new();
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
        let mut open: Vec<(&Program, Option<&str>)> = first.map(|called| (&**called, own)).into_iter().collect();
        while let Some((called, caller)) = open.pop() {
            let model = called.model().or(called.project.model.as_deref()).or(caller);
            if !seen.insert((called.sources.first().map(|source| &*source.name), called.name.as_str(), model)) {
                continue;
            }
            // The main model of a workflow answers nothing by itself.
            if !called.is_flow() {
                found.push((model, Some(subject.at(&format!("{pointer}/{field}")))));
            }
            open.extend(called.called_loops().into_iter().map(|called| (&**called, model)));
        }
    }
    found
}
