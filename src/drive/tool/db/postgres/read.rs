//! Values of the server, in its binary form, as JSON. Nothing is rounded: a value without a form in JSON is refused.

use std::error::Error;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Number, Value};
use tokio_postgres::types::{FromSql, Type};

use super::forms::TypeForm;
use crate::drive::tool::output;

/// The microseconds from 1970 to 2000, where the server's moments start.
const EPOCH_US: i64 = 946_684_800_000_000;
const DAY_US: i64 = 86_400_000_000;

/// The bytes of a value; none is NULL.
#[derive(Clone, Copy)]
pub(super) struct RawValue<'a>(pub(super) Option<&'a [u8]>);

impl<'a> FromSql<'a> for RawValue<'a> {
    fn from_sql(_: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn Error + Sync + Send>> {
        Ok(Self(Some(raw)))
    }

    fn from_sql_null(_: &Type) -> Result<Self, Box<dyn Error + Sync + Send>> {
        Ok(Self(None))
    }

    fn accepts(_: &Type) -> bool {
        true
    }
}

/// A value as JSON.
///
/// # Errors
/// What of it has no form there.
pub(super) fn value(raw: RawValue<'_>, form: &TypeForm) -> Result<Value, String> {
    let Some(bytes) = raw.0 else { return Ok(Value::Null) };
    let mut fields = Fields(bytes);
    Ok(match form {
        TypeForm::Bool => Value::Bool(fields.take::<1>()? != [0]),
        TypeForm::Integer => integer(bytes)?,
        TypeForm::Oid => Value::from(u32::from_be_bytes(fields.take()?)),
        TypeForm::Real => {
            let real = f32::from_be_bytes(fields.take()?);
            if real.is_finite() { Value::from(real) } else { return Err(no_number(&real.to_string())) }
        }
        TypeForm::Double => {
            let real = f64::from_be_bytes(fields.take()?);
            if real.is_finite() { Value::from(real) } else { return Err(no_number(&real.to_string())) }
        }
        TypeForm::Numeric => numeric(&mut fields)?,
        TypeForm::Text => Value::from(text(bytes)?),
        TypeForm::Bytes => Value::from(BASE64_STANDARD.encode(bytes)),
        TypeForm::Date => date(i32::from_be_bytes(fields.take()?))?,
        TypeForm::Time => Value::from(time(fields.int8()?)),
        TypeForm::TimeWithZone => {
            let at = time(fields.int8()?);
            Value::from(format!("{at}{}", zone(fields.int4()?)))
        }
        TypeForm::Timestamp => Value::from(jiff::tz::Offset::UTC.to_datetime(moment(fields.int8()?)?).to_string()),
        TypeForm::TimestampWithZone => Value::from(moment(fields.int8()?)?.to_string()),
        TypeForm::Interval => {
            let (us, days, months) = (fields.int8()?, fields.int4()?, fields.int4()?);
            Value::from(interval(months, days, us))
        }
        TypeForm::Uuid => Value::from(uuid::Uuid::from_slice(bytes).map_err(|_| damaged())?.to_string()),
        TypeForm::Json => json(text(bytes)?)?,
        TypeForm::JsonBinary => match fields.take::<1>()? {
            [1] => json(text(fields.0)?)?,
            [version] => return Err(format!("is of version {version} of jsonb")),
        },
        TypeForm::Bits => bits(&mut fields)?,
        TypeForm::Network => network(&mut fields)?,
        TypeForm::Void => Value::Null,
        TypeForm::Array(element) => array(&mut fields, element)?,
    })
}

fn damaged() -> String {
    "is not of the form that its type has".to_owned()
}

fn no_number(text: &str) -> String {
    format!("is {text}, which JSON does not have")
}

fn text(bytes: &[u8]) -> Result<&str, String> {
    std::str::from_utf8(bytes).map_err(|_| "is no text in UTF-8".to_owned())
}

