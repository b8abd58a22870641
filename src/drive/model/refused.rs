//! Fields that a model refuses: known by its name, or learned from the server's refusal, once for each model of a
//! server in a process.

use std::sync::atomic::{AtomicU16, Ordering};

/// A field that a request can do without, or that has another name elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RequestField {
    Temperature,
    /// `max_tokens`: `max_completion_tokens` is sent in its place.
    MaxTokens,
    Stop,
    ParallelToolCalls,
    StreamOptions,
    /// The reasoning of earlier replies.
    Reasoning,
    /// `include`, which asks for encrypted reasoning.
    Include,
    /// That a tool must be called.
    ToolChoice,
    /// The schema of a turn. A refusal seldom names it: a request without it shows whether it was the reason.
    Schema,
}

impl RequestField {
    const ALL: [Self; 9] = [
        Self::Temperature,
        Self::MaxTokens,
        Self::Stop,
        Self::ParallelToolCalls,
        Self::StreamOptions,
        Self::Reasoning,
        Self::Include,
        Self::ToolChoice,
        Self::Schema,
    ];

    /// The names by which servers refuse it.
    fn names(self) -> &'static [&'static str] {
        match self {
            Self::Temperature => &["temperature"],
            Self::MaxTokens => &["max_tokens"],
            // Bare, it is a word of any sentence.
            Self::Stop => &["'stop'", "`stop`", "\"stop\"", "stop_sequences"],
            Self::ParallelToolCalls => &["parallel_tool_calls"],
            Self::StreamOptions => &["stream_options"],
            Self::Reasoning => &["reasoning_content", "reasoning_details", "extra_content"],
            Self::Include => &["include", "encrypted content"],
            Self::ToolChoice => &["tool_choice", "function_calling_config"],
            Self::Schema => &[],
        }
    }

    fn bit(self) -> u16 {
        match self {
            Self::Temperature => 1,
            Self::MaxTokens => 1 << 1,
            Self::Stop => 1 << 2,
            Self::ParallelToolCalls => 1 << 3,
            Self::StreamOptions => 1 << 4,
            Self::Reasoning => 1 << 5,
            Self::Include => 1 << 6,
            Self::Schema => 1 << 7,
            Self::ToolChoice => 1 << 8,
        }
    }

    /// The field that a server's refusal is about, if it says that the model does not take it at all.
    pub(super) fn refused(param: Option<&str>, message: &str) -> Option<Self> {
        let message = message.to_lowercase();
        if !REFUSALS.iter().any(|words| message.contains(words)) {
            return None;
        }
        let is_named =
            |field: &Self| field.names().iter().any(|name| param == Some(name.trim_matches(['\'', '`', '"'])));
        let is_quoted = |field: &Self| field.names().iter().any(|name| names(&message, name));
        let mut all = Self::ALL.into_iter();
        all.clone().find(is_named).or_else(|| all.find(is_quoted))
    }
}

/// Words by which servers say that a field has no place in a request to this model.
const REFUSALS: [&str; 13] = [
    "unsupported",
    "not supported",
    "not support",
    "isn't supported",
    "deprecated",
    "unrecognized",
    "unknown",
    "unexpected",
    "extra inputs",
    "not permitted",
    "not allowed",
    "is unsupported",
    // Anthropic, of a model that thinks and must call a tool.
    "may not be enabled",
];

/// Whether a text has this name as a whole word.
fn names(message: &str, name: &str) -> bool {
    let is_part = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    message.match_indices(name).any(|(at, _)| {
        let before = message.get(..at).and_then(|text| text.chars().next_back());
        let behind = message.get(at.saturating_add(name.len())..).and_then(|text| text.chars().next());
        !before.is_some_and(is_part) && !behind.is_some_and(is_part)
    })
}

/// The fields that a model of a server refuses.
#[derive(Debug, Default)]
pub(super) struct RefusedFields(AtomicU16);

impl RefusedFields {
    /// Those of a model that is known to take no temperature: it refuses these, too.
    pub(super) fn of_fixed_temperature() -> Self {
        let known =
            [RequestField::Temperature, RequestField::MaxTokens, RequestField::Stop, RequestField::ParallelToolCalls];
        Self(AtomicU16::new(known.into_iter().map(RequestField::bit).sum()))
    }

    /// Whether this one is refused.
    pub(super) fn contains(&self, field: RequestField) -> bool {
        self.snapshot() & field.bit() != 0
    }

    /// All of them, to compare.
    pub(super) fn snapshot(&self) -> u16 {
        self.0.load(Ordering::Relaxed)
    }

    /// Remembers whether one is refused.
    pub(super) fn set(&self, field: RequestField, refused: bool) {
        match refused {
            true => self.0.fetch_or(field.bit(), Ordering::Relaxed),
            false => self.0.fetch_and(!field.bit(), Ordering::Relaxed),
        };
    }

    /// Learns that one is refused by a request that was made when `before` was known. Returns whether another request
    /// would be another one.
    pub(super) fn learn(&self, field: RequestField, before: u16) -> bool {
        self.0.fetch_or(field.bit(), Ordering::Relaxed);
        before & field.bit() == 0
    }
}
