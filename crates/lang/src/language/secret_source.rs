//! Where a secret is, and how a model's key is sent.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Where a secret is: a text, or a program that prints it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum SecretSource {
    /// `env:VAR` or `file:PATH`.
    Written(String),
    /// A program that prints the secret.
    Command(SecretCommand),
}

/// A program that prints a secret: the secret itself, or the JSON of OAuth with `access_token` and `expires_in`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SecretCommand {
    /// The program, one of the project's `allow.commands`, and its arguments. No shell reads them.
    #[schemars(length(min = 1, max = 64))]
    pub command: Vec<String>,
    /// How many seconds the secret is used before the program is asked again. Default: as the JSON says, else 300.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 31_536_000))]
    pub ttl_s: Option<u64>,
}

/// What begins the source of a secret that the program around the engine gives. Nobody writes it.
const GIVEN: &str = "given:";

impl SecretSource {
    /// The source of a secret that the program around the engine gives under a key.
    pub fn given(key: &str) -> Self {
        Self::Written(format!("{GIVEN}{key}"))
    }

    /// The key of such a source.
    pub fn given_key(source: &str) -> Option<&str> {
        source.strip_prefix(GIVEN)
    }

    /// The text; none for a program.
    pub fn written(&self) -> Option<&str> {
        match self {
            Self::Written(text) => Some(text),
            Self::Command(_) => None,
        }
    }

    /// The program; none for a text.
    pub fn command(&self) -> Option<&SecretCommand> {
        match self {
            Self::Written(_) => None,
            Self::Command(command) => Some(command),
        }
    }
}

impl SecretCommand {
    /// The program.
    pub fn program(&self) -> &str {
        self.command.first().map_or("", String::as_str)
    }
}

impl From<&str> for SecretSource {
    fn from(text: &str) -> Self {
        Self::Written(text.to_owned())
    }
}

impl From<String> for SecretSource {
    fn from(text: String) -> Self {
        Self::Written(text)
    }
}

/// How a model's key is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ModelAuth {
    /// As `Authorization: Bearer KEY`.
    #[serde(rename = "bearer")]
    Bearer,
    /// As `x-api-key: KEY`.
    #[serde(rename = "x-api-key")]
    XApiKey,
    /// As `api-key: KEY`.
    #[serde(rename = "api-key")]
    ApiKey,
    /// Not at all: each request is signed with the machine's credentials of AWS (Signature Version 4).
    #[serde(rename = "sigv4")]
    Sigv4,
    /// Not at all.
    #[serde(rename = "none")]
    None,
}

impl ModelAuth {
    /// The name of the header; none when nothing is sent.
    pub fn header(self) -> Option<&'static str> {
        match self {
            Self::Bearer | Self::Sigv4 => Some("authorization"),
            Self::XApiKey => Some("x-api-key"),
            Self::ApiKey => Some("api-key"),
            Self::None => None,
        }
    }
}
