//! Arguments: values of JSON as the texts that a server reads exactly as values of its types. Nothing is rounded or left
//! out: a value that a type does not hold is refused, with the type's name.

use std::error::Error;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bytes::BytesMut;
use serde_json::Value;
use tokio_postgres::types::{Format, IsNull, ToSql, Type};

use super::forms::TypeForm;
use crate::drive::tool::db::number::{digits, whole};
use loopctl_lang::policy::json_text;

/// The most digits before and behind the point of a `numeric`.
const NUMERIC: std::ops::RangeInclusive<i64> = -16_000..=100_000;
/// The most digits of a second's fraction.
const FRACTION: usize = 6;

/// A value in the server's text form; none is NULL.
#[derive(Debug)]
pub(super) struct Argument(Option<String>);

impl ToSql for Argument {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        Ok(match &self.0 {
            Some(text) => {
                out.extend_from_slice(text.as_bytes());
                IsNull::No
            }
            None => IsNull::Yes,
        })
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    fn encode_format(&self, _: &Type) -> Format {
        Format::Text
    }

    tokio_postgres::types::to_sql_checked!();
}

impl Argument {
    /// The value of a parameter of a type.
    ///
    /// # Errors
    /// What the type takes.
    pub(super) fn new(value: &Value, form: &TypeForm) -> Result<Self, String> {
        Ok(Self(match value {
            Value::Null => None,
            value => Some(text(value, form)?),
        }))
    }
}

fn text(value: &Value, form: &TypeForm) -> Result<String, String> {
    let number = || number(value).ok_or("a number");
    let string = || value.as_str().ok_or("a text");
    let written = match form {
        TypeForm::Bool => value.as_bool().map(|yes| yes.to_string()).ok_or("true or false"),
        TypeForm::Integer | TypeForm::Oid => number().and_then(|text| whole(&text).ok_or("a whole number")),
        TypeForm::Real => number().and_then(|text| exact(&text, real).ok_or("a number that 4 bytes hold exactly")),
        TypeForm::Double => number().and_then(|text| exact(&text, double).ok_or("a number that 8 bytes hold exactly")),
        TypeForm::Numeric => number().and_then(|text| numeric(text).ok_or("a number of fewer digits")),
        TypeForm::Text | TypeForm::Network => string().map(str::to_owned),
        TypeForm::Bytes => string().and_then(|text| bytes(text).ok_or("bytes in base64")),
        TypeForm::Uuid => {
            string().and_then(|text| text.parse().map_err(|_| "a UUID")).map(|uuid: uuid::Uuid| uuid.to_string())
        }
        TypeForm::Bits => string().and_then(|text| bits(text).ok_or("a text of 0 and 1")),
        TypeForm::Date => string().and_then(|text| date(text).ok_or("a date as 2026-01-31")),
        TypeForm::Time => string().and_then(|text| time(text).ok_or("a time without a zone, as 13:30:00")),
        TypeForm::TimeWithZone => {
            string().and_then(|text| zoned_time(text).ok_or("a time with a zone, as 13:30:00+01:00"))
        }
        TypeForm::Timestamp => {
            string().and_then(|text| timestamp(text).ok_or("a moment without a zone, as 2026-01-31T13:30:00"))
        }
        TypeForm::TimestampWithZone => {
            string().and_then(|text| zoned(text).ok_or("a moment with a zone, as 2026-01-31T13:30:00Z"))
        }
        TypeForm::Interval => string().and_then(|text| interval(text).ok_or("a duration, as P1DT2H30M")),
        TypeForm::Json | TypeForm::JsonBinary => Ok(value.to_string()),
        TypeForm::Void => Err("no value"),
        TypeForm::Array(element) => return array(value, element),
    };
    let written = written.map_err(|takes| format!("takes {takes}"))?;
    // The server would end the text there.
    if written.contains('\0') { Err("takes a text without a zero byte".to_owned()) } else { Ok(written) }
}

