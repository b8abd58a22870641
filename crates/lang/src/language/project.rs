//! The project file `loopctl.json`: settings for its folder and the folders below.

mod settings;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::call_limits::{CallLimits, CallRate, Circuit};
use super::document_file::DocumentFile;
use super::event_keeping::EventKeeping;
use super::mcp::McpServer;
use super::model_rate::ModelRate;
use super::notify::NotifyTarget;
use super::secret_source::{ModelAuth, SecretSource};
use super::serving::Serving;
use super::spending_limit::SpendingLimit;
use crate::policy::database_address::DatabaseServer;
pub use crate::policy::provider::Provider;
pub use settings::{ReasoningEffort, SettingFault, Thinking, ThinkingKind};

/// The project file.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Project {
    /// The JSON Schema of this document, for editors. It is never fetched.
    #[serde(rename = "$schema", skip_serializing_if = "Option::is_none")]
    pub schema: Option<String>,
    /// The model of loops that name none: a name of `models`, or a provider's own model id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The models by name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub models: BTreeMap<String, Model>,
    /// Where runs are kept: `sqlite:PATH` (relative to this file), `postgres://USER@HOST/DATABASE` or `memory`; or `env:VAR` or `file:PATH`, which hold one of these.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub store: Option<String>,
    /// The secrets by key: `env:VAR`, `file:PATH`, or a program that prints it. Documents name them `orgconfig:KEY`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub orgconfig: BTreeMap<String, SecretSource>,
    /// The databases by name, for actions of kind `db`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub datasources: BTreeMap<String, Datasource>,
    /// The files that workflows read as values, by name: `doc:NAME`. Paths are relative to this file. A CSV file may have the
    /// types of its columns beside its path.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub documents: BTreeMap<String, DocumentFile>,
    /// Where steps of type `notify` send their texts, by the name that they give as `to`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub notify: BTreeMap<String, NotifyTarget>,
    /// The MCP servers by name, whose tools loops declare: `{"type": "mcp", "server": NAME}`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub mcp: BTreeMap<String, McpServer>,
    /// The file that says which tools the Rust program has that embeds loopctl: the JSON of `signatures()` of its engine. It is
    /// relative to this file. `check`, `test` and editors know them by it; the tools are called in that program only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub embedded: Option<String>,
    /// How long events from outside are kept for runs that begin to wait for them.
    #[serde(skip_serializing_if = "EventKeeping::is_default")]
    pub events: EventKeeping,
    /// What all runs of the store may spend together.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub limits: Vec<SpendingLimit>,
    /// What the calls of actions are held to in all runs, by the names of the actions.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub action_limits: BTreeMap<String, CallLimits>,
    /// What tools may reach.
    pub allow: Allow,
    /// Who may do what over HTTP, for `loopctl serve`.
    #[serde(skip_serializing_if = "Serving::is_empty")]
    pub serve: Serving,
    /// Names of fields whose values are hidden in traces, events and logs, beside our own list.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub redact: Vec<String>,
}

/// A model.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Model {
    /// The protocol that its server speaks.
    pub provider: Provider,
    /// The server, up to and without `/chat/completions`, `/responses`, `/messages` or `/models/...`; or `env:VAR`, which
    /// holds it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_url: Option<String>,
    /// The provider's own id of the model. Default: the name that it has here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The key: `env:VAR`, `file:PATH`, or a program that prints it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_key: Option<SecretSource>,
    /// How the key is sent. Default: as the provider's own server takes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auth: Option<ModelAuth>,
    /// More headers of each request: a text, or `env:VAR`, `file:PATH`, `orgconfig:KEY` or a program for a value that is a
    /// secret.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, SecretSource>,
    /// The script's file, for provider `script`; relative to the project file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub script: Option<String>,
    /// The model's window in tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub context_tokens: Option<u64>,
    /// What a million tokens cost, in US dollars.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price: Option<Price>,
    /// The most requests to it that this process has open at once. More wait for their turn. Default: as many as the process has
    /// file descriptors for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub max_connections: Option<u32>,
    /// How much it may be asked in a minute, by all processes of the store together. Requests over it wait for their turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<ModelRate>,
    /// When it is left alone, because its attempts fail.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub circuit: Option<Circuit>,
    /// Whether replies in the dialect `json` are constrained to the schemas of the loop's tools.
    #[serde(default)]
    pub constrain: Constrain,
    /// Whether replies are streamed while somebody watches the run.
    #[serde(default = "super::react::defaults::yes")]
    pub stream: bool,
    /// How much the model reasons before it replies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning_effort: Option<ReasoningEffort>,
    /// Extended thinking, of providers `anthropic` and `gemini`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thinking: Option<Thinking>,
    /// A seed: the same request may give the same reply then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<i64>,
    /// Texts at which the model stops.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 4))]
    pub stop: Vec<String>,
    /// The share of probability that tokens are taken from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub top_p: Option<f64>,
    /// How many of the likeliest tokens are taken from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub top_k: Option<u32>,
    /// The least probability of a token, as a share of the likeliest one's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub min_p: Option<f64>,
    /// How much tokens that were written often are avoided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = -2.0, max = 2.0))]
    pub frequency_penalty: Option<f64>,
    /// How much tokens that were written at all are avoided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = -2.0, max = 2.0))]
    pub presence_penalty: Option<f64>,
    /// More fields of each request, as the server wants them.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub extra_body: Map<String, Value>,
}

