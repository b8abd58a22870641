//! The model's window: how large it is, as far as it is known, and what a request, a reply and an observation may take of
//! it. What a provider shows of it comes with events, so that a replay takes the same decisions.

use crate::state::LoopState;
use loopctl_lang::policy::window;
use loopctl_lang::program::LoopProgram;

/// Bytes of a token, for parts of a window: fewer than most texts have, so that the part is not exceeded.
const BYTES: u64 = 3;
/// The least that is left of an observation and of a reply, in bytes, however small the window is.
const MIN_KEPT_BYTES: usize = 500;
/// The most bytes of a reply that stays whole in the conversation, when the window is not known.
const MOST_REPLY: usize = 16_000;

/// The window of the run's model in tokens: the project's, or a smaller one that its server showed.
pub(crate) fn tokens(state: &LoopState) -> Option<u64> {
    let written = state.header.model.context_tokens;
    state.watch.window.into_iter().chain(written).min()
}

/// A server showed the model's window, or how many tokens it counts in the present conversation.
pub(crate) fn learn(state: &mut LoopState, window: Option<u64>, counted: Option<u64>) {
    if window.is_some() {
        state.watch.window = window;
    }
    if let Some(counted) = counted {
        let bytes = state.conversation.bytes;
        state.counters.estimator.counted(counted, bytes);
        state.counters.window = (counted, bytes);
    }
}

/// The most tokens of a reply. A window that a server showed was not known to the author: there a reply takes half of
/// it at most, whatever is written.
pub fn max_tokens(program: &LoopProgram, state: &LoopState) -> u32 {
    let learned = state.watch.window;
    match (program.properties.max_tokens, tokens(state)) {
        (Some(written), Some(window)) if learned.is_some() => {
            written.min(u32::try_from(window / 2).unwrap_or(u32::MAX)).max(1)
        }
        (Some(written), _) => written,
        (None, _) if learned.is_none() && !state.header.knows_windows() => window::max_tokens(None),
        (None, known) => window::max_tokens(known),
    }
}

/// The most tokens of a request; none when nothing bounds it.
pub(crate) fn of_request(program: &LoopProgram, state: &LoopState) -> Option<u64> {
    let less_reply = |window: u64| window.saturating_sub(u64::from(max_tokens(program, state)));
    let history = program.properties.history.as_ref().and_then(|history| history.context_tokens);
    let written = history.or_else(|| state.header.model.context_tokens.map(less_reply));
    written.into_iter().chain(state.watch.window.map(less_reply)).min()
}

/// The maximum characters of each of a turn's `observations`: those of a turn take a quarter of the window together.
pub(crate) fn observation_chars(program: &LoopProgram, state: &LoopState, observations: usize) -> usize {
    let most = program.properties.max_observation_chars;
    match tokens(state).filter(|_| state.header.knows_windows()) {
        Some(window) => {
            let part = bytes(window / 4) / observations.max(1);
            most.min(part.max(MIN_KEPT_BYTES))
        }
        None => most,
    }
}

/// The most bytes of a reply that stays whole in the conversation: an eighth of the window.
pub(crate) fn whole_reply_bytes(state: &LoopState) -> usize {
    tokens(state).map_or(MOST_REPLY, |window| bytes(window / 8).clamp(MIN_KEPT_BYTES * 4, MOST_REPLY))
}

fn bytes(tokens: u64) -> usize {
    usize::try_from(tokens.saturating_mul(BYTES)).unwrap_or(usize::MAX)
}
