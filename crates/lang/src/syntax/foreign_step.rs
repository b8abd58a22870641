//! What people of other products write as the type of a step, and what is written here.

use super::foreign_words::FOREACH;

/// A built-in step that a word of another product means.
pub(crate) struct BuiltInStep {
    /// The words, without marks and in small letters.
    words: &'static [&'static str],
    pub name: &'static str,
    /// A property that the step needs.
    pub needs: &'static str,
    pub help: &'static str,
}

const BUILT_IN: [BuiltInStep; 7] = [
    BuiltInStep {
        words: &[
            "approval",
            "approve",
            "humanapproval",
            "manualapproval",
            "approvalgate",
            "human",
            "humantask",
            "usertask",
            "manual",
            "confirm",
            "confirmation",
            "waitforapproval",
            "suspend",
        ],
        name: "PbotApproval",
        needs: "comment",
        help: "a human is asked by \"type\": \"PbotApproval\", with the question as `comment` in its `properties`",
    },
    BuiltInStep {
        words: &["form", "humanform", "humaninput", "userinput", "ask", "question"],
        name: "PbotForm",
        needs: "expected_keys",
        help: "a human gives values in a \"type\": \"PbotForm\", with their names as `expected_keys` in its `properties`",
    },
    BuiltInStep {
        words: &FOREACH,
        name: "loop",
        needs: "items_path",
        help: "the items of a list are gone through by \"type\": \"loop\" with \"mode\": \"foreach\" in its `properties`",
    },
    BuiltInStep {
        words: &["react", "agent", "aiagent", "agentloop", "agenttask", "toolsagent"],
        name: "loop",
        needs: "objective",
        help: "a model with tools is \"type\": \"loop\" with \"mode\": \"react\" in its `properties`",
    },
    BuiltInStep {
        words: &["table", "datatable", "customtable"],
        name: "custom-table",
        needs: "operation",
        help: "a table of the project is read and written by \"type\": \"custom-table\"",
    },
    BuiltInStep {
        words: &[
            "waitforevent",
            "waitevent",
            "event",
            "waitforsignal",
            "signal",
            "receive",
            "waitforcallback",
            "waitforwebhook",
        ],
        name: "wait_for_event",
        needs: "event",
        help: "a run waits for an event in a \"type\": \"wait_for_event\" with `event` and `match` in its `properties`",
    },
    BuiltInStep {
        words: &["wait", "sleep", "delay", "timer", "pause", "waituntil"],
        name: "wait",
        needs: "for",
        help: "a run waits in a \"type\": \"wait\" with `for` or `until` in its `properties`: {\"for\": \"2h\"}",
    },
];

impl BuiltInStep {
    pub(crate) fn meant_by(word: &str) -> Option<&'static Self> {
        forms(word).into_iter().find_map(|form| BUILT_IN.iter().find(|step| step.words.contains(&form.as_str())))
    }
}

/// What is done in another way than by a built-in step.
pub(crate) struct ForeignStep {
    words: &'static [&'static str],
    way: Way,
}

