//! A spending limit of the project leaves no room for a request: the run waits, or fails and can be retried.

use crate::event::ReachedLimit;
use crate::next::Next;
use crate::outcome::{Limit, Pause, RunError, Termination};
use crate::question::Question;
use crate::state::{LoopState, Phase};

/// The code of the error.
pub(super) const CODE: &str = "spending_limit";

/// The request was not made. `message`: which limit left no room, and until when.
pub(super) fn reached(state: &mut LoopState, limit: &ReachedLimit, message: &str, forced: Option<Limit>) -> Next {
    if let Some(until_ms) = limit.until_ms.filter(|_| limit.waits) {
        let pause = state.new_pause(Question::new(Termination::SpendingLimit, message), Vec::new());
        let pause = Pause { forced, until_ms: Some(until_ms), ..*pause };
        return Next::Wait(Phase::Paused { pause: Box::new(pause), turn: None });
    }
    let retryable = limit.until_ms.is_some();
    let error = RunError { code: CODE.to_owned(), message: message.to_owned(), retryable, step: None };
    Next::fail(state, Termination::SpendingLimit, error)
}
