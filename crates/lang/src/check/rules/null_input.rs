//! A value that may be null where a step needs one that is not: the step fails where it is null. An input that may be left out is
//! left out then.

use super::step_input::{RULE, input_of};
use super::unsure_operand::has_value;
use crate::check::Subject;
use crate::check::key_flow::Fact;
use crate::check::steps::WrittenStep;
use crate::compile::steps::{JsonTypes, KnownValue};
use crate::diagnostic::{Diagnostic, Severity};
use crate::language::wait::WAIT;
use crate::program::reference::as_any_path;

/// Reports those of a step; `facts`: what holds when it begins.
pub(super) fn check(subject: &Subject<'_>, step: &WrittenStep<'_>, facts: &[Fact<'_>], found: &mut Vec<Diagnostic>) {
    if step.kind == WAIT && subject.action(WAIT).is_none() {
        return until(subject, step, facts, found);
    }
    let Some((input, called)) = input_of(subject, step) else { return };
    let Some(parts) = input.schema.source().get("properties") else { return };
    for name in input.schema.required() {
        let at = step.property(name);
        let Some(path) = step.text(name).filter(|text| as_any_path(text).is_some()) else { continue };
        let Some(known) = subject.compiled.steps.known.get(&at) else { continue };
        let Some(wanted) = parts.get(name).and_then(|part| KnownValue::of_schema(part, &[])) else { continue };
        let cursor = subject.at(&at);
        if !known.types.may_be_null()
            || wanted.types.meets(JsonTypes::NULL)
            || has_value(path, facts)
            || subject.is_reported(&cursor.place())
        {
            continue;
        }
        let message = format!("`{path}` may be null, and {called} needs `{name}`: this step fails then");
        let help = format!(
            "ask for it in the `filter` of this step: {{\"notEqual\": [\"{path}\", null]}}, or let the schema of `{name}` take null"
        );
        let fault = Diagnostic { severity: Severity::Warning, ..cursor.report(&RULE, message) };
        found.push(fault.help(help));
    }
}

/// The time of a wait that may be null.
fn until(subject: &Subject<'_>, step: &WrittenStep<'_>, facts: &[Fact<'_>], found: &mut Vec<Diagnostic>) {
    for name in ["until", "for"] {
        let at = step.property(name);
        let Some(path) = step.text(name).filter(|text| as_any_path(text).is_some()) else { continue };
        let may_be_null = subject.compiled.steps.known.get(&at).is_some_and(|known| known.types.may_be_null());
        let cursor = subject.at(&at);
        if !may_be_null || has_value(path, facts) || subject.is_reported(&cursor.place()) {
            continue;
        }
        let message = format!("`{path}` may be null, and a wait needs its `{name}`: this step fails then");
        let help = format!("ask for it in the `filter` of this step: {{\"notEqual\": [\"{path}\", null]}}");
        let fault = Diagnostic { severity: Severity::Warning, ..cursor.report(&RULE, message) };
        found.push(fault.help(help));
    }
}
