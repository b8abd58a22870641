//! Dialects: how to instruct a model, how to read its reply, how to write an observation. A dialect
//! a file; nothing else of the engine differs between them.

pub mod json;
mod relaxed;

use serde_json::Value;

use super::event::{Finish, Reply};
use crate::language::react::Dialect;

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
        /// What the model thought, as far as it can be told.
        thought: String,
        /// What is wrong, in a sentence for the model.
        why: String,
    },
}

/// A call that the model wants made.
#[derive(Debug, Clone, PartialEq)]
pub struct Wanted {
    /// The tool's name as the model wrote it.
    pub name: String,
    /// Its input, with every number's digits as the model wrote them.
    pub input: Value,
}

/// Whether the dialect can be used. A document that asks for another one does not compile, so the
/// functions below are never asked about it; they would write as `json` does, and read nothing.
pub fn supported(dialect: Dialect) -> bool {
    match dialect {
        Dialect::Json => true,
        Dialect::ToolCalls | Dialect::Tags | Dialect::FinalAnswer => false,
    }
}

/// How the model is to answer: the end of the system prompt, `{{dialect_instructions}}`.
pub fn instructions(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Json | Dialect::ToolCalls | Dialect::Tags | Dialect::FinalAnswer => json::INSTRUCTIONS,
    }
}

/// What a reply means. One that `max_tokens` cut off is never completed by guessing.
pub fn read(dialect: Dialect, reply: &Reply) -> Reading {
    read_counted(dialect, reply).0
}

/// What a reply means, and how many of its bytes count: what a model invents behind its action, as if
/// the tool had answered already, does not.
pub fn read_counted(dialect: Dialect, reply: &Reply) -> (Reading, usize) {
    if !supported(dialect) {
        let why = "This dialect can't be read yet; use the dialect json.".to_owned();
        return (Reading::Unreadable { thought: String::new(), why }, reply.text.len());
    }
    json::read_counted(&reply.text, reply.finish == Finish::Length)
}

/// The user message that tells the model what came of its action; `None`: nothing was called.
/// The text is data: it can't begin another message.
pub fn write_observation(dialect: Dialect, action: Option<&str>, text: &str) -> String {
    match dialect {
        Dialect::Json | Dialect::ToolCalls | Dialect::Tags | Dialect::FinalAnswer => {
            json::write_observation(action, text)
        }
    }
}

/// The user message with a human's guidance for an agent that was stuck.
pub fn write_guidance(dialect: Dialect, text: &str) -> String {
    format!("A human says:\n{text}\n\n{}", question(dialect))
}

/// The turn's question, for a message that is no observation.
pub fn question(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Json | Dialect::ToolCalls | Dialect::Tags | Dialect::FinalAnswer => json::QUESTION,
    }
}

/// The question of the last call, when a limit was reached and the model must answer. `limit_words`
/// say which limit, as a sentence without its full stop.
pub fn forced_question(dialect: Dialect, limit_words: &str) -> String {
    match dialect {
        Dialect::Json | Dialect::ToolCalls | Dialect::Tags | Dialect::FinalAnswer => json::forced_question(limit_words),
    }
}

/// Texts at which the model is to stop. None for `json`: some models refuse a request that has any,
/// and the reader cuts off what a model invents behind its action.
pub fn stop_sequences(dialect: Dialect) -> &'static [&'static str] {
    match dialect {
        Dialect::Json | Dialect::ToolCalls | Dialect::Tags | Dialect::FinalAnswer => &[],
    }
}