enum Way {
    /// An action of a kind does it: what it does, and the kind.
    Kind(&'static str, &'static str),
    /// How it is written here, or what there is in its place.
    Help(&'static str),
    /// The type is the name of an action.
    Action,
}

const FOREIGN: [ForeignStep; 16] = [
    ForeignStep {
        words: &[
            "httprequest",
            "request",
            "httptask",
            "httpcall",
            "httpsimple",
            "rest",
            "restapi",
            "restcall",
            "api",
            "apicall",
            "fetch",
            "curl",
            "graphql",
            "download",
        ],
        way: Way::Kind("a request over HTTP", "http"),
    },
    ForeignStep {
        words: &["sql", "query", "dbquery", "database", "postgres", "postgresql", "mysql", "mariadb", "sqlite"],
        way: Way::Kind("a query of a database", "db"),
    },
    ForeignStep {
        words: &[
            "ai",
            "prompt",
            "model",
            "chat",
            "chatcompletion",
            "completion",
            "llmchain",
            "basicllmchain",
            "openai",
            "anthropic",
            "claude",
            "gpt",
            "generate",
        ],
        way: Way::Kind("one question to a model", "llm"),
    },
    ForeignStep {
        words: &[
            "code",
            "script",
            "bash",
            "shell",
            "sh",
            "python",
            "javascript",
            "run",
            "exec",
            "execute",
            "executecommand",
            "commands",
            "program",
            "process",
            "container",
            "docker",
            "pod",
        ],
        way: Way::Kind("a program", "command"),
    },
    ForeignStep {
        words: &[
            "choose",
            "choice",
            "switch",
            "case",
            "branch",
            "decision",
            "router",
            "route",
            "ifelse",
            "exclusivegateway",
        ],
        way: Way::Help(
            "a choice between lists of steps is {\"type\": \"choose\", \"cases\": [{\"when\": {\"equal\": [\"@input.kind\", \"refund\"]}, \
             \"steps\": [...]}], \"otherwise\": [...]}",
        ),
    },
    ForeignStep {
        words: &["if", "condition", "conditional", "when", "filter"],
        way: Way::Help(
            "a step has its condition in its `filter`: \"filter\": {\"condition\": {\"equal\": [\"@input.kind\", \"refund\"]}}, \
             and in `onFalse` the step that runs instead",
        ),
    },
    ForeignStep {
        words: &["parallel", "fork", "concurrent", "sequence", "sequential", "group", "block", "steps", "dag"],
        way: Way::Help(
            "the steps of a list run one after the other; several items of a list are worked on at the same time by \"type\": \
             \"loop\" with \"mode\": \"foreach\" and `max_concurrency` in its `properties`",
        ),
    },
    ForeignStep {
        words: &["while", "repeat", "until", "dowhile", "repeatuntil", "loopuntil"],
        way: Way::Help(
            "no step is repeated until a condition holds: \"type\": \"loop\" takes each item of a list (\"mode\": \"foreach\"), or \
             lets a model call tools until it answers (\"mode\": \"react\")",
        ),
    },
    ForeignStep {
        words: &[
            "set",
            "setvariable",
            "setvariables",
            "assign",
            "editfields",
            "transform",
            "pass",
            "expression",
            "return",
            "output",
            "noop",
        ],
        way: Way::Help(
            "no step only makes a value: a later step reads what an earlier one wrote by its `@path`, or in a text as \
             `{{path}}`, and `output` of the `definition` is what the workflow answers",
        ),
    },
    ForeignStep {
        words: &[
            "end",
            "stop",
            "exit",
            "succeed",
            "success",
            "terminate",
            "finish",
            "fail",
            "failure",
            "throw",
            "raise",
        ],
        way: Way::Help(
            "no step ends a run, or fails it on purpose: the steps that are left out then are those of a case of \
             {\"type\": \"choose\", \"cases\": [{\"when\": {...}, \"steps\": [...]}]}, or have a `filter`",
        ),
    },
    ForeignStep {
        words: &[
            "email",
            "mail",
            "sendemail",
            "sendmail",
            "slack",
            "slackmessage",
            "teams",
            "message",
            "sendmessage",
            "notification",
            "sendnotification",
            "alert",
        ],
        way: Way::Help(
            "a text is sent by {\"type\": \"notify\", \"properties\": {\"to\": \"...\", \"text\": \"...\"}} to a target that `notify` of \
             the project file names; anything else is an action of `\"kind\": \"http\"`",
        ),
    },
    ForeignStep {
        words: &["mcp", "mcptool", "mcpserver", "mcpclient"],
        way: Way::Help(
            "a tool of an MCP server of the project is a step whose type is SERVER.TOOL: {\"type\": \"files.read_file\"}",
        ),
    },
    ForeignStep {
        words: &["log", "print", "echo", "debug"],
        way: Way::Help("no step only writes a line: the trace of a run shows what each step was given and gave"),
    },
    ForeignStep {
        words: &["trigger", "webhook", "cron", "schedule", "scheduletrigger", "manualtrigger", "start"],
        way: Way::Help(
            "no step starts a run: `loopctl run`, or a request to `loopctl serve`, does that, `schedule` of the \
             `definition` does it at its times, and `trigger` by a webhook",
        ),
    },
    ForeignStep {
        words: &[
            "workflow",
            "subworkflow",
            "childworkflow",
            "executeworkflow",
            "callworkflow",
            "subflow",
            "flow",
            "template",
        ],
        way: Way::Help(
            "a step runs a workflow by its name, with its input in `properties`: {\"type\": \"workflow\", \"name\": \"...\", \
             \"properties\": {...}}",
        ),
    },
    ForeignStep {
        words: &[
            "task",
            "servicetask",
            "simple",
            "step",
            "action",
            "activity",
            "uses",
            "call",
            "callactivity",
            "node",
            "job",
            "operation",
            "invoke",
            "function",
            "tool",
            "plugin",
        ],
        way: Way::Action,
    },
];

/// The most actions that a help names.
const MAX_SHOWN_ACTIONS: usize = 5;

impl ForeignStep {
    pub(crate) fn meant_by(word: &str) -> Option<&'static Self> {
        forms(word).into_iter().find_map(|form| FOREIGN.iter().find(|step| step.words.contains(&form.as_str())))
    }