/// The digits of a number, or of a text that is one.
fn number(value: &Value) -> Option<String> {
    match value {
        Value::Number(number) => Some(number.to_string()),
        Value::String(text) => Some(text.clone()).filter(|text| json_text::is_number(text)),
        _ => None,
    }
}

/// The text, if the number that a machine makes of it has the same digits.
fn exact(text: &str, kept: fn(&str) -> Option<String>) -> Option<String> {
    let kept = kept(text)?;
    (digits(&kept)? == digits(text)?).then(|| text.to_owned())
}

fn real(text: &str) -> Option<String> {
    text.parse::<f32>().ok().filter(|real| real.is_finite()).map(|real| format!("{real:e}"))
}

fn double(text: &str) -> Option<String> {
    text.parse::<f64>().ok().filter(|real| real.is_finite()).map(|real| format!("{real:e}"))
}

fn numeric(text: String) -> Option<String> {
    let (digits, exponent) = digits(&text)?;
    let length = i64::try_from(digits.len()).ok()?;
    let fits = NUMERIC.contains(&exponent) && NUMERIC.contains(&exponent.checked_add(length)?);
    fits.then_some(text)
}

fn bytes(text: &str) -> Option<String> {
    let bytes = BASE64_STANDARD.decode(text).ok()?;
    let mut written = String::with_capacity(2 + 2 * bytes.len());
    written.push_str("\\x");
    bytes.iter().for_each(|byte| written.push_str(&format!("{byte:02x}")));
    Some(written)
}

fn bits(text: &str) -> Option<String> {
    text.bytes().all(|bit| matches!(bit, b'0' | b'1')).then(|| text.to_owned())
}

/// The server would leave the time of a date out.
fn date(text: &str) -> Option<String> {
    let date: jiff::civil::Date = text.parse().ok().filter(|_| text.len() == 10)?;
    Some(date.to_string())
}

fn time(text: &str) -> Option<String> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b':' | b'.'));
    let time: jiff::civil::Time = text.parse().ok().filter(|_| is_plain && is_short(text))?;
    Some(time.to_string())
}

fn zoned_time(text: &str) -> Option<String> {
    let zone = text.find(['+', '-', 'Z', 'z'])?;
    time(text.get(..zone)?)?;
    let zone = text.get(zone..)?;
    let is_zone = zone.eq_ignore_ascii_case("z") || zone.get(1..)?.bytes().all(|b| b.is_ascii_digit() || b == b':');
    is_zone.then(|| text.to_owned())
}

/// The server would leave the zone of such a moment out.
fn timestamp(text: &str) -> Option<String> {
    let time = text.get(10..)?;
    let is_plain = time.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b':' | b'.' | b'T' | b't' | b' '));
    let moment: jiff::civil::DateTime = text.parse().ok().filter(|_| is_plain && is_short(text))?;
    Some(moment.to_string())
}

fn zoned(text: &str) -> Option<String> {
    let moment: jiff::Timestamp = text.parse().ok().filter(|_| is_short(text))?;
    Some(moment.to_string())
}

fn interval(text: &str) -> Option<String> {
    is_short(text).then(|| text.to_owned())
}

/// Whether no number has more digits behind its point than the server keeps.
fn is_short(text: &str) -> bool {
    let fraction = |rest: &str| rest.bytes().take_while(u8::is_ascii_digit).count();
    text.split(['.', ',']).skip(1).all(|rest| fraction(rest) <= FRACTION)
}

