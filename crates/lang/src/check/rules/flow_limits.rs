//! Limits of a workflow and of its steps that contradict each other.

use serde_json::Value;

use super::limits_at_odds::RULE;
use crate::check::step_tree::{StepNode, tree};
use crate::check::steps::WrittenStep;
use crate::check::{Cursor, Subject};
use crate::diagnostic::Diagnostic;
use crate::language::Action;

const OF_WORKFLOW: &str = "/definition";

/// A limit, with its place.
struct WrittenLimit<'a> {
    value: f64,
    cursor: Cursor<'a>,
    /// In a sentence.
    called: &'static str,
}

/// Reports those of a document.
pub(super) fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    for node in &tree(subject) {
        node.each(&mut Vec::new(), &mut |node, around| {
            times(subject, node, around, found);
            if node.step.is_foreach() {
                budgets(subject, &node.step, found);
                idle_concurrency(subject, node, found);
            }
        });
    }
}

/// A limit that is written at a JSON pointer, when it is sound.
fn limit<'a>(subject: &Subject<'a>, at: &str, called: &'static str) -> Option<WrittenLimit<'a>> {
    let value = subject.document().value.pointer(at)?.as_f64().filter(|_| !subject.is_faulty(at))?;
    Some(WrittenLimit { value, cursor: subject.at(at), called })
}

/// The time of an item or a step that is longer than that of what it is in.
fn times(subject: &Subject<'_>, node: &StepNode<'_>, around: &[&StepNode<'_>], found: &mut Vec<Diagnostic>) {
    let run = limit(subject, &format!("{OF_WORKFLOW}/timeout_ms"), "the workflow");
    let of_loops = around.iter().filter(|node| node.step.is_foreach());
    let items = of_loops.filter_map(|node| limit(subject, &node.step.property("item_timeout_ms"), "an item around it"));
    let bounds: Vec<WrittenLimit<'_>> = run.into_iter().chain(items).collect();
    let own = [
        (format!("{}/timeout_ms", node.step.at), "the call of the step"),
        (node.step.property("timeout_ms"), "the loop"),
        (node.step.property("item_timeout_ms"), "an item"),
    ];
    // What is written in the properties of another step is an input.
    let is_own =
        |at: &str| *at == format!("{}/timeout_ms", node.step.at) || (node.step.kind == "loop" && !node.step.is_named());
    for (at, what) in own.iter().filter(|(at, _)| is_own(at)) {
        let Some(own) = limit(subject, at, what) else { continue };
        let tighter = bounds.iter().filter(|bound| bound.value < own.value);
        let Some(bound) = tighter.min_by(|one, other| one.value.total_cmp(&other.value)) else { continue };
        let message = format!("{what} may take {} ms, and {} has {} ms", own.value, bound.called, bound.value);
        report(&own, bound, &message, "make the one shorter, or the other longer", found);
    }
}

/// What an item may use that is more than the whole workflow may.
fn budgets(subject: &Subject<'_>, step: &WrittenStep<'_>, found: &mut Vec<Diagnostic>) {
    for unit in ["tokens", "cost_usd"] {
        let Some(all) = limit(subject, &format!("{OF_WORKFLOW}/budget/{unit}"), "the workflow") else { continue };
        let own = limit(subject, &format!("{}/{unit}", step.property("item_budget")), "an item");
        let Some(own) = own.filter(|own| own.value > all.value) else { continue };
        let amount = |value: f64| if unit == "tokens" { format!("{value} tokens") } else { format!("${value}") };
        let (own_amount, all_amount) = (amount(own.value), amount(all.value));
        let message = format!("an item may use {own_amount}, and the workflow with all of its items {all_amount}");
        report(&own, &all, &message, "the budget of an item is a part of that of the workflow", found);
    }
}

fn report(own: &WrittenLimit<'_>, bound: &WrittenLimit<'_>, message: &str, help: &str, found: &mut Vec<Diagnostic>) {
    let fault = own.cursor.report(&RULE, message.to_owned()).help(help.to_owned());
    found.push(fault.related(&bound.cursor.place(), "it is bounded here"));
}

/// Items that would be worked on at the same time, if a budget did not make their models wait for each other.
fn idle_concurrency(subject: &Subject<'_>, node: &StepNode<'_>, found: &mut Vec<Diagnostic>) {
    let at = node.step.property("max_concurrency");
    let all = format!("{OF_WORKFLOW}/budget");
    let units = |at: &str| {
        let budget = subject.document().value.pointer(at).filter(|budget| budget.is_object());
        let is_set = |unit: &&str| budget.and_then(|budget| budget.get(*unit)).is_some_and(Value::is_number);
        ["tokens", "cost_usd"].into_iter().filter(is_set).collect::<Vec<_>>()
    };
    let bound = units(&all);
    if node.step.concurrency() < 2 || bound.is_empty() || subject.is_faulty(&at) || subject.is_faulty(&all) {
        return;
    }
    let mut asks = None;
    let (mut has_budget, mut has_other) = (false, false);
    node.each_inside(&mut |inner| asks = asks.take().or_else(|| asks_model(subject, inner)));
    // That of any loop counts: how many items it leaves room for is the same for all steps.
    for loop_at in subject.compiled.steps.places.iter() {
        let own = units(&format!("{loop_at}/properties/item_budget"));
        has_budget |= own.iter().any(|unit| bound.contains(unit));
        has_other |= !own.is_empty();
    }
    let Some(step) = asks.filter(|_| !has_budget) else { return };
    let none = match bound.as_slice() {
        [unit, ..] if has_other => format!("no `{unit}` in `item_budget`"),
        _ => "no `item_budget`".to_owned(),
    };
    let message = format!(
        "with a `budget` and {none}, steps that ask models run one after the other, and not {} at a time",
        node.step.concurrency()
    );
    let help = match bound.as_slice() {
        ["cost_usd"] => "say what one item may use: \"item_budget\": {\"cost_usd\": 0.1}",
        _ => "say what one item may use: \"item_budget\": {\"tokens\": 20000}",
    };
    let fault = subject.at(&at).report(&RULE, message).help(help);
    let fault = fault.related(&subject.at(&all).key().place(), "the budget of the workflow is here");
    found.push(fault.related(&subject.at(&format!("{step}/type")).place(), "this step asks a model"));
}

/// The place of a step that asks a model.
fn asks_model(subject: &Subject<'_>, node: &StepNode<'_>) -> Option<String> {
    let step = &node.step;
    let is_llm = || {
        let used = subject.action(step.kind);
        used.is_some_and(|used| matches!(&*used.action, Action::Llm(_)))
    };
    let is_run = match subject.compiled.steps.named.get(step.at) {
        Some(named) => named.program.as_ref().is_some_and(|program| program.spends()),
        None => step.kind == "loop" && !step.is_foreach(),
    };
    (is_run || is_llm()).then(|| step.at.to_owned())
}
