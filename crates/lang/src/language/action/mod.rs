//! Registered actions: what a tool does. A kind a file.

mod command;
mod db;
mod http;
mod llm;
mod matcher;
mod table;
mod text;

use std::sync::Arc;

use schemars::JsonSchema;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use super::approval::{ApprovalSettings, RequiresApproval};
use super::fields::{choice, read_without};
use super::react::Retry;
use super::retry::CallRetry;

pub use command::CommandAction;
pub use db::{DEFAULT_ROWS, DbAction, MAX_ROWS};
pub use http::{HttpAction, Method, ValueStyle};
pub use llm::LlmAction;
pub use matcher::{MATCHER_SETTINGS, Matcher, MatcherAction, ToleranceMode};
pub use table::{CustomTableAction, TABLES};
pub use text::{ActionText, TextKind, WrittenText};

/// A registered action, by its `kind`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
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
    /// Which entries of two lists belong together.
    #[serde(rename = "matcher")]
    Matcher(MatcherAction),
    /// Rows of a table are written or read.
    #[serde(rename = "custom-table")]
    CustomTable(CustomTableAction),
}

/// An actions document: one registered action, or an array of them.
#[derive(Debug, Clone, Serialize, JsonSchema)]
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

/// What a call asks a model for.
#[derive(Debug, Clone, Copy)]
pub struct QuestionTerms<'a> {
    /// The most tokens of the reply.
    pub max_tokens: u32,
    /// How the model is asked again; none for the default.
    pub retry: Option<&'a Retry>,
}

/// What a kind of action says of itself.
pub trait ActionKind: RegisteredAction {
    /// The fields whose texts take values.
    fn texts(&self) -> &'static [ActionText];

    /// The description that the model gets for an action without one.
    fn describe(&self) -> String;

    /// A call that must not be made twice, as messages name it: `a POST request`. None for one that only costs.
    fn repeated(&self) -> Option<String>;

    /// Whether a call may be made again without harm, when the action does not say.
    fn is_idempotent(&self) -> bool;

    /// Whether a call only reads, given whether it may be made again: what it returns may then be read at any time.
    fn only_reads(&self, idempotent: bool) -> bool;

    /// How soon a call may return.
    fn speed(&self) -> CallSpeed;

    /// The schema of what a model answers, where the result is a value.
    fn answer_schema(&self) -> Option<&Value> {
        None
    }

    /// How a failed call is made again by the driver.
    fn retry(&self) -> Option<&CallRetry> {
        None
    }

    /// Its templates, in a fixed order. A kind that reads its texts in another way, or has faults of its own, is compiled by
    /// a file in `compile/tool`, and has none here.
    fn templates(&self) -> Vec<WrittenText<'_>> {
        Vec::new()
    }

    /// The JSON Schema of a call's input, when its texts do not show what a call gives.
    fn input_schema(&self) -> Option<Value> {
        None
    }

    /// Whether a call asks models: its cost counts for the run's budget.
    fn spends(&self) -> bool {
        false
    }

    /// The model that a call asks, when the action names one.
    fn model(&self) -> Option<&str> {
        None
    }

    /// What one call asks a model for, when it asks one and does nothing else.
    fn question(&self) -> Option<QuestionTerms<'_>> {
        None
    }

    /// The datasource that a call uses.
    fn datasource(&self) -> Option<&str> {
        None
    }
}

/// How soon a call may return.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallSpeed {
    /// As a model.
    Model,
    /// As a server.
    Server,
    /// As what this machine does by itself.
    Local,
}

/// What every kind of action has.
pub trait RegisteredAction {
    /// What every kind of action has.
    fn head(&self) -> ActionHead<'_>;
}

