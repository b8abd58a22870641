//! Calls that a model writes as text where it must make them: a text that has one is no answer. They are recognised by the
//! marks of call formats outside of code, and by objects and lines that call an offered tool; a text that only names a tool
//! or a format is an answer.
//!
//! Time and memory in proportion to the text: each mark is looked at for some bytes, and few objects are read.

use serde_json::{Map, Value};

use super::relaxed::{self, UnclosedBrackets};
use loopctl_lang::policy::call_form::{self, has, plain};
use loopctl_lang::program::{LoopProgram, Schema};

/// How many bytes of a mark are looked at.
const MARK: usize = 96;
/// The most objects of a text that are read, and the most bytes of all these readings.
const MAX_OBJECTS: usize = 64;
const MAX_READ: usize = 64 << 20;
/// The most entries of a list of calls that are looked at, and how deep calls are wrapped.
const MAX_ENTRIES: usize = 64;
const MAX_DEPTH: usize = 4;
/// The longest line that can be a call, in bytes.
const MAX_LINE: usize = 16 << 10;

/// What takes the place of a code block, and of code within a line.
const BLOCK: char = '\u{1}';
const SPAN: char = '\u{2}';

/// A tool that a call may name.
pub struct CallableTool<'a> {
    name: &'a str,
    /// The name that a provider is given.
    called: &'a str,
    parameters: &'a Value,
}

/// The tools that a call may name.
pub struct CallableTools<'a>(Vec<CallableTool<'a>>);

impl<'a> CallableTools<'a> {
    /// Those that a program offers.
    pub fn of(program: &'a LoopProgram) -> Self {
        let tool = |name: &'a str, parameters: &'a Schema| CallableTool {
            name,
            called: program.called.out(name),
            parameters: parameters.source(),
        };
        Self(program.offered().map(|offered| tool(&offered.name, &offered.parameters)).collect())
    }

    /// The tool of a name as models write it: `functions.look:0`.
    fn get(&self, name: &str) -> Option<&CallableTool<'a>> {
        let name = name.trim().trim_matches(['"', '\'', '`', '*']);
        let name = call_form::NAMESPACES.iter().find_map(|space| name.strip_prefix(space)).unwrap_or(name);
        let name = match name.rsplit_once(':') {
            Some((name, number)) if !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()) => name,
            _ => name,
        };
        self.0.iter().find(|tool| tool.name == name || tool.called == name)
    }

    fn has(&self, name: &str) -> bool {
        self.get(name).is_some()
    }
}

/// The call that a text writes, in some words of the text; none when it has none.
pub fn find(text: &str, tools: &CallableTools<'_>) -> Option<String> {
    let text = text.trim();
    // Code alone is what the text says.
    let text = match text.strip_prefix('`').and_then(|inner| inner.strip_suffix('`')) {
        Some(inner) if !inner.contains('`') => inner,
        _ => text,
    };
    // A text that is JSON as a whole is a call, or it is data, whatever its texts hold.
    let whole = super::as_json(text);
    if let Some(value @ (Value::Object(_) | Value::Array(_))) = &whole
        && !is_bare_list(value)
    {
        return called_by(value, tools, MAX_DEPTH);
    }
    // A call that was written as JSON in a JSON text.
    if let Some(Value::String(inner)) = &whole
        && let Some(value) = super::as_json(inner.trim())
        && let Some(called) = called_by(&value, tools, MAX_DEPTH)
    {
        return Some(called);
    }
    let Unmarked { plain, last, is_whole } = unmarked(text);
    if let Some(CodeBlock { language, code }) = last {
        if has(call_form::FENCES, language) && !code.trim().is_empty() {
            return Some(format!("a code block of {}", language.trim()));
        }
        let found = in_objects(code, tools).or_else(|| is_whole.then(|| in_lines(code, tools)).flatten());
        if found.is_some() {
            return found;
        }
    }
    marked(&plain, tools).or_else(|| in_objects(&plain, tools)).or_else(|| in_lines(&plain, tools))
}

/// Whether a text is a call where no tool was offered: it begins with the mark of one. Code that shows one is a text.
pub fn is_call_alone(text: &str) -> bool {
    let text = text.trim_start();
    text.starts_with(['<', '[']) && find(text, &CallableTools(Vec::new())).is_some_and(|mark| text.starts_with(&mark))
}

