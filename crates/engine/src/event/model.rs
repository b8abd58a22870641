//! Events of a model: a reply, the failed attempts before it, or the reason why there is none.

use std::num::NonZeroU32;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::reasoning::Reasoning;
use loopctl_lang::language::project::Price;

/// A reply of the model.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Reply {
    /// Its text.
    pub text: String,
    /// Its native tool calls, in the model's order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<SaidCall>,
    /// What the model wrote before it; most replies have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<Box<Reasoning>>,
    /// Why it stopped.
    #[serde(default, skip_serializing_if = "Finish::is_stop")]
    pub finish: Finish,
    /// What the provider says of its refusal, when it or the model refused: a category, or nothing. None in older journals.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refusal: Option<Box<str>>,
    /// The tokens that the provider counted; what of them is zero it did not count, and the engine estimates.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Tokens>,
    /// The model that the provider names in its answer, when it is not the one that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_model: Option<Box<str>>,
    /// The window of the model in tokens, when the reply showed it: it was cut off at its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<NonZeroU32>,
    /// The time of the call in milliseconds, with its retries, without what `waited_ms` has.
    pub duration_ms: u64,
    /// The milliseconds in which its requests waited for their turns. In older journals, they are in `duration_ms`.
    #[serde(default, skip_serializing_if = "is_no_time")]
    pub waited_ms: u64,
    /// The milliseconds from the last request to the first piece of a reply that was streamed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_to_first_token_ms: Option<u32>,
    /// How many attempts failed before this one.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub retries: u32,
    /// The fallback that answered, when it was not the run's own model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<Box<str>>,
    /// What a million tokens of that fallback cost, when it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price: Option<Box<Price>>,
    /// The attempts that failed before this one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attempts: Vec<FailedAttempt>,
}

impl Reply {
    /// Whether it has neither a text nor a call, and nothing says why.
    pub fn is_empty(&self) -> bool {
        let said = !self.text.trim().is_empty() || !self.calls.is_empty() || self.refusal.is_some();
        self.finish == Finish::Stop && !said
    }

    /// The window that it showed, of the run's own model; not that of a fallback.
    pub fn own_window(&self) -> Option<u64> {
        self.window.filter(|_| self.model.is_none()).map(|window| u64::from(window.get()))
    }
}

/// A failed request to a model.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct FailedAttempt {
    /// The fallback that was asked, when it was not the run's own model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Why it failed, in a sentence without secrets.
    pub reason: String,
    /// The wait before the next attempt in milliseconds.
    #[serde(default)]
    pub delay_ms: u64,
    /// The tokens that it counts: what the provider counted all the same, or the most that it may have used. An attempt that has
    /// some may have been paid for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Tokens>,
    /// Whether `usage` is an estimate: a reply came, and the provider did not count it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub estimated: bool,
    /// Whether `usage` is the most that it may have used: the request was sent, and nobody knows what became of it. Not in older
    /// journals, in which such an attempt counts nothing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub at_most: bool,
    /// What a million tokens of that fallback cost, when it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price: Option<Price>,
    /// Whether it was no attempt: the request waited for its turn when the time of the run was over.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub in_line: bool,
}

impl FailedAttempt {
    /// Why one failed that was under way when nothing waited for its reply any longer.
    pub const GIVEN_UP: &str = "the request was given up before its reply came";

    /// Whether it was given up, or was none: no other one followed it.
    pub fn is_given_up(&self) -> bool {
        self.in_line || self.at_most && self.reason == Self::GIVEN_UP
    }
}

/// A native tool call, as the provider wrote it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SaidCall {
    /// The provider's id of the call; empty when it gave none.
    pub id: String,
    /// The tool's name, as the provider knows it.
    pub name: String,
    /// The input: JSON text, as far as the model kept to it.
    pub arguments: String,
}

impl SaidCall {
    /// Its length in bytes.
    pub fn size(&self) -> usize {
        self.id.len().saturating_add(self.name.len()).saturating_add(self.arguments.len())
    }
}

pub(crate) fn is_no_time(milliseconds: &u64) -> bool {
    *milliseconds == 0
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// Why the model stopped.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Finish {
    /// The reply is complete.
    #[default]
    Stop,
    /// `max_tokens` was reached.
    Length,
    /// The provider filtered it.
    Filtered,
}

