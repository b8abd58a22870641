//! Dialects: how to instruct a model, how to read its reply, how to write an observation. A dialect
//! a file; nothing else of the engine differs between them.

pub mod json;

use serde_json::Value;

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