/// Whether a list has no object: `[look(id)]` may be read as one.
fn is_bare_list(value: &Value) -> bool {
    value.as_array().is_some_and(|items| !items.iter().any(|item| item.is_object() || item.is_array()))
}

/// A text without its code.
struct Unmarked<'t> {
    plain: String,
    /// The code block that ends the text.
    last: Option<CodeBlock<'t>>,
    /// Whether that block is the whole text.
    is_whole: bool,
}

/// A code block.
struct CodeBlock<'t> {
    language: &'t str,
    code: &'t str,
}

fn unmarked(text: &str) -> Unmarked<'_> {
    let mut found = Unmarked { plain: String::with_capacity(text.len()), last: None, is_whole: false };
    let mut rest = text;
    while let Some(at) = rest.find('`') {
        let (before, behind) = rest.split_at(at);
        found.plain.push_str(before);
        let ticks = behind.len().saturating_sub(behind.trim_start_matches('`').len());
        let inner = behind.get(ticks..).unwrap_or_default();
        if ticks >= 3 {
            let fence = behind.get(..ticks).unwrap_or_default();
            let end = inner.find(fence).unwrap_or(inner.len());
            let block = inner.get(..end).unwrap_or_default();
            let (language, code) = match block.split_once('\n') {
                Some((language, code)) if !language.trim().contains([' ', '{', '<', '(']) => (language, code),
                _ => ("", block),
            };
            rest = inner.get(end..).unwrap_or_default().trim_start_matches('`');
            if rest.trim().is_empty() {
                found.is_whole = found.plain.trim().is_empty();
                found.last = Some(CodeBlock { language, code });
            }
            found.plain.push(BLOCK);
            continue;
        }
        // Code within a line ends on that line; without its end, the tick is a letter.
        let tick = behind.get(..ticks).unwrap_or_default();
        // The next tick is near, where there is one: lines may have no end, and each is looked through once.
        let code = inner.find(tick).and_then(|end| inner.get(..end));
        match code.filter(|code| !code.contains('\n')) {
            Some(code) => {
                found.plain.push(SPAN);
                rest = inner.get(code.len().saturating_add(ticks)..).unwrap_or_default();
            }
            None => {
                // No later tick of this line has an end either.
                let line = inner.split('\n').next().unwrap_or_default();
                found.plain.push_str(tick);
                found.plain.push_str(line);
                rest = inner.get(line.len()..).unwrap_or_default();
            }
        }
    }
    found.plain.push_str(rest);
    found
}

/// The first mark of a call format.
fn marked(text: &str, tools: &CallableTools<'_>) -> Option<String> {
    let lower = text.to_ascii_lowercase();
    if let Some(known) = call_form::TEXTS.iter().find(|known| lower.contains(**known)) {
        return Some((*known).to_owned());
    }
    let marks = text.match_indices(['<', '[', '>']);
    let mut found = marks.filter_map(|(at, sign)| {
        let head = head(text.get(at..)?, MARK);
        let length = match sign {
            "<" => token(head).or_else(|| tag(text, at, head, tools)),
            "[" => bracket(head, tools),
            // Functionary: `>>>look`, and its input on the next line.
            _ => head.strip_prefix(">>>").and_then(|name| {
                let name = name.split('\n').next()?;
                tools.has(name).then_some(name.len().saturating_add(3))
            }),
        }?;
        Some(head.get(..length)?.trim().to_owned())
    });
    found.next()
}

/// The beginning of a text, of at most this length in bytes.
fn head(text: &str, most: usize) -> &str {
    text.get(..text.floor_char_boundary(most)).unwrap_or(text)
}

fn is_bar(c: char) -> bool {
    matches!(c, '|' | '｜')
}

