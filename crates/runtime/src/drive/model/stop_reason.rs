//! Why a model stopped: what the word of a provider means. A reason that no table knows is no end of a reply.

/// Why a model stopped. Of two reasons in one stream the later variant counts: some servers write `stop` with every
/// piece, or behind the real reason.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum StopReason {
    /// The reply is whole.
    Stop,
    /// The model calls tools.
    Calls,
    /// The most tokens were reached, or the end of the window.
    Length,
    /// The provider or the model refused.
    Filtered,
    /// The reply was broken off. The provider's words, as they came.
    Broken(String),
}

/// The words of a protocol, in lower case, and what they mean.
pub(super) type StopReasons = [(&'static [&'static str], StopReason)];

impl StopReason {
    /// What a word means; `None` for an empty one, which some servers write until the reply has ended.
    pub(super) fn of(word: &str, reasons: &StopReasons) -> Option<Self> {
        let word = word.trim();
        let lower = word.to_ascii_lowercase();
        let known = reasons.iter().find(|(words, _)| words.contains(&lower.as_str())).map(|(_, reason)| reason.clone());
        (!word.is_empty()).then(|| known.unwrap_or_else(|| Self::Broken(word.to_owned())))
    }
}
