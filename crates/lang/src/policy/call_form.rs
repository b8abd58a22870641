//! The forms in which models write calls of tools as text, when their server did not read them as calls: those of the chat
//! templates, and those of prompts. A name is compared by its letters and digits alone, in lower case.

/// What the name of a special token (`<|tool_calls_section_begin|>`, `<｜tool▁call▁begin｜>`, `<|DSML|invoke`) contains.
pub const TOKEN_PARTS: &[&str] = &["toolcall", "toolscall", "functioncall", "dsml", "toolsprefix"];

/// The names of other special tokens that come with calls alone.
pub const TOKENS: &[&str] =
    &["toolsep", "pythontag", "actionstart", "startaction", "plugin", "recipient", "constrain", "call"];

/// Special tokens that come with calls and with texts: a receiver (`to=`) on the same line makes it a call.
pub const ADDRESSED_TOKENS: &[&str] = &["start", "channel"];

/// What the name of a tag ends with, behind its namespace: `<tool_call>`, `<minimax:tool_call>`, `<TOOLCALL>`.
pub const TAG_ENDS: &[&str] = &[
    "toolcall",
    "toolcalls",
    "functioncall",
    "functioncalls",
    "tooluse",
    "tooluses",
    "usetool",
    "usemcptool",
    "toolcode",
    "executetool",
    "callrecord",
    "argkey",
    "argvalue",
    // What a model writes in place of a result is made up, and so is what it says of it.
    "toolresponse",
    "toolresponses",
    "toolresult",
    "toolresults",
    "functionresponse",
    "functionresult",
    "functionresults",
];

/// Tags that are a call with `=` and a name: `<function=look>`.
pub const TAGS_WITH_VALUE: &[&str] = &["function", "parameter", "tool", "invoke", "toolcall", "functioncall"];

/// Tags that are a call whatever is in them.
pub const TAGS_ALONE: &[&str] = &["argkey"];

/// Tags that are a call with the attribute `name`, whatever it says.
pub const TAGS_WITH_NAME: &[&str] = &["invoke"];

/// Tags whose end, right behind the end of one of [`PARTS_OF_CALL`], is a call: the server left the beginning out.
pub const TAGS_OF_PARTS: &[&str] = &["invoke", "function"];

/// The ends of the last part of a call in such a tag.
pub const PARTS_OF_CALL: &[&str] = &["</parameter>"];

/// Tags that are a call with the name of a tool, as the attribute `name` or as text.
pub const TAGS_OF_TOOL: &[&str] = &["function", "tool", "call", "action", "toolname", "functionname"];

/// Words in brackets: `[TOOL_CALLS]`.
pub const BRACKETS: &[&str] = &["toolcalls", "toolcall", "toolrequest", "functioncall", "functioncalls", "tooluse"];

/// Texts that occur in calls alone.
pub const TEXTS: &[&str] = &[
    "to=functions.",
    "commentary to=",
    "<|channel|>commentary json",
    "<|open|>toolscall",
    "<|open|>argument",
    "functools[{",
    "functools [{",
    "<call:",
    "multi_tool_use.parallel",
];

/// The languages of code blocks that are calls.
pub const FENCES: &[&str] = &["toolcall", "toolcalls", "toolcode", "tooluse", "functioncall", "functioncalls"];

/// What may stand before the name of a tool: `functions.look`.
pub const NAMESPACES: &[&str] = &["functions.", "function.", "default_api.", "tools.", "tool."];

/// The keys of an object that name what is called, and nothing else.
pub const TOOL_KEYS: &[&str] = &[
    "tool",
    "toolname",
    "action",
    "actionname",
    "function",
    "functionname",
    "recipientname",
    "toolcall",
    "functioncall",
];

/// The keys of an object that may name what is called: beside an input.
pub const NAME_KEYS: &[&str] = &["name", "call", "method", "command"];

/// The keys of an object that give the input of a call.
pub const INPUT_KEYS: &[&str] = &[
    "arguments",
    "args",
    "parameters",
    "params",
    "input",
    "toolinput",
    "actioninput",
    "toolargs",
    "toolarguments",
    "functionargs",
    "kwargs",
];

/// The keys of an object that may be beside the name of a call without an input.
pub const BESIDE_KEYS: &[&str] = &["type", "id", "callid", "toolcallid", "thought", "reasoning", "reason"];

/// The keys of an object or list that is, or holds, calls.
pub const CALL_KEYS: &[&str] = &[
    "toolcalls",
    "tooluses",
    "toolcall",
    "tooluse",
    "functioncall",
    "functioncalls",
    "function",
    "tool",
    "call",
    "calls",
];

/// The words before a colon that name what is called: `Action: look`.
pub const TOOL_LABELS: &[&str] = &[
    "action",
    "tool",
    "toolcall",
    "toolname",
    "tooluse",
    "function",
    "functioncall",
    "functionname",
    "name",
    "call",
    "calling",
    "callingtool",
    "calltool",
];

/// Those of them that are a call without an input behind them.
pub const CALL_LABELS: &[&str] = &["toolcall", "functioncall", "callingtool", "calltool"];

/// The words before a colon that give the input of a call: `Action Input: {}`.
pub const INPUT_LABELS: &[&str] = &[
    "actioninput",
    "toolinput",
    "input",
    "arguments",
    "args",
    "parameters",
    "params",
    "toolarguments",
    "toolargs",
    "functionarguments",
];

/// A name by its letters and digits, in lower case.
pub fn plain(name: &str) -> String {
    name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// Whether a list has the name.
pub fn has(list: &[&str], name: &str) -> bool {
    list.contains(&plain(name).as_str())
}