/// What every kind of action has.
#[derive(Debug, Clone, Copy)]
pub struct ActionHead<'a> {
    /// The name that tools declare it by.
    pub action_name: &'a str,
    /// What it does, for the model.
    pub description: Option<&'a str>,
    /// The JSON Schema of its input: all that is compiled from the action shares it.
    pub parameters: Option<&'a Arc<Value>>,
    /// Whether a call may be made again without harm.
    pub idempotent: Option<bool>,
    /// What to do with a call of unknown outcome, if the action says so.
    pub on_uncertain: Option<OnUncertain>,
    /// The deadline of a call in milliseconds.
    pub timeout_ms: Option<u64>,
    /// Whether a human must approve each call, or when.
    pub requires_approval: &'a RequiresApproval,
    /// How an approval is given.
    pub approval: Option<&'a ApprovalSettings>,
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
            /// The JSON Schema of a file that is this action, for editors.
            #[serde(rename = "$schema", default, skip_serializing_if = "Option::is_none")]
            pub schema: Option<String>,
            /// The name that tools declare it by.
            #[schemars(length(min = 1, max = 64))]
            pub action_name: String,
            /// What it does: the model chooses by it.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub description: Option<String>,
            $($(#[$field_doc])* pub $field: $ty,)*
            /// The JSON Schema of its input. Without it: the template variables, all required.
            #[serde(
                default,
                deserialize_with = "crate::language::react::read_shared_schema",
                skip_serializing_if = "Option::is_none"
            )]
            #[schemars(schema_with = "crate::language::react::json_schema")]
            pub parameters: Option<std::sync::Arc<serde_json::Value>>,
            /// Whether a call may be made again without harm. Default: http GET, HEAD, PUT and
            /// DELETE, and read-only queries.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub idempotent: Option<bool>,
            /// What to do with a call that may or may not have happened: after a crash, and, if it is written, when the
            /// answer to the call was lost. Default: `pause`, after a crash.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub on_uncertain: Option<crate::language::action::OnUncertain>,
            /// The deadline of a call in milliseconds: a declaration can only shorten it. Default: the
            /// declaration's, else the loop's `tool_timeout_ms`.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            #[schemars(range(min = 1))]
            pub timeout_ms: Option<u64>,
            /// Whether a human must approve each call, or the condition on the call's input when one must,
            /// whatever a declaration says.
            #[serde(default, skip_serializing_if = "crate::language::approval::RequiresApproval::is_never")]
            pub requires_approval: crate::language::approval::RequiresApproval,
            /// How an approval is given: by how many, and within what time: a declaration can only make it stricter.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub approval: Option<crate::language::approval::ApprovalSettings>,
            /// How many times a run may call it: a declaration can only lower it.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            #[schemars(range(min = 1))]
            pub max_calls: Option<u32>,
            /// Whether the raw response is passed on. Inside an agent loop the model always reads it.
            #[serde(default)]
            pub passthrough: bool,
            /// The context key of its output, inside a workflow.
            #[serde(rename = "outputKey", default, skip_serializing_if = "Option::is_none")]
            pub output_key: Option<String>,
        }

        impl crate::language::action::RegisteredAction for $name {
            fn head(&self) -> crate::language::action::ActionHead<'_> {
                crate::language::action::ActionHead {
                    action_name: &self.action_name,
                    description: self.description.as_deref(),
                    parameters: self.parameters.as_ref(),
                    idempotent: self.idempotent,
                    on_uncertain: self.on_uncertain,
                    timeout_ms: self.timeout_ms,
                    requires_approval: &self.requires_approval,
                    approval: self.approval.as_ref(),
                    max_calls: self.max_calls,
                }
            }
        }
    };
}
pub(crate) use action;

impl Action {
    /// What its kind says of it.
    pub fn kind(&self) -> &dyn ActionKind {
        match self {
            Self::Http(action) => action,
            Self::Llm(action) => action,
            Self::Db(action) => action,
            Self::Command(action) => action,
            Self::Matcher(action) => action,
            Self::CustomTable(action) => action,
        }
    }

    /// What every kind of action has.
    pub fn head(&self) -> ActionHead<'_> {
        self.kind().head()
    }

    /// Reads a registered action.
    ///
    /// # Errors
    /// When it does not have the shape of its kind.
    pub fn read(value: &Value) -> Result<Self, serde_json::Error> {
        const KINDS: &[&str] = &["http", "llm", "db", "command", "matcher", "custom-table"];
        match choice(value, "kind")? {
            "http" => read_without(value, "kind").map(Self::Http),
            "llm" => read_without(value, "kind").map(Self::Llm),
            "db" => read_without(value, "kind").map(Self::Db),
            "command" => read_without(value, "kind").map(Self::Command),
            "matcher" => read_without(value, "kind").map(Self::Matcher),
            "custom-table" => read_without(value, "kind").map(Self::CustomTable),
            unknown => Err(serde_json::Error::unknown_variant(unknown, KINDS)),
        }
    }
}

impl<'de> Deserialize<'de> for Action {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::read(&Value::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

impl<'de> Deserialize<'de> for ActionsDocument {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let read = match Value::deserialize(deserializer)? {
            Value::Array(all) => all.iter().map(Action::read).collect::<Result<_, _>>().map(Self::Many),
            one => Action::read(&one).map(|action| Self::One(Box::new(action))),
        };
        read.map_err(D::Error::custom)
    }
}
