//! The project file's `serve`: who may do what over HTTP, and how results are signed.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Who may do what over HTTP, and how results that are posted elsewhere are signed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Serving {
    /// The bearer tokens. Without any, only this machine is listened to.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tokens: Vec<Token>,
    /// The key that results posted to a `callback_url` are signed with: `env:VAR` or `file:PATH`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub callback_secret: Option<String>,
    /// Which agent requests are taken: documents that come with a request, in place of the folder's loops.
    #[serde(skip_serializing_if = "AgentRequests::is_all")]
    pub agent_requests: AgentRequests,
}

/// Which agent requests are taken over HTTP.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AgentRequests {
    /// None: only the folder's loops are started.
    Off,
    /// Those that use only the actions that they bring along: none of the folder's actions and loops.
    OwnActions,
    /// All: they may use the folder's actions and loops.
    #[default]
    All,
}

impl AgentRequests {
    /// Whether all are taken.
    pub fn is_all(&self) -> bool {
        *self == Self::All
    }
}

impl Serving {
    /// Whether nothing is said.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// A bearer token: what it is called, and what its holder may do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Token {
    /// What it is called in logs.
    #[schemars(length(min = 1, max = 64))]
    pub name: String,
    /// `sha256:` and the hexadecimal SHA-256 of the token, as `loopctl token` prints it.
    #[schemars(length(min = 71, max = 71))]
    pub hash: String,
    /// What its holder may do: at least one.
    pub scopes: Vec<Scope>,
    /// The organisation that its holder acts for: it sees that one's runs only. Letters, digits, `_`,
    /// `-` and `.`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 64))]
    pub org: Option<String>,
}

/// What a token's holder may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// Start the folder's loops, and end runs.
    Run,
    /// Start agent requests, and end runs.
    Compose,
    /// See runs, loops and diagnostics.
    Read,
    /// Answer, approve, deny and edit.
    Decide,
}

impl Scope {
    /// Every one.
    pub const ALL: [Self; 4] = [Self::Run, Self::Compose, Self::Read, Self::Decide];

    /// Its name in the project file.
    pub fn name(self) -> &'static str {
        match self {
            Self::Run => "run",
            Self::Compose => "compose",
            Self::Read => "read",
            Self::Decide => "decide",
        }
    }
}