/// An array as its literal, with all texts quoted.
fn array(value: &Value, element: &TypeForm) -> Result<String, String> {
    let values = value.as_array().ok_or("takes an array")?;
    let mut literal = String::from("{");
    for (at, value) in values.iter().enumerate() {
        if at > 0 {
            literal.push(',');
        }
        let is_json = matches!(element, TypeForm::Json | TypeForm::JsonBinary);
        match value {
            Value::Null => literal.push_str("NULL"),
            // An array of more dimensions.
            Value::Array(_) if !is_json => literal.push_str(&array(value, element)?),
            value => {
                let text = text(value, element).map_err(|takes| format!("is an array, and each entry {takes}"))?;
                literal.push('"');
                for c in text.chars() {
                    if matches!(c, '"' | '\\') {
                        literal.push('\\');
                    }
                    literal.push(c);
                }
                literal.push('"');
            }
        }
    }
    literal.push('}');
    Ok(literal)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn written(value: &Value, form: &TypeForm) -> Result<Option<String>, String> {
        Argument::new(value, form).map(|argument| argument.0)
    }

    #[test]
    fn what_a_type_would_round_or_leave_out_is_refused() {
        let number = |text: &str| Value::Number(text.parse().unwrap());
        for (value, form) in [
            (json!(1.5), TypeForm::Integer),
            (json!("now"), TypeForm::TimestampWithZone),
            (json!("2026-01-31T10:00:00"), TypeForm::TimestampWithZone),
            (json!("2026-01-31T10:00:00Z"), TypeForm::Timestamp),
            (json!("2026-01-31T10:00:00+02:00"), TypeForm::Timestamp),
            (json!("2026-01-31T10:00:00.1234567Z"), TypeForm::TimestampWithZone),
            (json!("2026-01-31T10:00:00"), TypeForm::Date),
            (json!("2026-02-30"), TypeForm::Date),
            (json!("infinity"), TypeForm::Date),
            (json!("10:00+02"), TypeForm::Time),
            (json!("NaN"), TypeForm::Numeric),
            (json!("NaN"), TypeForm::Double),
            (number("0.12345678901234567890"), TypeForm::Double),
            (number("16777217"), TypeForm::Real),
            (number("1e400"), TypeForm::Double),
            (number("1e-20000"), TypeForm::Numeric),
            (json!("a\0b"), TypeForm::Text),
            (json!(5), TypeForm::Text),
            (json!("yes"), TypeForm::Bool),
            (json!("AAA"), TypeForm::Bytes),
            (json!("012"), TypeForm::Bits),
            (json!("0.0000001 seconds"), TypeForm::Interval),
            (json!([1, "x"]), TypeForm::Array(Box::new(TypeForm::Integer))),
        ] {
            assert!(written(&value, &form).is_err(), "{value} as {form:?}");
        }
    }

    #[test]
    fn what_a_type_holds_is_written_exactly() {
        let number = |text: &str| Value::Number(text.parse().unwrap());
        for (value, form, text) in [
            (number("123456789012345678901234567890.10"), TypeForm::Numeric, "123456789012345678901234567890.10"),
            (number("-5e2"), TypeForm::Integer, "-500"),
            (json!("12"), TypeForm::Integer, "12"),
            (json!(0.1), TypeForm::Double, "0.1"),
            (json!(0.1), TypeForm::Real, "0.1"),
            (json!("2026-01-31T10:00:00+02:00"), TypeForm::TimestampWithZone, "2026-01-31T08:00:00Z"),
            (json!("AQL/"), TypeForm::Bytes, "\\x0102ff"),
            (number("1.10"), TypeForm::JsonBinary, "1.10"),
            (json!("x"), TypeForm::Json, "\"x\""),
            (json!(["a,\"b\\", null, "{}"]), TypeForm::Array(Box::new(TypeForm::Text)), r#"{"a,\"b\\",NULL,"{}"}"#),
            (json!([[1, 2], [3, 4]]), TypeForm::Array(Box::new(TypeForm::Integer)), r#"{{"1","2"},{"3","4"}}"#),
            (json!([[1, 2]]), TypeForm::Array(Box::new(TypeForm::JsonBinary)), r#"{"[1,2]"}"#),
        ] {
            assert_eq!(written(&value, &form).unwrap().as_deref(), Some(text), "{value} as {form:?}");
        }
        assert_eq!(written(&Value::Null, &TypeForm::Bool).unwrap(), None);
    }
}