/// Whether a model's replies are constrained to the schemas of the loop's tools.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Constrain {
    /// Where the model takes a schema for its reply, until its server refuses it.
    #[default]
    Auto,
    /// Always: a server that refuses the schema fails the call.
    On,
    /// Never.
    Off,
}

/// What a million tokens cost, in US dollars.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Price {
    /// Tokens that the model reads.
    #[schemars(range(min = 0.0))]
    pub input: f64,
    /// Tokens that the model writes, its reasoning too.
    #[schemars(range(min = 0.0))]
    pub output: f64,
    /// Tokens that the model reads from the provider's cache. Default: as `input`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0))]
    pub cached_input: Option<f64>,
    /// Tokens that the provider puts into its cache. Default: as `input`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0))]
    pub cache_write: Option<f64>,
}

impl Project {
    /// The name of the project file.
    pub const FILE: &str = "loopctl.json";

    /// Where runs are stored when the project file names no store: relative to the project's folder,
    /// without a project file to the document's.
    pub const DEFAULT_STORE: &str = "sqlite:.loopctl/runs.db";

    /// Where runs are stored.
    pub fn store_url(&self) -> &str {
        self.store.as_deref().unwrap_or(Self::DEFAULT_STORE)
    }
}

impl Datasource {
    /// The path of an SQLite database; none for an address of another kind.
    pub fn sqlite_path(&self) -> Option<&str> {
        self.url.strip_prefix("sqlite:")
    }

    /// What its calls are held to.
    pub fn call_limits(&self) -> CallLimits {
        CallLimits { rate: self.rate, max_concurrency: self.max_concurrency, circuit: self.circuit }
    }

    /// The kind of server that the address, as it is written, names; none for another one.
    pub fn server(&self) -> Option<DatabaseServer> {
        DatabaseServer::of(self.url.split_once(':')?.0)
    }
}

/// A database.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Datasource {
    /// `sqlite:PATH`, relative to this file, `postgres://USER@HOST/DATABASE` or `mysql://USER@HOST/DATABASE`; or
    /// `orgconfig:KEY`, `env:VAR` or `file:PATH`, which hold one of these.
    pub url: String,
    /// Where the password of a server's user is: `orgconfig:KEY`, `env:VAR` or `file:PATH`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password: Option<String>,
    /// A file of SQL text that makes an SQLite database when its file does not exist yet; relative to
    /// this file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub init: Option<String>,
    /// The most connections to a server that its calls have at once, in one process; without it 8. More calls wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1000))]
    pub connections: Option<u16>,
    /// How often its calls are made, by all processes of the store together. Calls over it wait for their turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<CallRate>,
    /// The most calls at once, of all processes of the store together. More wait for their turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub max_concurrency: Option<u32>,
    /// When it is left alone, because its calls fail.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub circuit: Option<Circuit>,
}

/// What tools may reach.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Allow {
    /// The hosts that `http` actions and datasources may reach: exact names, or `*.example.com` for every name
    /// below, with `:PORT` for one port only. Without the list: every public host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hosts: Option<Vec<String>>,
    /// The programs that `command` actions and MCP servers may start, as written in `program` or `command`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub commands: Vec<String>,
    /// The variables of the environment of `command` actions that a value may fill: what a model writes, or
    /// the run's input. One that is written out, or is a secret, needs no permission.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<String>,
    /// Whether `http` actions may reach private, loopback and link-local addresses.
    pub private_addresses: bool,
}
