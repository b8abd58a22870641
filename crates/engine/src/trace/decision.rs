//! Decisions of humans, with secrets hidden, and as sentences.

use super::redact::Redaction;
use super::result::RunResult;
use crate::decision::awaited_approval::OnExpiry;
use crate::decision::decision_record::DecisionRecord;
use crate::event::DecisionKind;
use crate::record::TraceEntry;
use crate::timestamp::rfc3339;

/// All decisions of a run, in their order.
pub fn decisions(all: &[DecisionRecord], redact: &Redaction) -> Vec<DecisionRecord> {
    all.iter().map(|record| hidden(record, redact)).collect()
}

/// A decision with secrets hidden.
pub fn hidden(record: &DecisionRecord, redact: &Redaction) -> DecisionRecord {
    DecisionRecord {
        by: record.by.as_deref().map(|by| redact.text(by).into_owned()),
        comment: record.comment.as_deref().map(|comment| redact.text(comment).into_owned()),
        input_before: record.input_before.as_ref().map(|input| redact.value(input)),
        ..record.clone()
    }
}

/// A decision in a sentence: `approved by ana at 2026-11-22T06:30:00.000Z: as agreed`.
pub fn decision_sentence(record: &DecisionRecord) -> String {
    let what = match record.decision {
        DecisionKind::Answer => "answered",
        DecisionKind::Approve => "approved",
        DecisionKind::Deny => "denied",
        DecisionKind::Edit => "approved with another input",
        DecisionKind::Happened => "reported as having happened",
        DecisionKind::Fail => "reported as failed",
        DecisionKind::Retry => "made again",
        DecisionKind::Expired => match record.on_expiry.unwrap_or_default() {
            OnExpiry::Deny => "not approved in time, and so denied",
            OnExpiry::Fail => "not approved in time: the run failed",
            OnExpiry::Escalate => "not approved in time, and so escalated",
        },
    };
    let by = record.by.as_deref().map(|by| format!(" by {by}")).unwrap_or_default();
    let comment = record.comment.as_deref().map(|comment| format!(": {comment}")).unwrap_or_default();
    let whose = if record.call.is_some() { "the model's input" } else { "the input of the step" };
    let before = record.input_before.as_ref().map(|input| format!("; {whose} was {input}")).unwrap_or_default();
    let count = record.approvals.map(|count| format!(" ({} of {})", count.given, count.needed)).unwrap_or_default();
    format!("{what}{by}{count} at {}{comment}{before}", rfc3339(record.at_ms))
}

/// The same for a list of decisions about several things: with the step, or the run that this one called.
pub fn decision_sentence_of(record: &DecisionRecord) -> String {
    let run = record.run_id.as_deref().map(|run| format!("run {run}: ")).unwrap_or_default();
    let step = record.step.as_deref().map(|at| format!("{at}: ")).unwrap_or_default();
    format!("{run}{step}{}", decision_sentence(record))
}

/// The decisions about the call of an entry.
pub fn decisions_about<'a>(result: &'a RunResult, entry: &TraceEntry) -> impl Iterator<Item = &'a DecisionRecord> {
    let (iteration, index) = (entry.iteration, entry.index);
    result
        .decisions
        .iter()
        .filter(move |record| record.call.is_some_and(|call| call.iteration == iteration && call.index == index))
}

/// The decisions about no call of the run: about one that is stuck, and about its sub-runs.
pub fn decisions_about_no_call(result: &RunResult) -> impl Iterator<Item = &DecisionRecord> {
    result.decisions.iter().filter(|record| record.call.is_none())
}
