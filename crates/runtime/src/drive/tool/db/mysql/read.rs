//! Values of the server as JSON. Nothing is rounded: a value without a form in JSON is refused.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use mysql_async::Value as Sql;
use serde_json::Value;

use super::forms::ColumnForm;
use crate::drive::tool::db::rows;
use crate::drive::tool::output;
use loopctl_lang::policy::json_text;

/// How many bytes a value takes as JSON, at most: known before it is made.
pub(super) fn size(sql: &Sql, form: ColumnForm) -> usize {
    match (form, sql) {
        (_, Sql::NULL) => rows::NULL_SIZE,
        (ColumnForm::Text, Sql::Bytes(bytes)) => rows::text_size(bytes),
        (ColumnForm::Bytes, Sql::Bytes(bytes)) => rows::base64_size(bytes.len()),
        (ColumnForm::Bits(_), Sql::Bytes(bytes)) => bytes.len().saturating_mul(8).saturating_add(2),
        (_, Sql::Bytes(bytes)) => bytes.len().saturating_add(1),
        // It is small: what it takes is what it is.
        _ => value(sql.clone(), form).map_or(40, |value| value.to_string().len()),
    }
}

/// A value as JSON.
///
/// # Errors
/// What of it has no form there.
pub(super) fn value(sql: Sql, form: ColumnForm) -> Result<Value, String> {
    Ok(match (form, sql) {
        (_, Sql::NULL) => Value::Null,
        (ColumnForm::Number, Sql::Int(number)) => Value::from(number),
        (ColumnForm::Number, Sql::UInt(number)) => Value::from(number),
        (ColumnForm::Number, Sql::Float(number)) if number.is_finite() => Value::from(number),
        (ColumnForm::Number, Sql::Double(number)) if number.is_finite() => Value::from(number),
        (ColumnForm::Decimal, Sql::Bytes(bytes)) => decimal(&text(bytes)?)?,
        (ColumnForm::Text, Sql::Bytes(bytes)) => Value::from(text(bytes)?),
        (ColumnForm::Bytes, Sql::Bytes(bytes)) => Value::from(BASE64_STANDARD.encode(bytes)),
        (ColumnForm::Json, Sql::Bytes(bytes)) => json(&text(bytes)?)?,
        (ColumnForm::Bits(count), Sql::Bytes(bytes)) => bits(count, &bytes)?,
        (ColumnForm::Date, Sql::Date(year, month, day, 0, 0, 0, 0)) => {
            Value::from(format!("{year:04}-{month:02}-{day:02}"))
        }
        (ColumnForm::DateTime | ColumnForm::Timestamp, Sql::Date(year, month, day, hour, minute, second, us)) => {
            // A zero is no moment: it is written as the server writes it.
            let zone = if form == ColumnForm::Timestamp && month > 0 { "Z" } else { "" };
            let fraction = fraction(us);
            Value::from(format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}{fraction}{zone}"))
        }
        (ColumnForm::Time, Sql::Time(is_negative, days, hours, minute, second, us)) => {
            let sign = if is_negative { "-" } else { "" };
            let hours = u64::from(days) * 24 + u64::from(hours);
            Value::from(format!("{sign}{hours:02}:{minute:02}:{second:02}{}", fraction(us)))
        }
        _ => return Err(damaged()),
    })
}

fn damaged() -> String {
    "is not of the form that its type has".to_owned()
}

fn text(bytes: Vec<u8>) -> Result<String, String> {
    String::from_utf8(bytes).map_err(|_| "is no text in UTF-8".to_owned())
}

/// A fraction of a second, without the zeros at its end.
fn fraction(us: u32) -> String {
    if us == 0 { String::new() } else { format!(".{us:06}").trim_end_matches('0').to_owned() }
}

/// A decimal with its digits; a column with `ZEROFILL` has zeros before them, which JSON does not.
fn decimal(text: &str) -> Result<Value, String> {
    let (sign, digits) = text.strip_prefix('-').map_or(("", text), |digits| ("-", digits));
    let cut = digits.trim_start_matches('0');
    let zero = if cut.is_empty() || cut.starts_with('.') { "0" } else { "" };
    output::exact_number(&format!("{sign}{zero}{cut}"), damaged)
}

/// JSON with its digits as they are written.
fn json(text: &str) -> Result<Value, String> {
    let text = &*output::readable(text);
    let value: Value = json_text::read(text).map_err(|error| format!("is JSON that can't be read: {error}"))?;
    output::unclear_json(text, &value).map_or(Ok(value), Err)
}

/// The last bits of some bytes.
fn bits(count: u32, bytes: &[u8]) -> Result<Value, String> {
    let all: String = bytes.iter().map(|byte| format!("{byte:08b}")).collect();
    let count = usize::try_from(count).map_err(|_| damaged())?;
    let begin = all.len().checked_sub(count).ok_or_else(damaged)?;
    all.get(begin..).map(Value::from).ok_or_else(damaged)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_and_bits_keep_what_they_have() {
        for (text, json) in [("000.10", "0.10"), ("-12.50", "-12.50"), ("00012", "12"), ("0", "0"), ("-0.00", "-0.00")]
        {
            assert_eq!(decimal(text).unwrap().to_string(), json, "{text}");
        }
        assert_eq!(bits(10, &[0b01, 0b0110_0110]).unwrap(), "0101100110");
        assert!(bits(10, &[1]).is_err());
    }
}
