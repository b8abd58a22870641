//! How far a streamed reply is: whether more of it must follow.

/// How far a reply is after an event of its stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StreamState {
    /// More must follow, or nothing is new.
    Open,
    /// It grew behind a reason to stop, which its server writes before the end: more must follow, as without a reason.
    Grown,
    /// A reason to stop came with a piece, or before any: it may have ended, if nothing follows.
    MayHaveEnded,
    /// The reply has ended: what may follow is not needed.
    Ended,
    /// Nothing follows.
    Over,
}

/// How much of a reply has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ReplyProgress {
    /// Whether a reason to stop has come.
    pub(super) has_stopped: bool,
    /// The bytes that the model has written.
    pub(super) written: usize,
    /// The tokens that the server has counted of them.
    pub(super) counted: Option<u64>,
}

impl ReplyProgress {
    /// How far the reply is, when `before` came before its last event and this behind it.
    pub(super) fn since(self, before: Self) -> StreamState {
        let has_grown = self.written != before.written;
        match (before.has_stopped, self.has_stopped) {
            (true, _) if has_grown => StreamState::Grown,
            // What is written, why it stopped, and, in a piece of its own, how much it is: that is all of a reply. Some servers
            // write the last two with each piece.
            (_, true) if !has_grown && self.written > 0 && self.counted != before.counted => StreamState::Ended,
            (false, true) if has_grown || self.written == 0 => StreamState::MayHaveEnded,
            (false, true) => StreamState::Ended,
            _ => StreamState::Open,
        }
    }
}
