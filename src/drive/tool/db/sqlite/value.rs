//! Converts values to SQLite and back. Nothing is rounded: a value that SQLite can't keep exactly is refused.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use rusqlite::types::{Value as Sql, ValueRef};
use serde_json::{Number, Value, json};

use crate::drive::tool::db::number::digits;

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

/// A value from SQLite, and its approximate size in bytes. A blob is base64, as in other databases.
///
/// # Errors
/// What of it has no form in JSON.
pub(super) fn from_sql(value: ValueRef<'_>) -> Result<(Value, usize), String> {
    Ok(match value {
        ValueRef::Null => (Value::Null, 4),
        ValueRef::Integer(integer) => (json!(integer), 8),
        ValueRef::Real(real) => match Number::from_f64(real) {
            Some(number) => (Value::Number(number), 8),
            None if real < 0.0 => return Err("is -Infinity, which JSON does not have".to_owned()),
            None => return Err("is Infinity, which JSON does not have".to_owned()),
        },
        ValueRef::Text(text) => match std::str::from_utf8(text) {
            Ok(text) => (Value::String(text.to_owned()), text.len()),
            Err(_) => return Err("is no text in UTF-8".to_owned()),
        },
        ValueRef::Blob(blob) => {
            let encoded = BASE64_STANDARD.encode(blob);
            let bytes = encoded.len();
            (Value::String(encoded), bytes)
        }
    })
}