/// The length of the special token that a text begins with, if it comes with calls.
fn token(text: &str) -> Option<usize> {
    let inner = text.strip_prefix('<')?;
    let opened = inner.starts_with(is_bar) || inner.strip_prefix('/').is_some_and(|name| name.starts_with(is_bar));
    let end = inner.find(['>', '\n', '<'])?;
    let name = inner.get(..end)?;
    if !opened && !name.ends_with(is_bar) {
        return None;
    }
    // `<|DSML|invoke name="look">`, `<|channel|>`.
    let word = plain(name.trim_matches(is_bar).split(['=', '"']).next().unwrap_or_default());
    let closes = inner.get(end..)?.starts_with('>');
    let length = end.saturating_add(1 + usize::from(closes));
    let is_call = call_form::TOKEN_PARTS.iter().any(|part| word.contains(part)) || has(call_form::TOKENS, &word);
    let behind = text.get(length..).unwrap_or_default();
    let is_addressed = || {
        has(call_form::ADDRESSED_TOKENS, &word) && behind.split('\n').next().is_some_and(|line| line.contains("to="))
    };
    (is_call || is_addressed()).then_some(length)
}

/// The length of the tag at this byte of a text, if it is one of a call.
fn tag(text: &str, at: usize, head: &str, tools: &CallableTools<'_>) -> Option<usize> {
    let inner = head.strip_prefix('<')?;
    let closing = inner.strip_prefix('/');
    let inner = closing.unwrap_or(inner);
    let length = inner.find(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '-' | ':' | '.' | '/')))?;
    let name = inner.get(..length)?;
    let rest = inner.get(length..)?;
    let word = plain(name.rsplit(':').next().unwrap_or(name));
    let is_of_calls = call_form::TAG_ENDS.iter().any(|end| word.ends_with(end));
    let whole = head.len().saturating_sub(rest.len());
    if closing.is_some() {
        // Its opening one is a special token that the server left out.
        let before = text.get(..at)?.trim_end();
        let is_behind_part = || {
            has(call_form::TAGS_OF_PARTS, &word) && call_form::PARTS_OF_CALL.iter().any(|part| before.ends_with(part))
        };
        let is_end = is_of_calls && before.ends_with(['}', ']', ')', '>', BLOCK]) || is_behind_part();
        let is_end = is_end && rest.starts_with('>');
        return is_end.then_some(whole.saturating_add(1));
    }
    if let Some(value) = rest.strip_prefix('=') {
        let named = value.starts_with(|c: char| c.is_alphanumeric() || matches!(c, '"' | '\'' | '_'));
        return (has(call_form::TAGS_WITH_VALUE, &word) && named).then_some(whole);
    }
    let (attributes, behind) = rest.split_once('>').map_or((rest, None), |(attributes, rest)| (attributes, Some(rest)));
    let attribute = |name: &str| {
        let value = attributes.split_once(name)?.1.trim_start().strip_prefix('=')?.trim_start();
        let value = value.strip_prefix(['"', '\''])?;
        value.split(['"', '\'']).next()
    };
    let is_call = if is_of_calls {
        let before = text.get(..at)?.trim_end_matches(|c: char| c.is_whitespace() && c != '\n');
        let begins_line = before.is_empty() || before.ends_with('\n');
        behind.is_some_and(|body| is_body(body, begins_line, tools))
    } else if has(call_form::TAGS_ALONE, &word) {
        behind.is_some()
    } else if has(call_form::TAGS_WITH_NAME, &word) {
        attribute("name").is_some()
    } else if has(call_form::TAGS_OF_TOOL, &word) {
        let said = behind.and_then(|body| body.split('<').next());
        attribute("name").or(said).is_some_and(|name| tools.has(name))
    } else {
        tools.get(name).is_some_and(|tool| is_input_of(tool, attributes, behind.unwrap_or_default()))
    };
    is_call.then_some(whole)
}

/// Whether a tag with the name of a tool (`<look><id>7</id></look>`) gives it an input.
fn is_input_of(tool: &CallableTool<'_>, attributes: &str, body: &str) -> bool {
    let declares = |name: &str| tool.parameters.pointer("/properties").is_some_and(|all| all.get(name).is_some());
    let body = body.trim_start();
    let child = body.strip_prefix('<').and_then(|child| child.split(['>', ' ', '=']).next());
    let given = attributes.split_once('=').map(|(name, _)| name.trim());
    body.starts_with('{') || child.is_some_and(declares) || given.is_some_and(declares)
}

