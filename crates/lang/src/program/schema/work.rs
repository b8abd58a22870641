//! How much work one comparison of a value with a schema may take. It is counted in steps, not in time:
//! a run that is replayed judges as it did before.

use serde_json::Value;

use crate::policy::json_text;

/// The steps that every comparison may take. A step is a part of a schema that is compared with a part of a
/// value, or some sixteen bytes that are looked at: some tens of nanoseconds.
const BASE_STEPS: u64 = 4_000_000;
/// The steps that a comparison may take beyond these for each part of the value.
const PER_PART: u64 = 32;
/// Parts of schemas inside each other that are being compared. Deeper parts are not compared: each
/// level takes some room on the stack.
const MAX_DEPTH: usize = 1_000;

/// The comparison would take more work than it may.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TooMuch {
    /// No step is left, or it goes too deep.
    Steps,
    /// A pattern can't be compared in reasonable time with the text at this address.
    Pattern(usize),
}

/// What may still be done.
#[derive(Debug)]
pub(super) struct StepBudget {
    left: u64,
    depth: usize,
}

impl StepBudget {
    /// For a comparison with this value.
    pub(super) fn new(value: &Value) -> Self {
        Self { left: BASE_STEPS.saturating_add(PER_PART.saturating_mul(parts_of(value))), depth: 0 }
    }

    /// Counts steps.
    ///
    /// # Errors
    /// When none are left.
    pub(super) fn spend(&mut self, steps: u64) -> Result<(), TooMuch> {
        self.left = self.left.checked_sub(steps).ok_or(TooMuch::Steps)?;
        Ok(())
    }

    /// Counts the steps that a text takes.
    ///
    /// # Errors
    /// When none are left.
    pub(super) fn spend_bytes(&mut self, bytes: usize) -> Result<(), TooMuch> {
        self.spend(1 + count(bytes) / 16)
    }

    /// One level deeper. Each is left again with [`StepBudget::leave`].
    ///
    /// # Errors
    /// When it is too deep, or no step is left.
    pub(super) fn enter(&mut self) -> Result<(), TooMuch> {
        self.spend(1)?;
        if self.depth == MAX_DEPTH {
            return Err(TooMuch::Steps);
        }
        self.depth += 1;
        Ok(())
    }

    /// One level up again.
    pub(super) fn leave(&mut self) {
        self.depth = self.depth.saturating_sub(1);
    }

    /// The steps that are left.
    #[cfg(test)]
    pub(super) fn left(&self) -> u64 {
        self.left
    }
}

/// A length as a number of steps.
pub(super) fn count(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}

/// The parts of a value: its values at all depths, and the bytes of its texts by sixteens.
pub(super) fn parts_of(value: &Value) -> u64 {
    match value {
        Value::String(text) => 1 + count(text.len()) / 16,
        Value::Number(number) => 1 + count(json_text::digits(number).len()) / 16,
        Value::Array(items) => 1 + items.iter().map(parts_of).sum::<u64>(),
        Value::Object(members) => {
            1 + members.iter().map(|(key, member)| 1 + count(key.len()) / 16 + parts_of(member)).sum::<u64>()
        }
        _ => 1,
    }
}
