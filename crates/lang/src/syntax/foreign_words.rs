//! Words that other products give a field, where one of ours is meant.

/// A word of ours, and the words that mean it, in small letters and without marks.
struct Meaning {
    ours: &'static str,
    words: &'static [&'static str],
    /// What is said of it beside the word.
    help: Option<&'static str>,
}

const fn of(ours: &'static str, words: &'static [&'static str]) -> Meaning {
    Meaning { ours, words, help: None }
}

/// What names a list whose items are gone through: as the type of a step, and as a mode.
pub(super) const FOREACH: [&str; 14] = [
    "foreach",
    "each",
    "eachsequential",
    "eachparallel",
    "foreachitem",
    "map",
    "distributedmap",
    "iterate",
    "iterator",
    "splitinbatches",
    "loopoveritems",
    "forloop",
    "for",
    "withitems",
];

const AGENT: &str = "a model with tools has the mode `react`; how it writes its calls is its `dialect`";

/// The words of each field. One word may mean several of ours: the field says which it is.
const MEANINGS: &[Meaning] = &[
    Meaning {
        ours: "json",
        words: &[
            "react",
            "jsonmode",
            "jsonobject",
            "jsonschema",
            "structured",
            "structuredoutput",
            "structuredoutputs",
        ],
        help: Some("the dialect of one JSON object a reply, with `thought`, `action` and `action_input`, is `json`"),
    },
    Meaning {
        ours: "tool_calls",
        words: &[
            "functioncalling",
            "functioncall",
            "functioncalls",
            "functions",
            "function",
            "tools",
            "tool",
            "tooluse",
            "toolcalling",
            "toolcall",
            "native",
            "nativetools",
            "openai",
            "openaitools",
            "openaifunctions",
            "anthropic",
            "parallel",
        ],
        help: Some("the tool calls of the provider are the dialect `tool_calls`"),
    },
    Meaning {
        ours: "tags",
        words: &["xml", "xmltags", "hermes", "qwen", "tag"],
        help: Some("calls in marks such as `<tool_call>` are the dialect `tags`"),
    },
    Meaning {
        ours: "final_answer",
        words: &["text", "plain", "plaintext", "markdown", "final"],
        help: Some("native calls, and an answer in words behind `FINAL_ANSWER:`, are the dialect `final_answer`"),
    },
    Meaning { ours: "foreach", words: &FOREACH, help: None },
    Meaning {
        ours: "foreach",
        words: &["batch", "list", "items", "sequential", "parallel", "loop"],
        help: Some("the same steps for each item of a list are the mode `foreach`"),
    },
    Meaning {
        ours: "react",
        words: &[
            "agent",
            "agentic",
            "toolsagent",
            "chat",
            "auto",
            "autonomous",
            "tools",
            "tool",
            "toolcalls",
            "toolcalling",
            "functioncalling",
            "functions",
            "json",
            "xml",
            "tags",
            "plan",
            "planner",
            "planandexecute",
            "planexecute",
            "reflexion",
            "llm",
            "loop",
        ],
        help: Some(AGENT),
    },
    of("loop", &["workflow", "document"]),
    of("as_written", &["sequential", "serial", "inorder", "sequence"]),
    of("together", &["parallel", "concurrent", "concurrently"]),
    of("deny", &["reject", "decline", "refuse", "no"]),
    of("escalate", &["reassign", "notify", "pause"]),
    of("fail", &["abort", "error", "cancel", "raise", "throw", "stop", "stopworkflow"]),
    of("continue_on_error", &["continue", "ignore", "skip", "continueonfail", "continueregularoutput", "resume"]),
    of("stop_on_error", &["stop", "abort", "fail", "failfast", "break", "stopworkflow"]),
    of("go_on", &["continue", "skip", "ignore", "proceed"]),
    of("stop", &["fail", "abort", "cancel", "reject"]),
    of("pause", &["ask", "wait", "human"]),
    of("retry", &["again", "repeat"]),
    of("write", &["insert", "create", "add", "append"]),
    of("read", &["select", "get", "list", "find", "query", "lookup", "search"]),
    of("yes_no", &["boolean", "bool", "checkbox", "switch", "toggle", "yesno"]),
    of("long_text", &["textarea", "multiline", "multilinetext", "paragraph"]),
    of("choice", &["select", "dropdown", "enum", "radio", "options", "singleselect"]),
    of("number", &["float", "double", "decimal", "money", "currency"]),
    of("integer", &["int", "long"]),
    of("text", &["string", "str", "email", "varchar", "shorttext", "phone", "url"]),
    of("answer", &["generate", "finish", "complete", "conclude"]),
];

/// The word of ours that another product's word means, among those that a field takes, and what is said of it.
pub(super) fn meant<'w>(word: &str, words: &[&'w str]) -> Option<(&'w str, Option<&'static str>)> {
    if word.len() > 40 {
        return None;
    }
    let plain: String =
        word.chars().filter(char::is_ascii_alphanumeric).map(|letter| letter.to_ascii_lowercase()).collect();
    let meant = MEANINGS.iter().find(|meaning| {
        // A word of one field may be another field's: only the dialects are written with one for native calls.
        let is_here = words.contains(&meaning.ours) && (meaning.ours != "json" || words.contains(&"tool_calls"));
        is_here && meaning.words.contains(&&*plain)
    })?;
    let ours = words.iter().copied().find(|ours| *ours == meant.ours)?;
    Some((ours, meant.help))
}

