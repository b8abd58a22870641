//! Whether a decision fits the form with fields that waits: what a route says before it hands the decision on.

use super::waiting_for;
use crate::decision::form::{self, FormRefusal};
use crate::event::{Decided, Decision};
use crate::question::StepQuestion;
use crate::state::State;

/// Whether a decision that answers a form with fields fits it. About all else nothing is said.
///
/// # Errors
/// Why it does not, at each field.
pub fn judge(state: &State, decided: &Decided) -> Result<(), FormRefusal> {
    let Decision::Answer(answer) = &decided.decision else { return Ok(()) };
    let waiting = waiting_for(state, decided);
    let is_meant = |question: &&StepQuestion| match (&decided.at, &decided.hash) {
        (Some(at), _) => question.at == *at,
        (None, Some(hash)) => question.hash.as_ref() == Some(hash),
        (None, None) => waiting.len() == 1,
    };
    match waiting.iter().find(is_meant) {
        Some(question) => form::judge(question, answer),
        None => Ok(()),
    }
}
