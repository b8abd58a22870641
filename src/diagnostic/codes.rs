//! The codes of all diagnostics, each with its name, severity, title and page. A code is stable once
//! released, and its number is never reused.
//!
//! L00x file and syntax, L01x to L02x shape, L03x to L04x names, L05x to L06x templates, L07x to
//! L08x tools, L09x sense, L10x safety, L15x what schemas
//! describe, L20x the run's input.

use super::Severity;

/// What `explain`, the documentation and SARIF say about a code.
#[derive(Debug, Clone, Copy)]
pub struct Code {
    /// Like `L090`.
    pub code: &'static str,
    /// A few words, like `stuck-never-fires`.
    pub name: &'static str,
    /// The usual severity; one diagnostic may be milder or graver.
    pub severity: Severity,
    /// One line, the heading of the page.
    pub title: &'static str,
    /// What the code means, why it matters, an example, and what to write instead, in Markdown.
    pub page: &'static str,
}

macro_rules! codes {
    ($($constant:ident = $code:literal $severity:ident $name:literal $title:literal,)*) => {
        $(#[doc = $title] pub const $constant: &str = $code;)*

        /// Every code, in order.
        pub const TABLE: &[Code] = &[$(Code {
            code: $code,
            name: $name,
            severity: Severity::$severity,
            title: $title,
            page: include_str!(concat!("pages/", $name, ".md")),
        }),*];
    };
}

codes! {
    FILE = "L000" Error "unreadable-file" "File that can't be read",
    SYNTAX = "L001" Error "syntax" "Invalid JSON",
    ENCODING = "L002" Error "encoding" "Text that is not plain UTF-8",
    EMPTY = "L003" Error "empty-file" "Empty file",
    STRING = "L004" Error "bad-string" "Malformed string",
    NUMBER = "L005" Error "bad-number" "Malformed number",
    COMMA = "L006" Error "comma" "Missing or extra comma",
    COMMENT = "L007" Error "comment" "Comment in JSON",
    DUPLICATE_KEY = "L008" Error "duplicate-key" "Duplicate key",
    TOO_MUCH = "L009" Error "too-much" "Document too deep or too large",
    UNKNOWN_FIELD = "L010" Error "unknown-field" "Unknown field",
    MISSING_FIELD = "L011" Error "missing-field" "Missing field",
    WRONG_WORD = "L012" Error "wrong-word" "Value not in the list of allowed values",
    WRONG_TYPE = "L013" Error "wrong-type" "Wrong type",
    OUT_OF_BOUNDS = "L014" Error "out-of-bounds" "Number out of range",
    WRONG_LENGTH = "L015" Error "wrong-length" "Text or array too short or too long",
    UNKNOWN_DOCUMENT = "L016" Error "unknown-document" "Unknown kind of document",
    UNREADABLE = "L017" Error "unreadable-document" "Document that matches its schema but can't be read",
    NOT_YET = "L018" Error "not-yet" "Feature that this version can't run",
    NO_LOOP = "L019" Error "wrong-document" "Wrong kind of document",
    FOREIGN_SHAPE = "L020" Error "foreign-shape" "Shape of another product",
    SCRIPT_REPLY = "L021" Warning "script-reply" "Script entry that becomes a text",
    SCRIPT_NAME = "L022" Warning "script-name" "Unknown tool or loop in a script",
    UNKNOWN_ACTION = "L030" Error "unknown-action" "Unknown action",
    TWO_OF_A_NAME = "L031" Error "two-of-a-name" "Two actions or two loops with the same name",
    BAD_NAME = "L032" Error "bad-name" "Invalid name",
    DUPLICATE_TOOL = "L033" Error "duplicate-tool" "Tool declared twice",
    SHADOWED_BUILTIN = "L034" Error "shadowed-builtin" "Name reserved for built-in tools",
    LEGACY_TOOL = "L035" Warning "legacy-tool" "Tool declared in the old form",
    DECLARED_BUILTIN = "L036" Warning "declared-builtin" "Built-in tool declared",
    NO_TOOLS = "L037" Warning "no-tools" "Loop without tools",
    CASE_TWINS = "L038" Warning "case-twins" "Tool names that differ only in case",
    UNKNOWN_LOOP = "L039" Error "unknown-loop" "Unknown loop",
    UNUSED_ACTION = "L040" Warning "unused-action" "Unused action",
    UNKNOWN_SECRET = "L041" Error "unknown-secret" "Unknown secret",
    UNKNOWN_DATASOURCE = "L042" Error "unknown-datasource" "Unknown datasource",
    NEAR_MODEL = "L043" Warning "near-model" "Possibly misspelt model name",
    REPEATED_MODEL = "L044" Warning "repeated-model" "Repeated fallback model",
    ODD_RESULT_KEY = "L045" Warning "odd-result-key" "Result key that no path can read",
    HIDDEN_RESULT = "L046" Error "hidden-result" "Reserved result key",
    MISSING_SCRIPT = "L047" Warning "missing-script" "Scripted model without a script",
    LOOP_CYCLE = "L048" Error "loop-cycle" "Loops that call each other in a cycle",
    LOOPS_TOO_DEEP = "L049" Error "loops-too-deep" "Loops nested too deep",
    TEMPLATE = "L050" Error "template-syntax" "Malformed template",
    TEMPLATE_HELPER = "L051" Error "template-helper" "Unsupported helper, block or partial",
    TEMPLATE_NAME = "L052" Error "template-name" "Template variable out of place",
    TEMPLATE_SIZE = "L053" Error "template-size" "Template too long or too deep",
    UNKNOWN_VARIABLE = "L054" Error "unknown-variable" "Unknown variable",
    NATIVE_NAME = "L055" Warning "native-name" "Tool name that the provider does not accept",
    UNKNOWN_WORKFLOW = "L056" Error "unknown-workflow" "Unknown workflow",
    PLAIN_VARIABLE = "L057" Error "plain-variable" "Variable in the wrong syntax",
    ABSENT_FILE = "L058" Warning "absent-file" "Missing script or SQL file",
    NO_PARAMETER = "L060" Error "no-parameter" "Variable without a parameter",
    OPTIONAL_PARAMETER = "L061" Warning "optional-parameter" "Variable with an optional parameter",
    UNUSED_PARAMETER = "L062" Warning "unused-parameter" "Unused required parameter",
    HIDDEN_PARAMETER = "L063" Warning "hidden-parameter" "Reserved parameter name",
    BAD_SCHEMA = "L070" Error "bad-schema" "Invalid JSON Schema",
    NO_OBJECT = "L071" Error "no-object" "Parameters that no object can match",
    NO_DESCRIPTION = "L072" Warning "no-description" "Tool without a description",
    NOT_RUNNABLE = "L073" Error "not-runnable" "Kind of action that can't run here",
    BAD_URL = "L074" Error "bad-url" "Invalid URL",
    BAD_HEADER = "L075" Error "bad-header" "Invalid header",
    UNQUOTED = "L076" Warning "unquoted" "Unquoted value in a JSON text",
    BAD_QUERY = "L077" Error "bad-query" "Query placeholders that do not match the parameters",
    BAD_COMMAND = "L078" Error "bad-command" "Invalid program, folder or environment variable",
    BAD_DATASOURCE = "L079" Error "bad-datasource" "Unsupported database URL",
    BAD_BASE_URL = "L080" Error "bad-base-url" "Invalid base URL of a model",
    BAD_STORE = "L081" Error "bad-store" "Invalid store",
    STUCK_NEVER_FIRES = "L090" Warning "stuck-never-fires" "Stuck detection that never triggers",
    UNUSED_HINT = "L091" Warning "unused-hint" "Unused hint",
    HINTS_WITHOUT_ROOM = "L092" Warning "hints-without-room" "Too few iterations for the hints",
    TIMEOUT_BELOW_TOOL = "L093" Warning "timeout-below-tool" "Tool timeout longer than the run's timeout",
    HISTORY_TOO_SMALL = "L094" Warning "history-too-small" "Context limit too small for the first request",
    REPLY_FILLS_WINDOW = "L095" Error "reply-fills-window" "Reply as large as the context window",
    COST_WITHOUT_PRICE = "L096" Error "cost-without-price" "Cost budget for a model without a price",
    BUDGET_TOO_SMALL = "L097" Warning "budget-too-small" "Token budget too small for the first request",
    FIXED_TEMPERATURE = "L098" Warning "fixed-temperature" "Temperature for a model that does not accept one",
    TEMPERATURE_TOO_HIGH = "L099" Warning "temperature-too-high" "Temperature above the provider's maximum",
    CREDENTIALS = "L100" Error "credentials" "Password in a URL",
    MIXED_HEADER = "L101" Error "mixed-header" "Header with a secret and a value from the model",
    WANDERING_SECRET = "L102" Error "wandering-secret" "Secret sent to a host that depends on a variable",
    CLEAR_SECRET = "L103" Warning "clear-secret" "Secret sent without encryption",
    SECRET_IN_PROMPT = "L104" Error "secret-in-prompt" "Secret in a prompt",
    LOADER = "L105" Error "loader" "Value in an environment variable that loads code",
    SECRET = "L106" Error "secret" "Secret written into a document",
    HOST_FROM_VALUE = "L107" Warning "host-from-value" "Host that depends on a variable",
    HOST_NOT_ALLOWED = "L108" Error "host-not-allowed" "Host not allowed by the project",
    PRIVATE_HOST = "L109" Error "private-host" "Private host not allowed by the project",
    PROGRAM_NOT_ALLOWED = "L110" Error "program-not-allowed" "Program not allowed by the project",
    SHELL_SCRIPT = "L111" Warning "shell-script" "Script for a shell",
    RETRIED_DOUBT = "L112" Warning "retried-doubt" "Retry of a call that is not idempotent",
    REFUSED_WRITE = "L113" Error "refused-write" "Query that writes in a read-only action",
    NEEDLESS_WRITE = "L114" Warning "needless-write" "Write access for a query that only reads",
    BAD_HOST_ENTRY = "L115" Error "bad-host-entry" "Invalid entry in `allow.hosts`",
    WRITTEN_SECRET = "L116" Error "written-secret" "Secret without a source",
    WRITTEN_KEY = "L117" Error "written-key" "API key without a source",
    KEY_IN_THE_CLEAR = "L118" Warning "key-in-the-clear" "API key sent without encryption",
    SECRET_IN_ARGS = "L119" Error "secret-in-args" "Secret in the arguments of a program",
    IMPOSSIBLE_SCHEMA = "L120" Error "impossible-schema" "Schema that no value can match",
    ONE_CALL_A_TURN = "L121" Warning "one-call-a-turn" "Several tool calls per turn in the `json` dialect",
    RETRY_BOUNDS = "L122" Warning "retry-bounds" "`retry.base_ms` larger than `retry.max_ms`",
    STEP_FIELD = "L123" Warning "step-field" "Workflow field outside of a workflow",
    PROMPT_WITHOUT = "L124" Warning "prompt-without" "Incomplete system prompt",
    EMPTY_BUDGET = "L125" Warning "empty-budget" "Empty budget",
    FOLDER_OUTSIDE = "L126" Error "folder-outside" "Working folder outside of the project",
    BODY_OF_GET = "L127" Warning "body-of-get" "Body in a GET or HEAD request",
    ODD_STATUS = "L128" Error "odd-status" "Invalid `ok_status`",
    FILLED_VARIABLE = "L129" Error "filled-variable" "Value in an environment variable that the project does not allow",
    LOOSENED = "L130" Warning "loosened" "Tool declaration weaker than its action",
    FILLED_HEADER = "L131" Error "filled-header" "Header with a secret and a value of the input",
    MISSPELT_SECRET = "L132" Error "misspelt-secret" "Secret in the wrong syntax",
    BAD_POINTER = "L138" Error "bad-pointer" "Invalid JSON pointer or key in `remember`",
    BAD_TOKEN = "L139" Error "bad-token" "Invalid bearer token of the server",
    CONSTANT_CONDITION = "L140" Error "constant-condition" "Condition that always or never holds",
    BAD_OPERAND = "L141" Error "bad-operand" "Operand that its operator can't compare",
    STEP_INPUT = "L142" Error "step-input" "Step input that does not match its action",
    STEP_SETTING = "L143" Error "step-setting" "Setting that its step can't use",
    BAD_SCHEDULE = "L144" Error "bad-schedule" "Invalid schedule",
    WRONG_UNIT = "L145" Warning "wrong-unit" "Number in another unit",
    LIMITS_AT_ODDS = "L146" Warning "limits-at-odds" "Limits that contradict each other",
    UNKNOWN_KEYWORD = "L150" Error "unknown-keyword" "Unknown keyword of a schema",
    NO_SCHEMA = "L151" Error "no-schema" "Example or short form in place of a schema",
    UNDESCRIBED_NAME = "L152" Warning "undescribed-name" "Required property that the schema does not describe",
    IDLE_KEYWORD = "L153" Warning "idle-keyword" "Part of a schema without effect",
    NO_MEMBER = "L154" Error "no-member" "Name below a value that does not have it",
    UNREACHED_LIMIT = "L160" Warning "unreached-limit" "Limit of model calls that never applies",
    UNKNOWN_REQUIRED_TOOL = "L161" Error "unknown-required-tool" "Unknown tool before the answer",
    NEEDS_RESPONSES = "L170" Warning "needs-responses" "Model that needs the Responses API",
    BAD_MODEL_SETTING = "L171" Error "bad-model-setting" "Setting of a model that can't be sent",
    BAD_SQL = "L180" Error "bad-sql" "SQL that the database refuses",
    UNKNOWN_COLUMN = "L181" Error "unknown-column" "Table or column that the database does not have",
    ABSENT_DATABASE = "L182" Warning "absent-database" "Missing or unreadable database",
    QUOTED_PLACEHOLDER = "L183" Error "quoted-placeholder" "Placeholder between the quotes of a text",
    BAD_INPUT = "L200" Error "bad-input" "Invalid input",
    MISSING_INPUT = "L201" Error "missing-input" "Missing input",
}

/// The row of a code; nothing for a code that is not in the list.
pub fn find(code: &str) -> Option<&'static Code> {
    TABLE.iter().find(|row| row.code == code)
}
