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
    /// OpenAI's Responses API.
    #[serde(rename = "openai-responses")]
    OpenaiResponses,
    /// Anthropic's messages.
    Anthropic,
    /// Google's Gemini API.
    Gemini,
    /// No server: a script says what the model says.
    Script,
}

/// What is particular to a provider.
#[derive(Debug)]
pub struct ProviderFacts {
    /// Its name, as documents write it.
    pub name: &'static str,
    /// Its name in spans: a value of `gen_ai.provider.name` (OpenTelemetry's semantic conventions for generative AI, read
    /// in November 2026).
    pub span_name: &'static str,
    /// Its own server; none for one that has no server.
    pub server: Option<ProviderServer>,
    /// How the ids of its models begin, where that says whose they are.
    pub id_prefix: Option<&'static str>,
    /// The highest temperature that is sent; a higher one is lowered to it.
    pub max_temperature: Option<f64>,
    /// Whether its models refuse a temperature beside `top_p`.
    pub top_p_alone: bool,
    /// The settings of a model in the project file that its requests can have.
    pub settings: &'static [&'static str],
    /// The fields of a request that are written by loopctl.
    pub own_fields: &'static [&'static str],
    /// The most of what a request can have.
    pub limits: RequestLimits,
    /// Whether a text of blanks and line breaks alone can be one to stop at.
    pub takes_blank_stops: bool,
    /// Whether its requests have the setting `thinking` as it is written. The type `enabled` needs its size then.
    pub sends_thinking: bool,
    /// Whether the model of this id is made to call a tool for a constrained reply, beside which it can't think.
    pub is_made_to_call: fn(id: &str) -> bool,
    /// Whether the provider's own server takes tools for the model of this id only in another protocol.
    pub needs_responses: fn(id: &str) -> Option<NeedsResponses>,
    /// Whether the model of this id refuses a temperature. `official`: it is asked at the provider's own server.
    pub refuses_temperature: fn(id: &str, official: bool) -> bool,
}

/// The most of what a request to a provider can have; none where no limit is known (the documentation of the providers
/// and the refusals of their servers, read in November 2026).
#[derive(Debug, Clone, Copy, Default)]
pub struct RequestLimits {
    /// The tools that it declares.
    pub tools: Option<usize>,
    /// The characters of a tool's description.
    pub description: Option<usize>,
    /// The texts at which the model stops.
    pub stops: Option<usize>,
}

/// Those of OpenAI's servers.
const OPENAI_LIMITS: RequestLimits = RequestLimits { tools: Some(128), description: Some(1_024), stops: Some(4) };

/// What keeps a model from OpenAI's chat completions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NeedsResponses {
    /// It is not there at all.
    Always,
    /// It takes no tools there, whatever its effort is.
    ForTools,
    /// It takes tools there only without reasoning.
    ForToolsWithReasoning,
}

/// What is known of models of OpenAI by name (the pages of the models at developers.openai.com/api/docs/models, and the
/// server's refusals, read in November 2026). A name may end with a day, or with more words.
const OPENAI_MODELS: &[OpenaiModel] = &[
    OpenaiModel { name: "gpt-6-astra", needs: NeedsResponses::ForTools, takes_no_effort: false },
    OpenaiModel { name: "gpt-6.1-sol", needs: NeedsResponses::ForTools, takes_no_effort: false },
    OpenaiModel { name: "gpt-6.1-terra", needs: NeedsResponses::ForTools, takes_no_effort: true },
];

/// The first version whose models take tools in chat completions only without reasoning, but for those in
/// [`OPENAI_MODELS`].
const TOOLS_WITHOUT_REASONING: (u32, u32) = (5, 4);

/// What is known of a model of OpenAI.
struct OpenaiModel {
    name: &'static str,
    needs: NeedsResponses,
    /// Whether it takes the effort `none`.
    takes_no_effort: bool,
}

impl OpenaiModel {
    fn of(id: &str) -> Option<&'static Self> {
        let id = bare_id(id);
        let is_named =
            |model: &&Self| id.strip_prefix(model.name).is_some_and(|end| end.is_empty() || end.starts_with('-'));
        OPENAI_MODELS.iter().find(is_named)
    }
}

/// A provider's own server, and the variables that name another one and its key.
#[derive(Debug)]
pub struct ProviderServer {
    /// The base of its addresses.
    pub base_url: &'static str,
    /// The host of `base_url`.
    pub host: &'static str,
    /// What follows the base; `{model}` is the id of the model.
    pub path: &'static str,
    /// The variable that names another base.
    pub base_url_variable: &'static str,
    /// The variable that holds the key.
    pub key_variable: &'static str,
    /// The header that carries the key.
    pub key_header: &'static str,
    /// What comes before the key in it.
    pub key_scheme: &'static str,
}

