//! What comes of an old run under another document.

use serde::Serialize;

use crate::outcome::{Limit, Termination};
use crate::stuck::StuckPattern;

/// What comes of an old run under another document, in a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ReplayKind {
    /// The same calls, the same prompts, the same ending.
    Same,
    /// The same calls and the same ending; what the model is sent differs.
    OtherPrompt,
    /// A call that was made is not made, or waits for an approval.
    RefusedNow,
    /// The run ends, or stops, where it continued.
    EndsEarlier,
    /// The run asks for something that nobody recorded.
    GoesOn,
    /// The run ends at the same place in another way.
    OtherEnding,
}

impl ReplayKind {
    /// All, in the order of tables.
    pub const ALL: [Self; 6] =
        [Self::Same, Self::OtherPrompt, Self::RefusedNow, Self::EndsEarlier, Self::GoesOn, Self::OtherEnding];

    /// The kind as programs name it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Same => "same",
            Self::OtherPrompt => "other_prompt",
            Self::RefusedNow => "refused_now",
            Self::EndsEarlier => "ends_earlier",
            Self::GoesOn => "goes_on",
            Self::OtherEnding => "other_ending",
        }
    }

    /// The kind in words.
    pub fn words(self) -> &'static str {
        match self {
            Self::Same => "same",
            Self::OtherPrompt => "same calls, other prompt",
            Self::RefusedNow => "refused now",
            Self::EndsEarlier => "ends earlier",
            Self::GoesOn => "goes on",
            Self::OtherEnding => "other ending",
        }
    }
}

/// What comes of an old run under another document, with the first decision that differs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ReplayVerdict {
    /// In a word.
    #[serde(rename = "verdict")]
    pub kind: ReplayKind,
    /// The iteration of the first decision that differs, from 1; 0 is the start of the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub iteration: Option<u32>,
    /// The address of the step that differs, in a workflow.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
    /// The tool that it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub action: Option<String>,
    /// What differs, in a sentence without a full stop.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// The limit that is reached now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<Limit>,
    /// The pattern that the agent is stuck in now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stuck: Option<StuckPattern>,
    /// How the run ends now, or what it waits for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub termination: Option<Termination>,
    /// How many events were compared.
    pub events: usize,
    /// The tokens that the run had used up to there.
    pub tokens: u64,
}

impl ReplayVerdict {
    /// A run of `events` events that comes out as it was.
    pub fn same(events: usize) -> Self {
        Self { events, ..Self::new(ReplayKind::Same) }
    }

    /// A verdict of this kind, about nothing in particular.
    pub(super) fn new(kind: ReplayKind) -> Self {
        Self {
            kind,
            iteration: None,
            at: None,
            action: None,
            why: None,
            limit: None,
            stuck: None,
            termination: None,
            events: 0,
            tokens: 0,
        }
    }
}
