//! The built-in tools: the engine runs them inside the step, without effects.

use serde_json::{Number, Value, json};

use super::dialect::answer_json;
use super::event::ToolResult;
use super::find_tool;
use super::fitted;
use super::memory;
use super::outcome::{Answer, Termination};
use super::question::Question;
use super::state::LoopState;
use super::storable;
use loopctl_lang::policy::json_text;
use loopctl_lang::program::schema;
use loopctl_lang::program::{Builtin, LoopProgram};

/// The outcome of a built-in tool.
pub(super) enum Done {
    /// An observation.
    Observed(ToolResult),
    /// An observation, and a key that the session must keep.
    Remembered(ToolResult, String),
    /// The run's answer.
    Completed(Answer),
    /// An answer that does not match `answer_schema`, and the observation that says why.
    AnswerRefused(ToolResult),
    /// A question to a human, whose answer is the observation.
    AsksHuman,
}

/// What a call asks a human whose input the schema of `__pause_for_human__` accepts.
pub(super) fn question(input: &Value) -> Question {
    let options = input.get("options").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    Question {
        context: text(input, "context"),
        options: options.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        ..Question::new(Termination::Human, text(input, "question").unwrap_or_default())
    }
}

/// Runs a built-in tool with an input that its schema accepts, in a turn with this number of calls.
pub(super) fn run(program: &LoopProgram, state: &mut LoopState, which: Builtin, input: &Value, calls: usize) -> Done {
    match which {
        Builtin::Complete => complete(program, state, input),
        Builtin::PauseForHuman => Done::AsksHuman,
        Builtin::StoreMemory => {
            let key = text(input, "key").unwrap_or_default();
            let value = input.get("value").cloned().unwrap_or_default();
            match memory::store(&mut state.memory, &key, value) {
                Ok(()) if state.header.session.is_some() => Done::Remembered(ToolResult::Ok(json!("Stored.")), key),
                Ok(()) => Done::Observed(ToolResult::Ok(json!("Stored."))),
                Err(why) => Done::Observed(ToolResult::failed(why)),
            }
        }
        Builtin::RetrieveMemory => Done::Observed(memory::retrieve(&state.memory, text(input, "key").as_deref())),
        Builtin::LogProgress => Done::Observed(ToolResult::Ok(json!("Noted."))),
        Builtin::FindTool => {
            let query = text(input, "query").unwrap_or_default();
            Done::Observed(find_tool::run(program, state, &query, calls))
        }
        // The validation refuses it earlier.
        Builtin::RunWorkflow => Done::Observed(ToolResult::failed("no workflow is declared for this loop")),
    }
}

fn complete(program: &LoopProgram, state: &LoopState, input: &Value) -> Done {
    let mut answer = input.get("answer").cloned().unwrap_or_default();
    if let Some(schema) = &program.answer {
        let mut faults = schema.faults(&answer);
        // A string answer that contains JSON is taken as that JSON, if the JSON matches the schema and the
        // string does not.
        if !faults.is_empty()
            && let Some(read) = answer.as_str().and_then(|text| json_answer(state, text))
            && storable::fault_of(&read).is_none()
            && schema.faults(&read).is_empty()
        {
            faults.clear();
            answer = read;
        }
        if !faults.is_empty()
            && state.header.fits_values()
            && let Some(read) = fitted::fitted(schema, &answer)
        {
            faults.clear();
            answer = read;
        }
        if !faults.is_empty() {
            return Done::AnswerRefused(ToolResult::failed(format!(
                "the answer does not match what this loop must answer, and was not taken:{}",
                schema::list(&faults)
            )));
        }
    }
    let confidence = match input.get("confidence") {
        Some(Value::Number(number)) => number.clone(),
        _ => Number::from_f64(1.0).unwrap_or_else(|| Number::from(1)),
    };
    Done::Completed(Answer { answer, confidence: Some(confidence), summary: text(input, "summary") })
}

/// The JSON that a text answer is.
fn json_answer(state: &LoopState, text: &str) -> Option<Value> {
    match state.header.reads_exact_texts() {
        true => answer_json(text, state.header.reads_all_fences()),
        false => json_text::read(text).ok(),
    }
}

fn text(input: &Value, name: &str) -> Option<String> {
    input.get(name).and_then(Value::as_str).map(str::to_owned)
}