static OPENAI: ProviderFacts = ProviderFacts {
    name: "openai",
    span_name: "openai",
    server: Some(ProviderServer {
        base_url: "https://api.openai.com/v1",
        host: "api.openai.com",
        path: "/chat/completions",
        base_url_variable: "OPENAI_BASE_URL",
        key_variable: "OPENAI_API_KEY",
        key_header: "authorization",
        key_scheme: "Bearer ",
    }),
    id_prefix: None,
    max_temperature: None,
    top_p_alone: false,
    settings: &[
        "reasoning_effort",
        "seed",
        "stop",
        "top_p",
        "top_k",
        "min_p",
        "frequency_penalty",
        "presence_penalty",
        "extra_body",
    ],
    own_fields: &[
        "model",
        "messages",
        "tools",
        "tool_choice",
        "parallel_tool_calls",
        "response_format",
        "stream",
        "stream_options",
        "temperature",
        "max_tokens",
        "max_completion_tokens",
        "n",
        "reasoning_effort",
        "seed",
        "stop",
        "top_p",
        "top_k",
        "min_p",
        "frequency_penalty",
        "presence_penalty",
    ],
    limits: OPENAI_LIMITS,
    takes_blank_stops: true,
    sends_thinking: false,
    is_made_to_call: |_| false,
    needs_responses,
    refuses_temperature: is_reasoning_model,
};

static OPENAI_RESPONSES: ProviderFacts = ProviderFacts {
    name: "openai-responses",
    span_name: "openai",
    server: Some(ProviderServer {
        base_url: "https://api.openai.com/v1",
        host: "api.openai.com",
        path: "/responses",
        base_url_variable: "OPENAI_BASE_URL",
        key_variable: "OPENAI_API_KEY",
        key_header: "authorization",
        key_scheme: "Bearer ",
    }),
    id_prefix: None,
    max_temperature: None,
    top_p_alone: false,
    settings: &["reasoning_effort", "top_p", "extra_body"],
    own_fields: &[
        "model",
        "input",
        "instructions",
        "tools",
        "tool_choice",
        "parallel_tool_calls",
        "text",
        "stream",
        "store",
        "include",
        "previous_response_id",
        "conversation",
        "background",
        "temperature",
        "max_output_tokens",
        "reasoning",
        "top_p",
    ],
    limits: OPENAI_LIMITS,
    takes_blank_stops: true,
    sends_thinking: false,
    is_made_to_call: |_| false,
    needs_responses: |_| None,
    refuses_temperature: is_reasoning_model,
};

static ANTHROPIC: ProviderFacts = ProviderFacts {
    name: "anthropic",
    span_name: "anthropic",
    server: Some(ProviderServer {
        base_url: "https://api.anthropic.com/v1",
        host: "api.anthropic.com",
        path: "/messages",
        base_url_variable: "ANTHROPIC_BASE_URL",
        key_variable: "ANTHROPIC_API_KEY",
        key_header: "x-api-key",
        key_scheme: "",
    }),
    id_prefix: Some("claude"),
    max_temperature: Some(1.0),
    top_p_alone: true,
    settings: &["reasoning_effort", "thinking", "stop", "top_p", "top_k", "extra_body"],
    own_fields: &[
        "model",
        "messages",
        "system",
        "tools",
        "tool_choice",
        "stream",
        "temperature",
        "max_tokens",
        "stop_sequences",
        "thinking",
        "output_config",
        "output_format",
        "top_p",
        "top_k",
    ],
    limits: RequestLimits { tools: None, description: None, stops: None },
    takes_blank_stops: false,
    sends_thinking: true,
    is_made_to_call: |id| !takes_schemas(id),
    needs_responses: |_| None,
    refuses_temperature: |id, _| claude_version(id) >= (4, 7),
};

static GEMINI: ProviderFacts = ProviderFacts {
    name: "gemini",
    span_name: "gcp.gemini",
    server: Some(ProviderServer {
        base_url: "https://generativelanguage.googleapis.com/v1beta",
        host: "generativelanguage.googleapis.com",
        path: "/models/{model}:generateContent",
        base_url_variable: "GEMINI_BASE_URL",
        key_variable: "GEMINI_API_KEY",
        key_header: "x-goog-api-key",
        key_scheme: "",
    }),
    id_prefix: Some("gemini-"),
    max_temperature: Some(2.0),
    top_p_alone: false,
    settings: &[
        "reasoning_effort",
        "thinking",
        "seed",
        "stop",
        "top_p",
        "top_k",
        "frequency_penalty",
        "presence_penalty",
        "extra_body",
    ],
    own_fields: &[
        "contents",
        "systemInstruction",
        "system_instruction",
        "tools",
        "toolConfig",
        "tool_config",
        "generationConfig",
        "generation_config",
    ],
    limits: RequestLimits { tools: Some(128), description: None, stops: Some(5) },
    takes_blank_stops: true,
    sends_thinking: false,
    is_made_to_call: |_| false,
    needs_responses: |_| None,
    refuses_temperature: |_, _| false,
};