    /// How it is written here. `actions` are the names of the actions that there are.
    pub(crate) fn help<'a>(&self, actions: impl Iterator<Item = &'a str>) -> String {
        match self.way {
            Way::Help(help) => help.to_owned(),
            Way::Kind(what, kind) => format!("{what} is an action: {}", as_action(kind)),
            Way::Action => {
                let names: Vec<String> = actions.take(MAX_SHOWN_ACTIONS).map(|name| format!("`{name}`")).collect();
                let shown = if names.is_empty() { String::new() } else { format!(", such as {}", names.join(", ")) };
                format!(
                    "a step names its action as its `type`: the `action_name` of an action in `actions/*.json`{shown}"
                )
            }
        }
    }
}

/// The kinds of actions that are no built-in steps.
const KINDS: [&str; 4] = ["http", "db", "llm", "command"];

/// How an action of a kind becomes a step, when a word is one.
pub(crate) fn of_kind(word: &str) -> Option<String> {
    KINDS.contains(&word).then(|| as_action(word))
}

fn as_action(kind: &str) -> String {
    format!(
        "write an action of `\"kind\": \"{kind}\"` into a file `actions/*.json` beside the workflow; the step has the \
         `action_name` as its `type`"
    )
}

/// Whether a type is a word of another product, or the name of a kind of actions. An action may have such a name all the same.
pub(crate) fn is_foreign(word: &str) -> bool {
    ForeignStep::meant_by(word).is_some() || of_kind(word).is_some()
}

/// The longest type that is looked up: longer ones are no words.
const MAX_WORD_BYTES: usize = 200;

/// The forms in which a type is looked up: the whole of it, and its last part, which is the word where products write a
/// package or a version around it: `io.kestra.plugin.core.flow.If`, `n8n-nodes-base.wait`.
fn forms(word: &str) -> Vec<String> {
    if word.len() > MAX_WORD_BYTES {
        return Vec::new();
    }
    let plain = |word: &str| -> String {
        word.chars().filter(char::is_ascii_alphanumeric).map(|letter| letter.to_ascii_lowercase()).collect()
    };
    let unversioned = word.split('@').next().unwrap_or(word);
    let last = unversioned.rsplit(['.', '/', ':']).next().unwrap_or(unversioned);
    if !word.is_ascii() { Vec::new() } else { vec![plain(word), plain(last)] }
}
