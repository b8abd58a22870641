//! Times as records write them.

use serde::{Deserialize, Deserializer, Serializer};

/// A time in RFC 3339, UTC, to the millisecond; the bare number where the calendar has no such time.
pub fn rfc3339(wall_ms: i64) -> String {
    jiff::Timestamp::from_millisecond(wall_ms).map_or_else(|_| wall_ms.to_string(), |at| format!("{at:.3}"))
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands a reference")]
pub(crate) fn as_rfc3339<S: Serializer>(wall_ms: &i64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&rfc3339(*wall_ms))
}

#[expect(clippy::ref_option, reason = "serde hands a reference")]
pub(crate) fn as_rfc3339_if_any<S: Serializer>(wall_ms: &Option<i64>, serializer: S) -> Result<S::Ok, S::Error> {
    match wall_ms {
        Some(wall_ms) => as_rfc3339(wall_ms, serializer),
        None => serializer.serialize_none(),
    }
}

pub(crate) fn from_rfc3339<'de, D: Deserializer<'de>>(from: D) -> Result<i64, D::Error> {
    from_rfc3339_if_any(from)?.ok_or_else(|| serde::de::Error::custom("a time is missing"))
}

pub(crate) fn from_rfc3339_if_any<'de, D: Deserializer<'de>>(from: D) -> Result<Option<i64>, D::Error> {
    let Some(text) = Option::<String>::deserialize(from)? else { return Ok(None) };
    read(&text).map(Some).map_err(serde::de::Error::custom)
}

/// The milliseconds of a time. One that the calendar does not have is written as its number.
fn read(text: &str) -> Result<i64, jiff::Error> {
    let read = text.parse::<jiff::Timestamp>().map(jiff::Timestamp::as_millisecond);
    read.or_else(|error| text.parse().map_err(|_| error))
}

pub(crate) fn as_rfc3339_each<S: Serializer>(times_ms: &[i64], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(times_ms.iter().map(|at_ms| rfc3339(*at_ms)))
}

pub(crate) fn from_rfc3339_each<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<i64>, D::Error> {
    let texts = Vec::<String>::deserialize(from)?;
    texts.iter().map(|text| read(text).map_err(serde::de::Error::custom)).collect()
}
