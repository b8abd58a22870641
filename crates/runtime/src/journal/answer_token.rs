//! Tokens that answer a pause of a run. The store has their hashes, never the tokens.

use std::collections::BTreeMap;

/// The number of times that tokens are issued for one pause: at the next time, the earlier ones become void. A server issues
/// them once, and again after each restart before the pause was posted. Tokens of no pause stay: they are issued once
/// for each question.
pub const MOST_ISSUES: usize = 8;

/// Stands for a pause in tokens that are issued while the run is under way.
pub const NO_PAUSE: u32 = 0;

/// A token that answers a pause of a run: once, and one call of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnswerToken {
    /// The hash of the token.
    pub hash: String,
    /// The pause, from 1, or [`NO_PAUSE`].
    pub pause: u32,
    /// The call, in the words of the one who issued it; none for a question.
    pub call: Option<String>,
    /// When it expires, in milliseconds since 1970.
    pub expires_at_ms: i64,
    /// Whether it was used.
    pub used: bool,
}

/// The tokens of one run in memory, by their hashes.
#[derive(Debug, Default)]
pub(super) struct AnswerTokens {
    by_hash: BTreeMap<String, AnswerToken>,
}

impl AnswerTokens {
    /// Adds tokens of one pause. Those that are there stay as they are.
    pub(super) fn put(&mut self, tokens: Vec<AnswerToken>) {
        let Some(pause) = tokens.first().map(|token| token.pause) else { return };
        let there = self.by_hash.values().filter(|token| token.pause == pause).count();
        if are_too_many(pause, there, tokens.len()) {
            self.by_hash.retain(|_, token| token.pause != pause);
        }
        for token in tokens {
            self.by_hash.entry(token.hash.clone()).or_insert(token);
        }
    }

    /// All tokens.
    pub(super) fn all(&self) -> Vec<AnswerToken> {
        self.by_hash.values().cloned().collect()
    }

    /// The token with this hash.
    pub(super) fn get(&self, hash: &str) -> Option<AnswerToken> {
        self.by_hash.get(hash).cloned()
    }

    /// Whether there is a token with this hash that was not used.
    pub(super) fn is_unused(&self, hash: &str) -> bool {
        self.by_hash.get(hash).is_some_and(|token| !token.used)
    }

    /// The token is used up.
    pub(super) fn use_up(&mut self, hash: &str) {
        if let Some(token) = self.by_hash.get_mut(hash) {
            token.used = true;
        }
    }
}

/// Whether a pause that has `there` tokens gets too many with `new` more.
pub(super) fn are_too_many(pause: u32, there: usize, new: usize) -> bool {
    pause != NO_PAUSE && there > new.saturating_mul(MOST_ISSUES - 1)
}
