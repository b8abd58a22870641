//! Operands that are moments: `{"now": "-30d"}`, and `{"time": "@row.due", "plus": "30d"}`.

use jiff::tz::TimeZone;
use serde_json::{Map, Value};

use super::field;
use super::order::MomentOperand;
use super::short;
use crate::diagnostic::codes;
use crate::program::exact_text::time_of;
use crate::program::fault::LocalFault;
use crate::program::reference::Field;
use crate::program::time_span::{MAX_DAYS, SPAN_HELP, TimeSpan};

/// How a moment is written.
const FORMS: &str = "a moment is {\"now\": \"-30d\"}, or {\"time\": \"@input.due\", \"plus\": \"30d\"}";
/// How times are written.
pub const TIME_FORMS: &str = "a date is written `2026-12-31`, and a time `2026-12-31T10:00:00Z`, with its offset";
/// The operators that take moments.
const ORDERS: [&str; 4] = ["greaterThan", "lessThan", "greaterOrEqual", "lessOrEqual"];

fn is_time(text: &str) -> bool {
    time_of(text, &TimeZone::UTC).is_some()
}

/// Whether an operand is meant as a moment.
pub fn is_moment(written: &Value) -> bool {
    written.as_object().is_some_and(|members| members.contains_key("now") || members.contains_key("time"))
}

/// Whether a value is a moment as an order takes it.
pub fn is_sound_moment(written: &Value) -> bool {
    is_moment(written) && moment_of(ORDERS[0], written).is_ok()
}

/// What is wrong with an operand that is meant as a moment; its pointer begins at the operand.
pub fn moment_fault(operator: &str, written: &Value) -> Option<LocalFault> {
    if is_moment(written) { moment_of(operator, written).err().map(|fault| *fault) } else { None }
}

/// The moment that an operand is; its faults have pointers from the operand on.
pub(super) fn moment_of(operator: &str, written: &Value) -> Result<MomentOperand, Box<LocalFault>> {
    let fault = |at: &str, message: String| LocalFault::error(codes::BAD_OPERAND, at, message);
    let none = Map::new();
    let members = written.as_object().unwrap_or(&none);
    let known: &[&str] = if members.contains_key("now") { &["now"] } else { &["time", "plus"] };
    if let Some(strange) = members.keys().find(|name| !known.contains(&name.as_str())) {
        return Err(Box::new(fault("", format!("a moment has no `{strange}`")).help(FORMS)));
    }
    if !ORDERS.contains(&operator) {
        let message = format!("`{operator}` compares values as they are written, and {} is a moment", short(written));
        let help = "compare times with an order: {\"lessThan\": [\"@input.due\", {\"now\": \"-30d\"}]}";
        return Err(Box::new(fault("", message).help(help)));
    }
    let name = if known.len() == 1 { "now" } else { "plus" };
    let Some(span) = members.get(name) else {
        let message = "`plus` is missing: the time alone is an operand".to_owned();
        let fault = fault("", message).help(FORMS);
        let time = members.get("time").filter(|time| time.is_string()).map(Value::to_string);
        return Err(Box::new(LocalFault { replacement: time, ..fault }));
    };
    if span.as_str().is_some_and(TimeSpan::is_too_long) {
        let message = format!("{} is too long a span of time", short(span));
        let help = format!("a span is at most {MAX_DAYS} days, a hundred years");
        return Err(Box::new(fault(&format!("/{name}"), message).help(help)));
    }
    let Some(plus) = span.as_str().and_then(TimeSpan::read) else {
        return Err(Box::new(
            fault(&format!("/{name}"), format!("{} is no span of time", short(span))).help(SPAN_HELP),
        ));
    };
    let from = match members.get("time") {
        None => None,
        Some(time) => match field(time) {
            Field::Path(path) => Some(Field::Path(path)),
            Field::Literal(literal) if literal.as_str().is_some_and(is_time) => Some(Field::Literal(literal)),
            Field::Literal(literal) if literal.is_string() => {
                return Err(Box::new(fault("/time", format!("{} is no time", short(time))).help(TIME_FORMS)));
            }
            _ => {
                let message = format!("`time` takes an `@path`, or a time; {} was given", short(time));
                return Err(Box::new(fault("/time", message).help(FORMS)));
            }
        },
    };
    Ok(MomentOperand { from, plus })
}
