//! An operand of a condition that is written where no condition is: it is sent, or answered, as it stands.

use serde_json::Value;

use crate::check::{Rule, Subject};
use crate::compile::steps::JsonTypes;
use crate::diagnostic::{Diagnostic, Severity};
use crate::program::condition::is_sound_moment;
use crate::program::reference::as_path;
use crate::syntax::{quoted, token};

/// Members whose values are conditions.
const CONDITIONS: [&str; 4] = ["condition", "filter", "when", "requires_approval"];
/// What other conditions are in: a list of steps is judged step by step.
const LISTS: [&str; 2] = ["actions_to_execute", "on_failure"];

/// Reports them by a rule.
pub(super) fn check(rule: &Rule, subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    if subject.is_step() {
        return;
    }
    let is_condition = |at: &str| at.rsplit('/').next().is_some_and(|name| CONDITIONS.contains(&name));
    for at in subject.compiled.steps.values.iter().filter(|at| !is_condition(at)) {
        if let Some(value) = subject.document().value.pointer(at) {
            in_value(rule, subject, at, value, found);
        }
    }
}

/// A document is never deeper than its reader allows: the recursion ends.
fn in_value(rule: &Rule, subject: &Subject<'_>, at: &str, value: &Value, found: &mut Vec<Diagnostic>) {
    match value {
        Value::Array(entries) => {
            for (index, entry) in entries.iter().enumerate() {
                in_value(rule, subject, &format!("{at}/{index}"), entry, found);
            }
        }
        // What its field refuses is reported as such.
        Value::Object(_) if subject.is_reported(&subject.at(at).place()) => {}
        Value::Object(members) => match of_length(subject, at, value).or_else(|| of_moment(value)) {
            Some(advice) => {
                let message = format!("{value} is an operand of conditions: here it is data, as it stands");
                let fault = subject.at(at).report(rule, message);
                let fault = Diagnostic { severity: Severity::Warning, ..fault }.help(advice.help);
                found.push(match advice.meant {
                    Some(meant) => fault.suggest(meant),
                    None => fault,
                });
            }
            None => {
                let is_value = |name: &str| !CONDITIONS.contains(&name) && !LISTS.contains(&name);
                for (name, member) in members.iter().filter(|(name, _)| is_value(name)) {
                    in_value(rule, subject, &format!("{at}/{}", token(name)), member, found);
                }
            }
        },
        _ => {}
    }
}

/// What is meant instead.
struct OperandAdvice {
    help: String,
    meant: Option<String>,
}

/// A length. What has a length of its own, such as a parcel, may be sent so.
fn of_length(subject: &Subject<'_>, at: &str, value: &Value) -> Option<OperandAdvice> {
    let path = value.as_object().filter(|members| members.len() == 1)?.get("length")?.as_str()?;
    let names = as_path(path)?;
    let known = subject.compiled.steps.known.get(&format!("{at}/length"));
    let sized = JsonTypes::LIST.or(JsonTypes::TEXT).or(JsonTypes::OBJECT);
    let is_number = known.is_some_and(|known| !known.types.meets(sized));
    if is_number || names.last().is_some_and(|name| name == "length") {
        return None;
    }
    let meant = format!("{path}.length");
    Some(OperandAdvice {
        help: format!("the length of a value is its `length`: `{meant}`"),
        meant: Some(quoted(&meant)),
    })
}

fn of_moment(value: &Value) -> Option<OperandAdvice> {
    let help = "only an order of a condition counts from a time; `@now` is the moment at which the step became due";
    is_sound_moment(value).then(|| OperandAdvice { help: help.to_owned(), meant: None })
}
