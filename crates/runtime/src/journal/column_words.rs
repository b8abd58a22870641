//! What the stores on disk and in databases have in common: the words of columns and the sums of events.

use serde::Deserialize;
use serde::de::value::StrDeserializer;

pub(super) use loopctl_lang::policy::word::written as word;

/// The checksum of an event's row: FNV-1a over run, number and text. Any single flipped bit changes it.
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
pub(super) fn known<'a, T: Deserialize<'a>>(word: &'a str) -> Result<T, serde::de::value::Error> {
    T::deserialize(StrDeserializer::new(word))
}
