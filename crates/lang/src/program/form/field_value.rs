//! The value of one field of a form: what is taken for each type, and nothing that would be rounded or guessed.

use std::cmp::Ordering;

use jiff::Timestamp;
use jiff::civil::Date;
use serde_json::{Number, Value, json};

use super::{AskedField, MAX_LONG_TEXT_CHARS, MAX_TEXT_CHARS, plain, shown};
use crate::diagnostic::nearest;
use crate::language::form::FieldType;
use crate::policy::json_text;
use crate::syntax::decimal::Decimal;

/// The pattern of a text of one line.
const LINE_PATTERN: &str = "^[^\\u0000-\\u0008\\u000a-\\u001f\\u007f-\\u009f\\u2028\\u2029]*$";
/// The pattern of a time of the day.
pub const TIME_PATTERN: &str = "^([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9])?$";

/// What ends a line of text.
const LINE_ENDS: [char; 7] = ['\n', '\r', '\u{b}', '\u{c}', '\u{85}', '\u{2028}', '\u{2029}'];

/// The value of a field.
///
/// # Errors
/// Why it is not taken, in a sentence without a final stop.
pub(super) fn read(field: &AskedField, given: &Value) -> Result<Value, String> {
    let value = match field.kind {
        FieldType::Text | FieldType::LongText => return text(field, given),
        FieldType::Choice => return choice(field, given),
        FieldType::YesNo => return yes_or_no(given),
        kind => ordered(kind, given).map_err(|why| format!("{} {why}", shown(given)))?,
    };
    let is_beyond = |bound: &Option<Value>, side: Ordering| {
        bound.as_ref().is_some_and(|bound| order(field.kind, &value, bound) == Some(side))
    };
    if is_beyond(&field.min, Ordering::Less) {
        let min = field.min.as_ref().map(plain).unwrap_or_default();
        let before = if matches!(field.kind, FieldType::Date | FieldType::Time) { "before" } else { "less than" };
        return Err(format!("{} is {before} {min}", plain(&value)));
    }
    if is_beyond(&field.max, Ordering::Greater) {
        let max = field.max.as_ref().map(plain).unwrap_or_default();
        let after = if matches!(field.kind, FieldType::Date | FieldType::Time) { "after" } else { "more than" };
        return Err(format!("{} is {after} {max}", plain(&value)));
    }
    Ok(value)
}

/// A bound of a field: a value of its type; of a moment, a date has the date as it is written.
///
/// # Errors
/// What it is not.
pub(super) fn bound(kind: FieldType, given: &Value) -> Result<Value, String> {
    match (kind, given.as_str()) {
        (FieldType::Date, Some(text)) if text.parse::<Timestamp>().is_ok() => {
            ordered(kind, &Value::from(text.get(..10).unwrap_or_default()))
        }
        _ => ordered(kind, given),
    }
}

/// A value of a type that has an order.
fn ordered(kind: FieldType, given: &Value) -> Result<Value, String> {
    match kind {
        FieldType::Integer => integer(given),
        FieldType::Number => number(given),
        FieldType::Date => date(given),
        FieldType::Time => time(given),
        _ => Err("has no order".to_owned()),
    }
}

pub(super) fn order(kind: FieldType, value: &Value, bound: &Value) -> Option<Ordering> {
    match kind {
        FieldType::Date => Some(value.as_str()?.cmp(bound.as_str()?)),
        // `09:30` is `09:30:00`.
        FieldType::Time => Some(seconds(value.as_str()?)?.cmp(&seconds(bound.as_str()?)?)),
        _ => Some(decimal(value)?.compare(&decimal(bound)?)),
    }
}

fn decimal(value: &Value) -> Option<Decimal> {
    Decimal::read(&json_text::digits(value.as_number()?))
}

/// A number, or a text that is exactly one, without blanks.
fn written_number(given: &Value) -> Option<Number> {
    match given {
        Value::Number(number) => Some(number.clone()),
        // Other texts may be read as a number too: an object with the key of `serde_json` that holds one.
        Value::String(text) if text.starts_with(|c: char| c.is_ascii_digit() || c == '-') => {
            json_text::read(text).ok().filter(|_| !text.contains(char::is_whitespace))
        }
        _ => None,
    }
}

fn number(given: &Value) -> Result<Value, String> {
    let number = written_number(given).ok_or_else(|| no("number", "digits with a point: 12.50", given))?;
    let size = number.as_f64().filter(|size| size.is_finite());
    let is_zero = Decimal::read(&json_text::digits(&number)).is_some_and(|number| number.length() == 0);
    match size {
        Some(size) if is_zero || size != 0.0 => Ok(Value::Number(number)),
        _ => Err("is beyond what a number can be here".to_owned()),
    }
}

/// A number of a program that has nothing behind its point: `100.0` is 100.
fn whole(given: &Value) -> Option<Number> {
    let digits = json_text::digits(given.as_number()?);
    let (whole, rest) = digits.split_once('.')?;
    let has_nothing = !rest.is_empty() && rest.bytes().all(|byte| byte == b'0');
    json_text::read(whole).ok().filter(|_| has_nothing)
}

fn integer(given: &Value) -> Result<Value, String> {
    let number = whole(given).or_else(|| written_number(given));
    let number = number.ok_or_else(|| no("whole number", "digits alone: 12", given))?;
    if number.is_i64() || number.is_u64() {
        return Ok(Value::Number(number));
    }
    let is_long = json_text::digits(&number).bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
    Err(if is_long {
        "is beyond what a whole number can be here".to_owned()
    } else {
        "is no whole number as it is written: digits alone, like 12".to_owned()
    })
}

