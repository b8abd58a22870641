//! What the stores on disk and in databases have in common: the words of columns, the sums of events, and faults.

#[cfg(any(feature = "sqlite", feature = "postgres"))]
use serde::de::value::StrDeserializer;
use serde::{Deserialize, Serialize};

use super::StoreFault;

/// The serialized word of a status or termination.
#[cfg(any(feature = "sqlite", feature = "postgres"))]
pub(super) fn word<T: Serialize>(value: &T) -> Option<String> {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(word)) => Some(word),
        _ => None,
    }
}

/// The checksum of an event's row: FNV-1a over run, number and text. Any single flipped bit changes it.
#[cfg(any(feature = "sqlite", feature = "postgres"))]
pub(super) fn sum(run_id: &str, seq: i64, event: &str) -> i64 {
    let bytes = run_id.bytes().chain([0]).chain(seq.to_le_bytes()).chain(event.bytes());
    bytes
        .fold(0xcbf2_9ce4_8422_2325_u64, |sum, byte| (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
        .cast_signed()
}

/// Reads a word of one of our enums.
///
/// # Errors
/// When there is no such one.
#[cfg(any(feature = "sqlite", feature = "postgres"))]
pub(super) fn known<'a, T: Deserialize<'a>>(word: &'a str) -> Result<T, serde::de::value::Error> {
    T::deserialize(StrDeserializer::new(word))
}

/// The fault of a run that has lost events.
#[cfg(any(feature = "sqlite", feature = "postgres"))]
pub(super) fn cut_short(run_id: &str) -> StoreFault {
    StoreFault::Corrupt(format!("run {run_id}: its last events are missing"))
}

/// The fault of all stores for an event that is not the next one.
pub(super) fn out_of_order(run_id: &str, seq: u64, next: u64) -> StoreFault {
    StoreFault::Other(format!("event {seq} of run {run_id} can't be appended: its next event is number {next}"))
}
