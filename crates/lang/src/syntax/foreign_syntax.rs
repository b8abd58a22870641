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
const ON_FAILURE: &str = "a step that fails ends the run, after the steps of `on_failure` in the `definition`; in a loop of mode \
                          `foreach` it ends its item, after those of `on_failure` in the `properties` of the loop, and \
                          \"failure_strategy\": \"continue_on_error\" lets the others go on";
const SEPARATOR: &str = "a CSV file has commas between its values: save it so";
const IN_INPUT: &str =
    "what differs between runs is declared in `input`, and what does not is written where it is used";
const IN_MILLISECONDS: &str = "it is `timeout_ms`, in milliseconds: 300000 are five minutes";
const WAITS: &str = "the first wait is `base_ms`; it doubles after each failure, up to `max_ms`";
const ASKED: &str =
    "an action, or its entry in `tools`, says for which calls a human is asked: \"requires_approval\": true";
const OUTPUT: &str = "the key of what a step gives is `outputKey`: \"outputKey\": \"order\"";
const STARTS: &str =
    "the `definition` of a workflow has it, whose step runs the loop: {\"type\": \"loop\", \"name\": \"...\"}";
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
    field(
        "triggers",
        "Kestra",
        "`schedule` of the `definition` starts runs at their times, and `trigger` by a webhook",
    ),
    field("trigger", "workflows", STARTS),
    field("webhook", "workflows", "it is in `trigger` of the `definition`: {\"trigger\": {\"webhook\": {...}}}"),
    field("vars", "other products", IN_INPUT),
    field("variables", "other products", IN_INPUT),
    field("env", "other products", IN_INPUT),
    field("version", "other products", NOTHING),
    field("apiVersion", "Kubernetes", NOTHING),
    field("auth", "other products", HEADER),
    field("memory", "other products", "the built-in tools of memory are there without it: take it out"),
    field(
        "mcp_servers",
        "other products",
        "servers are named in `mcp` of loopctl.json, and a loop declares their tools: {\"type\": \"mcp\", \"server\": \"NAME\"}",
    ),
    field("timeout-minutes", "GitHub Actions", IN_MILLISECONDS),
    field("timeout_minutes", "other products", IN_MILLISECONDS),
    field("TimeoutSeconds", "Step Functions", IN_MILLISECONDS),
    field("timeout_seconds", "other products", IN_MILLISECONDS),
    field("timeoutSeconds", "other products", IN_MILLISECONDS),
    field("activeDeadlineSeconds", "Argo", IN_MILLISECONDS),
    field("startToCloseTimeout", "Temporal", IN_MILLISECONDS),
    field("scheduleToCloseTimeout", "Temporal", IN_MILLISECONDS),
    field("IntervalSeconds", "Step Functions", WAITS),
    field("initialInterval", "Temporal", WAITS),
    field("maximumInterval", "Temporal", WAITS),
    field("backoff", "other products", WAITS),
    field("backoff_factor", "other products", WAITS),
    field("backoffCoefficient", "Temporal", WAITS),
    field("BackoffRate", "Step Functions", WAITS),
    field("human_in_the_loop", "other products", ASKED),
    field("interrupt_before", "LangGraph", ASKED),
    field("interrupt_after", "LangGraph", ASKED),
    field("interrupt_on", "LangChain", ASKED),
    field("Parameters", "Step Functions", "what a step takes is `properties`: {\"id\": \"@input.id\"}"),
    field("Arguments", "Step Functions", "what a step takes is `properties`: {\"id\": \"@input.id\"}"),
    field("Resource", "Step Functions", "a step names its action as its `type`"),
    field("ResultPath", "Step Functions", OUTPUT),
    field("OutputPath", "Step Functions", OUTPUT),
    field("ResultSelector", "Step Functions", OUTPUT),
    field("on_error", "other products", ON_FAILURE),
    field("separator", "other products", SEPARATOR),
    field("delimiter", "other products", SEPARATOR),
    field("state", "LangGraph", IN_INPUT),
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

/// The same of a workflow as a whole.
pub(crate) const APPROVAL_OF_WORKFLOW: &str = "an action says it for each of its calls, in its own file; a workflow asks in a step of its \
     `actions`: {\"type\": \"PbotApproval\", \"properties\": {\"comment\": \"...\"}}";

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
        return shape(
            "a list of MCP servers",
            "they are named in `mcp` of loopctl.json, and a loop declares their tools: {\"type\": \"mcp\", \"server\": \"NAME\"}",
        );
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
