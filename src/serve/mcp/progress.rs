//! Progress of a run in words: an iteration of a loop, or a step of a workflow.

use crate::engine::notice::Notice;
use crate::trace::Redaction;

/// The most characters of a message.
const MAX_MESSAGE_CHARS: usize = 300;

/// What a notice says of the progress of its run; none for most.
pub fn message(notice: &Notice, redact: &Redaction) -> Option<String> {
    Some(match notice {
        Notice::ModelReplied { iteration, .. } => format!("iteration {iteration}"),
        Notice::StepEnded { record } => format!("step {} {}", record.at, record.status.word()),
        Notice::Progress { message, .. } => redact.text(message).chars().take(MAX_MESSAGE_CHARS).collect(),
        Notice::Paused { .. } => "the run is paused".to_owned(),
        _ => return None,
    })
}
