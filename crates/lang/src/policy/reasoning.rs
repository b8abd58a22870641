//! How much of a model's reasoning is kept.

/// The most bytes of what a provider wants back of one reply. What is larger is not kept: a part of it would be
/// refused.
pub const MAX_SEALED: usize = 1 << 20;

/// The most characters of its readable text that are kept.
pub const MAX_TEXT: usize = 4_000;
