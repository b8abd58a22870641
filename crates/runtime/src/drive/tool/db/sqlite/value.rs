//! Converts values to SQLite and back. Nothing is rounded: a value that SQLite can't keep exactly is refused.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use rusqlite::types::{Value as Sql, ValueRef};
use serde_json::{Number, Value, json};

use crate::drive::tool::db::number::digits;
use crate::drive::tool::db::rows;

/// A value as SQLite keeps it: booleans as 0 and 1, arrays and objects as JSON text.
///
/// # Errors
/// For a number that SQLite would round.
pub(super) fn to_sql(value: &Value) -> Result<Sql, String> {
    Ok(match value {
        Value::Null => Sql::Null,
        Value::Bool(yes) => Sql::Integer(i64::from(*yes)),
        Value::Number(number) => number_to_sql(number)?,
        Value::String(text) => Sql::Text(text.clone()),
        composed => Sql::Text(composed.to_string()),
    })
}

fn number_to_sql(number: &Number) -> Result<Sql, String> {
    let text = number.to_string();
    if let Ok(integer) = text.parse::<i64>() {
        return Ok(Sql::Integer(integer));
    }
    let shown: String = text.chars().take(40).collect();
    let refused = || format!("the number {shown} has more digits than the database keeps");
    if !text.contains(['.', 'e', 'E']) {
        return Err(refused());
    }
    let real: f64 = text.parse().map_err(|_| refused())?;
    if real.is_finite() && digits(&format!("{real:e}")) == digits(&text) { Ok(Sql::Real(real)) } else { Err(refused()) }
}

/// How many bytes a value takes as JSON, at most: known before it is made.
pub(super) fn size(value: ValueRef<'_>) -> usize {
    match value {
        ValueRef::Null => rows::NULL_SIZE,
        ValueRef::Integer(_) | ValueRef::Real(_) => 24,
        ValueRef::Text(text) => rows::text_size(text),
        ValueRef::Blob(blob) => rows::base64_size(blob.len()),
    }
}

/// A value from SQLite. A blob is base64, as in other databases.
///
/// # Errors
/// What of it has no form in JSON.
pub(super) fn from_sql(value: ValueRef<'_>) -> Result<Value, String> {
    Ok(match value {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(integer) => json!(integer),
        ValueRef::Real(real) => match Number::from_f64(real) {
            Some(number) => Value::Number(number),
            None if real < 0.0 => return Err("is -Infinity, which JSON does not have".to_owned()),
            None => return Err("is Infinity, which JSON does not have".to_owned()),
        },
        ValueRef::Text(text) => match std::str::from_utf8(text) {
            Ok(text) => Value::String(text.to_owned()),
            Err(_) => return Err("is no text in UTF-8".to_owned()),
        },
        ValueRef::Blob(blob) => Value::String(BASE64_STANDARD.encode(blob)),
    })
}
