//! The steps of a workflow as they are shown, with secrets hidden.

use serde_json::Value;

use super::entries::{hidden_attempt, hidden_question, shown_call};
use super::redact::Redaction;
use super::units::{count, plural};
use crate::flow;
use crate::flow::item_log::LoopItems;
use crate::flow::item_row::ItemRow;
use crate::flow::record::{ItemCounts, StepError, StepRecord, StepStatus};
use crate::flow::view::{ItemsView, StepView};
use crate::question::{StepQuestion, WaitingCall};
use crate::state::State;
use loopctl_lang::policy::json_text;

/// The steps of the workflow that began or were skipped, those under way last; none for a loop.
pub fn steps(state: &State, driven: bool, redact: &Redaction) -> Vec<StepRecord> {
    flow::records(state, driven).into_iter().map(|record| shown_step(record, redact)).collect()
}

/// A step with its secrets hidden.
pub fn shown_step(record: StepRecord, redact: &Redaction) -> StepRecord {
    StepRecord {
        item_label: hidden_label(record.item_label, redact),
        input: record.input.map(|input| std::sync::Arc::new(redact.value(&input))),
        output: record.output.map(|output| redact.value(&output)),
        error: record.error.map(|error| StepError {
            message: redact.text(&error.message).into_owned(),
            answer: hidden_answer(&error.answer, redact),
            ..error
        }),
        attempts: record.attempts.iter().map(|attempt| hidden_attempt(attempt, redact)).collect(),
        ..record
    }
}

/// What a server answered: the names of its members say what is secret, as in a value.
fn hidden_answer(answer: &str, redact: &Redaction) -> String {
    match json_text::read::<Value>(answer) {
        Ok(value @ (Value::Object(_) | Value::Array(_))) => redact.value(&value).to_string(),
        _ => redact.text(answer).into_owned(),
    }
}

/// Why a step failed, with what the server answered.
pub fn failure(error: &StepError) -> String {
    let StepError { message, answer, .. } = error;
    if answer.is_empty() { message.clone() } else { format!("{message}\nThe server answered: {answer}") }
}

/// The steps at an address with their secrets hidden.
pub fn shown_view(view: StepView, redact: &Redaction) -> StepView {
    StepView {
        item_label: hidden_label(view.item_label, redact),
        steps: view.steps.into_iter().map(|record| shown_step(record, redact)).collect(),
        questions: view.questions.into_iter().map(|question| shown_question(question, redact)).collect(),
        items: view.items.map(|items| ItemsView {
            rows: items.rows.into_iter().map(|row| shown_row(row, redact)).collect(),
            ..items
        }),
        ..view
    }
}

/// The items of a loop and their steps with secrets hidden.
pub fn shown_items(of_loop: LoopItems, redact: &Redaction) -> LoopItems {
    let steps = of_loop.steps.into_iter();
    let hidden = |steps: Vec<StepRecord>| steps.into_iter().map(|step| shown_step(step, redact)).collect();
    let rows = of_loop.items.rows.into_iter().map(|row| shown_row(row, redact)).collect();
    LoopItems {
        steps: steps.map(|(index, steps)| (index, hidden(steps))).collect(),
        items: ItemsView { rows, ..of_loop.items },
        ..of_loop
    }
}

/// What an item is called: its label, else its first text, or else its first number or word; and the others that are shown of it.
pub fn item_label(row: &ItemRow) -> (String, String) {
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    if let Some(label) = &row.label {
        return (label.clone(), String::new());
    }
    match &row.item {
        None => (String::new(), String::new()),
        Some(Value::Object(members)) => {
            let name = members.iter().find(|(_, value)| value.is_string()).or_else(|| members.iter().next());
            let rest = members.iter().filter(|(key, _)| name.is_none_or(|(name, _)| name != *key));
            let rest: Vec<String> = rest.map(|(key, value)| format!("{key} {}", text(value))).collect();
            (name.map(|(_, value)| text(value)).unwrap_or_default(), rest.join(", "))
        }
        Some(other) => (text(other), String::new()),
    }
}

fn hidden_label(label: Option<String>, redact: &Redaction) -> Option<String> {
    label.map(|label| redact.text(&label).into_owned())
}

/// An item with its secrets hidden.
pub fn shown_row(row: ItemRow, redact: &Redaction) -> ItemRow {
    ItemRow {
        label: hidden_label(row.label, redact),
        item: row.item.map(|item| redact.value(&item)),
        output: row.output.map(|output| redact.value(&output)),
        error: row.error.map(|error| redact.text(&error).into_owned()),
        ..row
    }
}

/// A question with its secrets hidden. The hash is that of what is not hidden.
pub fn shown_question(question: StepQuestion, redact: &Redaction) -> StepQuestion {
    let question = question.with_form(&|value| redact.value(value));
    StepQuestion {
        item_label: hidden_label(question.item_label, redact),
        question: hidden_question(question.question, redact),
        action_input: question.action_input.map(|input| redact.value(&input)),
        calls: question.calls.into_iter().map(|call| shown_call(call, redact)).collect(),
        ..question
    }
}

/// How the items of a loop ended, in a sentence.
pub fn counted(items: &ItemCounts) -> String {
    let ItemCounts { total, completed, failed, skipped, cancelled, .. } = items;
    let part = |number: u32, word: &str| format!("{} {word}", count(u64::from(number)));
    let mut parts = vec![part(*completed, "completed")];
    for (number, word) in [(*failed, "failed"), (*skipped, "skipped"), (*cancelled, "cancelled")] {
        if number > 0 {
            parts.push(part(number, word));
        }
    }
    format!("{}: {}", plural(u64::from(*total), "item"), parts.join(", "))
}

/// The case that a choice chose, in a word or two.
pub fn chosen_case(case: &str) -> String {
    // The other one is `otherwise`.
    if case.parse::<u32>().is_ok() { format!("case {case}") } else { case.to_owned() }
}

/// The maximum number of items of a loop that are listed for people.
pub const MOST_ROWS: usize = 200;

/// How many items of a loop have each status, in a sentence.
pub fn totals(items: &ItemsView) -> String {
    let counts = items.counts.iter().map(|(word, number)| format!("{} {word}", count(u64::from(*number))));
    let counts = counts.collect::<Vec<_>>().join(", ");
    let all = plural(u64::from(items.total), "item");
    if counts.is_empty() { all } else { format!("{all}: {counts}") }
}

/// The items that are worth a look: not those that completed, were skipped, or have not started.
pub fn notable(items: &ItemsView) -> impl Iterator<Item = &ItemRow> {
    let is_plain =
        |row: &&ItemRow| matches!(row.status, StepStatus::Completed | StepStatus::Skipped | StepStatus::Pending);
    items.rows.iter().filter(move |row| !is_plain(row))
}

/// What a step itself asks about, as a call; none for a form and for the question of a run.
pub fn as_call(question: &StepQuestion) -> Option<WaitingCall> {
    question.waiting_calls().into_iter().next().filter(|_| question.calls.is_empty())
}
