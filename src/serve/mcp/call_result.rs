//! What a call of a tool gives: the outcome of its run, as structure and as text.

use serde_json::{Map, Value, json};

use crate::diagnostic::Diagnostic;
use crate::engine::outcome::{Status, Termination};
use crate::engine::question::Question;
use crate::trace::{RunResult, escape};

/// The most bytes of the structure of a result. A message has it twice.
const MAX_STRUCTURE_BYTES: usize = 1 << 20;
/// The most faults of an input that are listed.
const MAX_FAULTS: usize = 20;

/// The result of a run. `note`: what was wrong with the answers of the call. `decided_by`: how what it waits for is decided, where
/// the client may know that.
pub fn of_run(result: &RunResult, note: Option<String>, decided_by: impl FnOnce() -> Option<String>) -> Value {
    let mut structure = Map::new();
    structure.insert("run_id".to_owned(), json!(result.run_id));
    structure.insert("status".to_owned(), json!(result.status));
    if let Some(termination) = result.termination {
        structure.insert("termination".to_owned(), json!(termination));
    }
    if let Some(answer) = &result.result {
        structure.insert("answer".to_owned(), answer.answer.clone());
    }
    if let Some(error) = &result.error {
        structure.insert("error".to_owned(), json!(error));
    }
    if result.status == Status::Paused {
        structure.insert("pause".to_owned(), paused(result, decided_by));
    }
    if let Some(note) = note {
        structure.insert("note".to_owned(), json!(note));
    }
    structure.insert("usage".to_owned(), json!(result.usage));
    let is_error = !matches!(result.status, Status::Completed | Status::Paused);
    of_structure(&result.run_id, Value::Object(structure), is_error)
}

/// A call that came to no run, or whose run could not be driven: why, with the run if there is one.
pub fn failure(code: &str, message: &str, run_id: Option<&str>) -> Value {
    let mut structure = json!({ "error": { "code": code, "message": message } });
    if let (Some(members), Some(run_id)) = (structure.as_object_mut(), run_id) {
        members.insert("run_id".to_owned(), json!(run_id));
    }
    written(&structure.to_string(), structure, true)
}

/// All that is wrong with an input, in a text.
pub fn all_said(diagnostics: &[Diagnostic]) -> String {
    let all: Vec<&str> = diagnostics.iter().take(MAX_FAULTS).map(|fault| &*fault.message).collect();
    let left = diagnostics.len().saturating_sub(all.len());
    let more = if left == 0 { String::new() } else { format!("; and {left} more") };
    all.join("; ") + &more
}

fn of_structure(run_id: &str, structure: Value, is_error: bool) -> Value {
    let text = structure.to_string();
    if text.len() > MAX_STRUCTURE_BYTES {
        let message = format!(
            "the result of run {run_id} has {} bytes, and a message of this server at most {MAX_STRUCTURE_BYTES}: the run has \
             ended, and whoever runs the server can read it",
            text.len()
        );
        return failure("result_too_large", &message, Some(run_id));
    }
    written(&text, structure, is_error)
}

/// The structure is moved: it may be large.
fn written(text: &str, structure: Value, is_error: bool) -> Value {
    let mut result = Map::new();
    result.insert("content".to_owned(), json!([{ "type": "text", "text": text }]));
    result.insert("structuredContent".to_owned(), structure);
    result.insert("isError".to_owned(), Value::Bool(is_error));
    Value::Object(result)
}

/// What a run waits for. The text of an approval, and of a call whose outcome is not known, is for those who decide about it: the
/// model of a client could answer its own question.
fn paused(result: &RunResult, decided_by: impl FnOnce() -> Option<String>) -> Value {
    let questions = questions(result);
    if questions.is_empty() {
        return json!({});
    }
    let shown: Vec<Value> = questions
        .iter()
        .map(|question| match is_open(question.kind) {
            true if question.options.is_empty() => {
                json!({ "kind": question.kind, "question": escape::report(&question.text) })
            }
            true => {
                let options: Vec<String> = question.options.iter().map(|option| escape::report(option)).collect();
                json!({ "kind": question.kind, "question": escape::report(&question.text), "options": options })
            }
            false => json!({ "kind": question.kind }),
        })
        .collect();
    json!({ "waits_for": shown, "decided": decided(result, decided_by) })
}

/// Who decides what a run waits for, and how, in words for its client.
pub fn decided(result: &RunResult, decided_by: impl FnOnce() -> Option<String>) -> String {
    let ways = if questions(result).iter().all(|question| is_open(question.kind)) { decided_by() } else { None };
    ways.unwrap_or_else(|| "it is decided elsewhere, by those who may, and not by this client".to_owned())
}

/// What a paused run asks.
fn questions(result: &RunResult) -> Vec<&Question> {
    let Some(pause) = &result.pause else { return Vec::new() };
    match pause.steps.as_slice() {
        [] => vec![&pause.question],
        steps => steps.iter().map(|step| &step.question).collect(),
    }
}

/// Whether a client may read what is asked.
fn is_open(kind: Termination) -> bool {
    !matches!(kind, Termination::Approval | Termination::Uncertain)
}