/// What is left of a value's bytes.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], String> {
        let (taken, rest) = self.0.split_first_chunk::<N>().ok_or_else(damaged)?;
        self.0 = rest;
        Ok(*taken)
    }

    fn slice(&mut self, length: usize) -> Result<&'a [u8], String> {
        let (taken, rest) = self.0.split_at_checked(length).ok_or_else(damaged)?;
        self.0 = rest;
        Ok(taken)
    }

    fn int2(&mut self) -> Result<i16, String> {
        self.take().map(i16::from_be_bytes)
    }

    fn int4(&mut self) -> Result<i32, String> {
        self.take().map(i32::from_be_bytes)
    }

    fn int8(&mut self) -> Result<i64, String> {
        self.take().map(i64::from_be_bytes)
    }
}

/// A whole number of 2, 4 or 8 bytes.
fn integer(bytes: &[u8]) -> Result<Value, String> {
    let mut fields = Fields(bytes);
    Ok(match bytes.len() {
        2 => Value::from(fields.int2()?),
        4 => Value::from(fields.int4()?),
        8 => Value::from(fields.int8()?),
        _ => return Err(damaged()),
    })
}

/// A `numeric`: digits of base 10,000, the power of the first, and how many decimals are shown.
fn numeric(fields: &mut Fields<'_>) -> Result<Value, String> {
    let (count, weight, sign, scale) = (fields.int2()?, fields.int2()?, fields.take::<2>()?, fields.int2()?);
    let sign = match u16::from_be_bytes(sign) {
        0 => "",
        0x4000 => "-",
        0xD000 => return Err(no_number("Infinity")),
        0xF000 => return Err(no_number("-Infinity")),
        _ => return Err(no_number("NaN")),
    };
    let (count, scale) = (usize::try_from(count), usize::try_from(scale));
    let (count, scale) = (count.map_err(|_| damaged())?, scale.map_err(|_| damaged())?);
    let mut groups = Vec::with_capacity(count.min(fields.0.len()));
    for _ in 0..count {
        groups.push(fields.int2()?);
    }
    let group = |power: i32| {
        let at = usize::try_from(i32::from(weight) - power).ok();
        format!("{:04}", at.and_then(|at| groups.get(at)).copied().unwrap_or(0))
    };
    let whole: String = (0..=i32::from(weight)).rev().map(group).collect();
    let whole = whole.trim_start_matches('0');
    let decimals = i32::try_from(scale.div_ceil(4)).map_err(|_| damaged())?;
    let mut fraction: String = (1..=decimals).map(|power| group(-power)).collect();
    fraction.truncate(scale);
    let whole = if whole.is_empty() { "0" } else { whole };
    let point = if fraction.is_empty() { "" } else { "." };
    let number = format!("{sign}{whole}{point}{fraction}");
    number.parse::<Number>().map(Value::Number).map_err(|_| damaged())
}

fn date(days: i32) -> Result<Value, String> {
    if days == i32::MAX || days == i32::MIN {
        return Err("is infinity, which JSON does not have".to_owned());
    }
    let moment = moment(i64::from(days).checked_mul(DAY_US).ok_or_else(damaged)?)?;
    Ok(Value::from(jiff::tz::Offset::UTC.to_datetime(moment).date().to_string()))
}

/// A moment, in microseconds from 2000 on.
fn moment(us: i64) -> Result<jiff::Timestamp, String> {
    if us == i64::MAX || us == i64::MIN {
        return Err("is infinity, which JSON does not have".to_owned());
    }
    let outside = || "is in a year that RFC 3339 does not have: those are 0 to 9999".to_owned();
    let moment = us.checked_add(EPOCH_US).and_then(|us| jiff::Timestamp::from_microsecond(us).ok());
    let is_written = |moment: &jiff::Timestamp| jiff::tz::Offset::UTC.to_datetime(*moment).year() >= 0;
    moment.filter(is_written).ok_or_else(outside)
}

/// A time of the day, in microseconds; the server has `24:00:00` too.
fn time(us: i64) -> String {
    let (seconds, us) = (us / 1_000_000, us % 1_000_000);
    let fraction = if us == 0 { String::new() } else { format!(".{us:06}").trim_end_matches('0').to_owned() };
    format!("{:02}:{:02}:{:02}{fraction}", seconds / 3600, seconds / 60 % 60, seconds % 60)
}

/// A zone, in seconds to the west.
fn zone(west: i32) -> String {
    let sign = if west > 0 { '-' } else { '+' };
    let seconds = west.unsigned_abs();
    let rest = if seconds.is_multiple_of(60) { String::new() } else { format!(":{:02}", seconds % 60) };
    format!("{sign}{:02}:{:02}{rest}", seconds / 3600, seconds / 60 % 60)
}