/// The length of the words in brackets that a text begins with, if they begin a call.
fn bracket(text: &str, tools: &CallableTools<'_>) -> Option<usize> {
    let inner = text.strip_prefix('[')?;
    let end = inner.find(']')?;
    let name = inner.get(..end)?;
    let is_word = name.bytes().all(|byte| byte.is_ascii_alphabetic() || byte == b'_');
    if !is_word || !has(call_form::BRACKETS, name) {
        return None;
    }
    let body = inner.get(end.saturating_add(1)..)?;
    is_body(body, false, tools).then_some(end.saturating_add(2))
}

/// Whether the text behind an opening mark is a call, and not prose about the mark.
fn is_body(body: &str, begins_line: bool, tools: &CallableTools<'_>) -> bool {
    let body = body.trim_start();
    if body.is_empty() || body.starts_with(['{', BLOCK]) {
        return true;
    }
    if let Some(rest) = body.strip_prefix('<') {
        return begins_line || !rest.starts_with('/');
    }
    if let Some(rest) = body.strip_prefix('[') {
        return !rest.starts_with(']');
    }
    let length =
        body.find(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/'))).unwrap_or(body.len());
    let (word, rest) = body.split_at(length);
    if !word.contains(char::is_alphanumeric) {
        return false;
    }
    tools.has(word)
        || rest.starts_with(['(', '{', '[', '<', '\n', ':', '='])
        || rest.trim_start_matches(' ').starts_with(['{', '['])
}

/// The first object of a text that calls a tool.
fn in_objects(text: &str, tools: &CallableTools<'_>) -> Option<String> {
    let most = MAX_READ.checked_div(text.len()).unwrap_or(MAX_OBJECTS).clamp(1, MAX_OBJECTS);
    let (mut tried, mut from) = (0, 0);
    while tried < most {
        let at = text.get(from..)?.find('{')?.saturating_add(from);
        from = match relaxed::object(text, at, UnclosedBrackets::Close) {
            Ok(found) => {
                if let Some(called) = called_by(&Value::Object(found.map), tools, MAX_DEPTH) {
                    return Some(called);
                }
                found.end.max(at.saturating_add(1))
            }
            Err(_) => {
                tried += 1;
                at.saturating_add(1)
            }
        };
    }
    None
}

/// The tool that a value calls.
fn called_by(value: &Value, tools: &CallableTools<'_>, depth: usize) -> Option<String> {
    let depth = depth.checked_sub(1)?;
    match value {
        Value::Array(items) => items.iter().take(MAX_ENTRIES).find_map(|item| called_by(item, tools, depth)),
        Value::Object(map) => called_by_object(map, tools, depth),
        _ => None,
    }
}

fn called_by_object(map: &Map<String, Value>, tools: &CallableTools<'_>, depth: usize) -> Option<String> {
    let members = || map.iter().take(MAX_ENTRIES);
    let input = members().find(|(key, _)| has(call_form::INPUT_KEYS, key)).map(|(_, input)| input);
    // `{"name", "description", "parameters": {"type": "object", "properties"}}` is what a tool is.
    if input.is_some_and(|input| input.get("properties").is_some()) {
        return None;
    }
    for (key, value) in members() {
        let Some(name) = value.as_str().filter(|name| tools.has(name)) else { continue };
        let is_named = has(call_form::TOOL_KEYS, key)
            || has(call_form::NAME_KEYS, key)
                && (input.is_some() || members().all(|(other, _)| other == key || has(call_form::BESIDE_KEYS, other)));
        if is_named {
            return Some(format!("an object that calls {name}"));
        }
    }
    let wrapped = members().filter(|(key, value)| !value.is_string() && has(call_form::CALL_KEYS, key));
    if let Some(found) = wrapped.map(|(_, value)| value).find_map(|value| called_by(value, tools, depth)) {
        return Some(found);
    }
    // `{"look": {"id": 7}}`
    let (name, Value::Object(input)) = map.iter().next().filter(|_| map.len() == 1)? else { return None };
    let declared = tools.get(name)?.parameters.get("properties")?.as_object()?;
    let is_input = !input.is_empty() && input.keys().all(|key| declared.contains_key(key));
    is_input.then(|| format!("an object that calls {name}"))
}

/// The first line of a text that calls a tool.
fn in_lines(text: &str, tools: &CallableTools<'_>) -> Option<String> {
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty()).peekable();
    let mut is_thought = false;
    while let Some(line) = lines.next() {
        let near = NearLines { is_thought, next: lines.peek().copied() };
        is_thought = labelled(head(line, MARK)).is_some_and(|(label, _)| plain(label) == "thought");
        if line.len() > MAX_LINE {
            continue;
        }
        let above_input = tools.has(line) && near.next.is_some_and(|next| next.starts_with(['{', BLOCK]));
        if above_input || is_call_line(line, tools) || is_labelled_call(line, &near, tools) {
            return Some(line.chars().filter(|c| !matches!(*c, BLOCK | SPAN)).take(MARK).collect());
        }
    }
    None
}

