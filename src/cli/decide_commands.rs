//! What is posted to targets of `ask` where no server is: the commands that decide.

use super::next_commands::NextCommands;
use crate::drive::answer_hint::{AnswerHint, AnswerHints, HintRequest};
use crate::drive::future::BoxFuture;

/// Why nobody can answer.
const IN_MEMORY: &str = "the run is in memory, and ends with its process: run it with --store";

/// The commands that decide about the runs of a store.
pub struct DecideCommands(pub NextCommands);

impl AnswerHints for DecideCommands {
    fn hint(&self, request: HintRequest) -> BoxFuture<'_, Result<AnswerHint, String>> {
        let next = NextCommands { run_id: request.run_id, ..self.0.clone() };
        let hint = match next.lasts {
            true => AnswerHint { otherwise: Some(next.about(&request.asked)), ..AnswerHint::default() },
            false => AnswerHint { without_link: Some(IN_MEMORY), ..AnswerHint::default() },
        };
        Box::pin(async move { Ok(hint) })
    }
}