impl Finish {
    /// Whether the reply is complete.
    pub fn is_stop(&self) -> bool {
        *self == Self::Stop
    }
}

/// Tokens that a provider counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tokens {
    /// Those that the model read.
    pub input: u64,
    /// Those that it wrote.
    pub output: u64,
    /// Those of `input` that the provider had in its cache.
    #[serde(default, skip_serializing_if = "is_none")]
    pub cached_input: u64,
    /// Those of `input` that the provider put into its cache.
    #[serde(default, skip_serializing_if = "is_none")]
    pub cache_write: u64,
    /// Those of `output` that are reasoning.
    #[serde(default, skip_serializing_if = "is_none")]
    pub reasoning: u64,
}

impl Tokens {
    /// The tokens of a reply, of which a provider counted these. A side without a count, or with one of zero, is
    /// `estimated`: no request has no tokens, and no reply that says something. Returns whether some are an estimate.
    #[must_use]
    pub fn of_reply(counted: Option<Self>, estimated: Self) -> (Self, bool) {
        let counts = counted.unwrap_or_default();
        let side = |counted: u64, estimated: u64| if counted == 0 { estimated } else { counted };
        let (input, output) = (side(counts.input, estimated.input), side(counts.output, estimated.output));
        let cached_input = counts.cached_input.min(input);
        let tokens = Self {
            input,
            output,
            cached_input,
            cache_write: counts.cache_write.min(input.saturating_sub(cached_input)),
            reasoning: counts.reasoning.min(output),
        };
        (tokens, counted.is_none() || (input, output) != (counts.input, counts.output))
    }

    #[must_use]
    fn zip(self, other: Self, each: fn(u64, u64) -> u64) -> Self {
        Self {
            input: each(self.input, other.input),
            output: each(self.output, other.output),
            cached_input: each(self.cached_input, other.cached_input),
            cache_write: each(self.cache_write, other.cache_write),
            reasoning: each(self.reasoning, other.reasoning),
        }
    }

    /// The sum.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        self.zip(other, u64::saturating_add)
    }

    /// The difference.
    #[must_use]
    pub fn minus(self, other: Self) -> Self {
        self.zip(other, u64::saturating_sub)
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands a reference")]
fn is_none(tokens: &u64) -> bool {
    *tokens == 0
}

/// Why the request to the model failed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModelFault {
    /// The kind of fault.
    pub code: ModelFaultCode,
    /// What happened, in a sentence without secrets.
    pub message: String,
    /// Whether the same run may succeed later as it is.
    pub retryable: bool,
    /// How many attempts were made.
    pub attempts: u32,
    /// The time spent in milliseconds.
    pub duration_ms: u64,
    /// The attempts, the last one too.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failed: Vec<FailedAttempt>,
    /// The window in tokens of the model that was asked last, when its server said it: the request was longer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<u64>,
    /// The tokens that this server counted in the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt_tokens: Option<u64>,
    /// The spending limit that left no room for the request, which was not made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spending_limit: Option<Box<ReachedLimit>>,
    /// Whether no model may be asked again: as many attempts as `retry` allows may have been paid for. A human allows more.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub paid_out: bool,
}

/// A spending limit of the project that leaves no room for a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReachedLimit {
    /// When there is room again at the earliest, in milliseconds since 1970; none when there never is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until_ms: Option<i64>,
    /// Whether the run waits until then.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub waits: bool,
}

impl ModelFault {
    /// The window that the server of the run's own model said; not that of a fallback.
    pub fn own_window(&self) -> Option<u64> {
        self.window.filter(|_| self.failed.last().is_none_or(|last| last.model.is_none()))
    }
}

/// The kind of a model's fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ModelFaultCode {
    /// No connection, or the server failed.
    ModelUnreachable,
    /// The server refused: a wrong key, an unknown model, a bad request.
    ModelRefused,
    /// The request is longer than the model's window.
    ContextExceeded,
    /// The server's answer is not of its protocol.
    ModelProtocol,
    /// A script has no more replies.
    ScriptExhausted,
    /// A spending limit of the project leaves no room for the request.
    SpendingLimit,
}
