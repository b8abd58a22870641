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
    /// The address that takes them: `orgconfig:KEY`, because who has it can write there; or the address itself. Of all kinds but
    /// `email`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub url: Option<String>,
    /// Of `email`: the server that takes mail, `smtps://HOST:465` or `smtp://HOST:587`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub smtp: Option<String>,
    /// Of `email`: the address that mail comes from, like `Claims <claims@example.com>`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub from: Option<String>,
    /// Of `email`: the addresses that read it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 50))]
    pub to: Option<Vec<String>>,
    /// Of `email`: the name at the server: `orgconfig:KEY`, or the name itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub username: Option<String>,
    /// Of `email`: the password at the server, `orgconfig:KEY`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password: Option<String>,
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
    /// Mail, by a server that takes it.
    Email,
}
