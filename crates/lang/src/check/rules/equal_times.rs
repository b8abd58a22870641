//! A date or a moment that is compared as a text: `equal` and `in` compare how values are written, and `@now` has milliseconds.

use serde_json::Value;

use super::constant::Constant;
use crate::check::condition::{Operand, OperandForm};
use crate::compile::steps::{DeclaredText, JsonTypes};
use crate::program::condition::TIME_FORMS;
use crate::program::exact_text::{date_of, time_of};
use crate::program::reference::as_any_path;

/// How a condition asks for a day.
const DAY_HELP: &str = "a day is asked for by its bounds: {\"and\": [{\"greaterOrEqual\": [\"@now\", \"@input.due\"]}, \
     {\"lessThan\": [\"@now\", {\"time\": \"@input.due\", \"plus\": \"1d\"}]}]}";

/// The outcome of `equal` or `notEqual`, where one operand is `@now`, or is declared as a date or a time that the other one is not.
pub(super) fn constant(holds: bool, one: &Operand<'_>, other: &Operand<'_>) -> Option<Constant> {
    for (operand, other) in [(one, other), (other, one)] {
        if is_now(operand) && other.known.types.meets(JsonTypes::TEXT) && !is_now(other) {
            return Some(of_now(holds, &operand.at));
        }
        if other.form == OperandForm::Literal
            && let Some(why) = excluded(operand, other.written)
        {
            return Some(of_declared(holds, &other.at, why));
        }
    }
    None
}

/// The same for `in` and the entries of its list, which are written out.
pub(super) fn constant_in(one: &Operand<'_>, list: &Operand<'_>, items: &[Value]) -> Option<Constant> {
    if is_now(one) && items.iter().any(Value::is_string) {
        return Some(of_now(false, &one.at));
    }
    let reasons: Option<Vec<String>> = items.iter().map(|item| excluded(one, item)).collect();
    Some(of_declared(false, &list.at, reasons?.into_iter().next()?))
}

fn of_now(holds: bool, at: &str) -> Constant {
    let why = "`@now` is a moment with its milliseconds, and texts are compared as they are written".to_owned();
    Constant { advice: Some(DAY_HELP.to_owned()), is_likely: true, ..Constant::new(holds, at, why) }
}

/// The schema says what the value is, and other values are not refused because of that.
fn of_declared(holds: bool, at: &str, why: String) -> Constant {
    Constant { advice: Some(TIME_FORMS.to_owned()), is_likely: true, ..Constant::new(holds, at, why) }
}

fn is_now(operand: &Operand<'_>) -> bool {
    let path = operand.written.as_str().filter(|_| operand.form == OperandForm::Path).and_then(as_any_path);
    path.is_some_and(|path| path == ["now"])
}

/// Why a value that is declared as a date, or as a date with a time, is not one that is written out.
fn excluded(operand: &Operand<'_>, literal: &Value) -> Option<String> {
    let text = literal.as_str().filter(|_| operand.form == OperandForm::Path && !is_now(operand))?;
    let (is_one, called) = match operand.known.text {
        DeclaredText::Formatted(called @ "a date") => (date_of(text).is_some(), called),
        DeclaredText::Formatted(called @ "a date with a time") => {
            (date_of(text).is_none() && time_of(text, &jiff::tz::TimeZone::UTC).is_some(), called)
        }
        _ => return None,
    };
    (!is_one).then(|| format!("{} is {called}, and {literal} is none", operand.called()))
}
