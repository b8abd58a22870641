//! Converts values to SQLite and back. Nothing is rounded: a value that SQLite can't keep exactly is refused.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use rusqlite::types::{Value as Sql, ValueRef};
use serde_json::{Number, Value, json};

use crate::drive::tool::db::number::{digits, whole};
use crate::drive::tool::db::rows;
use loopctl_lang::program::exact_text::number_of;

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

/// What a column makes of the values in it, by its declared type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ColumnAffinity {
    /// A text that looks like a number becomes one: columns such as `DATE`, whose values are texts.
    Numeric,
    /// The same, and what is declared is a number: SQLite would keep another text too, and sum it as the number that it begins with.
    Number,
    /// The same, and all numbers become floats.
    Real,
    /// All numbers become texts.
    Text,
    /// It keeps each value as it is.
    Open,
}

/// The types that are declared for whole and decimal numbers. Others have their affinity too: `DATE`, `BOOLEAN`, `INTERVAL`.
const NUMBER_TYPES: [&str; 16] = [
    "INT",
    "INTEGER",
    "TINYINT",
    "SMALLINT",
    "MEDIUMINT",
    "BIGINT",
    "INT2",
    "INT4",
    "INT8",
    "UNSIGNED",
    "NUMERIC",
    "DECIMAL",
    "DEC",
    "NUMBER",
    "MONEY",
    "CURRENCY",
];

/// Whether a declared type, in capital letters, is one of numbers: by its first word.
fn is_number(declared: &str) -> bool {
    let first =
        declared.trim_start().split(|c: char| c != '_' && !c.is_ascii_alphanumeric()).next().unwrap_or_default();
    NUMBER_TYPES.contains(&first)
}

impl ColumnAffinity {
    /// By the rules of SQLite: <https://www.sqlite.org/datatype3.html#determination_of_column_affinity>.
    pub(super) fn of(declared: &str) -> Self {
        let declared = declared.to_ascii_uppercase();
        let has = |words: &[&str]| words.iter().any(|word| declared.contains(word));
        match () {
            () if has(&["INT"]) => {
                if is_number(&declared) {
                    Self::Number
                } else {
                    Self::Numeric
                }
            }
            () if has(&["CHAR", "CLOB", "TEXT"]) => Self::Text,
            // A strict table keeps each value of `ANY` as it is.
            () if has(&["BLOB"]) || declared.is_empty() || declared == "ANY" => Self::Open,
            () if has(&["REAL", "FLOA", "DOUB"]) => Self::Real,
            () if is_number(&declared) => Self::Number,
            () => Self::Numeric,
        }
    }
}

/// A value for a column, so that it is there what it is here: SQLite would read the text `007` as 7, and round what it reads.
///
/// # Errors
/// For a number that SQLite would round, and for a text that it would read as a number and that is none. Where numbers are declared,
/// for all that is none, if it is to be kept (`is_kept`) and not looked for.
pub(super) fn to_column(value: &Value, affinity: ColumnAffinity, is_kept: bool) -> Result<Sql, String> {
    let to_number = |number: &Number| match (affinity, number_to_sql(number)?) {
        (ColumnAffinity::Real, Sql::Integer(_)) => real_to_sql(&number.to_string()),
        (_, sql) => Ok(sql),
    };
    match (value, affinity) {
        (Value::Number(number), ColumnAffinity::Text) => match whole(&number.to_string()) {
            Some(digits) => Ok(Sql::Text(digits)),
            None => number_to_sql(number),
        },
        (Value::Number(number), _) => to_number(number),
        (Value::String(text), ColumnAffinity::Numeric | ColumnAffinity::Number | ColumnAffinity::Real) => {
            match number_of(text) {
                Some(number) => to_number(&number),
                None if is_read_as_number(text) || is_kept && affinity != ColumnAffinity::Numeric => {
                    Err(no_number(value))
                }
                None => to_sql(value),
            }
        }
        (Value::Array(_) | Value::Object(_), ColumnAffinity::Number | ColumnAffinity::Real) if is_kept => {
            Err(no_number(value))
        }
        _ => to_sql(value),
    }
}

fn no_number(value: &Value) -> String {
    let kind = match value {
        Value::Array(_) => "list",
        Value::Object(_) => "object",
        _ => "text",
    };
    let shown: String = value.to_string().chars().take(80).collect();
    format!("the column has numbers, and the {kind} {shown} is none")
}

/// Whether SQLite reads a text as a number where a column has numbers.
fn is_read_as_number(text: &str) -> bool {
    let bare = text.trim_matches([' ', '\t', '\n', '\u{b}', '\u{c}', '\r']);
    let has_digits = bare.bytes().any(|byte| byte.is_ascii_digit());
    let is_plain = bare.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'+' | b'-' | b'.' | b'e' | b'E'));
    has_digits && is_plain && bare.parse::<f64>().is_ok()
}

fn number_to_sql(number: &Number) -> Result<Sql, String> {
    let text = number.to_string();
    if let Ok(integer) = text.parse::<i64>() {
        return Ok(Sql::Integer(integer));
    }
    if text.contains(['.', 'e', 'E']) { real_to_sql(&text) } else { Err(too_long(&text)) }
}

fn too_long(text: &str) -> String {
    let shown: String = text.chars().take(40).collect();
    format!("the number {shown} has more digits than the database keeps")
}

fn real_to_sql(text: &str) -> Result<Sql, String> {
    let real = text.parse::<f64>().ok().filter(|real| real.is_finite());
    let real = real.filter(|real| digits(&format!("{real:e}")) == digits(text));
    real.map(Sql::Real).ok_or_else(|| too_long(text))
}

/// How many bytes a value takes as JSON, at most: known before it is made.
pub(super) fn size(value: ValueRef<'_>) -> usize {
    match value {
        ValueRef::Null => rows::NULL_SIZE,
        // It is small: what it takes is what it is.
        ValueRef::Integer(_) | ValueRef::Real(_) => from_sql(value).map_or(24, |value| value.to_string().len()),
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
