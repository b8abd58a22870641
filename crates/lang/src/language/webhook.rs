//! What starts a workflow from outside: the deliveries of another service to `POST /hooks/NAME`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::Condition;

/// What starts a workflow from outside.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Trigger {
    /// Deliveries of another service, which `loopctl serve` takes at `POST /hooks/NAME`.
    pub webhook: Webhook,
}

/// Deliveries that start runs: how they are verified, and what of them is the input.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Webhook {
    /// How the service signs its deliveries.
    pub verify: WebhookScheme,
    /// The secret that it signs with: `orgconfig:KEY`, or a list of them while one takes the place of another.
    pub secret: WebhookSecret,
    /// The name in the address: letters, digits, `_`, `-` and `.`. Default: the name of the workflow. Each workflow of this name
    /// gets the deliveries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^[A-Za-z0-9_.-]{1,64}$"))]
    pub name: Option<String>,
    /// The organisation whose runs are started. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^[A-Za-z0-9_.-]{1,64}$"))]
    pub org: Option<String>,
    /// A delivery starts a run only if this holds. It reads `@body` and `@headers`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when: Option<Condition>,
    /// The input of each run, made of `@body` and `@headers`. Default: an empty object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<Map<String, Value>>,
    /// How the signature is made, with `"verify": "hmac"`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hmac: Option<HmacSettings>,
}

/// How a service signs its deliveries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WebhookScheme {
    /// As GitHub does: `X-Hub-Signature-256`.
    Github,
    /// As Stripe does: `Stripe-Signature`.
    Stripe,
    /// As Slack does: `X-Slack-Signature`.
    Slack,
    /// By an HMAC of the body, as `hmac` says.
    Hmac,
}

impl WebhookScheme {
    /// The word as it is written.
    pub fn word(self) -> &'static str {
        match self {
            Self::Github => "github",
            Self::Stripe => "stripe",
            Self::Slack => "slack",
            Self::Hmac => "hmac",
        }
    }
}

/// The secret of a webhook, or several.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum WebhookSecret {
    /// One.
    One(String),
    /// Several: a delivery is signed with one of them.
    Several(Vec<String>),
}

impl WebhookSecret {
    /// All of them, as they are written.
    pub fn all(&self) -> &[String] {
        match self {
            Self::One(secret) => std::slice::from_ref(secret),
            Self::Several(secrets) => secrets,
        }
    }
}

/// How a signature is made that is an HMAC of the body.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct HmacSettings {
    /// The header with the signature. Default: `X-Signature`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^[A-Za-z0-9-]{1,64}$"))]
    pub header: Option<String>,
    /// The hash. Default: `sha256`. A signature may begin with its name: `sha256=...`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub algorithm: Option<HmacAlgorithm>,
    /// How its bytes are written. Default: `hex`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub encoding: Option<SignatureEncoding>,
    /// The header with the time, in seconds since 1970. With it, `TIME.BODY` is signed, and a delivery of more than 300 seconds
    /// ago is refused. Default: the body alone is signed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^[A-Za-z0-9-]{1,64}$"))]
    pub timestamp: Option<String>,
    /// The header with the id of a delivery: the same id starts no second run. Default: the digest of what is signed is the id.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^[A-Za-z0-9-]{1,64}$"))]
    pub id: Option<String>,
}

/// The hash of an HMAC.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum HmacAlgorithm {
    /// SHA-1, for services that have no other.
    Sha1,
    /// SHA-256.
    #[default]
    Sha256,
    /// SHA-512.
    Sha512,
}

/// How the bytes of a signature are written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SignatureEncoding {
    /// Hexadecimal digits.
    #[default]
    Hex,
    /// Base64.
    Base64,
}
