//! Why replies could not be taken: what helps against it depends on that.

use crate::dialect;
use crate::event::{Finish, Reply};
use crate::state::StoredEntry;

/// How many answers that do not match `answer_schema` end a run.
pub const ANSWERS: u32 = 3;

/// What the model reads of a reply that was empty, and came again so.
pub const EMPTY: &str = "Your reply was empty: it has no text and no tool call. Reply now: take the next step, or give \
                         your final answer with what you know.";

/// Why a reply could not be taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RefusalCause {
    /// What the model wrote.
    Unreadable,
    /// `max_tokens` cut it off.
    CutOff,
    /// `max_tokens` cut it off while the model was still thinking.
    CutOffThinking,
    /// The model or its provider refused.
    Refused,
    /// It has neither a text nor a call.
    Empty,
}

impl RefusalCause {
    const ALL: [Self; 5] = [Self::Unreadable, Self::CutOff, Self::CutOffThinking, Self::Refused, Self::Empty];

    pub(crate) fn of(reply: &Reply, knows_empty: bool) -> Self {
        match reply.finish {
            _ if reply.refusal.is_some() => Self::Refused,
            _ if knows_empty && reply.is_empty() => Self::Empty,
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
            Self::Refused => "refused reply",
            Self::Empty => "empty reply",
        }
    }

    /// What an entry without a tool shows, for people.
    pub fn title(class: &str) -> &'static str {
        match Self::ALL.into_iter().find(|cause| cause.class() == class) {
            Some(Self::Refused) => "a reply that the model or its provider refused",
            Some(Self::Empty) => "an empty reply",
            _ => "a reply that could not be read",
        }
    }

    /// The cause of most of the refused replies in a row that a run ends with.
    pub fn of_last(entries: &[StoredEntry]) -> Self {
        let last = entries.iter().rev().map_while(Self::of_entry);
        let (mut all, mut cut, mut thinking, mut refused, mut empty) = (0, 0, 0, 0, 0);
        for cause in last {
            all += 1;
            cut += usize::from(matches!(cause, Self::CutOff | Self::CutOffThinking));
            thinking += usize::from(cause == Self::CutOffThinking);
            refused += usize::from(cause == Self::Refused);
            empty += usize::from(cause == Self::Empty);
        }
        match () {
            () if refused * 2 > all => Self::Refused,
            () if empty * 2 > all => Self::Empty,
            () if cut * 2 <= all => Self::Unreadable,
            () if thinking * 2 < cut => Self::CutOff,
            () => Self::CutOffThinking,
        }
    }

    /// The cause of an entry that is a reply which could not be taken.
    pub(crate) fn of_entry(entry: &StoredEntry) -> Option<Self> {
        let class = &entry.error.as_ref().filter(|_| entry.action.is_none())?.class;
        Self::ALL.into_iter().find(|cause| cause.class() == class)
    }
}

/// What the model reads of a reply that was refused. `words`: what the provider says of it, if anything.
pub(crate) fn refused_words(words: &str) -> String {
    let why = if words.is_empty() { String::new() } else { format!(" ({words})") };
    format!("Your reply was refused by the rules of your provider{why}, and was not taken. Try another way.")
}
