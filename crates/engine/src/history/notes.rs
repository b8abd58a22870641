//! What is wrong with the notes that a model wrote of removed messages: it reads that, and so does who looks at the run.

use schemars::JsonSchema;
use serde::Serialize;

use crate::event::ModelFaultCode;

/// The most characters of notes that are shown.
pub(super) const MAX_NOTES: usize = 8_000;

/// What is wrong with notes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum NotesFault {
    /// They were cut off, by `max_tokens` or because they were too long.
    CutOff,
    /// The model refused to write them, or its provider did.
    Refused,
    /// The model made a call in place of them.
    Called,
    /// The reply was empty.
    Empty,
    /// The request for them failed.
    Failed,
}

/// What was wrong with the notes of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct NotesTally {
    /// How many were cut off.
    pub cut_off: u32,
    /// How often there were none.
    pub missing: u32,
    /// What is wrong with the last ones; none where they are whole, or where nobody asked for any.
    pub last: Option<NotesFault>,
}

impl NotesFault {
    /// Why there are no notes, when the request for them failed.
    pub(super) fn of_code(code: ModelFaultCode) -> Self {
        if code == ModelFaultCode::ModelRefused { Self::Refused } else { Self::Failed }
    }

    /// Why there are none, in words.
    pub fn reason(self) -> &'static str {
        match self {
            Self::CutOff => "the reply was cut off before the first word",
            Self::Refused => "the request for them was refused",
            Self::Called => "the model made a call in place of them",
            Self::Empty => "the reply was empty",
            Self::Failed => "the request for them failed",
        }
    }
}

impl NotesTally {
    /// Counts the notes of a trimmed history. `any`: whether there are some.
    pub(super) fn add(&mut self, any: bool, fault: Option<NotesFault>) {
        self.last = fault;
        let count = match (any, fault) {
            (true, Some(_)) => &mut self.cut_off,
            (false, Some(_)) => &mut self.missing,
            (_, None) => return,
        };
        *count = count.saturating_add(1);
    }
}
