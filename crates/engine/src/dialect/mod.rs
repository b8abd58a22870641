//! Dialects: how to instruct a model, how to read its reply, how to write an observation. A dialect
//! a file; nothing else of the engine differs between them.

mod answer;
mod example;
pub mod final_answer;
pub mod json;
mod native;
mod relaxed;
mod report;
pub mod tags;
pub(crate) mod thinking;
pub mod tool_calls;
mod written_call;

use std::borrow::Cow;

use serde_json::Value;

use super::event::{Finish, Reply, SaidCall};
use super::reply::refusal;
pub use answer::{answer_json, as_json};
pub use example::{example, sample_of};
use loopctl_lang::language::react::Dialect;
use loopctl_lang::program::{LoopProgram, builtin};
pub use report::{Observation, kept_calls, report, report_refusal};
use written_call::CallableTools;

/// What a reply means.
#[derive(Debug, Clone, PartialEq)]
pub enum Reading {
    /// One or more calls.
    Calls {
        /// What the model thought.
        thought: String,
        /// What it wants called, in order.
        calls: Vec<Wanted>,
    },
    /// An answer that ends the run, in the dialects that have one beside `__complete__`.
    Answer {
        /// What the model thought.
        thought: String,
        /// The answer.
        answer: Value,
    },
    /// It can't be read, or could be read in two ways.
    Unreadable {
        /// What the model thought, as far as it is known.
        thought: String,
        /// What is wrong, in a sentence for the model.
        why: String,
    },
}

impl Reading {
    /// What the model thought.
    pub fn thought(&mut self) -> &mut String {
        match self {
            Self::Calls { thought, .. } | Self::Answer { thought, .. } | Self::Unreadable { thought, .. } => thought,
        }
    }
}

/// A call that the model wants made.
#[derive(Debug, Clone, PartialEq)]
pub struct Wanted {
    /// The tool's name as the model wrote it.
    pub name: String,
    /// Its input, with every number's digits as the model wrote them; the text that the model wrote
    /// when it can't be read.
    pub input: Value,
    /// Why the input can't be read, in a sentence for the model: the call is not made then.
    pub unread: Option<String>,
}

impl Wanted {
    /// The call that ends a run with this answer.
    pub fn complete(answer: Value) -> Self {
        let input = Value::Object([("answer".to_owned(), answer)].into_iter().collect());
        Self { name: builtin::COMPLETE.to_owned(), input, unread: None }
    }
}

/// What a scripted model says, before it is put into a dialect's words.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Saying {
    /// Its thought.
    pub thought: String,
    /// The calls, each a tool and its input.
    pub calls: Vec<(String, Value)>,
    /// The answer as text, in place of calls.
    pub answer: Option<String>,
}

/// Whether the request declares the tools to the provider, and calls come in the provider's own form.
pub fn is_native(dialect: Dialect) -> bool {
    match dialect {
        Dialect::ToolCalls | Dialect::FinalAnswer => true,
        Dialect::Json | Dialect::Tags => false,
    }
}

/// The name that the model knows a tool by.
pub fn name_for_model<'a>(program: &'a LoopProgram, name: &'a str) -> &'a str {
    if is_native(program.properties.dialect) { program.called.out(name) } else { name }
}

/// How the model is to answer: the end of the system prompt, `{{dialect_instructions}}`.
pub fn instructions(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Json => json::INSTRUCTIONS,
        Dialect::ToolCalls => tool_calls::INSTRUCTIONS,
        Dialect::Tags => tags::INSTRUCTIONS,
        Dialect::FinalAnswer => final_answer::INSTRUCTIONS,
    }
}

/// Whether a reply that was cut off has nothing but the beginning of what the model thinks.
pub fn is_cut_off_thinking(reply: &Reply) -> bool {
    thinking::cut_off_thought(reply).is_some()
}

/// What a reply says in words.
pub struct WrittenWords<'r> {
    /// The text behind what the model thought, without white space around it.
    pub text: &'r str,
    /// Whether the text is the beginning of a thought, and nothing came behind it.
    pub is_open: bool,
    /// Whether it makes a call, or writes one.
    pub has_call: bool,
}

/// What a reply says in words, where no call is asked for.
pub fn written_words<'r>(program: &LoopProgram, reply: &'r Reply) -> WrittenWords<'r> {
    let thinking::Split { rest: text, open: is_open, .. } = thinking::split(&reply.text);
    let is_written = || written_call::find(text, &CallableTools::of(program)).is_some();
    WrittenWords { text, is_open, has_call: !reply.calls.is_empty() || is_written() }
}