/// A duration of ISO 8601, as the server writes it: each part has its own sign.
fn interval(months: i32, days: i32, us: i64) -> String {
    let mut text = String::from("P");
    let part = |text: &mut String, number: i64, unit: char| {
        if number != 0 {
            text.push_str(&format!("{number}{unit}"));
        }
    };
    part(&mut text, i64::from(months / 12), 'Y');
    part(&mut text, i64::from(months % 12), 'M');
    part(&mut text, i64::from(days), 'D');
    if us != 0 || text.len() == 1 {
        text.push('T');
        part(&mut text, us / 3_600_000_000, 'H');
        part(&mut text, us / 60_000_000 % 60, 'M');
        let rest = us % 60_000_000;
        if rest != 0 || text.ends_with('T') {
            let sign = if rest < 0 { "-" } else { "" };
            let (seconds, us) = (rest.unsigned_abs() / 1_000_000, rest.unsigned_abs() % 1_000_000);
            let fraction = if us == 0 { String::new() } else { format!(".{us:06}").trim_end_matches('0').to_owned() };
            text.push_str(&format!("{sign}{seconds}{fraction}S"));
        }
    }
    text
}

/// JSON with its digits as they are written.
fn json(text: &str) -> Result<Value, String> {
    let value: Value = serde_json::from_str(text).map_err(|error| format!("is JSON that can't be read: {error}"))?;
    match output::key_twice(text, &value) {
        Some(key) => Err(format!("has the key {key:?} twice in an object, and JSON keeps one: select it as text")),
        None => Ok(value),
    }
}

fn bits(fields: &mut Fields<'_>) -> Result<Value, String> {
    let count = usize::try_from(fields.int4()?).map_err(|_| damaged())?;
    let bytes = fields.slice(count.div_ceil(8))?;
    let bit = |at: usize| bytes.get(at / 8).is_some_and(|byte| byte >> (7 - at % 8) & 1 == 1);
    Ok(Value::from((0..count).map(|at| if bit(at) { '1' } else { '0' }).collect::<String>()))
}

/// An address, with its length where that is not of one host.
fn network(fields: &mut Fields<'_>) -> Result<Value, String> {
    let [_, bits, is_network, length] = fields.take()?;
    let (address, whole) = match length {
        4 => (IpAddr::from(Ipv4Addr::from(fields.take::<4>()?)), 32),
        16 => (IpAddr::from(Ipv6Addr::from(fields.take::<16>()?)), 128),
        _ => return Err(damaged()),
    };
    let is_host = bits == whole && is_network == 0;
    Ok(Value::from(if is_host { address.to_string() } else { format!("{address}/{bits}") }))
}

/// An array of one or more dimensions.
fn array(fields: &mut Fields<'_>, element: &TypeForm) -> Result<Value, String> {
    /// As the server has it.
    const MOST: usize = 6;
    let (dimensions, _, _) = (fields.int4()?, fields.int4()?, fields.int4()?);
    let dimensions = usize::try_from(dimensions).ok().filter(|count| *count <= MOST).ok_or_else(damaged)?;
    let mut lengths = Vec::with_capacity(dimensions);
    for _ in 0..dimensions {
        lengths.push(usize::try_from(fields.int4()?).map_err(|_| damaged())?);
        if fields.int4()? != 1 {
            return Err("is an array that does not begin at 1".to_owned());
        }
    }
    if lengths.is_empty() { Ok(Value::Array(Vec::new())) } else { dimension(fields, element, &lengths) }
}

fn dimension(fields: &mut Fields<'_>, element: &TypeForm, lengths: &[usize]) -> Result<Value, String> {
    let Some((length, inner)) = lengths.split_first() else {
        let raw = match fields.int4()? {
            -1 => None,
            length => Some(fields.slice(usize::try_from(length).map_err(|_| damaged())?)?),
        };
        return value(RawValue(raw), element);
    };
    let mut values = Vec::new();
    for _ in 0..*length {
        if fields.0.is_empty() {
            return Err(damaged());
        }
        values.push(dimension(fields, element, inner)?);
    }
    Ok(Value::Array(values))
}
