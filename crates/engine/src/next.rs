//! What a transition returns to `step`: where the run continues. No transition calls another one, so that each
//! can be read on its own.

use super::effect::Refused;
use super::outcome::{Ending, Limit, RunError, Status, Termination};
use super::state::{LoopState, Phase, Turn};

/// Where the run continues. The first three lead to one of the others; the others end the step.
#[derive(Debug)]
pub(super) enum Next {
    /// The next iteration, unless a limit is reached or the history is too long.
    Think,
    /// A limit is reached: the model is asked for a last answer, or the run fails.
    Limit(Limit),
    /// The calls of the turn are checked: pending ones are waited for, finished ones are observed.
    Settle(Turn),
    /// The model is asked; `forced` when it must answer because of a limit.
    Ask {
        /// The limit that was reached.
        forced: Option<Limit>,
    },
    /// The model is asked to summarise the messages up to this one.
    Summarize {
        /// The index of the first message that stays.
        until: usize,
    },
    /// The run waits in this phase: for its calls, for a human, or for an earlier request.
    Wait(Phase),
    /// The run is over.
    End(Box<Ending>),
    /// The event does not fit: the run stays in its phase.
    Refuse {
        /// That phase.
        phase: Phase,
        /// Why.
        refused: Refused,
    },
}

impl Next {
    /// The event does not fit this phase.
    pub fn refuse(phase: Phase, why: impl Into<String>) -> Self {
        Self::Refuse { phase, refused: Refused::new(why) }
    }

    /// The model is asked again that could not be reached.
    pub fn ask_again(forced: Option<Limit>) -> Self {
        match forced {
            // Its question is in the conversation already.
            Some(_) => Self::Ask { forced },
            None => Self::Think,
        }
    }

    /// The run ends without an answer.
    pub fn fail(state: &LoopState, termination: Termination, error: RunError) -> Self {
        Self::end(Ending { error: Some(error), ..Ending::new(Status::Failed, termination, state.now.wall_ms) })
    }

    /// The run ends.
    pub fn end(ending: Ending) -> Self {
        Self::End(Box::new(ending))
    }
}
