//! The step: one flat match over phase and event.

use super::effect::Effects;
use super::event::Event;
use super::state::State;
use crate::compile::Program;

/// An event that does not fit the run's phase. The state is untouched.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Refused(pub String);

/// Takes an event into the state and tells what to do next.
///
/// # Errors
/// When the event does not fit the phase; the state is untouched then.
pub fn step(_program: &Program, _state: &mut State, _event: Event) -> Result<Effects, Refused> {
    Err(Refused("not written yet".to_owned()))
}
