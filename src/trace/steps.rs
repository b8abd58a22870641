//! The steps of a workflow as they are shown, with secrets hidden.

use super::entries::shown_call;
use super::redact::Redaction;
use super::units::plural;
use crate::engine::flow;
use crate::engine::flow::question::StepQuestion;
use crate::engine::flow::record::{ItemCounts, StepError, StepRecord};
use crate::engine::flow::view::StepView;
use crate::engine::record::WaitingCall;
use crate::engine::state::State;

/// The steps of the workflow that began or were skipped, those under way last; none for a loop.
pub fn steps(state: &State, driven: bool, redact: &Redaction) -> Vec<StepRecord> {
    flow::records(state, driven).into_iter().map(|record| shown_step(record, redact)).collect()
}

/// A step with its secrets hidden.
pub fn shown_step(record: StepRecord, redact: &Redaction) -> StepRecord {
    StepRecord {
        input: record.input.map(|input| redact.value(&input)),
        output: record.output.map(|output| redact.value(&output)),
        error: record.error.map(|error| StepError { message: redact.text(&error.message).into_owned(), ..error }),
        ..record
    }
}

/// The steps at an address with their secrets hidden.
pub fn shown_view(view: StepView, redact: &Redaction) -> StepView {
    StepView {
        steps: view.steps.into_iter().map(|record| shown_step(record, redact)).collect(),
        questions: view.questions.into_iter().map(|question| shown_question(question, redact)).collect(),
        ..view
    }
}

/// A question with its secrets hidden. The hash is that of what is not hidden.
pub fn shown_question(question: StepQuestion, redact: &Redaction) -> StepQuestion {
    StepQuestion {
        question: redact.text(&question.question).into_owned(),
        action_input: question.action_input.map(|input| redact.value(&input)),
        options: question.options.iter().map(|option| redact.text(option).into_owned()).collect(),
        calls: question.calls.into_iter().map(|call| shown_call(call, redact)).collect(),
        ..question
    }
}

/// How the items of a loop ended, in a sentence.
pub fn counted(items: &ItemCounts) -> String {
    let ItemCounts { total, completed, failed, skipped, cancelled, .. } = items;
    let mut parts = vec![format!("{completed} completed")];
    for (count, word) in [(failed, "failed"), (skipped, "skipped"), (cancelled, "cancelled")] {
        if *count > 0 {
            parts.push(format!("{count} {word}"));
        }
    }
    format!("{}: {}", plural(u64::from(*total), "item"), parts.join(", "))
}

/// What a step asks about, as a call; none for a form and for the question of a run.
pub fn as_call(question: &StepQuestion) -> Option<WaitingCall> {
    let (Some(input), Some(hash)) = (&question.action_input, &question.hash) else { return None };
    Some(WaitingCall {
        id: question.at.clone(),
        iteration: 0,
        index: 0,
        action: question.action.clone(),
        action_input: input.clone(),
        hash: hash.clone(),
        approval: question.approval.clone(),
    })
}
