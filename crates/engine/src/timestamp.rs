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
    let read = text.parse::<jiff::Timestamp>().map(jiff::Timestamp::as_millisecond);
    // A time that the calendar does not have is written as its number.
    read.or_else(|error| text.parse().map_err(|_| serde::de::Error::custom(error))).map(Some)
}