/// Whether a reply to a question without tools is nothing but a call, written as text.
pub fn is_call_alone(reply: &Reply) -> bool {
    written_call::is_call_alone(thinking::split(&reply.text).rest)
}

/// What a reply means. One that `max_tokens` cut off is never completed by guessing.
pub fn read(dialect: Dialect, reply: &Reply) -> Reading {
    read_counted(dialect, reply, None).0
}

/// What a reply means, and how many of its text's bytes count: what a model invents behind its action,
/// as if the tool had answered already, does not. `program`: whose tools a text may call; without one, a text that has the
/// form of a call is no answer, as in runs of older editions.
pub fn read_counted(dialect: Dialect, reply: &Reply, program: Option<&LoopProgram>) -> (Reading, usize) {
    let not_taken = |why| (Reading::Unreadable { thought: String::new(), why }, reply.text.len());
    if let Some(words) = &reply.refusal {
        // What came before a refusal is no turn, whatever it says.
        return not_taken(refusal::refused_words(&quoted(dialect, words)));
    }
    if program.is_some() && reply.is_empty() {
        return not_taken(refusal::EMPTY.to_owned());
    }
    let cut_off = reply.finish == Finish::Length;
    if cut_off && let Some(reading) = thinking::cut_off(reply) {
        return (reading, reply.text.len());
    }
    let read = match dialect {
        Dialect::Json => json::read_counted(&reply.text, cut_off),
        Dialect::ToolCalls => (tool_calls::read(reply, program), reply.text.len()),
        Dialect::Tags => tags::read_counted(&reply.text, cut_off),
        Dialect::FinalAnswer => (final_answer::read(reply, program), reply.text.len()),
    };
    match program {
        Some(program) if !is_native(dialect) && !reply.calls.is_empty() => {
            (native::beside_text(dialect, reply, read.0, program), reply.text.len())
        }
        _ => read,
    }
}

/// What the model reads about its action; `None`: nothing was called. The text is data: it can't begin another
/// message. Native calls are answered with the unchanged text, see [`report`].
pub fn write_observation(dialect: Dialect, action: Option<&str>, text: &str) -> String {
    match dialect {
        Dialect::Json => json::write_observation(action, text),
        Dialect::Tags => tags::write_observation(text),
        Dialect::ToolCalls | Dialect::FinalAnswer => format!("{text}\n\n{}", question(dialect)),
    }
}

/// The user message with a human's guidance for an agent that was stuck.
pub fn write_guidance(dialect: Dialect, text: &str) -> String {
    format!("A human says:\n{}\n\n{}", quoted(dialect, text), question(dialect))
}

/// A text from elsewhere in a user message: no tag of the dialect is left in it.
pub fn quoted(dialect: Dialect, text: &str) -> Cow<'_, str> {
    if dialect == Dialect::Tags { tags::escaped(text) } else { text.into() }
}

/// The turn's question, for a message that is no observation.
pub fn question(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Json => json::QUESTION,
        Dialect::ToolCalls => tool_calls::QUESTION,
        Dialect::Tags => tags::QUESTION,
        Dialect::FinalAnswer => final_answer::QUESTION,
    }
}

/// The question of the last call, when a limit was reached and the model must answer. `limit_words`
/// say which limit, as a sentence without its full stop.
pub fn forced_question(dialect: Dialect, limit_words: &str) -> String {
    match dialect {
        Dialect::Json => json::forced_question(limit_words),
        Dialect::ToolCalls => tool_calls::forced_question(limit_words),
        Dialect::Tags => tags::forced_question(limit_words),
        Dialect::FinalAnswer => final_answer::forced_question(limit_words),
    }
}

/// Texts at which the model is to stop. None for `json`: some models refuse a request that has any,
/// and the reader cuts off what a model invents behind its action.
pub fn stop_sequences(dialect: Dialect) -> &'static [&'static str] {
    match dialect {
        Dialect::Tags => tags::STOP,
        Dialect::Json | Dialect::ToolCalls | Dialect::FinalAnswer => &[],
    }
}

/// What a model that speaks the dialect says: its text and its native calls. Nothing, when the dialect
/// can't say it: several calls in `json`.
pub fn say(dialect: Dialect, saying: &Saying) -> Option<(String, Vec<SaidCall>)> {
    match dialect {
        Dialect::Json => json::say(saying).map(|text| (text, Vec::new())),
        Dialect::ToolCalls => Some(tool_calls::say(saying)),
        Dialect::Tags => Some((tags::say(saying), Vec::new())),
        Dialect::FinalAnswer => Some(final_answer::say(saying)),
    }
}
