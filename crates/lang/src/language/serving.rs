//! The project file's `serve`: who may do what over HTTP, and how results are signed.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::retention::Retention;

/// Who may do what over HTTP, and how results that are posted elsewhere are signed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Serving {
    /// The bearer tokens. Without any, only this machine is listened to.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tokens: Vec<Token>,
    /// The key that pauses and results posted to a `callback_url` are signed with: `env:VAR` or `file:PATH`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub callback_secret: Option<String>,
    /// The address at which others reach the server: where a posted pause is answered is below it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub public_url: Option<String>,
    /// Which agent requests are taken: documents that come with a request, in place of the folder's loops.
    #[serde(skip_serializing_if = "AgentRequests::is_all")]
    pub agent_requests: AgentRequests,
    /// How much of the server one token and one organisation may take.
    #[serde(skip_serializing_if = "Limits::is_empty")]
    pub limits: Limits,
    /// Runs that ended more than this number of days ago are deleted. Without it, all runs are kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 36500))]
    pub keep_days: Option<u32>,
    /// How long runs are kept by how they ended and by their loops, where it is not as `keep_days` says.
    #[serde(skip_serializing_if = "Retention::is_empty")]
    pub retention: Retention,
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
    pub hash: String,
    /// What its holder may do: at least one.
    pub scopes: Vec<TokenScope>,
    /// The organisation that its holder acts for: it sees that one's runs only. Letters, digits, `_`,
    /// `-` and `.`; `*` is all organisations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 64))]
    pub org: Option<String>,
    /// From when on it is refused, RFC 3339. Without it, it does not expire.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "date-time"))]
    pub expires_at: Option<String>,
}

/// The `org` of a token that acts for all organisations.
pub const ALL_ORGS: &str = "*";

impl Token {
    /// From when on it is refused, in milliseconds since 1970.
    ///
    /// # Errors
    /// When `expires_at` is no time with its offset.
    pub fn expires_at_ms(&self) -> Result<Option<i64>, jiff::Error> {
        let at = self.expires_at.as_deref().map(str::parse::<jiff::Timestamp>).transpose()?;
        Ok(at.map(jiff::Timestamp::as_millisecond))
    }
}

/// What a token's holder may do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TokenScope {
    /// Start the folder's loops, and end runs.
    Run,
    /// Start this loop, and end its runs.
    RunLoop(String),
    /// Start agent requests, and end runs.
    Compose,
    /// See runs, loops and diagnostics.
    Read,
    /// See the metrics and the workers of all organisations, and nothing else.
    Metrics,
    /// End runs.
    Cancel,
    /// Answer, approve, deny and edit.
    Decide,
    /// The same for approvals that nobody gave in time (`"on_expiry": "escalate"`), and for no others.
    DecideEscalated,
    /// Decide for the runs of this loop only.
    DecideLoop(String),
    /// See and end the runs of all organisations, see what was done, and switch loops off and on.
    Admin,
    /// Send events that runs wait for.
    Event,
    /// A word that is no scope.
    Unknown(String),
}

impl TokenScope {
    /// Every one that needs no name.
    pub const ALL: [Self; 9] = [
        Self::Run,
        Self::Compose,
        Self::Read,
        Self::Metrics,
        Self::Cancel,
        Self::Decide,
        Self::DecideEscalated,
        Self::Event,
        Self::Admin,
    ];
    /// All of them as messages list them.
    pub const LIST: &str = "`run`, `run:LOOP`, `compose`, `read`, `metrics`, `cancel`, `decide`, `decide:LOOP`, `decide:escalated`, `event`, `admin`";

    /// Reads a scope as it is written.
    pub fn read(text: &str) -> Self {
        match text {
            "run" => Self::Run,
            "compose" => Self::Compose,
            "read" => Self::Read,
            "metrics" => Self::Metrics,
            "decide" => Self::Decide,
            "decide:escalated" => Self::DecideEscalated,
            "cancel" => Self::Cancel,
            "admin" => Self::Admin,
            "event" => Self::Event,
            _ => match text.split_once(':').filter(|(_, name)| !name.is_empty()) {
                Some(("decide", name)) => Self::DecideLoop(name.to_owned()),
                Some(("run", name)) => Self::RunLoop(name.to_owned()),
                _ => Self::Unknown(text.to_owned()),
            },
        }
    }

