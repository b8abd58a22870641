//! Where steps of type `notify` send their texts.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The `type` of a step that sends a text, unless a registered action has this name.
pub const NOTIFY: &str = "notify";

/// What is sent, and to whom. A registered action of this name takes what it wants, so nothing is required here.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct NoticeProperties {
    /// The name of a target in `notify` of the project file.
    pub to: Value,
    /// What is sent: a template.
    pub text: Value,
}

/// Where texts are sent.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NotifyTarget {
    /// What takes the texts.
    pub kind: NotifyKind,
    /// The address that takes them: `orgconfig:KEY`, because who has it can write there; or the address itself.
    #[schemars(length(min = 1))]
    pub url: String,
}

/// What takes the texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum NotifyKind {
    /// An incoming webhook of Slack.
    Slack,
    /// A workflow of Microsoft Teams that takes a webhook.
    Teams,
    /// Any server: a JSON object with `to` and `text` is posted to it.
    Webhook,
}
