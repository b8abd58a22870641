//! The tokens of a reply, in the form that programs read.

use schemars::JsonSchema;
use serde::Serialize;

use super::event::Tokens;

/// Tokens of a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TokenUsage {
    /// Those that the model read.
    pub input_tokens: u64,
    /// Those that it wrote.
    pub output_tokens: u64,
    /// What of them was cached or reasoning.
    #[serde(flatten)]
    pub details: TokenDetails,
}

/// What of the tokens was cached, and what was reasoning; what does not apply is left out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TokenDetails {
    /// Those of the input that the provider had in its cache.
    #[serde(skip_serializing_if = "is_zero")]
    pub cached_input_tokens: u64,
    /// Those of the input that the provider put into its cache.
    #[serde(skip_serializing_if = "is_zero")]
    pub cache_write_tokens: u64,
    /// Those of the output that are reasoning.
    #[serde(skip_serializing_if = "is_zero")]
    pub reasoning_tokens: u64,
}

impl From<Tokens> for TokenDetails {
    fn from(tokens: Tokens) -> Self {
        Self {
            cached_input_tokens: tokens.cached_input,
            cache_write_tokens: tokens.cache_write,
            reasoning_tokens: tokens.reasoning,
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands a reference")]
fn is_zero(tokens: &u64) -> bool {
    *tokens == 0
}

impl From<Tokens> for TokenUsage {
    fn from(tokens: Tokens) -> Self {
        Self { input_tokens: tokens.input, output_tokens: tokens.output, details: tokens.into() }
    }
}