/// Why a value is none of a type. Blanks are not seen, so they are said.
fn no(what: &str, how: &str, given: &Value) -> String {
    let has_blanks = given.as_str().is_some_and(|text| text.trim() != text);
    let blanks = if has_blanks { ", and has blanks around it" } else { "" };
    format!("is no {what}{blanks}; {how}")
}

fn date(given: &Value) -> Result<Value, String> {
    let is_date = |text: &&str| {
        let digits = |byte: u8| byte.is_ascii_digit();
        let form =
            text.bytes().enumerate().all(|(at, byte)| if matches!(at, 4 | 7) { byte == b'-' } else { digits(byte) });
        text.len() == 10 && form && text.parse::<Date>().is_ok()
    };
    let text = given.as_str().filter(is_date).ok_or_else(|| no("date", "year, month and day: 2026-02-28", given))?;
    Ok(Value::from(text))
}

fn time(given: &Value) -> Result<Value, String> {
    let text = given.as_str().filter(|text| seconds(text).is_some());
    let text = text.ok_or_else(|| no("time of the day", "hours and minutes of 24 hours: 09:30", given))?;
    Ok(Value::from(text))
}

/// The seconds of a time of the day.
fn seconds(text: &str) -> Option<u32> {
    let mut total = 0_u32;
    let mut parts = text.split(':');
    for (at, most) in [23, 59, 59].into_iter().enumerate() {
        let Some(part) = parts.next() else {
            if at < 2 {
                return None;
            }
            total = total.checked_mul(60)?;
            continue;
        };
        let is_part = part.len() == 2 && part.bytes().all(|byte| byte.is_ascii_digit());
        let value = part.parse::<u32>().ok().filter(|value| is_part && *value <= most)?;
        total = total.checked_mul(60)?.checked_add(value)?;
    }
    parts.next().is_none().then_some(total)
}

fn text(field: &AskedField, given: &Value) -> Result<Value, String> {
    let Value::String(text) = given else { return Err(format!("{} is no text", shown(given))) };
    let is_line = field.kind == FieldType::Text;
    if is_line && text.contains(LINE_ENDS) {
        return Err("the text has several lines, and the field takes one".to_owned());
    }
    if is_line && text.contains(|c: char| c.is_control() && c != '\t') {
        return Err("the text has a control character, and the field takes a line of text".to_owned());
    }
    let most = if is_line { MAX_TEXT_CHARS } else { MAX_LONG_TEXT_CHARS };
    let length = text.chars().count();
    if length > most {
        return Err(format!("the text has {length} characters, and at most {most} are taken"));
    }
    if field.required && text.trim().is_empty() {
        return Err("it is required, and the text has only blanks".to_owned());
    }
    Ok(given.clone())
}

fn choice(field: &AskedField, given: &Value) -> Result<Value, String> {
    let text = given.as_str().unwrap_or_default();
    if given.is_string() && field.choices.iter().any(|choice| choice == text) {
        return Ok(given.clone());
    }
    let choices = || field.choices.iter().map(String::as_str);
    let near = choices().find(|choice| choice.eq_ignore_ascii_case(text.trim())).or_else(|| nearest(text, choices()));
    Err(match near {
        Some(near) => format!("{} is none of the choices; did you mean {near}?", shown(given)),
        None => format!("{} is none of the choices: {}", shown(given), choices().collect::<Vec<_>>().join(", ")),
    })
}

fn yes_or_no(given: &Value) -> Result<Value, String> {
    match given {
        Value::Bool(_) => Ok(given.clone()),
        Value::String(text) if matches!(text.as_str(), "true" | "yes") => Ok(Value::Bool(true)),
        Value::String(text) if matches!(text.as_str(), "false" | "no") => Ok(Value::Bool(false)),
        _ => Err(format!("{} is neither yes nor no", shown(given))),
    }
}

/// The JSON Schema of a value, without what a person reads.
pub(super) fn schema(field: &AskedField) -> Value {
    let mut schema = match field.kind {
        FieldType::Text => json!({ "type": "string", "maxLength": MAX_TEXT_CHARS, "pattern": LINE_PATTERN }),
        FieldType::LongText => json!({ "type": "string", "maxLength": MAX_LONG_TEXT_CHARS }),
        FieldType::Integer => json!({ "type": "integer" }),
        FieldType::Number => json!({ "type": "number" }),
        FieldType::Date => json!({ "type": "string", "format": "date" }),
        FieldType::Time => json!({ "type": "string", "pattern": TIME_PATTERN }),
        FieldType::Choice => json!({ "type": "string", "enum": field.choices }),
        FieldType::YesNo => json!({ "type": "boolean" }),
    };
    let Value::Object(members) = &mut schema else { return schema };
    if matches!(field.kind, FieldType::Text | FieldType::LongText) && field.required {
        members.insert("minLength".to_owned(), json!(1));
    }
    if matches!(field.kind, FieldType::Integer | FieldType::Number) {
        let bounds = [("minimum", &field.min), ("maximum", &field.max)];
        members.extend(bounds.into_iter().filter_map(|(name, bound)| Some((name.to_owned(), bound.clone()?))));
    }
    schema
}
