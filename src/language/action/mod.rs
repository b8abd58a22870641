//! Registered actions: what a tool does. A kind a file.

mod command;
mod db;
mod http;
mod llm;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use command::CommandAction;
pub use db::DbAction;
pub use http::{HttpAction, Method};
pub use llm::LlmAction;

/// A registered action, by its `kind`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind")]
pub enum Action {
    /// A request to an HTTP server.
    #[serde(rename = "http")]
    Http(HttpAction),
    /// A question to a model.
    #[serde(rename = "llm")]
    Llm(LlmAction),
    /// A query to a database.
    #[serde(rename = "db")]
    Db(DbAction),
    /// A program on this machine.
    #[serde(rename = "command")]
    Command(CommandAction),
    /// Hyphen's matcher: recognised, and refused.
    #[serde(rename = "matcher")]
    Matcher(serde_json::Map<String, Value>),
    /// Hyphen's custom table: recognised, and refused.
    #[serde(rename = "custom-table")]
    CustomTable(serde_json::Map<String, Value>),
}

/// An actions document: one registered action, or an array of them.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum ActionsDocument {
    /// Several.
    Many(Vec<Action>),
    /// One.
    One(Box<Action>),
}

/// What to do with a call that may or may not have happened before a crash.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnUncertain {
    /// The run pauses, and a human says whether it happened.
    #[default]
    Pause,
    /// The call is made again.
    Retry,
    /// The call fails, and the model gets the error that its outcome is not known.
    Fail,
}

/// What every kind of action has.
#[derive(Debug, Clone, Copy)]
pub struct ActionHead<'a> {
    /// The name that tools declare it by.
    pub action_name: &'a str,
    /// What it does, for the model.
    pub description: Option<&'a str>,
    /// The JSON Schema of its input.
    pub parameters: Option<&'a Value>,
    /// Whether a call may be made again without harm.
    pub idempotent: Option<bool>,
    /// What to do with a call of unknown outcome.
    pub on_uncertain: OnUncertain,
    /// The deadline of a call in milliseconds.
    pub timeout_ms: Option<u64>,
    /// Whether a human must approve each call.
    pub requires_approval: bool,
    /// How many times a run may call it.
    pub max_calls: Option<u32>,
}

/// Declares the struct of an action's kind: what every kind has, then its own fields.
macro_rules! action {
    ($(#[$doc:meta])* $name:ident { $($(#[$field_doc:meta])* $field:ident : $ty:ty,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
        #[serde(deny_unknown_fields)]
        pub struct $name {
            /// The name that tools declare it by.
            #[schemars(length(min = 1, max = 64))]
            pub action_name: String,
            /// What it does: the model chooses by it.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub description: Option<String>,
            /// Whether the raw response is passed on. Inside an agent loop the model always reads it.
            #[serde(default)]
            pub passthrough: bool,
            /// The context key of its output, inside a workflow.
            #[serde(rename = "outputKey", default, skip_serializing_if = "Option::is_none")]
            pub output_key: Option<String>,
            /// The JSON Schema of its input. Without it: the template variables, all required.
            #[serde(
                default,
                deserialize_with = "crate::language::react::read_schema",
                skip_serializing_if = "Option::is_none"
            )]
            #[schemars(schema_with = "crate::language::react::json_schema")]
            pub parameters: Option<serde_json::Value>,
            /// Whether a call may be made again without harm. Default: http GET, HEAD, PUT and
            /// DELETE, and read-only queries.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub idempotent: Option<bool>,
            /// What to do with a call that may or may not have happened before a crash.
            #[serde(default)]
            pub on_uncertain: crate::language::action::OnUncertain,
            /// The deadline of a call in milliseconds: a declaration can only shorten it. Default: the
            /// declaration's, else the loop's `tool_timeout_ms`.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            #[schemars(range(min = 1))]
            pub timeout_ms: Option<u64>,
            /// Whether a human must approve each call, whatever a declaration says.
            #[serde(default, skip_serializing_if = "std::ops::Not::not")]
            pub requires_approval: bool,
            /// How many times a run may call it: a declaration can only lower it.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            #[schemars(range(min = 1))]
            pub max_calls: Option<u32>,
            $($(#[$field_doc])* pub $field: $ty,)*
        }

        impl $name {
            /// What every kind of action has.
            pub fn head(&self) -> crate::language::action::ActionHead<'_> {
                crate::language::action::ActionHead {
                    action_name: &self.action_name,
                    description: self.description.as_deref(),
                    parameters: self.parameters.as_ref(),
                    idempotent: self.idempotent,
                    on_uncertain: self.on_uncertain,
                    timeout_ms: self.timeout_ms,
                    requires_approval: self.requires_approval,
                    max_calls: self.max_calls,
                }
            }
        }
    };
}
pub(crate) use action;

impl Action {
    /// What every kind of action has; nothing for a kind that is recognised only.
    pub fn head(&self) -> Option<ActionHead<'_>> {
        match self {
            Self::Http(action) => Some(action.head()),
            Self::Llm(action) => Some(action.head()),
            Self::Db(action) => Some(action.head()),
            Self::Command(action) => Some(action.head()),
            Self::Matcher(_) | Self::CustomTable(_) => None,
        }
    }
}
