//! What other products write where something of ours is expected: how it is known, and how it is written here.

use super::Node;

/// A field of another product.
struct ForeignField {
    name: &'static str,
    product: &'static str,
    /// How it is written here.
    here: &'static str,
}

const fn field(name: &'static str, product: &'static str, here: &'static str) -> ForeignField {
    ForeignField { name, product, here }
}

const SCHEMA: &str = "the schema of the input is `parameters` of the action";
const HEADER: &str = "a credential is a header of the action: \"Authorization\": \"Bearer orgconfig:my_key\"";
const IN_ORDER: &str = "steps run in the order of their list: take it out";
const ON_FAILURE: &str = "a step that fails ends the run; in a loop of mode `foreach` it ends its item, and \
                          \"failure_strategy\": \"continue_on_error\" lets the others go on";
const IN_INPUT: &str =
    "what differs between runs is declared in `input`, and what does not is written where it is used";
const NOTHING: &str = "there is no such thing: take it out";

const FIELDS: &[ForeignField] = &[
    field("input_schema", "Anthropic", SCHEMA),
    field("inputSchema", "MCP", SCHEMA),
    field("args_schema", "LangChain", SCHEMA),
    field("argsSchema", "LangChain", SCHEMA),
    field("function", "OpenAI", "the tool is an action of the name, and `parameters` stands in the action itself"),
    field("functions", "OpenAI", "a tool is declared in `tools`, and defined in `actions`"),
    field("tool_choice", "OpenAI", NOTHING),
    field("parallel_tool_calls", "OpenAI", "`max_tool_calls_per_turn`: 1 for one call a reply"),
    field("response_format", "OpenAI", "the schema of the answer is `answer_schema`"),
    field("strict", "OpenAI", NOTHING),
    field("messages", "OpenAI", "the task is `objective`, the system message `system_prompt`"),
    field("instructions", "OpenAI's Assistants", "it is `system_prompt`, or a part of the `objective`"),
    field("tool_resources", "OpenAI's Assistants", NOTHING),
    field("file_ids", "OpenAI's Assistants", NOTHING),
    field("agent_type", "LangChain", "the format of the replies is `dialect`"),
    field("verbose", "LangChain", NOTHING),
    field("llm", "LangChain", "it is `model`"),
    field("return_direct", "LangChain", NOTHING),
    field("early_stopping_method", "LangChain", "it is `on_limit`: \"answer\""),
    field("max_execution_time", "LangChain", "it is `timeout_ms`, in milliseconds"),
    field("handle_parsing_errors", "LangChain", NOTHING),
    field("return_intermediate_steps", "LangChain", "it is `include_reasoning_trace`"),
    field("max_turns", "other products", "it is `max_iterations`"),
    field("max_steps", "other products", "it is `max_iterations`"),
    field("bodyParameters", "n8n", "it is `body`: {\"name\": \"{{name}}\"}"),
    field("queryParameters", "n8n", "it is `query`: {\"name\": \"{{name}}\"}"),
    field("headerParameters", "n8n", "it is `headers`: {\"Name\": \"{{name}}\"}"),
    field("jsonBody", "n8n", "it is `body`"),
    field("sendBody", "n8n", NOTHING),
    field("sendQuery", "n8n", NOTHING),
    field("sendHeaders", "n8n", NOTHING),
    field("authentication", "n8n", HEADER),
    field("genericAuthType", "n8n", HEADER),
    field("nodeCredentialType", "n8n", HEADER),
    field("credentials", "n8n", HEADER),
    field("typeVersion", "n8n", NOTHING),
    field("next", "Step Functions", IN_ORDER),
    field("Next", "Step Functions", IN_ORDER),
    field("End", "Step Functions", IN_ORDER),
    field("depends_on", "other products", IN_ORDER),
    field("dependsOn", "other products", IN_ORDER),
    field("dependencies", "Argo", IN_ORDER),
    field("needs", "GitHub Actions", IN_ORDER),
    field("onError", "n8n", ON_FAILURE),
    field("continueOnFail", "n8n", ON_FAILURE),
    field("continue_on_error", "other products", ON_FAILURE),
    field("continue-on-error", "GitHub Actions", ON_FAILURE),
    field("allowFailure", "Kestra", ON_FAILURE),
    field("on_failure", "other products", ON_FAILURE),
    field("onFailure", "other products", ON_FAILURE),
    field("catch", "other products", ON_FAILURE),
    field("Catch", "Step Functions", ON_FAILURE),
    field("errors", "Kestra", ON_FAILURE),
    field(
        "then",
        "other products",
        "the step itself is what runs when its `filter` holds, and `onFalse` the step that runs instead",
    ),
    field(
        "cron",
        "other products",
        "an interval is `every`, and a time of the day `at`: {\"every\": \"1d\", \"at\": \"08:00\"}",
    ),
    field("interval", "other products", "it is `every`: {\"every\": \"6h\"}"),
    field("triggers", "Kestra", "`schedule` of the `definition` starts runs at their times"),
    field("vars", "other products", IN_INPUT),
    field("variables", "other products", IN_INPUT),
    field("env", "other products", IN_INPUT),
    field("version", "other products", NOTHING),
    field("apiVersion", "Kubernetes", NOTHING),
    field("auth", "other products", HEADER),
    field("memory", "other products", "the built-in tools of memory are there without it: take it out"),
    field("mcp_servers", "other products", "MCP servers can't be called yet: write what is needed of them as actions"),
    field("backstory", "CrewAI", "it is a part of `system_prompt`"),
    field("goal", "CrewAI", "it is `objective`"),
];