static SCRIPT: ProviderFacts = ProviderFacts {
    name: "script",
    span_name: "script",
    server: None,
    id_prefix: None,
    max_temperature: None,
    top_p_alone: false,
    settings: &[],
    own_fields: &[],
    limits: OPENAI_LIMITS,
    takes_blank_stops: true,
    sends_thinking: false,
    is_made_to_call: |_| false,
    needs_responses: |_| None,
    refuses_temperature: |_, _| false,
};

impl Provider {
    /// Every provider.
    pub const ALL: &[Self] = &[Self::Openai, Self::OpenaiResponses, Self::Anthropic, Self::Gemini, Self::Script];

    /// The provider that is asked for a model of which nothing is known.
    pub const DEFAULT: Self = Self::Openai;

    /// What is particular to it.
    pub fn facts(self) -> &'static ProviderFacts {
        match self {
            Self::Openai => &OPENAI,
            Self::OpenaiResponses => &OPENAI_RESPONSES,
            Self::Anthropic => &ANTHROPIC,
            Self::Gemini => &GEMINI,
            Self::Script => &SCRIPT,
        }
    }

    /// What follows the base of its addresses for the id of a model: none where the id would lead elsewhere in them. Google
    /// writes its ids with `models/`, too.
    pub fn path_of(self, id: &str) -> Option<String> {
        let path = self.facts().server.as_ref()?.path;
        let id = id.strip_prefix("models/").unwrap_or(id).replace('%', "%25");
        let leads_elsewhere = id.split(['/', '\\']).any(|part| matches!(part, "" | "." | ".."));
        (!leads_elsewhere).then(|| path.replace("{model}", &id))
    }

    /// The provider to which the id of a model belongs, as far as the id says it.
    pub fn of_model(id: &str) -> Option<Self> {
        let is_its = |provider: &Self| provider.facts().id_prefix.is_some_and(|prefix| id.starts_with(prefix));
        Self::ALL.iter().copied().find(is_its)
    }
}

/// Whether a model of OpenAI reasons: it takes no temperature then. Other servers may have models of these names that
/// take one.
fn is_reasoning_model(id: &str, official: bool) -> bool {
    official && (gpt_version(id) >= (5, 0) || ["o1", "o3", "o4"].iter().any(|family| id.starts_with(family)))
}

/// What keeps a model from OpenAI's chat completions.
fn needs_responses(id: &str) -> Option<NeedsResponses> {
    let bare = bare_id(id);
    if bare.ends_with("-pro") || bare.contains("-codex") || bare.contains("-deep-research") {
        return (gpt_version(id) >= (5, 0) || bare.starts_with('o')).then_some(NeedsResponses::Always);
    }
    let needs = OpenaiModel::of(id).map(|model| model.needs);
    needs.or((gpt_version(id) >= TOOLS_WITHOUT_REASONING).then_some(NeedsResponses::ForToolsWithReasoning))
}

/// Whether a model of OpenAI is known to refuse the effort `none`.
pub fn refuses_no_effort(id: &str) -> bool {
    OpenaiModel::of(id).is_some_and(|model| !model.takes_no_effort)
}

/// An id without the provider before it and the day behind it: `gpt-5-pro` of `openai/gpt-5-pro-2025-10-06`.
fn bare_id(id: &str) -> &str {
    let id = id.rsplit('/').next().unwrap_or(id);
    let is_day = |day: &str| {
        let parts: Vec<&str> = day.split('-').collect();
        matches!(parts.as_slice(), [year, month, day] if year.len() == 4 && month.len() == 2 && day.len() == 2)
            && parts.concat().bytes().all(|byte| byte.is_ascii_digit())
    };
    let begin = id.len().checked_sub("-2025-10-06".len());
    let ends = begin.and_then(|begin| id.split_at_checked(begin));
    ends.filter(|(_, end)| end.strip_prefix('-').is_some_and(is_day)).map_or(id, |(name, _)| name)
}

/// Whether a model wants the signature that Gemini gave with each first call of a turn, and refuses a call without one
/// (ai.google.dev/gemini-api/docs/thought-signatures, read in November 2026: those of Gemini 3 and later; older ones do
/// without). `host`: Google serves the same models in OpenAI's protocol.
pub fn wants_signatures(provider: Provider, id: &str, host: &str) -> bool {
    let is_google = provider == Provider::Gemini || host.ends_with(".googleapis.com");
    is_google && gemini_version(id) >= 3
}

