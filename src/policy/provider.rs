//! The providers of models: their names, and the facts that `check` and `run` both judge by. The requests
//! to a provider's server are in `drive/model`, a file each.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The protocol of a model's server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Provider {
    /// OpenAI's chat completions, which many servers speak.
    Openai,
    /// Anthropic's messages.
    Anthropic,
    /// No server: a script says what the model says.
    Script,
}

/// What is particular to a provider.
#[derive(Debug)]
pub struct ProviderFacts {
    /// Its name, as documents and spans write it.
    pub name: &'static str,
    /// Its own server; none for one that has no server.
    pub server: Option<ProviderServer>,
    /// How the ids of its models begin, where that says whose they are.
    pub id_prefix: Option<&'static str>,
    /// The highest temperature that is sent; a higher one is lowered to it.
    pub max_temperature: Option<f64>,
    /// Whether the model of this id refuses a temperature. `official`: it is asked at the provider's own server.
    pub refuses_temperature: fn(id: &str, official: bool) -> bool,
}

/// A provider's own server, and the variables that name another one and its key.
#[derive(Debug)]
pub struct ProviderServer {
    /// The base of its addresses.
    pub base_url: &'static str,
    /// The host of `base_url`.
    pub host: &'static str,
    /// What follows the base.
    pub path: &'static str,
    /// The variable that names another base.
    pub base_url_variable: &'static str,
    /// The variable that holds the key.
    pub key_variable: &'static str,
}

static OPENAI: ProviderFacts = ProviderFacts {
    name: "openai",
    server: Some(ProviderServer {
        base_url: "https://api.openai.com/v1",
        host: "api.openai.com",
        path: "/chat/completions",
        base_url_variable: "OPENAI_BASE_URL",
        key_variable: "OPENAI_API_KEY",
    }),
    id_prefix: None,
    max_temperature: None,
    // Other servers may have models of these names that take one.
    refuses_temperature: |id, official| {
        official && ["o1", "o3", "o4", "gpt-5"].iter().any(|family| id.starts_with(family))
    },
};

static ANTHROPIC: ProviderFacts = ProviderFacts {
    name: "anthropic",
    server: Some(ProviderServer {
        base_url: "https://api.anthropic.com/v1",
        host: "api.anthropic.com",
        path: "/messages",
        base_url_variable: "ANTHROPIC_BASE_URL",
        key_variable: "ANTHROPIC_API_KEY",
    }),
    id_prefix: Some("claude"),
    max_temperature: Some(1.0),
    refuses_temperature: |id, _| claude_version(id) >= (4, 7),
};

static SCRIPT: ProviderFacts = ProviderFacts {
    name: "script",
    server: None,
    id_prefix: None,
    max_temperature: None,
    refuses_temperature: |_, _| false,
};

impl Provider {
    /// Every provider.
    pub const ALL: &[Self] = &[Self::Openai, Self::Anthropic, Self::Script];

    /// The provider that is asked for a model of which nothing is known.
    pub const DEFAULT: Self = Self::Openai;

    /// What is particular to it.
    pub fn facts(self) -> &'static ProviderFacts {
        match self {
            Self::Openai => &OPENAI,
            Self::Anthropic => &ANTHROPIC,
            Self::Script => &SCRIPT,
        }
    }

    /// The provider to which the id of a model belongs, as far as the id says it.
    pub fn of_model(id: &str) -> Option<Self> {
        let is_its = |provider: &Self| provider.facts().id_prefix.is_some_and(|prefix| id.starts_with(prefix));
        Self::ALL.iter().copied().find(is_its)
    }
}

/// The version in an id like `claude-opus-4-1-20250805`; longer numbers are dates.
fn claude_version(id: &str) -> (u32, u32) {
    let Some(rest) = id.strip_prefix("claude-") else { return (0, 0) };
    let numbers = rest.split('-').skip_while(|word| word.parse::<u32>().is_err());
    let mut version = numbers.map_while(|word| word.parse::<u32>().ok().filter(|_| word.len() <= 2));
    (version.next().unwrap_or(0), version.next().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::Provider;

    #[test]
    fn a_provider_is_named_as_documents_write_it() {
        for provider in Provider::ALL {
            assert_eq!(serde_json::to_value(provider).unwrap(), provider.facts().name);
        }
        let schema = schemars::schema_for!(Provider);
        assert_eq!(schema.as_value()["oneOf"].as_array().unwrap().len(), Provider::ALL.len());
    }

    #[test]
    fn the_host_and_the_base_of_a_server_agree() {
        for server in Provider::ALL.iter().filter_map(|provider| provider.facts().server.as_ref()) {
            assert!(server.base_url.starts_with(&format!("https://{}/", server.host)), "{server:?}");
        }
    }
}