/// What stands near a line.
struct NearLines<'t> {
    /// Whether the line before it begins with `Thought:`.
    is_thought: bool,
    next: Option<&'t str>,
}

/// Whether a line is `Action: look`, with an input behind it; `Action: look(id=7)`; or `Action:` above `Action Input:`.
fn is_labelled_call(line: &str, near: &NearLines<'_>, tools: &CallableTools<'_>) -> bool {
    let Some((label, value)) = labelled(line) else { return false };
    if !has(call_form::TOOL_LABELS, label) {
        return false;
    }
    let value = if line.starts_with('[') { value.trim_end().trim_end_matches(']') } else { value };
    let value = value.trim().trim_matches(['*', '_', '"', '\'']).trim();
    let next = near.next.and_then(|next| labelled(head(next, MARK))).map(|(label, _)| plain(label));
    // Many texts have a name and an input, and no call.
    let is_plain = plain(label) == "name";
    let is_object = || {
        near.next.and_then(|next| next.split_once(':')).is_some_and(|(_, value)| value.trim().starts_with(['{', BLOCK]))
    };
    let has_input =
        next.as_deref().is_some_and(|label| has(call_form::INPUT_LABELS, label)) && (!is_plain || is_object());
    let is_action = plain(label) == "action";
    let is_call = has(call_form::CALL_LABELS, label);
    if tools.has(value) {
        return has_input || is_call || is_action && near.is_thought;
    }
    is_action && next.as_deref() == Some("actioninput")
        || is_call_line(value, tools)
        || (is_call || is_action) && value.split_once(['[', '{']).is_some_and(|(name, _)| tools.has(name))
}

/// The label of a line, and what it says: `**Action:** look`.
fn labelled(line: &str) -> Option<(&str, &str)> {
    let line = line.trim_start_matches(['*', '#', '>', '_', '[', ' ']);
    let (label, value) = line.split_once(':')?;
    (label.len() <= 24).then_some((label, value))
}

