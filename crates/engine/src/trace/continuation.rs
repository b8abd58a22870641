//! How humans made a run continue, with secrets hidden, and as sentences.

use std::ops::Range;

use super::redact::Redaction;
use super::result::RunResult;
use crate::continuation_record::ContinuationRecord;
use crate::event::RaisedLimits;
use crate::timestamp::rfc3339;

/// A record with secrets hidden.
pub fn hidden_continuation(record: &ContinuationRecord, redact: &Redaction) -> ContinuationRecord {
    ContinuationRecord {
        by: record.by.as_deref().map(|by| redact.text(by).into_owned()),
        error: record.error.as_deref().map(|error| redact.text(error).into_owned()),
        ..record.clone()
    }
}

/// A record in a sentence: `retried by ana at 2026-11-22T06:30:00.000Z; before: the model can't be reached`.
pub fn continuation_sentence(record: &ContinuationRecord) -> String {
    let by = record.by.as_deref().map(|by| format!(" by {by}")).unwrap_or_default();
    let at = rfc3339(record.at_ms);
    let before = record.error.as_deref().map(|error| format!("; before: {error}")).unwrap_or_default();
    match &record.limits {
        Some(limits) => format!("limits raised{by} at {at}: {}{before}", in_words(limits)),
        None => format!("retried{by} at {at}{before}"),
    }
}

fn in_words(limits: &RaisedLimits) -> String {
    let RaisedLimits { max_iterations, timeout_ms, budget } = limits;
    let named = [
        max_iterations.map(|number| format!("max_iterations {number}")),
        timeout_ms.map(|number| format!("timeout_ms {number}")),
        budget.tokens.map(|number| format!("budget.tokens {number}")),
        budget.cost_usd.map(|number| format!("budget.cost_usd {number}")),
    ];
    named.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// What happened after each of these numbers of iterations, in sentences.
pub fn continuations_after(result: &RunResult, iterations: Range<u32>) -> impl Iterator<Item = String> {
    let within = move |record: &&ContinuationRecord| iterations.contains(&record.iterations);
    result.continuations.iter().filter(within).map(continuation_sentence)
}
