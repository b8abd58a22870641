//! Values of the server, in its binary form, as JSON. Nothing is rounded: a value without a form in JSON is refused.

use std::error::Error;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::Value;
use tokio_postgres::types::{FromSql, Type};

use super::forms::TypeForm;
use crate::drive::tool::db::rows;
use crate::drive::tool::output;
use loopctl_lang::policy::json_text;

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

/// How many bytes a value takes as JSON, at most: known before it is made. A few bytes of a number can be very many digits.
pub(super) fn size(raw: RawValue<'_>, form: &TypeForm) -> usize {
    let Some(bytes) = raw.0 else { return rows::NULL_SIZE };
    match form {
        TypeForm::Numeric => numeric_size(&mut Fields(bytes)).unwrap_or(bytes.len()),
        TypeForm::Text => rows::text_size(bytes),
        TypeForm::Bytes => rows::base64_size(bytes.len()),
        TypeForm::Json | TypeForm::JsonBinary => bytes.len(),
        // Each of them a digit, and two quotes.
        TypeForm::Bits => bytes.len().saturating_mul(8),
        TypeForm::Array(element) => array_size(&mut Fields(bytes), element).unwrap_or(bytes.len()),
        // It is small: what it takes is what it is.
        _ => value(raw, form).map_or(48, |value| value.to_string().len()),
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

/// What is before the digits of a `numeric`: how many there are, of base 10,000, the power of the first, the sign, and how
/// many decimals are shown.
struct NumericHead {
    count: usize,
    weight: i32,
    sign: u16,
    scale: usize,
}

impl NumericHead {
    fn read(fields: &mut Fields<'_>) -> Result<Self, String> {
        let (count, weight, sign, scale) = (fields.int2()?, fields.int2()?, fields.take::<2>()?, fields.int2()?);
        let length = |number: i16| usize::try_from(number).map_err(|_| damaged());
        let (count, scale) = (length(count)?, length(scale)?);
        Ok(Self { count, weight: i32::from(weight), sign: u16::from_be_bytes(sign), scale })
    }

    /// The digits before the point, in groups of four.
    fn whole(&self) -> usize {
        usize::try_from(self.weight.saturating_add(1)).unwrap_or(0)
    }

    /// How many bytes the number takes when it is written, at most.
    fn size(&self) -> usize {
        self.whole().saturating_mul(4).saturating_add(self.scale).saturating_add(3)
    }
}

fn numeric_size(fields: &mut Fields<'_>) -> Result<usize, String> {
    NumericHead::read(fields).map(|head| head.size())
}

fn numeric(fields: &mut Fields<'_>) -> Result<Value, String> {
    let head = NumericHead::read(fields)?;
    let sign = match head.sign {
        0 => "",
        0x4000 => "-",
        0xD000 => return Err(no_number("Infinity")),
        0xF000 => return Err(no_number("-Infinity")),
        _ => return Err(no_number("NaN")),
    };
    let mut groups = Vec::with_capacity(head.count.min(fields.0.len()));
    for _ in 0..head.count {
        groups.push(u16::try_from(fields.int2()?).ok().filter(|group| *group < 10_000).ok_or_else(damaged)?);
    }
    let group = |power: i32| {
        let at = usize::try_from(head.weight.saturating_sub(power)).ok();
        at.and_then(|at| groups.get(at)).copied().unwrap_or(0)
    };
    let mut number = String::with_capacity(head.size());
    number.push_str(sign);
    let begin = number.len();
    for power in (0..=head.weight).rev() {
        let group = group(power);
        let written = if number.len() > begin { format!("{group:04}") } else { group.to_string() };
        if number.len() > begin || group > 0 {
            number.push_str(&written);
        }
    }
    if number.len() == begin {
        number.push('0');
    }
    if head.scale > 0 {
        number.push('.');
        let end = number.len().saturating_add(head.scale);
        let decimals = i32::try_from(head.scale.div_ceil(4)).map_err(|_| damaged())?;
        (1..=decimals).for_each(|power| number.push_str(&format!("{:04}", group(-power))));
        number.truncate(end);
    }
    output::exact_number(&number, damaged)
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
    let text = &*output::readable(text);
    let value: Value = json_text::read(text).map_err(|error| format!("is JSON that can't be read: {error}"))?;
    output::unclear_json(text, &value).map_or(Ok(value), Err)
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

/// The lengths of the dimensions of an array; none of one without entries.
fn lengths(fields: &mut Fields<'_>) -> Result<Vec<usize>, String> {
    /// As the server has it.
    const MAX_DIMENSIONS: usize = 6;
    /// The bytes of an entry that is NULL, the shortest one.
    const SHORTEST: usize = 4;
    let (dimensions, _, _) = (fields.int4()?, fields.int4()?, fields.int4()?);
    let dimensions = usize::try_from(dimensions).ok().filter(|count| *count <= MAX_DIMENSIONS).ok_or_else(damaged)?;
    let mut lengths = Vec::with_capacity(dimensions);
    for _ in 0..dimensions {
        lengths.push(usize::try_from(fields.int4()?).map_err(|_| damaged())?);
        if fields.int4()? != 1 {
            return Err("is an array that does not begin at 1".to_owned());
        }
    }
    // There is no entry without bytes.
    let entries = lengths.iter().fold(1, |entries: usize, length| entries.saturating_mul(*length));
    let is_whole = entries > 0 && entries.saturating_mul(SHORTEST) <= fields.0.len();
    if lengths.is_empty() || is_whole { Ok(lengths) } else { Err(damaged()) }
}

/// The next entry of an array.
fn entry<'a>(fields: &mut Fields<'a>) -> Result<RawValue<'a>, String> {
    Ok(RawValue(match fields.int4()? {
        -1 => None,
        length => Some(fields.slice(usize::try_from(length).map_err(|_| damaged())?)?),
    }))
}

fn array_size(fields: &mut Fields<'_>, element: &TypeForm) -> Result<usize, String> {
    let lengths = lengths(fields)?;
    // The arrays within it: each has two brackets and a comma.
    let (mut arrays, mut inner) = (1_usize, 1_usize);
    for length in lengths.iter().rev().skip(1).rev() {
        inner = inner.saturating_mul(*length);
        arrays = arrays.saturating_add(inner);
    }
    let mut bytes = arrays.saturating_mul(3);
    while !fields.0.is_empty() {
        bytes = bytes.saturating_add(size(entry(fields)?, element)).saturating_add(1);
    }
    Ok(bytes)
}

/// An array of one or more dimensions.
fn array(fields: &mut Fields<'_>, element: &TypeForm) -> Result<Value, String> {
    let lengths = lengths(fields)?;
    if lengths.is_empty() { Ok(Value::Array(Vec::new())) } else { dimension(fields, element, &lengths) }
}

fn dimension(fields: &mut Fields<'_>, element: &TypeForm, lengths: &[usize]) -> Result<Value, String> {
    let Some((length, inner)) = lengths.split_first() else {
        return value(entry(fields)?, element);
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

#[cfg(test)]
mod tests {
    use super::*;

    fn numeric_bytes(count: i16, weight: i16, scale: i16, groups: &[i16]) -> Vec<u8> {
        [count, weight, 0, scale].iter().chain(groups).flat_map(|number| number.to_be_bytes()).collect()
    }

    fn array_bytes(lengths: &[i32], entries: &[Option<&[u8]>]) -> Vec<u8> {
        let mut numbers = vec![i32::try_from(lengths.len()).unwrap(), 0, 0];
        lengths.iter().for_each(|length| numbers.extend([*length, 1]));
        let mut bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_be_bytes()).collect();
        for entry in entries {
            let length = entry.map_or(-1, |entry| i32::try_from(entry.len()).unwrap());
            bytes.extend(length.to_be_bytes());
            bytes.extend(entry.unwrap_or_default());
        }
        bytes
    }

    #[test]
    fn what_a_value_takes_as_json_is_known_before_it_is_made() {
        let huge = numeric_bytes(1, 32_749, 0, &[1000]);
        let numbers = TypeForm::Array(Box::new(TypeForm::Numeric));
        let texts = TypeForm::Array(Box::new(TypeForm::Text));
        let none = TypeForm::Array(Box::new(TypeForm::Integer));
        for (bytes, form) in [
            (huge.clone(), TypeForm::Numeric),
            (numeric_bytes(2, 0, 5, &[12, 3400]), TypeForm::Numeric),
            (numeric_bytes(1, -3, 16_000, &[1]), TypeForm::Numeric),
            (numeric_bytes(0, 0, 0, &[]), TypeForm::Numeric),
            (b"\x01\x02\"\\\n plain".to_vec(), TypeForm::Text),
            (vec![7; 1000], TypeForm::Bytes),
            ([&800_i32.to_be_bytes()[..], &[0xa5; 100]].concat(), TypeForm::Bits),
            (array_bytes(&[2], &[Some(&huge), None]), numbers),
            (array_bytes(&[2, 2], &[Some(b"\x01"), None, Some(b""), Some(b"x")]), texts),
            (array_bytes(&[], &[]), none),
            (7_i64.to_be_bytes().to_vec(), TypeForm::Integer),
            (i64::MIN.to_be_bytes().to_vec(), TypeForm::Integer),
            (vec![1], TypeForm::Bool),
            ((-1.5_f64).to_be_bytes().to_vec(), TypeForm::Double),
            (0_i64.to_be_bytes().to_vec(), TypeForm::TimestampWithZone),
        ] {
            let made = value(RawValue(Some(&bytes)), &form).unwrap().to_string();
            let size = size(RawValue(Some(&bytes)), &form);
            assert!(made.len() <= size && size <= 2 * made.len() + 10, "{form:?}: {size} for {}", made.len());
        }
    }

    #[test]
    fn an_array_whose_lengths_are_not_those_of_its_bytes_is_refused() {
        let form = TypeForm::Array(Box::new(TypeForm::Integer));
        for lengths in [&[i32::MAX, 0][..], &[0], &[i32::MAX], &[2, i32::MAX], &[1, 2], &[-1]] {
            let bytes = array_bytes(lengths, &[Some(&7_i32.to_be_bytes())]);
            assert!(value(RawValue(Some(&bytes)), &form).unwrap_err().contains("not of the form"), "{lengths:?}");
        }
    }
}
