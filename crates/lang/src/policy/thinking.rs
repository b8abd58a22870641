//! How models mark what they think in the text of a reply.

/// The names of the tags around it: `<think>`.
pub const THINKING_TAGS: [&str; 4] = ["think", "thinking", "thought", "reasoning"];