/// Whether a line is nothing but a call: `look(id=7)`, `print(look(id=7))`, `[look(id=7), look(id=8)]`, `look({"id": 7})`.
fn is_call_line(line: &str, tools: &CallableTools<'_>) -> bool {
    let line = line.trim().trim_matches('`').trim_end_matches(';').trim();
    let inner = line.strip_prefix('[').and_then(|inner| inner.strip_suffix(']')).unwrap_or(line);
    let inner = inner.strip_prefix("print(").and_then(|inner| inner.strip_suffix(')')).unwrap_or(inner);
    let inner = inner.strip_prefix("await ").unwrap_or(inner).trim();
    let inner = match inner.split_once('=') {
        Some((variable, call)) if is_name(variable.trim()) => call.trim(),
        _ => inner,
    };
    let inner = inner.strip_prefix("await ").unwrap_or(inner).trim();
    let inner = inner.strip_prefix("call:").unwrap_or(inner);
    let Some(at) = inner.find(['(', '{']) else { return false };
    let (name, input) = inner.split_at(at);
    let name = name.strip_suffix(".call").unwrap_or(name);
    // `look (7 found)` is prose.
    if !tools.has(name) || input.starts_with('(') && name.ends_with(' ') {
        return false;
    }
    // `look(id)` and `look(id: string)` say what it takes; `look(` continues on the next line.
    let ends = inner.ends_with([')', '}', '(', '{']);
    let is_object = input.starts_with('{');
    let input = input.trim_matches(['(', ')', '}']).trim();
    let has_value = input.contains(['=', '{', '"', '\'', '<']) || input.bytes().any(|byte| byte.is_ascii_digit());
    ends && (is_object || input.is_empty() || has_value)
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::{CallableTool, CallableTools, find};

    fn found(text: &str) -> Option<String> {
        let parameters: Value = json!({ "type": "object", "properties": { "order_id": {}, "x": {} } });
        let tool = |name| CallableTool { name, called: name, parameters: &parameters };
        find(text, &CallableTools(vec![tool("lookup"), tool("search"), tool("__complete__")]))
    }

    /// A call of `lookup` in many formats.
    const FORMS: &[&str] = &[
        "<tool_call>\n{\"name\": \"lookup\", \"arguments\": {\"order_id\": \"A-1\"}}\n</tool_call>",
        "<tool_call>\n```json\n{\"name\": \"lookup\", \"arguments\": {}}\n```\n</tool_call>",
        "<tool_call>\n<function=lookup>\n<parameter=order_id>\nA-1\n</parameter>\n</function>\n</tool_call>",
        "<function=lookup>{\"order_id\": \"A-1\"}</function>",
        "<tool_call>lookup\n<arg_key>order_id</arg_key>\n<arg_value>A-1</arg_value>\n</tool_call>",
        "<tool_call>",
        "{\"name\": \"lookup_order\", \"arguments\": {\"order_id\": \"A-1\"}}\n</tool_call>",
        "<tool_calls>\n{\"name\": \"lookup\", \"arguments\": {}}\n</tool_calls>",
        "<TOOLCALL>[{\"name\": \"lookup\", \"arguments\": {}}]</TOOLCALL>",
        "<minimax:tool_call>\n<invoke name=\"lookup\">\n<parameter name=\"order_id\">A-1</parameter>\n</invoke>\n</minimax:tool_call>",
        "<seed:tool_call><function=lookup><parameter=order_id>A-1</parameter></function></seed:tool_call>",
        "<function_calls>\n<invoke name=\"lookup\">\n</invoke>\n</function_calls>",
        "<function_calls>\nlookup(order_id=\"A-1\")\n</function_calls>",
        "<function_call>{\"name\": \"lookup\", \"arguments\": \"{}\"}</function_call>",
        "<functioncall> {\"name\": \"lookup\", \"arguments\": {}}",
        "<start_function_call>call:lookup{order_id:<escape>A-1<escape>}<end_function_call>",
        "<|tool_call>call:lookup{order_id:<|\"|>A-1<|\"|>}<tool_call|>",
        "<xai:function_call name=\"lookup\">\n<parameter name=\"order_id\">A-1</parameter>\n</xai:function_call>",
        "<tool name=\"lookup\"><order_id>A-1</order_id></tool>",
        "<use_mcp_tool>\n<server_name>orders</server_name>\n<tool_name>lookup</tool_name>\n</use_mcp_tool>",
        "<tool_use>\n<name>lookup</name>\n<arguments>{}</arguments>\n</tool_use>",
        "<lookup>\n<order_id>A-1</order_id>\n</lookup>",
        "<lookup order_id=\"A-1\"/>",
        "<|tool_call|>[{\"name\": \"lookup\", \"arguments\": {}}]<|/tool_call|>",
        "<|tool_call_start|>[lookup(order_id=\"A-1\")]<|tool_call_end|>",
        "<|python_tag|>lookup.call(order_id=\"A-1\")",
        "<|action_start|><|plugin|>\n{\"name\": \"lookup\", \"parameters\": {}}<|action_end|>",
        "<|START_ACTION|>[{\"tool_call_id\": \"0\", \"tool_name\": \"lookup\", \"parameters\": {}}]<|END_ACTION|>",
        "<|tools_prefix|>[{\"lookup\": {\"order_id\": \"A-1\"}}]<|tools_suffix|>",
        "[TOOL_CALLS] [{\"name\": \"lookup\", \"arguments\": {\"order_id\": \"A-1\"}}]",
        "[TOOL_CALLS]lookup[ARGS]{\"order_id\": \"A-1\"}",
        "[TOOL_REQUEST]\n{\"name\": \"lookup\", \"arguments\": {}}\n[END_TOOL_REQUEST]",
        "[TOOL_CALL]\n{tool => \"lookup\", args => {\n  --order_id \"A-1\"\n}}\n[/TOOL_CALL]",
        "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>lookup\n```json\n{\"order_id\": \"A-1\"}\n```<｜tool▁call▁end｜>",
        "<｜tool▁call▁begin｜>lookup<｜tool▁sep｜>{\"order_id\": \"A-1\"}",
        "<｜tool calls begin｜>lookup",
        "<｜DSML｜function_calls>\n<｜DSML｜invoke name=\"lookup\">\n</｜DSML｜invoke>\n</｜DSML｜function_calls>",
        "<|DSML|invoke name=\"lookup\">",
        "<|tool_calls_section_begin|><|tool_call_begin|>functions.lookup:0<|tool_call_argument_begin|>{}<|tool_call_end|>",
        "functions.lookup:0 {\"order_id\": \"A-1\"}",
        "<|channel|>commentary to=functions.lookup <|constrain|>json<|message|>{\"order_id\": \"A-1\"}<|call|>",
        "<|start|>assistant<|channel|>commentary to=lookup<|message|>{}",
        "assistantcommentary to=functions.lookup json{\"order_id\": \"A-1\"}",
        "{\"tool_calls\": [{\"id\": \"1\", \"type\": \"function\", \"function\": {\"name\": \"lookup\", \"arguments\": \"{}\"}}]}",
        "{\"function_call\": {\"name\": \"lookup\", \"arguments\": \"{}\"}}",
        "{\"functionCall\": {\"name\": \"lookup\", \"args\": {}}}",
        "{\"tool_uses\": [{\"recipient_name\": \"functions.lookup\", \"parameters\": {}}]}",
        "{\"type\": \"function\", \"name\": \"lookup\", \"parameters\": {}}",
        "{\"tool\": \"lookup\", \"tool_input\": {\"order_id\": \"A-1\"}}",
        "{\"thought\": \"Now.\", \"action\": \"lookup\", \"action_input\": {}}",
        "{\"lookup\": {\"order_id\": \"A-1\"}}",
        "[{\"name\": \"lookup\", \"arguments\": {}}, {\"name\": \"lookup\", \"arguments\": {}}]",
        "{\"name\": \"lookup\"}",
        "{\"name\": \"lookup\", \"arguments\": {\"order_id\": \"A-1\"}",
        "functools[{\"name\": \"lookup\", \"arguments\": {}}]",
        ">>>lookup\n{\"order_id\": \"A-1\"}",
        "lookup\n{\"order_id\": \"A-1\"}",
        "```json\n{\"name\": \"lookup\", \"arguments\": {\"order_id\": \"A-1\"}}\n```",
        "```tool_code\nprint(lookup(order_id=\"A-1\"))\n```",
        "Action: lookup\nAction Input: {\"order_id\": \"A-1\"}",
        "**Action:** lookup\n**Action Input:** A-1",
        "Thought: now.\nAction: lookup",
        "Action: `lookup`\nAction Input: {}",
        "Action: lookup[A-1]",
        "Action: lookup(order_id=\"A-1\")",
        "Action:\n```json\n[{\"tool_name\": \"lookup\", \"parameters\": {}}]\n```",
        "Tool: lookup\nArguments: {\"order_id\": \"A-1\"}",
        "[Tool call: lookup({\"order_id\": \"A-1\"})]",
        "lookup(order_id=\"A-1\")",
        "[lookup(order_id=\"A-1\"), lookup(order_id=\"A-2\")]",
        "result = await lookup(order_id=\"A-1\")",
        "default_api.lookup(order_id='A-1')",
        "lookup(\n  order_id=\"A-1\"\n)",
        "lookup()",
        "lookup.call(order_id=\"A-1\")",
        "<call_record tool=\"lookup\"><parameter name=\"x\">1</parameter></call_record>",
        "<call:default_api:lookup{x:1}/>",
        "<|open|>toolscall tool=\"lookup\" index=\"1\"<|sep|><|open|>argument key=\"x\"<|sep|>1",
        "to=lookup<|channel|>commentary json<|message|>{\"x\": 1}",
        "<longcat_arg_key>x</longcat_arg_key>\n<longcat_arg_value>1</longcat_arg_value>",
        "A-1\n</parameter>\n</invoke>",
    ];

    #[test]
    fn a_call_in_the_words_of_any_format_is_found() {
        let prose = "I will look it up now.\n";
        for form in FORMS {
            assert!(found(form).is_some(), "{form}");
            assert!(found(&format!("{prose}{form}")).is_some(), "behind prose: {form}");
            assert!(found(&format!("  \n{form}\n")).is_some(), "{form}");
        }
        assert!(found("```python\nlookup(order_id=\"A-1\")\n```").is_some());
        assert!(found("`lookup(order_id=\"A-1\")`").is_some());
        assert!(found(&json!("{\"name\": \"lookup\", \"arguments\": {\"x\": 1}}").to_string()).is_some());
    }

    #[test]
    fn a_text_that_names_a_tool_or_a_format_is_none() {
        for text in [
            "The order is on its way.",
            "I used lookup and search; lookup() gave nothing, so the order A-1 is lost.",
            "The tool lookup takes an order_id: lookup(order_id) returns its state.",
            "The tools are:\n- lookup(order_id)\n- search(x: string)\nlookup(order_id)",
            "Hermes models write a `<tool_call>` tag, and Mistral's write `[TOOL_CALLS]`.",
            "Hermes models write <tool_call> before a call and </tool_call> behind it.",
            "A call looks like this:\n```\n<tool_call>{\"name\": \"lookup\", \"arguments\": {}}</tool_call>\n```\nThat is all.",
            "Write this:\n```json\n{\"name\": \"lookup\", \"arguments\": {}}\n```\nand send it.",
            "Use it so:\n```python\nlookup(order_id=\"A-1\")\n```",
            "See [Tool calls](https://example.com) and [tool_calls](https://example.com/x).",
            "{\"name\": \"nightly-report\", \"parameters\": {\"region\": \"EU\"}}",
            "{\"name\": \"Ann\", \"arguments\": \"none\"}",
            "{\"tool_calls\": [{\"function\": {\"name\": \"other\", \"arguments\": \"{}\"}}]}",
            "{\"text\": \"<tool_call>{}</tool_call>\", \"tool_calls\": 3}",
            "{\"name\": \"lookup\", \"description\": \"Looks.\", \"parameters\": {\"type\": \"object\", \"properties\": {}}}",
            "{\"name\": \"lookup\", \"count\": 3}",
            "{\"lookup\": {\"state\": \"sent\"}}",
            "{\"lookup\": 3, \"search\": 4}",
            "[\"lookup\", \"search\"]",
            "Action: call the customer.\nOwner: Ann",
            "Cause: disk full\nAction: lookup\nOwner: Ann",
            "Name: Ann\nInput: 3 files",
            "search (7 results) was enough (see 3)",
            "lookup: 3 calls\nsearch: 2 calls",
            "if a < b and c > d then [x] and {y}",
            "<table><tr><td>A-1</td></tr></table>",
            "<search>\n<title>Found</title>\n</search>",
            "It costs 5 `coins and <b>more</b>",
            "\"{\\\"state\\\": \\\"sent\\\"}\"",
            "<config><function>f</function><parameter>x</parameter></config>",
            "",
            "`",
            "```",
        ] {
            assert_eq!(found(text), None, "{text}");
        }
    }

    #[test]
    fn a_hostile_text_takes_time_in_proportion_to_its_length() {
        for piece in [
            "<tool_call> is ",
            "<|",
            "[",
            "{",
            "{\"a\":",
            "`",
            "``a`",
            "```",
            "<tool_call",
            "lookup(",
            "Action: ",
            "\n{",
            "```a`",
        ] {
            assert_eq!(found(&format!("- {} -", piece.repeat(1 << 15))), None, "{piece}");
        }
        for (piece, count) in [("` ", 1 << 18), ("<tool_call is ", 1 << 16)] {
            assert_eq!(found(&format!("- {} -", piece.repeat(count))), None, "{piece}");
        }
        // Quadratic work on hundreds of kilobytes would take minutes.
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(
            any in "(<|>|\\||｜|\\[|\\]|\\{|\\}|`|\n|:|\"|=|\\(|\\)|/|tool|_call|▁|lookup|order_id|Action|Input|name|é| ){0,24}",
        ) {
            drop(found(&any));
        }
    }
}
