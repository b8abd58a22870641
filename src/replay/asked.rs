//! A run as it was when its model was asked for a reply.

use super::fork::{ForkEdit, flat, prefix};
use crate::engine::event::Event;
use crate::engine::state::State;
use crate::program::Program;

/// The state of a run when its model was asked for the reply of an iteration, from 1.
///
/// # Errors
/// When the run is a workflow, or has no such iteration.
pub fn asked(program: &Program, events: &[Event], iteration: u32) -> Result<State, String> {
    if program.flow.is_some() {
        return Err("it is a workflow, which has no iterations".to_owned());
    }
    let (_, state) = prefix(program, &flat(events)?, &ForkEdit { iteration, ..ForkEdit::default() })?;
    Ok(state)
}