/// What another product's field is here, as a help; nothing for a field that none has.
pub(super) fn help_for(name: &str) -> Option<String> {
    let field = FIELDS.iter().find(|field| field.name == name)?;
    Some(format!("`{name}` is a field of {}; here {}", field.product, field.here))
}

/// The name of the first action that a list declares.
pub(super) fn declared_action(value: &Node) -> Option<String> {
    let first = value.items()?.first()?;
    Some(first.get("action_name")?.as_str()?.to_owned())
}

/// Why a step can't say that its call needs an approval, and what is written.
pub(crate) const APPROVAL_OF_STEP: &str = "an action says it for each of its calls, in its own file; in a workflow, a step before this one asks: \
     {\"type\": \"PbotApproval\", \"properties\": {\"comment\": \"...\"}}";

/// The words of conditions in other languages, with ours. `contains` has its operands the other way round.
const OPERATORS: [(&str, &[&str]); 9] = [
    ("equal", &["equals", "==", "===", "=", "is"]),
    ("notEqual", &["ne", "neq", "!=", "!==", "<>", "notequals", "isnot"]),
    ("greaterThan", &["gt", ">"]),
    ("lessThan", &["lt", "<"]),
    ("greaterOrEqual", &["gte", "ge", ">=", "greaterthanorequal"]),
    ("lessOrEqual", &["lte", "le", "<=", "lessthanorequal"]),
    ("matches", &["regex", "match", "like"]),
    ("and", &["all", "&&"]),
    ("or", &["any", "||"]),
];

/// What is written here for a word of conditions that is no operator, or whose operands are written in another way.
pub(super) fn condition_word(word: &str) -> Option<&'static str> {
    let plain = word.trim_start_matches('$').replace('_', "").to_ascii_lowercase();
    Some(match &*plain {
        "contains" | "includes" | "has" => {
            "a list is looked into by {\"in\": [\"paid\", \"@input.tags\"]}, the entry first, and a text by {\"matches\": \
             [\"@input.note\", \"paid\"]}"
        }
        "startswith" | "beginswith" => "a text that begins so: {\"matches\": [\"@input.note\", \"^paid\"]}",
        "endswith" => "a text that ends so: {\"matches\": [\"@input.note\", \"paid$\"]}",
        "exists" | "isset" | "ispresent" | "notnull" | "isnotnull" | "defined" => {
            "whether a value is there is asked by {\"hasKey\": \"@input.note\"}"
        }
        "isnull" | "missing" | "notexists" | "doesnotexist" => {
            "whether a value is missing is asked by {\"not\": {\"hasKey\": \"@input.note\"}}"
        }
        "isempty" | "empty" => "an empty list or text: {\"equal\": [{\"length\": \"@input.rows\"}, 0]}",
        "isnotempty" | "notempty" => {
            "a list or text that is not empty: {\"greaterThan\": [{\"length\": \"@input.rows\"}, 0]}"
        }
        "between" => {
            "two comparisons: {\"and\": [{\"greaterOrEqual\": [\"@input.n\", 1]}, {\"lessOrEqual\": [\"@input.n\", 9]}]}"
        }
        "notin" | "nin" => "{\"not\": {\"in\": [\"@input.kind\", [\"a\", \"b\"]]}}",
        "istrue" => "{\"equal\": [\"@input.urgent\", true]}",
        "isfalse" => "{\"equal\": [\"@input.urgent\", false]}",
        _ => return None,
    })
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

