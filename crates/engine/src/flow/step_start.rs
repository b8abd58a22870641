//! What a step is when it begins, or why it can't begin.

use serde_json::Value;

use super::progress::ItemsState;
use crate::operation::Progress;
use loopctl_lang::program::flow::{FlowStep, StepAction};

/// What a step is when it begins.
pub(super) enum Opened {
    /// A loop.
    Items(Box<ItemsState>),
    /// A choice: the number of the case; none when no case holds.
    Case(Option<usize>),
    /// A call, a run or a question.
    Step { input: Value, progress: Progress },
}

impl Opened {
    /// Whether a step that begins for a failure does something that a retry must know of: a notice takes nothing back.
    pub fn may_take_back(&self, step: &FlowStep) -> bool {
        let is_notice = matches!(&step.action, StepAction::Call(call) if call.tool.sends_notice());
        !is_notice && !matches!(self, Self::Case(_))
    }
}

/// Why a step can't begin.
pub(super) struct BeginFault {
    /// A stable word.
    pub code: &'static str,
    /// What happened, in a sentence without a final stop.
    pub message: String,
}

impl BeginFault {
    pub fn new(code: &'static str, message: String) -> Self {
        Self { code, message }
    }
}

/// The step that runs, of those that may take the place of a step.
pub(super) struct ChosenStep<'p> {
    /// The step.
    pub step: &'p FlowStep,
    /// What it is when it begins, or why it can't.
    pub opened: Result<Opened, BeginFault>,
}
