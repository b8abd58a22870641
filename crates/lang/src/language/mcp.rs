//! MCP servers: how the project file names them, and what the lock file says of their tools.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::action::OnUncertain;
use super::approval::RequiresApproval;
use super::call_limits::{CallLimits, CallRate, Circuit};

/// A server of the Model Context Protocol: a program, or an address.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct McpServer {
    /// The program, one of the project's `allow.commands`. No shell reads it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub command: Option<String>,
    /// Its arguments.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    /// Its folder, inside of the project's. Default: the project's folder.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// Variables of its environment: a text, or `orgconfig:KEY` for a secret. It inherits nothing: it has `PATH`, `HOME`, `LANG`
    /// and `TMPDIR`, and these.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// The address of a server that speaks streamable HTTP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// The headers of each request to it: the only place of secrets beside `oauth`, as `orgconfig:KEY`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// How access tokens for the address are asked for, in place of a header `Authorization`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub oauth: Option<OauthClient>,
    /// How long the server may take until it has listed its tools, in milliseconds. Default: 30000.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub start_timeout_ms: Option<u64>,
    /// How long a call may take, in milliseconds. A declaration can only shorten it. Default: 30000.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub timeout_ms: Option<u64>,
    /// How often its tools are called, by all processes of the store together. Calls over it wait for their turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<CallRate>,
    /// The most calls at once, of all processes of the store together. More wait for their turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub max_concurrency: Option<u32>,
    /// When it is left alone, because its calls fail.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub circuit: Option<Circuit>,
    /// The revision of the protocol that is spoken, where `mcp pin` is not to find it out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protocol: Option<McpProtocol>,
    /// Whether what the server says of its tools may make a call repeatable: `readOnlyHint` and `idempotentHint`.
    pub trust_annotations: bool,
    /// What happens to the calls of a tool whose input, output or existence has changed since it was pinned.
    pub on_drift: OnDrift,
    /// More about its tools, by their names.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub tools: BTreeMap<String, McpToolSettings>,
}

/// A client of an authorization server, which asks for access tokens by its own credentials (OAuth 2.1, `client_credentials`).
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OauthClient {
    /// The authorization server, by its issuer identifier: `https://auth.example.com`. The credentials are sent to no other one.
    #[schemars(length(min = 1))]
    pub issuer: String,
    /// The name that the authorization server knows the client by: a text, or `orgconfig:KEY`.
    #[schemars(length(min = 1))]
    pub client_id: String,
    /// The secret of the client: `orgconfig:KEY`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_secret: Option<String>,
    /// The private key by which the client signs who it is, in place of a secret: `orgconfig:KEY`, whose text is PKCS #8 in PEM, of an
    /// EC key on P-256 (`ES256`) or an RSA key (`RS256`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub private_key: Option<String>,
    /// The name of the key, for an authorization server that knows several of the client.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub key_id: Option<String>,
    /// The scopes that tokens are asked for with. Default: those that the server asks for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scopes: Vec<String>,
}

/// What a project says of a tool of a server.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct McpToolSettings {
    /// The name that the model sees after the server's, in place of the tool's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 64))]
    pub name: Option<String>,
    /// The description that the model reads, in place of the server's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Whether a call may be made again without harm.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idempotent: Option<bool>,
    /// What to do with a call that may or may not have happened. Default: `pause`, after a crash.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_uncertain: Option<OnUncertain>,
    /// Whether a human must approve each call, or the condition on the call's input when one must.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requires_approval: Option<RequiresApproval>,
}

/// What happens to the calls of a tool that has changed since it was pinned.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnDrift {
    /// They fail, and nothing of them is sent.
    #[default]
    Refuse,
    /// They are made all the same, and the log says so.
    Warn,
}

/// A revision of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub enum McpProtocol {
    /// With `initialize`.
    #[serde(rename = "2024-11-05")]
    November2024,
    /// With `initialize`.
    #[serde(rename = "2025-03-26")]
    March2025,
    /// With `initialize`.
    #[serde(rename = "2025-06-18")]
    June2025,
    /// With `initialize`.
    #[serde(rename = "2025-11-25")]
    November2025,
    /// Without one: each request says its version.
    #[serde(rename = "2026-07-28")]
    July2026,
}

impl McpProtocol {
    /// All of them, the oldest first.
    pub const ALL: [Self; 5] =
        [Self::November2024, Self::March2025, Self::June2025, Self::November2025, Self::July2026];

    /// As it is written.
    pub fn word(self) -> &'static str {
        match self {
            Self::November2024 => "2024-11-05",
            Self::March2025 => "2025-03-26",
            Self::June2025 => "2025-06-18",
            Self::November2025 => "2025-11-25",
            Self::July2026 => "2026-07-28",
        }
    }

    /// The revision of a word; none for one that is not spoken here.
    pub fn of(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|revision| revision.word() == word)
    }

    /// Whether nothing is kept between requests, and no `initialize` begins.
    pub fn is_modern(self) -> bool {
        self >= Self::July2026
    }
}

impl McpServer {
    /// How it is reached, which decides what it is.
    pub fn connection(&self) -> McpConnection {
        let Self { command, args, cwd, env, url, headers, oauth, .. } = self.clone();
        McpConnection { command, args, cwd, env, url, headers, oauth }
    }

    /// What the calls of its tools are held to.
    pub fn call_limits(&self) -> CallLimits {
        CallLimits { rate: self.rate, max_concurrency: self.max_concurrency, circuit: self.circuit }
    }

    /// How long it may take until it has listed its tools, in milliseconds.
    pub fn start_ms(&self) -> u64 {
        self.start_timeout_ms.unwrap_or(DEFAULT_TIMEOUT_MS)
    }

    /// How long a call may take, in milliseconds.
    pub fn call_ms(&self) -> u64 {
        self.timeout_ms.unwrap_or(DEFAULT_TIMEOUT_MS)
    }
}

/// How long a start and a call may take where nothing else is said.
const DEFAULT_TIMEOUT_MS: u64 = 30_000;

/// How a server was reached when it was pinned.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct McpConnection {
    /// The program.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// Its arguments.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    /// Its folder.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// Its variables, as the project writes them.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// The address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// The headers, as the project writes them.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// As what client, as the project writes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub oauth: Option<OauthClient>,
}

/// The lock file: what the servers of a project said of their tools when they were pinned.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct McpLock {
    /// The form of the file.
    pub version: u32,
    /// The servers by name.
    pub servers: BTreeMap<String, LockedServer>,
}

/// A server, as it was pinned.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LockedServer {
    /// How it was reached.
    pub connection: McpConnection,
    /// The name that it has for itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Its version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The revision of the protocol that it is spoken to in.
    pub protocol: McpProtocol,
    /// What was odd about how it said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol_note: Option<String>,
    /// What it would tell a model. It is kept for reviews, and no model reads it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    /// Its tools by name.
    pub tools: BTreeMap<String, LockedTool>,
}

/// A tool, as it was pinned.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct LockedTool {
    /// What the model reads about it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// The JSON Schema of its input.
    pub input_schema: Value,
    /// The JSON Schema of its structured output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Value>,
    /// What the server says of its effects.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub annotations: Map<String, Value>,
}

impl McpLock {
    /// The name of the file, which is beside the project file.
    pub const FILE: &str = "mcp.lock.json";

    /// The form of the file that this version writes.
    pub const VERSION: u32 = 1;
}

impl LockedTool {
    /// A hint of the annotations.
    pub fn hint(&self, name: &str) -> Option<bool> {
        self.annotations.get(name).and_then(Value::as_bool)
    }
}