/// The operator of a condition that another language's word means.
pub(super) fn operator(word: &str) -> Option<&'static str> {
    let plain = word.trim_start_matches('$').replace('_', "").to_ascii_lowercase();
    OPERATORS.iter().find(|(_, words)| words.contains(&&*plain)).map(|(ours, _)| *ours)
}

/// The condition that a text means which compares two values: `@input.amount > 100`, `${{ input.amount > 100 }}`.
/// `named` gives the path of the value that a name means.
pub(super) fn comparison(text: &str, named: &dyn Fn(&str) -> String) -> Option<String> {
    let (one, sign, other) = halves(unwrapped(text))?;
    let ours = operator(sign)?;
    let path = one.trim_matches(['{', '}', ' ']).trim_start_matches('@');
    let of_item = ["$json.", "$."].iter().find_map(|prefix| path.strip_prefix(prefix));
    let path = of_item.unwrap_or(path);
    let is_path = !path.is_empty() && path.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.'));
    let value = serde_json::from_str::<serde_json::Value>(&other.replace('\'', "\"")).ok()?;
    let path = Some(named(path)).filter(|path| is_path && (of_item.is_none() || path.starts_with("input.")))?;
    Some(format!("{{\"{ours}\": [\"@{path}\", {value}]}}"))
}

/// The text within the marks that other products put around an expression as a whole.
fn unwrapped(text: &str) -> &str {
    let text = text.trim();
    let inner = [("={{", "}}"), ("${{", "}}"), ("{{", "}}"), ("${", "}")]
        .iter()
        .find_map(|(begin, end)| text.strip_prefix(begin)?.strip_suffix(end));
    inner.filter(|inner| !inner.contains(['{', '}'])).unwrap_or(text).trim()
}

