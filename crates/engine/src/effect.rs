//! Effects: what the driver is asked to do. An effect names what to send; it never carries the
//! history.

use super::address::StepAddress;
use super::event::CallId;
pub use super::refused::Refused;

/// What the driver is asked to do next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// Ask the model with the conversation as it is.
    CallModel,
    /// Ask the model to summarise the messages that leave the conversation: [`super::history::question`].
    Summarize,
    /// Make this call; its tool and input are in the state.
    CallTool(CallId),
    /// Perform the step of a workflow at this address; what it does and its input are in the state.
    RunStep(StepAddress),
    /// Keep this key of the run's memory for its session, durable together with the event.
    Remember(String),
}

/// The effects of a step. None: the run waits for a human or for calls that are under way, was interrupted, or
/// has ended; its phase says which.
pub type Effects = Vec<Effect>;

/// The steps of a workflow among them.
pub fn steps_of(effects: &[Effect]) -> Vec<StepAddress> {
    let step = |effect: &Effect| match effect {
        Effect::RunStep(at) => Some(at.clone()),
        Effect::CallModel | Effect::Summarize | Effect::CallTool(_) | Effect::Remember(_) => None,
    };
    effects.iter().filter_map(step).collect()
}

/// The calls among them.
pub fn calls_of(effects: &[Effect]) -> Vec<CallId> {
    let call = |effect: &Effect| match effect {
        Effect::CallTool(id) => Some(*id),
        Effect::CallModel | Effect::Summarize | Effect::RunStep(_) | Effect::Remember(_) => None,
    };
    effects.iter().filter_map(call).collect()
}
