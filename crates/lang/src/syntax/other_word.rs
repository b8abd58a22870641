//! Common words for fields that have another name here.

/// A word, and the field that is meant by it.
struct OtherWord {
    word: &'static str,
    field: &'static str,
}

const fn of(word: &'static str, field: &'static str) -> OtherWord {
    OtherWord { word, field }
}

/// One word may be meant for several fields: the one that the object has is taken.
const WORDS: &[OtherWord] = &[
    of("command", "program"),
    of("cmd", "program"),
    of("executable", "program"),
    of("binary", "program"),
    of("arguments", "args"),
    of("argv", "args"),
    of("working_directory", "cwd"),
    of("workdir", "cwd"),
    of("environment", "env"),
    of("method", "http_method"),
    of("verb", "http_method"),
    of("endpoint", "url"),
    of("uri", "url"),
    of("payload", "body"),
    of("json", "body"),
    of("params", "parameters"),
    of("schema", "parameters"),
    of("name", "action_name"),
    of("sql", "query"),
    of("statement", "query"),
    of("database", "datasource"),
    of("programs", "commands"),
    of("executables", "commands"),
    of("domains", "hosts"),
    of("allowed_hosts", "hosts"),
    of("goal", "objective"),
    of("task", "objective"),
    of("prompt", "objective"),
    of("system", "system_prompt"),
    of("system_message", "system_prompt"),
    of("max_turns", "max_iterations"),
    of("max_steps", "max_iterations"),
    of("max_rounds", "max_iterations"),
    of("steps", "actions"),
    of("steps", "actions_to_execute"),
    of("actions", "actions_to_execute"),
    of("do", "actions_to_execute"),
    of("body", "actions_to_execute"),
    of("items", "items_path"),
    of("list", "items_path"),
    of("in", "items_path"),
    of("as", "item_variable_name"),
    of("item_name", "item_variable_name"),
    of("item", "item_variable_name"),
    of("label", "item_label"),
    of("item_variable", "item_variable_name"),
    of("var", "item_variable_name"),
    of("variable", "item_variable_name"),
    of("iterator", "item_variable_name"),
    of("over", "items_path"),
    of("each", "items_path"),
    of("for_each", "items_path"),
    of("foreach", "items_path"),
    of("collection", "items_path"),
    of("tasks", "actions_to_execute"),
    of("run", "actions_to_execute"),
    of("question", "comment"),
    of("text", "comment"),
    of("prompt", "comment"),
    of("title", "comment"),
    of("description", "comment"),
    of("payload", "request_payload"),
    of("context", "request_payload"),
    of("data", "request_payload"),
    of("timeout", "expires_after_ms"),
    of("timeout_ms", "expires_after_ms"),
    of("ttl", "expires_after_ms"),
    of("expires_in", "expires_after_ms"),
    of("on_timeout", "on_expiry"),
    of("concurrency", "max_concurrency"),
    of("parallelism", "max_concurrency"),
    of("on_error", "failure_strategy"),
    of("message", "comment"),
    of("fields", "expected_keys"),
    of("keys", "expected_keys"),
    of("else", "onFalse"),
    of("else", "otherwise"),
    of("default", "otherwise"),
    of("description", "help"),
    of("hint", "help"),
    of("minimum", "min"),
    of("maximum", "max"),
    of("options", "choices"),
    of("enum", "choices"),
    of("branches", "cases"),
    of("conditions", "cases"),
    of("choices", "cases"),
    of("if", "when"),
    of("condition", "when"),
    of("then", "steps"),
    of("actions", "steps"),
    of("do", "steps"),
    of("when", "filter"),
    of("if", "filter"),
    of("save_as", "outputKey"),
    of("save_to", "outputKey"),
    of("store_as", "outputKey"),
    of("register", "outputKey"),
    of("outputs", "outputKey"),
    of("result", "outputKey"),
    of("result_key", "outputKey"),
    of("template", "type"),
    of("recursion_limit", "max_iterations"),
    of("max_iter", "max_iterations"),
    of("prompt", "template"),
    of("question", "template"),
    of("connection", "datasource"),
    of("max_usd", "cost_usd"),
    of("max_cost_usd", "cost_usd"),
    of("limit_usd", "cost_usd"),
    of("max_attempts", "attempts"),
    of("maximumAttempts", "attempts"),
    of("MaxAttempts", "attempts"),
    of("limit", "attempts"),
    of("retryPolicy", "retry"),
    of("retryStrategy", "retry"),
    of("schema", "expected_keys"),
    of("inputs", "expected_keys"),
    of("questions", "expected_keys"),
    of("output", "outputKey"),
    of("inputs", "properties"),
    of("input", "properties"),
    of("args", "properties"),
    of("with", "properties"),
    of("uses", "type"),
    of("type", "kind"),
    of("parameters", "input"),
    of("parameters", "properties"),
    of("params", "properties"),
    of("arguments", "properties"),
    of("retries", "retry"),
    of("retry_policy", "retry"),
    of("output_schema", "answer_schema"),
    of("response_schema", "answer_schema"),
    of("usd", "cost_usd"),
    of("cost", "cost_usd"),
    of("dollars", "cost_usd"),
    of("max_cost", "cost_usd"),
    of("file", "script"),
    of("replies", "script"),
    of("confirm", "requires_approval"),
    of("requires_confirmation", "requires_approval"),
    of("reject", "deny"),
    of("decline", "deny"),
    of("refuse", "deny"),
    of("mocks", "tools"),
    of("stubs", "tools"),
    of("args", "input"),
    of("arguments", "input"),
];

/// The words for the prices of a model.
const PRICES: &[OtherWord] = &[
    of("prompt", "input"),
    of("prompt_tokens", "input"),
    of("input_tokens", "input"),
    of("completion", "output"),
    of("completion_tokens", "output"),
    of("output_tokens", "output"),
    of("cached", "cached_input"),
    of("cache_read", "cached_input"),
    of("cache_creation", "cache_write"),
];

/// Whether a word that is a field elsewhere means this one, in an object that lacks `fields`.
pub(super) fn is_sure(word: &str, field: &str, fields: &[&str]) -> bool {
    let has = |names: &[&str]| names.iter().any(|name| fields.contains(name));
    match (word, field) {
        // Of `history`.
        ("max_tokens", "context_tokens") => has(&["max_messages", "keep_last", "summarize"]),
        // Of a step: what it gives, and not what a workflow answers.
        ("output", "outputKey") => has(&["onFalse", "filter"]),
        // Of a workflow: what holds for it is the `condition` of its `definition`.
        ("filter" | "if" | "when", "condition") => has(&["schedule", "budget"]),
        // Of a webhook.
        ("path" | "id", "name") => has(&["hmac"]),
        ("mapping" | "payload" | "body", "input") => has(&["hmac"]),
        ("filter" | "condition", "when") => has(&["hmac"]),
        // Of a `budget`.
        ("max_tokens", "tokens") => has(&["cost_usd", "warn_at"]),
        _ => false,
    }
}

/// The field among these that is meant by a word.
pub(super) fn field_of<'a>(word: &str, fields: &[&'a str]) -> Option<&'a str> {
    // Only prices have a field for what is written to a cache: elsewhere `prompt` has another meaning.
    let words = if fields.contains(&"cache_write") { PRICES } else { WORDS };
    let sure = fields.iter().copied().find(|field| is_sure(word, field, fields));
    if sure.is_some() {
        return sure;
    }
    let meant = words.iter().filter(|known| known.word == word);
    meant.into_iter().find_map(|known| fields.iter().copied().find(|field| *field == known.field))
}