/// What a word for yes or no means where `true` or `false` is expected.
pub(super) fn boolean(word: &str) -> Option<bool> {
    match word.trim().to_ascii_lowercase().as_str() {
        "yes" | "y" | "on" | "1" | "true" | "always" | "enabled" | "required" => Some(true),
        "no" | "n" | "off" | "0" | "false" | "never" | "disabled" | "none" => Some(false),
        _ => None,
    }
}

/// The kind of actions that is meant by another word.
pub(super) fn kind(word: &str) -> Option<&'static str> {
    let plain = word.to_ascii_lowercase().replace(['_', '-', '.', ' '], "");
    Some(match &*plain {
        "rest" | "api" | "restapi" | "request" | "httprequest" | "webhook" | "fetch" | "graphql" | "url" => "http",
        "shell" | "bash" | "sh" | "script" | "exec" | "cli" | "process" | "program" | "python" | "node" => "command",
        "sql" | "database" | "postgres" | "postgresql" | "mysql" | "sqlite" | "query" => "db",
        "ai" | "model" | "prompt" | "chat" | "completion" | "openai" | "anthropic" | "gpt" => "llm",
        "table" | "customtable" => "custom-table",
        _ => return None,
    })
}

/// The provider of a model whose servers are known by another name.
pub(super) fn provider(word: &str) -> Option<&'static str> {
    const AS_OPENAI: [&str; 17] = [
        "azure",
        "ollama",
        "groq",
        "openrouter",
        "mistral",
        "together",
        "vllm",
        "lmstudio",
        "llamacpp",
        "deepseek",
        "fireworks",
        "xai",
        "litellm",
        "localai",
        "cerebras",
        "huggingface",
        "perplexity",
    ];
    let plain = word.to_ascii_lowercase().replace(['_', '-', '.', ' '], "");
    match &*plain {
        "google" | "vertex" | "vertexai" | "googlegenai" => Some("Google's models have the provider `gemini`"),
        "claude" => Some("Claude has the provider `anthropic`"),
        "bedrock" => {
            Some("Bedrock's own protocol is not there; a gateway that speaks OpenAI's has the provider `openai`")
        }
        _ if AS_OPENAI.iter().any(|known| plain.starts_with(known)) => {
            Some("its servers speak OpenAI's protocol: write `openai`, with the `base_url` of the server")
        }
        _ => None,
    }
}