/// The two operands of a comparison with its sign between them, which may be a word. A sign needs no blanks around it.
fn halves(text: &str) -> Option<(&str, &str, &str)> {
    const SIGNS: [&str; 9] = ["===", "!==", "==", "!=", ">=", "<=", "<>", ">", "<"];
    let mut words = text.split_whitespace();
    if let (Some(one), Some(sign), Some(other), None) = (words.next(), words.next(), words.next(), words.next())
        && operator(sign).is_some()
    {
        return Some((one, sign, other));
    }
    let at = text.find(['=', '!', '<', '>'])?;
    let (one, rest) = text.split_at_checked(at)?;
    let sign = SIGNS.into_iter().find(|sign| rest.starts_with(sign))?;
    Some((one.trim(), sign, rest.get(sign.len()..)?.trim()))
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

/// An entry of `tools` or `actions` in another product's shape.
pub(super) struct ForeignEntry {
    /// What it is, in words.
    pub what: String,
    /// How it is written here.
    pub help: &'static str,
}

const AS_HERE: &str = "a tool is two things here: `{\"type\": \"action\", \"name\": \"lookup\"}` in `tools`, and in `actions` \
                       what it does: `{\"action_name\": \"lookup\", \"kind\": \"http\", \"description\": \"...\", \"url\": \
                       \"https://...\", \"http_method\": \"GET\", \"parameters\": {...}}`";

/// What an entry is that can be no tool, action or step of ours; `in_actions`: it is where a registered action is.
pub(super) fn entry(node: &Node, in_actions: bool) -> Option<ForeignEntry> {
    let has = |name: &str| node.get(name).is_some();
    if has("action_name") || has("kind") {
        return None;
    }
    let kind = node.get("type").and_then(Node::as_str);
    let shape = |what: &str, help| Some(ForeignEntry { what: what.to_owned(), help });
    match kind {
        Some("function") if has("function") || has("parameters") => {
            return shape("a tool of OpenAI's API, of type `function`", AS_HERE);
        }
        Some(word @ ("file_search" | "code_interpreter" | "retrieval" | "web_search" | "web_search_preview")) => {
            let what = format!("the tool `{word}` of OpenAI");
            return Some(ForeignEntry { what, help: "no such tool is built in: write an action, and declare it" });
        }
        Some(word) if word.starts_with("n8n-nodes") || has("typeVersion") => {
            let help = "a node that sends a request is an action of kind `http`: `url`, `http_method`, `headers`, `query`, `body`";
            return shape("a node of n8n", help);
        }
        Some("loop") if has("properties") && in_actions => {
            let help = "a loop is a document of its own: put it into `loops/NAME.json`, and declare it in `tools`: `{\"type\": \"loop\", \
                        \"name\": \"NAME\"}`";
            return shape("a whole loop, and no action", help);
        }
        Some(_) => return None,
        None => {}
    }
    if has("input_schema") {
        return shape("a tool of Anthropic's API, with `input_schema`", AS_HERE);
    }
    if has("inputSchema") {
        return shape("a tool of an MCP server, with `inputSchema`", AS_HERE);
    }
    if has("function") || (has("name") && has("parameters")) {
        return shape("a function of OpenAI's API, with `parameters`", AS_HERE);
    }
    if has("name") && (has("args_schema") || has("func") || has("coroutine")) {
        return shape("a tool of LangChain", AS_HERE);
    }
    None
}

/// What another product's document is, and how it is written here.
pub(super) fn document(root: &Node) -> Option<ForeignEntry> {
    const A_LOOP: &str = "a loop here is `{\"type\": \"loop\", \"properties\": {\"mode\": \"react\", \"objective\": \"...\", \
                          \"tools\": [...]}}`";
    const STEPS: &str = "a workflow here is a list of steps: `{\"definition\": {\"actions\": [...]}}`";
    let has = |name: &str| root.get(name).is_some();
    let shape = |what: &str, help| Some(ForeignEntry { what: what.to_owned(), help });
    if has("nodes") && (has("connections") || has("edges")) {
        return shape(
            "a workflow of n8n, or of another product with nodes and connections",
            "a workflow here is a list of steps: `{\"definition\": {\"actions\": [...]}}`; an agent is a loop",
        );
    }
    if has("instructions") && (has("tools") || has("model")) {
        return shape("an assistant of OpenAI's API: its `instructions` are `system_prompt` here", A_LOOP);
    }
    if has("messages") {
        return shape("a request of a model's API, with `messages`", A_LOOP);
    }
    if has("mcpServers") {
        return shape("a list of MCP servers", "a tool here is an action: `actions`, and `tools` of a loop");
    }
    if has("openapi") || has("swagger") {
        return shape(
            "an OpenAPI description",
            "each operation that an agent may call is an action of kind `http` here",
        );
    }
    if has("StartAt") && has("States") {
        return shape("a state machine of AWS Step Functions", STEPS);
    }
    if has("_type") || (has("lc") && has("kwargs")) || has("agent_type") || (has("llm") && has("tools")) {
        return shape("an agent of LangChain", A_LOOP);
    }
    if has("agents") && has("tasks") {
        return shape("a crew of CrewAI", A_LOOP);
    }
    if has("jobs") && has("on") {
        return shape("a workflow of GitHub Actions", STEPS);
    }
    if has("apiVersion") && has("kind") && has("spec") {
        return shape("a manifest of Kubernetes or Argo", STEPS);
    }
    entry(root, false)
}
