//! Messages that are no JSON: what can be kept of one, and whose answer it is. Some languages write halves of characters, numbers
//! that are none, and bytes that are no text; one of these must not look like a server that does not answer.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use loopctl_lang::policy::json_text;

/// The text of a message, with U+FFFD where it has bytes that are no text, or halves of characters.
pub(super) fn repaired(line: &[u8]) -> String {
    let text = String::from_utf8_lossy(line);
    let mut whole = String::with_capacity(text.len());
    let mut rest = &*text;
    while let Some((before, escape)) = rest.split_once('\\') {
        whole.push_str(before);
        // One unit has 5 characters after its mark, and the second one of a pair has its own mark.
        let second = escape.get(5..).and_then(|after| unit(after.strip_prefix('\\')?));
        let (kept, length) = match (unit(escape), second) {
            (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => (true, 11),
            (Some(0xd800..=0xdfff), _) => (false, 5),
            _ => (true, escape.chars().next().map_or(0, char::len_utf8)),
        };
        let (escape, after) = escape.split_at_checked(length).unwrap_or((escape, ""));
        whole.push('\\');
        whole.push_str(if kept { escape } else { "ufffd" });
        rest = after;
    }
    whole.push_str(rest);
    whole
}

fn unit(escape: &str) -> Option<u16> {
    u16::from_str_radix(escape.strip_prefix('u')?.get(..4)?, 16).ok()
}

/// The request that a message answers, by its outermost members; none for one that was not written to its end.
pub(super) fn answered(message: &str) -> Option<u64> {
    let line = message.as_bytes();
    let (mut depth, mut string_from, mut is_escaped) = (0_usize, None, false);
    let (mut id, mut has_version) = (None, false);
    for (at, byte) in line.iter().enumerate() {
        match (string_from, byte) {
            (Some(_), _) if is_escaped => is_escaped = false,
            (Some(_), b'\\') => is_escaped = true,
            (Some(from), b'"') => {
                string_from = None;
                let value = message.get(at..).and_then(|after| after.strip_prefix('"')?.trim_start().strip_prefix(':'));
                match (value, line.get(from..at)) {
                    (Some(value), Some(b"id")) if depth == 1 => id = number(value),
                    (Some(_), Some(b"jsonrpc")) if depth == 1 => has_version = true,
                    (Some(_), Some(b"method")) if depth == 1 => return None,
                    _ => {}
                }
            }
            (None, b'"') => string_from = Some(at.saturating_add(1)),
            (None, b'{' | b'[') => depth = depth.saturating_add(1),
            (None, b'}' | b']') => depth = depth.checked_sub(1)?,
            _ => {}
        }
    }
    id.filter(|_| has_version && depth == 0 && string_from.is_none())
}

fn number(text: &str) -> Option<u64> {
    let text = text.trim_start();
    let end = text.find(|c: char| !c.is_ascii_digit())?;
    text.get(..end)?.parse().ok()
}

#[derive(Deserialize)]
struct ListAnswer<'a> {
    jsonrpc: &'a str,
    id: u64,
    #[serde(borrow)]
    result: ListPage<'a>,
}

#[derive(Deserialize)]
struct ListPage<'a> {
    #[serde(borrow)]
    tools: Vec<&'a RawValue>,
    #[serde(rename = "nextCursor")]
    next_cursor: Option<String>,
}

#[derive(Deserialize)]
struct UnreadableTool {
    name: String,
}

/// A page of a list of tools, some of which can't be read: these keep only their names, so that they hide no other. With the
/// request that it answers.
pub(super) fn list_page(message: &str) -> Option<(u64, Value)> {
    let ListAnswer { jsonrpc: "2.0", id, result } = json_text::read(message).ok()? else { return None };
    let read = |tool: &&RawValue| {
        let named =
            || json_text::read(tool.get()).map_or(Value::Null, |UnreadableTool { name }| json!({ "name": name }));
        json_text::read(tool.get()).unwrap_or_else(|_| named())
    };
    let mut page = json!({ "tools": result.tools.iter().map(read).collect::<Vec<Value>>() });
    if let (Some(members), Some(cursor)) = (page.as_object_mut(), result.next_cursor) {
        members.insert("nextCursor".to_owned(), Value::String(cursor));
    }
    Some((id, page))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_of_characters_are_replaced_and_nothing_else() {
        for (line, text) in [
            (r#"{"a": "\ud83d\ude00 \\ud800 \"é\n"}"#, r#"{"a": "\ud83d\ude00 \\ud800 \"é\n"}"#),
            (
                r#"["\ud800", "\udc00x", "\ud800\ud83d\ude00", "\ud83d\n"]"#,
                r#"["\ufffd", "\ufffdx", "\ufffd\ud83d\ude00", "\ufffd\n"]"#,
            ),
            (r#"["\ud8"#, r#"["\ud8"#),
        ] {
            assert_eq!(repaired(line.as_bytes()), text);
        }
        assert_eq!(repaired(b"[\"\xff\"]"), "[\"\u{fffd}\"]");
    }

    #[test]
    fn an_answer_that_is_no_json_is_known_by_its_outermost_id() {
        let of = |text: &str| answered(text);
        assert_eq!(of(r#"{"jsonrpc": "2.0", "id": 7, "result": {"id": 8, "n": NaN}}"#), Some(7));
        assert_eq!(of(r#"{"result": [{"id": 8, "a": "\"}"}], "id" : 9, "jsonrpc": "2.0", "n": NaN}"#), Some(9));
        for none in [
            r#"{"jsonrpc": "2.0", "id": 7, "resu"#,
            r#"{"jsonrpc": "2.0", "id": 7, "method": "x", "n": NaN}"#,
            r#"{"jsonrpc": "2.0", "id": "7", "n": NaN}"#,
            r#"{"id": 7, "n": NaN}"#,
            r#"{"jsonrpc": "2.0", "id": 7}}"#,
        ] {
            assert_eq!(of(none), None, "{none}");
        }
    }

    #[test]
    fn a_tool_that_is_too_deep_hides_no_other() {
        let deep = format!("{}{}", "{\"a\":".repeat(300), "0".to_owned() + &"}".repeat(300));
        let text = format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":3,\"result\":{{\"tools\":[{{\"name\":\"x\",\"inputSchema\":{deep}}},{{\"name\":\"y\"}}],\"nextCursor\":\"c\"}}}}"
        );
        let page = json!({"tools": [{"name": "x"}, {"name": "y"}], "nextCursor": "c"});
        assert_eq!(list_page(&text), Some((3, page)));
        assert_eq!(list_page(r#"{"jsonrpc":"2.0","id":3,"result":{}}"#), None);
    }
}
