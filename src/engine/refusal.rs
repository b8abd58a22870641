//! Why replies could not be read: what helps against it depends on that.

use super::dialect;
use super::event::{Finish, Reply};
use super::state::{State, StoredEntry};

/// How many answers that do not match `answer_schema` end a run.
pub const ANSWERS: u32 = 3;

/// Why a reply could not be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RefusalCause {
    /// What the model wrote.
    Unreadable,
    /// `max_tokens` cut it off.
    CutOff,
    /// `max_tokens` cut it off while the model was still thinking.
    CutOffThinking,
}

impl RefusalCause {
    pub(super) fn of(reply: &Reply) -> Self {
        match reply.finish {
            Finish::Length if dialect::is_cut_off_thinking(reply) => Self::CutOffThinking,
            Finish::Length => Self::CutOff,
            Finish::Stop | Finish::Filtered => Self::Unreadable,
        }
    }

    /// As the errors of the trace name it.
    pub fn class(self) -> &'static str {
        match self {
            Self::Unreadable => "unreadable reply",
            Self::CutOff => "reply cut off",
            Self::CutOffThinking => "reply cut off while thinking",
        }
    }

    /// The cause of most of the refused replies in a row that a run ends with.
    pub fn of_last(state: &State) -> Self {
        let last = state.entries.iter().rev().map_while(Self::of_entry);
        let (mut all, mut cut, mut thinking) = (0, 0, 0);
        for cause in last {
            all += 1;
            cut += usize::from(cause != Self::Unreadable);
            thinking += usize::from(cause == Self::CutOffThinking);
        }
        match () {
            () if cut * 2 <= all => Self::Unreadable,
            () if thinking * 2 < cut => Self::CutOff,
            () => Self::CutOffThinking,
        }
    }

    fn of_entry(entry: &StoredEntry) -> Option<Self> {
        let class = &entry.error.as_ref().filter(|_| entry.action.is_none())?.class;
        [Self::Unreadable, Self::CutOff, Self::CutOffThinking].into_iter().find(|cause| cause.class() == class)
    }
}
