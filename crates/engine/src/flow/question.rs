//! Which of the questions of steps a decision is about.

use crate::address::is_at;
use crate::effect::Refused;
use crate::event::Decided;
use crate::outcome::Termination;
use crate::question::StepQuestion;

/// The questions that a decision is about: that of the step which is named, or the only one. `*` stands for any part of
/// an address, for steps of unknown outcome only.
///
/// # Errors
/// When no step is meant, or several that are decided one by one.
pub(crate) fn meant<'q>(waiting: &'q [StepQuestion], decided: &Decided) -> Result<Vec<&'q StepQuestion>, Refused> {
    let names = || waiting.iter().map(|question| question.at.as_str()).take(10).collect::<Vec<_>>().join(", ");
    let matching: Vec<&StepQuestion> = match (&decided.at, &decided.hash) {
        (Some(at), _) => waiting.iter().filter(|question| is_at(&question.at, at)).collect(),
        (None, Some(hash)) => {
            let asks = |question: &&StepQuestion| {
                question.hash.as_ref() == Some(hash) || question.calls.iter().any(|call| call.hash == *hash)
            };
            waiting.iter().filter(asks).collect()
        }
        // Whoever names nothing means what a human is asked; a wait is meant where nothing else is.
        (None, None) if waiting.iter().any(|question| !question.question.kind.needs_no_human()) => {
            waiting.iter().filter(|question| !question.question.kind.needs_no_human()).collect()
        }
        (None, None) if waiting.iter().all(|question| question.question.kind.is_wait()) => waiting.iter().collect(),
        (None, None) => waiting.iter().filter(|question| !question.question.kind.is_wait()).collect(),
    };
    match (matching.as_slice(), &decided.at, &decided.hash) {
        ([], Some(at), _) => Err(Refused::new(format!("no step waits at `{at}`; what waits: {}", names()))),
        ([], None, Some(_)) => Err(Refused::Unseen),
        ([_], _, _) => Ok(matching),
        (several, Some(at), None) if at.contains('*') => {
            if several.iter().any(|question| question.question.kind != Termination::Uncertain) {
                return Err(Refused::new("approvals and questions are decided one by one: name one address"));
            }
            Ok(matching)
        }
        _ => Err(Refused::new(format!("several steps wait; name the address of one of them: {}", names()))),
    }
}
