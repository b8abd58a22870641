//! Fields that a model refuses: known by its name, or learned from the server's refusal, once for each model of a
//! server in a process.

use std::sync::atomic::{AtomicU32, Ordering};

/// A field that a request can do without, or that has another name elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RequestField {
    Temperature,
    TopP,
    TopK,
    MinP,
    Seed,
    FrequencyPenalty,
    PresencePenalty,
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
    /// The ids of calls as they came: ids of nine letters and digits are sent in their place.
    CallIds,
    /// A message of ours right behind the results of calls: one of the model is put between.
    UserBehindTool,
    /// A turn of the model without its reasoning, as another model wrote it: words take the place of that reasoning.
    MissingReasoning,
    /// The same, and words do not help: its calls and their results are said in a message of ours.
    MissingReasoningOfCalls,
    /// The reasoning of earlier replies, which the server can't verify any more: a run continues without it.
    StaleReasoning,
    /// A call without the signature of Gemini: the value that Google documents for such a call is sent.
    MissingSignature,
}

impl RequestField {
    /// The settings of how tokens are chosen.
    pub(super) const SAMPLING: [Self; 7] = [
        Self::Temperature,
        Self::TopP,
        Self::TopK,
        Self::MinP,
        Self::Seed,
        Self::FrequencyPenalty,
        Self::PresencePenalty,
    ];

    const OTHERS: [Self; 10] = [
        Self::MaxTokens,
        Self::Stop,
        Self::ParallelToolCalls,
        Self::StreamOptions,
        Self::Reasoning,
        Self::Include,
        Self::ToolChoice,
        Self::Schema,
        Self::CallIds,
        Self::UserBehindTool,
    ];

    /// The names by which servers refuse it.
    fn names(self) -> &'static [&'static str] {
        match self {
            Self::Temperature => &["temperature"],
            Self::TopP => &["top_p", "topp"],
            Self::TopK => &["top_k", "topk"],
            Self::MinP => &["min_p", "minp"],
            Self::Seed => &["seed"],
            // Gemini's words for this one and the next one.
            Self::FrequencyPenalty => &["frequency_penalty", "frequencypenalty", "penalty is"],
            Self::PresencePenalty => &["presence_penalty", "presencepenalty"],
            Self::MaxTokens => &["max_tokens"],
            // Bare, it is a word of any sentence.
            Self::Stop => {
                &["'stop'", "`stop`", "\"stop\"", "stop_sequences", "parameter stop", "parameter: stop", "model: stop"]
            }
            Self::ParallelToolCalls => &["parallel_tool_calls"],
            Self::StreamOptions => &["stream_options"],
            Self::Reasoning => &["reasoning_content", "reasoning_details", "extra_content"],
            Self::Include => &["include", "encrypted content"],
            Self::ToolChoice => &["tool_choice", "function_calling_config"],
            Self::Schema
            | Self::CallIds
            | Self::UserBehindTool
            | Self::MissingReasoning
            | Self::MissingReasoningOfCalls
            | Self::StaleReasoning
            | Self::MissingSignature => &[],
        }
    }

    /// The fields that a refusal of this one is about: one that names neither penalty is about both.
    pub(super) fn together(self, message: &str) -> Vec<Self> {
        if self == Self::FrequencyPenalty && !message.to_lowercase().contains("frequency") {
            return vec![Self::FrequencyPenalty, Self::PresencePenalty];
        }
        vec![self]
    }

    /// The setting of this name in a request.
    pub(super) fn of_setting(name: &str) -> Option<Self> {
        let name = name.to_lowercase();
        Self::SAMPLING.into_iter().find(|field| field.names().contains(&name.as_str()))
    }

    /// Whether it says how tokens are chosen.
    pub(super) fn is_sampling(self) -> bool {
        Self::SAMPLING.contains(&self)
    }

    pub(super) fn bit(self) -> u32 {
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
            Self::CallIds => 1 << 9,
            Self::UserBehindTool => 1 << 10,
            Self::TopP => 1 << 11,
            Self::TopK => 1 << 12,
            Self::MinP => 1 << 13,
            Self::Seed => 1 << 14,
            Self::FrequencyPenalty => 1 << 15,
            Self::PresencePenalty => 1 << 16,
            Self::MissingReasoning => 1 << 17,
            Self::MissingReasoningOfCalls => 1 << 18,
            Self::MissingSignature => 1 << 19,
            Self::StaleReasoning => 1 << 20,
        }
    }

    /// Whether it is about turns of the model that lack their reasoning.
    pub(super) fn is_of_missing_reasoning(self) -> bool {
        matches!(self, Self::MissingReasoning | Self::MissingReasoningOfCalls | Self::MissingSignature)
    }

    /// The field that a server's refusal is about, if it says that the model does not take it at all.
    pub(super) fn refused(param: Option<&str>, message: &str) -> Option<Self> {
        let message = message.to_lowercase();
        // Mistral's words, which name no field.
        let is_of_ids = ["a-z", "alphanumeric", "length of 9", "length 9"].iter().any(|words| message.contains(words));
        if message.contains("tool call id") && is_of_ids {
            return Some(Self::CallIds);
        }
        // The second words are those of the templates of its models, which other servers run.
        if message.contains("role 'user' after role 'tool'")
            || message.contains("roles must alternate user and assistant roles except for tool calls and results")
        {
            return Some(Self::UserBehindTool);
        }
        if is_stale(&message) {
            return Some(Self::StaleReasoning);
        }
        if let Some(missing) = Self::missing(&message) {
            return Some(missing);
        }
        let is_param =
            |field: &Self| field.names().iter().any(|name| param == Some(name.trim_matches(['\'', '`', '"'])));
        let is_named = |field: &Self| is_param(field) || field.names().iter().any(|name| names(&message, name));
        let says_so = REFUSALS.iter().any(|words| message.contains(words));
        // Some servers name the values that a model takes in place of the one that it does not.
        let is_of_values = |field: &Self| *field == Self::ToolChoice && message.contains("only");
        let mut others = Self::OTHERS.into_iter().filter(|field| says_so || is_of_values(field));
        // Without its own value the document would get another one than it says.
        let is_of_value = OUT_OF_RANGE.iter().any(|words| message.contains(words));
        let mut sampling = Self::SAMPLING
            .into_iter()
            .filter(|field| says_so || is_fixed(&message) || *field == Self::Temperature && !is_of_value);
        if let Some(field) = sampling.clone().find(is_param).or_else(|| others.clone().find(is_param)) {
            return Some(field);
        }
        sampling.find(is_named).or_else(|| others.find(is_named))
    }

    /// What a refusal, in small letters, misses of the model's turns.
    fn missing(message: &str) -> Option<Self> {
        let has = |words: &[&str]| words.iter().any(|words| message.contains(words));
        if !has(&MISSES) || has(&DROPS) {
            return None;
        }
        if has(&["thought_signature", "thought signature", "thoughtsignature"]) {
            return Some(Self::MissingSignature);
        }
        has(&REASONING).then_some(Self::MissingReasoning)
    }
}

