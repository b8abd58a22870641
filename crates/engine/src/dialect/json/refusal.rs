//! Why a reply is refused, in sentences that a model can act on.

use crate::dialect::relaxed::shown;

/// Why a reply is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReplyRefusal {
    /// Nothing, or white space.
    Empty,
    /// More than is looked at.
    TooLong,
    /// A page of a web server.
    Html,
    /// No object at all.
    NoObject,
    /// An object that can't be read: what is wrong, and where.
    Broken(String),
    /// An object without its end.
    CutOff,
    /// Too many braces to find the object.
    Tangled,
    /// Two different objects with an action.
    TwoActions,
    /// A list around the object.
    List,
    /// The object is inside something else that could not be read.
    Fragment,
    /// The text continues behind the object as if it had not ended.
    RunsOn,
    /// A `<think>` block that is not closed.
    OpenThinking,
    /// A `</think>` behind the object.
    LateThinking,
    /// An object without an action.
    NoAction,
    /// An answer in place of an action.
    AnswerAlone,
    /// An answer and an action.
    AnswerBeside,
    /// An action that is no text, or an empty one.
    ActionNotText,
    /// Two keys that both name the action.
    ActionTwice,
    /// Two keys that both give the input.
    InputTwice,
    /// A `tool` without an input.
    ActionUnsure,
    /// An input that is no object.
    InputNotObject,
    /// An input as text that can't be read: what is wrong, and where.
    InputBroken(String),
    /// No input, but a key that may be part of it.
    InputMissing(String),
}

const HOW: &str = "Nothing was called. Answer with one JSON object and nothing else: {\"thought\": \"...\", \
                   \"action\": \"name of one tool\", \"action_input\": {...}}.";
const END: &str = "To give your final answer, use {\"thought\": \"...\", \"action\": \"__complete__\", \
                   \"action_input\": {\"answer\": ...}}.";

impl ReplyRefusal {
    /// What could not be read, and how to answer.
    pub fn sentence(&self) -> String {
        match self {
            Self::AnswerAlone | Self::AnswerBeside | Self::NoObject => format!("{} {HOW} {END}", self.what()),
            Self::InputMissing(key) if is_answer(key) => format!("{} {HOW} {END}", self.what()),
            _ => format!("{} {HOW}", self.what()),
        }
    }

    fn what(&self) -> String {
        let what = match self {
            Self::Empty => "Your reply was empty.",
            Self::TooLong => "Your reply is longer than 4 MiB.",
            Self::Html => "Your reply is an HTML page.",
            Self::NoObject => "Your reply holds no JSON object.",
            Self::Broken(words) => return format!("Your reply is not valid JSON: {words}."),
            Self::CutOff => "The JSON object of your reply ends in the middle; answer more briefly.",
            Self::Tangled => "Your reply has too many braces to tell where its JSON object begins.",
            Self::TwoActions => "Your reply holds two different objects with an \"action\"; one action a turn.",
            Self::List => "Your reply is a list; one action a turn, and no brackets around it.",
            Self::Fragment => "The object of your reply stands inside text that could not be read.",
            Self::RunsOn => "Your reply goes on behind the end of its JSON object; a brace may be closed too early.",
            Self::OpenThinking => "Your reply begins a thinking block and does not close it.",
            Self::LateThinking => "Your reply closes a thinking block behind its JSON object.",
            Self::NoAction => "The JSON object of your reply has no \"action\".",
            Self::AnswerAlone => "The JSON object of your reply has an answer, but no \"action\".",
            Self::AnswerBeside => "Your reply holds an answer and an action; only one of them can be meant.",
            Self::ActionNotText => "\"action\" must be the name of one tool, as a string that is not empty.",
            Self::ActionTwice => "Your reply names its action twice.",
            Self::InputTwice => "Your reply gives its input twice, with two values.",
            Self::ActionUnsure => "Your reply has a \"tool\", but neither \"action\" nor an input.",
            Self::InputNotObject => "\"action_input\" must be an object.",
            Self::InputBroken(words) => {
                return format!("\"action_input\" is a string that does not hold a JSON object: {words}.");
            }
            Self::InputMissing(key) => {
                return format!(
                    "\"action_input\" is missing, and {} stands beside \"action\"; put the parameters inside \
                     \"action_input\".",
                    shown(key)
                );
            }
        };
        what.to_owned()
    }
}

/// Whether a key's name says that it holds a final answer.
pub fn is_answer(key: &str) -> bool {
    matches!(super::shape::plain(key).as_str(), "answer" | "finalanswer")
}
