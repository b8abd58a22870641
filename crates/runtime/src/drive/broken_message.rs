//! Messages that are no JSON: what can be kept of one, and whose answer it is. Some languages write halves of characters, numbers
//! that are none, and bytes that are no text; one of these must not look like a server that does not answer.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use loopctl_lang::policy::json_text;

/// The text of a message, with U+FFFD where it has bytes that are no text, or halves of characters.
pub fn repaired(line: &[u8]) -> String {
    let text = String::from_utf8_lossy(line);
    json_text::repaired(&text).unwrap_or_else(|| text.into_owned())
}

/// The most bytes of an id that are kept.
const MAX_ID_BYTES: usize = 1_024;
/// The longest key that is looked for: the bytes of `jsonrpc`, and one more for longer ones.
const KEPT_KEY_BYTES: usize = 8;

/// The request that a message answers, by its outermost members; none for one that was not written to its end.
pub(super) fn answered(message: &str) -> Option<u64> {
    let mut members = OutermostMembers::default();
    members.take(message.as_bytes());
    let is_answer = members.is_whole() && members.has_version && !members.has_method;
    members.id().filter(|_| is_answer)?.as_u64()
}

/// The outermost members of a message, read byte by byte: of one that is no JSON, or too long to be kept.
#[derive(Debug, Default)]
pub struct OutermostMembers {
    depth: usize,
    is_in_text: bool,
    is_escaped: bool,
    /// Whether more is closed than was open.
    is_odd: bool,
    /// The text at the outermost level that was read last, as far as it is kept.
    text: Vec<u8>,
    is_in_id: bool,
    id: Vec<u8>,
    has_version: bool,
    /// Whether it is a request or a notification.
    pub has_method: bool,
}

impl OutermostMembers {
    /// Reads more of the message.
    pub fn take(&mut self, bytes: &[u8]) {
        for byte in bytes {
            if self.is_in_text {
                self.take_text(*byte);
            } else {
                self.take_sign(*byte);
            }
        }
    }

    fn take_text(&mut self, byte: u8) {
        self.keep(byte);
        match byte {
            _ if self.is_escaped => self.is_escaped = false,
            b'\\' => self.is_escaped = true,
            b'"' => self.is_in_text = false,
            _ => {}
        }
        if self.is_in_text && self.depth == 1 && self.text.len() < KEPT_KEY_BYTES {
            self.text.push(byte);
        }
    }

    fn take_sign(&mut self, byte: u8) {
        match byte {
            b'"' => {
                self.is_in_text = true;
                if self.depth == 1 {
                    self.text.clear();
                }
            }
            b'{' | b'[' => self.depth = self.depth.saturating_add(1),
            b'}' | b']' => {
                self.is_odd |= self.depth == 0;
                self.depth = self.depth.saturating_sub(1);
            }
            _ => {}
        }
        match byte {
            b':' if self.depth == 1 => {
                self.is_in_id = self.text == b"id";
                if self.is_in_id {
                    self.id.clear();
                }
                self.has_version |= self.text == b"jsonrpc";
                self.has_method |= self.text == b"method";
            }
            b',' if self.depth == 1 => self.is_in_id = false,
            _ if self.depth == 0 => self.is_in_id = false,
            _ => self.keep(byte),
        }
    }

    fn keep(&mut self, byte: u8) {
        if self.is_in_id && self.id.len() < MAX_ID_BYTES {
            self.id.push(byte);
        }
    }

    /// Whether the message was written to its end.
    pub fn is_whole(&self) -> bool {
        self.depth == 0 && !self.is_in_text && !self.is_odd
    }

    /// Its id; none when it has none, or one that can't be read.
    pub fn id(&self) -> Option<Value> {
        json_text::read(std::str::from_utf8(&self.id).ok()?).ok()
    }
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
    fn the_id_of_a_request_is_found_in_pieces_of_it() {
        for (text, id) in [
            (r#"{"method": "x", "params": {"id": 1, "a": "\ud83d"}, "jsonrpc": "2.0", "id": "a\"}"}"#, json!("a\"}")),
            (r#"{"id":12345678901234567890,"method":"x","params":NaN}"#, json!(12_345_678_901_234_567_890_u64)),
            (r#"{"id": {"a": [1, "b"]}, "method": "x"}"#, json!({ "a": [1, "b"] })),
        ] {
            let mut members = OutermostMembers::default();
            text.as_bytes().chunks(3).for_each(|piece| members.take(piece));
            assert!(members.has_method && members.is_whole(), "{text}");
            assert_eq!(members.id(), Some(id), "{text}");
        }
        let long = format!(r#"{{"method": "x", "id": "{}"}}"#, "a".repeat(MAX_ID_BYTES));
        for none in [r#"{"method": "x"}"#, r#"{"method": "x", "identity": 7}"#, r#"["id", 7]"#, &long] {
            let mut members = OutermostMembers::default();
            members.take(none.as_bytes());
            assert_eq!(members.id(), None, "{none}");
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