/// The version in an id like `gemini-3-pro-preview`, `google/gemini-3.5-flash` or `models/gemini-4-argon`; 0 in any other one.
fn gemini_version(id: &str) -> u32 {
    let Some(rest) = id.rsplit('/').next().and_then(|id| id.strip_prefix("gemini-")) else { return 0 };
    rest.split(['-', '.']).next().and_then(|version| version.parse().ok()).unwrap_or(0)
}

/// The version in an id like `gpt-5.4-mini` or `gpt-5`; 0 in any other one.
fn gpt_version(id: &str) -> (u32, u32) {
    let Some(rest) = bare_id(id).strip_prefix("gpt-") else { return (0, 0) };
    let version = rest.split('-').next().unwrap_or_default();
    let (major, minor) = version.split_once('.').unwrap_or((version, "0"));
    major.parse().ok().zip(minor.parse().ok()).unwrap_or((0, 0))
}

/// Whether a model of Anthropic takes the schema of its reply (platform.claude.com/docs,
/// `build-with-claude/structured-outputs`, read in November 2026).
pub fn takes_schemas(id: &str) -> bool {
    claude_version(id) >= (4, 5)
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
    use super::{NeedsResponses, Provider, refuses_no_effort, wants_signatures};

    #[test]
    fn a_provider_is_named_as_documents_write_it() {
        for provider in Provider::ALL {
            assert_eq!(serde_json::to_value(provider).unwrap(), provider.facts().name);
        }
        let schema = schemars::schema_for!(Provider);
        assert_eq!(schema.as_value()["oneOf"].as_array().unwrap().len(), Provider::ALL.len());
    }

    #[test]
    fn spans_name_a_provider_as_the_conventions_do() {
        let names = Provider::ALL.iter().map(|provider| provider.facts().span_name).collect::<Vec<_>>();
        assert_eq!(names, ["openai", "openai", "anthropic", "gcp.gemini", "script"]);
    }

    #[test]
    fn models_that_need_the_responses_api_are_known_by_their_ids() {
        let needs = Provider::Openai.facts().needs_responses;
        for id in ["gpt-6-astra", "gpt-6.1-sol", "gpt-6.1-sol-2026-10-01", "openai/gpt-6-astra", "gpt-6.1-terra"] {
            assert_eq!(needs(id), Some(NeedsResponses::ForTools), "{id}");
            assert_eq!(refuses_no_effort(id), id != "gpt-6.1-terra", "{id}");
        }
        for id in
            ["gpt-5.4", "gpt-5.4-mini", "gpt-5.6-terra", "gpt-5.10", "gpt-6", "gpt-6-sol", "gpt-6-luna-2026-09-22"]
        {
            assert!(!refuses_no_effort(id), "{id}");
            assert_eq!(needs(id), Some(NeedsResponses::ForToolsWithReasoning), "{id}");
        }
        for id in [
            "gpt-5-pro",
            "o3-pro",
            "gpt-5.2-codex",
            "o4-mini-deep-research",
            "gpt-5-pro-2025-10-06",
            "o1-pro-2025-03-19",
        ] {
            assert_eq!(needs(id), Some(NeedsResponses::Always), "{id}");
        }
        for id in ["gpt-5", "gpt-5-mini", "gpt-5.2", "gpt-4o", "gpt-4.1", "o3", "gpt-oss-20b", "qwen-pro"] {
            assert_eq!(needs(id), None, "{id}");
        }
    }

    #[test]
    fn models_that_want_signatures_are_known_by_their_ids() {
        let vertex = "europe-west1-aiplatform.googleapis.com";
        for id in ["gemini-3-pro-preview", "gemini-3.8-flash", "gemini-4-argon", "models/gemini-3-pro", "gemini-10-pro"]
        {
            assert!(wants_signatures(Provider::Gemini, id, "127.0.0.1"), "{id}");
            assert!(wants_signatures(Provider::Openai, id, vertex), "{id}");
            assert!(!wants_signatures(Provider::Openai, id, "openrouter.ai"), "{id}");
        }
        for id in ["gemini-2.5-flash", "gemini-pro-latest", "gemini-", "gemma-3-27b-it", "my-gemini-3"] {
            assert!(!wants_signatures(Provider::Gemini, id, vertex), "{id}");
        }
    }

    #[test]
    fn the_host_and_the_base_of_a_server_agree() {
        for server in Provider::ALL.iter().filter_map(|provider| provider.facts().server.as_ref()) {
            assert!(server.base_url.starts_with(&format!("https://{}/", server.host)), "{server:?}");
        }
    }
}