/// Whether a refusal, in small letters, says that the reasoning of earlier replies is not what the server gave: it was
/// given to another key, or in another place.
fn is_stale(message: &str) -> bool {
    let has = |words: &[&str]| words.iter().any(|words| message.contains(words));
    if has(&["missing"]) || has(&REFUSALS) {
        return false;
    }
    has(&STALE) || has(&SEALS) && has(&["invalid", "corrupt", "not valid", "could not be", "can't be", "cannot be"])
}

/// What keeps the reasoning of a reply from being changed, in those refusals.
const SEALS: [&str; 6] = [
    "thought_signature",
    "thought signature",
    "thoughtsignature",
    "`signature` in `thinking`",
    "encrypted content",
    "encrypted_content",
];

/// Words that say so without one of them.
const STALE: [&str; 4] = [
    "blocks in the latest assistant message cannot be",
    "thinking.signature",
    "required following item",
    "items are not persisted",
];

/// Words by which servers say that something must be in a request.
const MISSES: [&str; 12] = [
    "missing",
    "lacks",
    "without",
    "require",
    "passed back",
    "returned",
    "must be",
    "must have",
    "must contain",
    "must include",
    "must start with",
    "be empty",
];

/// Words by which they say that something must not be in a request.
const DROPS: [&str; 3] = ["must not be sent", "must not be included", "be removed"];

/// Names of the reasoning of a turn in those refusals.
const REASONING: [&str; 10] = [
    "reasoning_content",
    "reasoning content",
    "reasoning_details",
    "reasoning item",
    "'reasoning' item",
    "reasoning block",
    "`redacted_thinking`",
    "[].thinking",
    "thinking block",
    "thinking content",
];

/// Whether a refusal says that a setting has one value only.
fn is_fixed(message: &str) -> bool {
    FIXED.iter().any(|words| message.contains(words))
}

/// Words by which servers say that a setting has one value only, or that two settings exclude each other.
const FIXED: [&str; 12] = [
    "cannot both",
    "can't both",
    "only one of",
    "is allowed",
    "must be 1",
    "must be set to",
    "may only be",
    "can only be",
    "cannot be",
    "can't be",
    "default value",
    "no longer",
];

/// Words by which servers say that a setting has a range, and that the value is outside of it.
const OUT_OF_RANGE: [&str; 6] = [
    "maximum value",
    "minimum value",
    "expected a value",
    "less than or equal",
    "greater than or equal",
    "out of range",
];

/// Models of Mistral, whose templates take ids of nine letters and digits only.
const NINE_SIGNS: [&str; 7] = ["mistral", "ministral", "mixtral", "magistral", "devstral", "codestral", "pixtral"];

/// Words by which servers say that a field has no place in a request to this model.
const REFUSALS: [&str; 14] = [
    "not enabled",
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
pub(super) struct RefusedFields(AtomicU32);

impl RefusedFields {
    /// Those of a model that is known to take no temperature: it refuses these, too.
    pub(super) fn of_fixed_temperature() -> Self {
        let known =
            [RequestField::Temperature, RequestField::MaxTokens, RequestField::Stop, RequestField::ParallelToolCalls];
        Self(AtomicU32::new(known.into_iter().map(RequestField::bit).sum()))
    }

    /// The same, and those that the servers of Mistral's models refuse.
    pub(super) fn with_those_of(self, id: &str) -> Self {
        let id = id.to_lowercase();
        if NINE_SIGNS.iter().any(|family| id.contains(family)) {
            self.set(RequestField::CallIds, true);
        }
        self
    }

    /// Whether this one is refused.
    pub(super) fn contains(&self, field: RequestField) -> bool {
        self.snapshot() & field.bit() != 0
    }

    /// All of them, to compare.
    pub(super) fn snapshot(&self) -> u32 {
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
    pub(super) fn learn(&self, field: RequestField, before: u32) -> bool {
        self.0.fetch_or(field.bit(), Ordering::Relaxed);
        before & field.bit() == 0
    }
}