    /// Its name in the project file.
    pub fn name(&self) -> String {
        match self {
            Self::Run => "run".to_owned(),
            Self::RunLoop(name) => format!("run:{name}"),
            Self::Cancel => "cancel".to_owned(),
            Self::Admin => "admin".to_owned(),
            Self::Event => "event".to_owned(),
            Self::Compose => "compose".to_owned(),
            Self::Read => "read".to_owned(),
            Self::Metrics => "metrics".to_owned(),
            Self::Decide => "decide".to_owned(),
            Self::DecideEscalated => "decide:escalated".to_owned(),
            Self::DecideLoop(name) => format!("decide:{name}"),
            Self::Unknown(text) => text.clone(),
        }
    }

    /// Whether it is about the runs of all organisations, so that a token of one may not have it.
    pub fn is_for_all_orgs(&self) -> bool {
        matches!(self, Self::Admin | Self::Metrics)
    }

    /// Whether its holder may start runs.
    pub fn starts(&self) -> bool {
        matches!(self, Self::Run | Self::RunLoop(_) | Self::Compose)
    }

    /// The loop that it is for, when it is for one only.
    pub fn loop_name(&self) -> Option<&str> {
        match self {
            Self::RunLoop(name) | Self::DecideLoop(name) => Some(name),
            _ => None,
        }
    }

    /// Whether its holder may decide about some runs.
    pub fn decides(&self) -> bool {
        matches!(self, Self::Decide | Self::DecideEscalated | Self::DecideLoop(_))
    }
}

impl Serialize for TokenScope {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.name())
    }
}

impl<'de> Deserialize<'de> for TokenScope {
    /// A word that is no scope is read too: `check` reports it at its place.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(|text| Self::read(&text))
    }
}

impl JsonSchema for TokenScope {
    fn schema_name() -> Cow<'static, str> {
        "TokenScope".into()
    }

    /// A rule judges the words and names the nearest one, so the pattern is only for editors.
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "x-pattern": "^(run(:.+)?|compose|read|metrics|cancel|decide(:.+)?|event|admin)$",
            "description": "What a token's holder may do: `run`, `run:LOOP` (one loop), `compose`, `read`, `metrics` (`/metrics` and `/workers`), `cancel`, `decide`, `decide:LOOP` (the runs of one loop), `decide:escalated` (approvals that nobody gave in time), `event` (send events that runs wait for) or `admin` (all organisations).",
        })
    }
}

/// How much of the server one token and one organisation may take, so that none shuts the others out.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// The share of each token. Without tokens, that of all callers together.
    #[serde(skip_serializing_if = "Share::is_empty")]
    pub token: Share,
    /// The share of each organisation, with all of its tokens.
    #[serde(skip_serializing_if = "Share::is_empty")]
    pub org: Share,
    /// Connections that have not shown a token yet: when there is one more, the oldest idle one is closed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 65_536))]
    pub unknown_connections: Option<u32>,
}

impl Limits {
    /// Whether nothing is said.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// What one may take. What is left out has its default.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Share {
    /// Connections, with those that are kept open between two requests.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 65_536))]
    pub connections: Option<u32>,
    /// Streams of a run's events that are open at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 65_536))]
    pub event_streams: Option<u32>,
    /// Runs that are driven at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 100_000))]
    pub running: Option<u32>,
    /// Runs that wait for their turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1_000_000))]
    pub queued: Option<u32>,
    /// The seconds that its runs may be driven in an hour, all together.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1_000_000_000))]
    pub running_seconds_per_hour: Option<u32>,
    /// The bytes of its requests' bodies and of what they are answered in a minute.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1_000_000_000_000_u64))]
    pub bytes_per_minute: Option<u64>,
}

impl Share {
    /// Whether nothing is said.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}
