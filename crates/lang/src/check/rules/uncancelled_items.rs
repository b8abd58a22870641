//! Steps for the failure of a loop's items in a workflow with `on_cancel`: they do not run after a cancel.

use serde_json::Value;

use crate::check::steps::{WrittenStep, steps};
use crate::check::{Rule, Subject};
use crate::diagnostic::{Diagnostic, Severity, codes};
use crate::program::flow::ON_FAILURE;

pub const RULE: Rule = Rule { code: codes::UNCANCELLED_ITEMS, check };

fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let value = |at: &str| subject.document().value.pointer(at);
    if subject.is_step() || value("/definition/on_cancel") != Some(&Value::Bool(true)) {
        return;
    }
    let (after_failure, loops): (Vec<_>, Vec<_>) =
        steps(subject).into_iter().filter(WrittenStep::is_foreach).partition(|step| step.at.starts_with(AFTER_FAILURE));
    // It goes through what was started itself.
    if !after_failure.is_empty() {
        return;
    }
    for step in loops {
        let at = step.property(ON_FAILURE);
        let takes_back = |step: &Value| step.get("type").and_then(Value::as_str) != Some("notify");
        let has_steps = value(&at).and_then(Value::as_array).is_some_and(|steps| steps.iter().any(takes_back));
        if has_steps && !subject.is_faulty(&at) {
            let message =
                "these steps do not run after a cancel: `on_cancel` is about those of the definition".to_owned();
            let fault = Diagnostic { severity: Severity::Warning, ..subject.at(&at).key().report(&RULE, message) };
            found.push(fault.help(
                "let a loop in `definition.on_failure` go through the items that were started, for example by a table in which each one notes it",
            ));
        }
    }
}

const AFTER_FAILURE: &str = "/definition/on_failure/";
