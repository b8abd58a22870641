//! The trace's entries and failed attempts, with secrets hidden.

use super::redact::Redaction;
use super::units::duration;
use crate::engine::event::{FailedAttempt, ToolFault};
use crate::engine::record::{TraceAttempt, TraceEntry};
use crate::engine::state::StoredEntry;

/// All entries of a run, in the journal's order.
pub fn entries(all: &[StoredEntry], redact: &Redaction) -> Vec<TraceEntry> {
    all.iter().map(|entry| hidden(TraceEntry::from(entry), redact)).collect()
}

fn hidden(entry: TraceEntry, redact: &Redaction) -> TraceEntry {
    TraceEntry {
        thought: redact.text(&entry.thought).into_owned(),
        action: entry.action.map(|action| redact.text(&action).into_owned()),
        action_input: entry.action_input.map(|input| redact.value(&input)),
        observation: redact.value(&entry.observation),
        error: entry.error.map(|fault| ToolFault {
            class: redact.text(&fault.class).into_owned(),
            detail: redact.text(&fault.detail).into_owned(),
        }),
        ..entry
    }
}

/// All failed attempts of a run, in their order.
pub fn attempts(all: &[(u32, FailedAttempt)], redact: &Redaction) -> Vec<TraceAttempt> {
    let shown = |(iteration, attempt): &(u32, FailedAttempt)| {
        let attempt = TraceAttempt::new(*iteration, attempt);
        TraceAttempt { reason: redact.text(&attempt.reason).into_owned(), ..attempt }
    };
    all.iter().map(shown).collect()
}

/// A failed attempt in a sentence.
pub fn attempt_sentence(attempt: &TraceAttempt) -> String {
    let model = attempt.model.as_deref().unwrap_or("the model");
    let wait = match attempt.delay_ms {
        0 => String::new(),
        delay => format!("; retry in {}", duration(delay)),
    };
    format!("{model}: {}{wait}", attempt.reason)
}
