//! The replies in a script, compared with the loops that they are for: answers that do not fit, several calls where the
//! dialect has one, and replies after the end of the run.

use serde_json::Value;

use super::lists;
use crate::check::Cursor;
use crate::diagnostic::{Diagnostic, codes};
use crate::language::react::Dialect;
use crate::policy::json_text;
use crate::program::builtin::COMPLETE;
use crate::program::{LoopProgram, Program};
use crate::syntax::document::Document;

/// The most faults that are reported of one answer.
const MAX_OF_ANSWER: usize = 5;

/// What every loop that may read the replies has against them.
pub(super) fn replies(document: &Document, loops: &[&Program], most: usize) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    let react: Vec<&LoopProgram> = loops.iter().filter_map(|program| program.as_loop()).collect();
    for list in lists(document) {
        let own: Vec<&LoopProgram> =
            react.iter().copied().filter(|program| list.of.is_none_or(|name| program.name == name)).collect();
        if own.is_empty() {
            continue;
        }
        for (index, reply) in list.replies.iter().enumerate() {
            if found.len() >= most {
                return found;
            }
            let at = format!("{}/{index}", list.pointer);
            found.extend(too_many_calls(document, reply, &at, &own));
            let mut is_refused = false;
            if let Some((answer, pointer)) = answer(reply, &at) {
                let faults = unfit(document, answer, &pointer, &own);
                is_refused = !faults.is_empty();
                found.extend(faults);
            }
            let is_alone = own.len() == loops.len() && list.of.is_none();
            if is_alone && !is_refused && ends(reply) && own.iter().all(|program| ends_at_once(program)) {
                found.extend(after_the_end(document, list.replies, &list.pointer, index + 1));
                break;
            }
        }
    }
    found
}

/// The answer of a reply, with its JSON pointer.
fn answer<'s>(reply: &'s Value, at: &str) -> Option<(&'s Value, String)> {
    if reply.get("action").is_some_and(|action| action == COMPLETE) {
        return Some((reply.pointer("/action_input/answer")?, format!("{at}/action_input/answer")));
    }
    let is_answer = reply.get("action").is_none() && reply.get("calls").is_none();
    Some((reply.get("answer").filter(|_| is_answer)?, format!("{at}/answer")))
}

/// Whether a reply is an answer and nothing else.
fn ends(reply: &Value) -> bool {
    answer(reply, "").is_some()
}

/// Whether the first answer ends a run of the loop, and no other run takes its replies.
fn ends_at_once(program: &LoopProgram) -> bool {
    program.answer.is_none()
        && program.properties.answer_schema.is_none()
        && program.properties.require_tool_before_answer.is_none()
        && program.called_loops().next().is_none()
}

fn after_the_end(document: &Document, replies: &[Value], pointer: &str, next: usize) -> Option<Diagnostic> {
    replies.get(next)?;
    let at = format!("{pointer}/{next}");
    let place = Cursor::new(&document.tree, at.as_str()).place();
    let message = "the answer before ended the run: this reply is never used";
    let fault = Diagnostic::warning(codes::SCRIPT_INPUT, message, at, place);
    Some(fault.help("take it out, or put it before the answer"))
}

/// Several calls in a reply, where each of these loops takes fewer.
pub(in crate::check) fn too_many_calls(
    document: &Document,
    reply: &Value,
    at: &str,
    own: &[&LoopProgram],
) -> Option<Diagnostic> {
    let calls = reply.get("calls").and_then(Value::as_array)?.len();
    let most = |program: &&LoopProgram| match program.properties.dialect {
        Dialect::Json => 1,
        _ => usize::try_from(program.properties.max_tool_calls_per_turn).unwrap_or(usize::MAX),
    };
    let most = own.iter().map(most).max().filter(|most| calls > *most)?;
    let pointer = format!("{at}/calls/{most}");
    let place = Cursor::new(&document.tree, pointer.as_str()).place();
    let is_json = own.iter().all(|program| program.properties.dialect == Dialect::Json);
    let (message, help) = match is_json {
        true => (
            "a reply in the dialect `json` is one call: the run would end here with `model_protocol`".to_owned(),
            "write a reply for each call, or give the loop another `dialect`: `tool_calls`, `tags`",
        ),
        false => (
            format!("{calls} calls in one reply are more than `max_tool_calls_per_turn`, {most}: none would be made"),
            "write several replies, or raise `max_tool_calls_per_turn`",
        ),
    };
    Some(Diagnostic::warning(codes::SCRIPT_INPUT, message, pointer, place).help(help))
}

/// What the `answer_schema` of each loop has against an answer.
fn unfit(document: &Document, answer: &Value, pointer: &str, own: &[&LoopProgram]) -> Vec<Diagnostic> {
    // A text may be the JSON that is asked for.
    let read = answer.as_str().and_then(|text| json_text::read::<Value>(text).ok());
    let faults = own.iter().map(|program| {
        let schema = program.answer.as_ref()?;
        let as_text = read.as_ref().map(|read| schema.faults(read));
        if as_text.is_some_and(|faults| faults.is_empty()) {
            return None;
        }
        Some(schema.faults(answer)).filter(|faults| !faults.is_empty())
    });
    let Some(Some(first)) = faults.collect::<Option<Vec<_>>>().map(|all| all.into_iter().next()) else {
        return Vec::new();
    };
    let reported = first.into_iter().take(MAX_OF_ANSWER).map(|fault| {
        let below = format!("{pointer}{}", fault.path);
        let at = if document.tree.at(&below).is_some() { below } else { pointer.to_owned() };
        let place = Cursor::new(&document.tree, at.as_str()).place();
        let message = format!("the answer does not match the `answer_schema` of the loop: {}", fault.message);
        let fault = Diagnostic::warning(codes::SCRIPT_INPUT, message, at, place);
        fault.help("the model reads that, and must answer again: write what the schema asks for")
    });
    reported.collect()
}
