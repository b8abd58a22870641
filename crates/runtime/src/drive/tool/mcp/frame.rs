//! Messages of JSON-RPC 2.0: how they are written, and what one that came is.

use serde_json::{Map, Value, json};

use crate::drive::broken_message::{answered, list_page, repaired};
use loopctl_engine::json::from_bytes;
use loopctl_lang::policy::json_text;
use loopctl_lang::program::file_value::key_twice;

/// The most bytes of a message.
pub(super) const MAX_MESSAGE: usize = 4 << 20;

/// A request that was not asked for is answered so.
const METHOD_NOT_FOUND: i64 = -32601;

/// A message of a server.
#[derive(Debug)]
pub(super) enum Incoming {
    /// The answer to one of our requests.
    Answer { id: u64, outcome: Result<Value, Box<RpcError>> },
    /// A request, and what we answer.
    Request { reply: Value },
    /// A notification.
    Notification { method: String, params: Value },
    /// The answer to one of our requests that can't be read: why.
    Unreadable { id: u64, why: String },
    /// No message: its beginning.
    Noise(String),
}

/// An error that a server answered with.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct RpcError {
    pub code: String,
    pub message: String,
    pub data: Value,
}

/// The most characters that are kept of what is no message, and of the message of an error.
const MAX_QUOTED: usize = 300;

/// The text of a request.
pub(super) fn request(id: u64, method: &str, params: &Value) -> Vec<u8> {
    written(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }))
}

/// The text of a notification.
pub(super) fn notification(method: &str, params: &Value) -> Vec<u8> {
    written(&json!({ "jsonrpc": "2.0", "method": method, "params": params }))
}

/// The text of the notification that nobody waits for the answer to a request any more.
pub(super) fn cancellation(id: u64) -> Vec<u8> {
    notification("notifications/cancelled", &json!({ "requestId": id, "reason": "nobody waits for it any more" }))
}

/// A message as a line.
pub(super) fn written(message: &Value) -> Vec<u8> {
    let mut text = message.to_string().into_bytes();
    text.push(b'\n');
    text
}

/// What a line is. Blank lines are no message either, and are not counted.
pub(super) fn read(line: &[u8]) -> Option<Incoming> {
    let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line).trim_ascii();
    if line.is_empty() {
        return None;
    }
    let noise = || Incoming::Noise(quoted(&String::from_utf8_lossy(line)));
    let mut message = from_bytes(line);
    if message.is_err() && line.starts_with(b"{") {
        let text = repaired(line);
        message = json_text::read(&text);
        if let Err(error) = &message {
            return Some(if let Some((id, page)) = list_page(&text) {
                Incoming::Answer { id, outcome: Ok(page) }
            } else if let Some(id) = answered(&text) {
                Incoming::Unreadable { id, why: format!("{error}: {}", quoted(&text)) }
            } else {
                noise()
            });
        }
    }
    let twice = message.as_ref().ok().and_then(|message| key_twice(&String::from_utf8_lossy(line), message));
    let message = match message {
        Ok(Value::Object(message)) if message.get("jsonrpc").and_then(Value::as_str) == Some("2.0") => message,
        _ => return Some(noise()),
    };
    Some(match (of_message(message), twice) {
        // Of a list, each tool is judged by itself.
        (Some(Incoming::Answer { id, outcome: Ok(result) }), Some(key)) if result.get("tools").is_none() => {
            Incoming::Unreadable { id, why: format!("the key {} is in it twice", quoted(&format!("{key:?}"))) }
        }
        (incoming, _) => incoming.unwrap_or_else(noise),
    })
}

fn of_message(mut message: Map<String, Value>) -> Option<Incoming> {
    let id = message.remove("id").filter(|id| !id.is_null());
    if let Some(method) = message.get("method") {
        let method = method.as_str()?.to_owned();
        return Some(match id {
            Some(id) => Incoming::Request { reply: reply(&id, &method) },
            None => Incoming::Notification { method, params: message.remove("params").unwrap_or_default() },
        });
    }
    // Some servers give the id back as a text. Ours are whole numbers, so no other one can be meant.
    let id = id?;
    let id = id.as_u64().or_else(|| id.as_str().and_then(|id| id.parse().ok()))?;
    let outcome = match (message.remove("result"), message.remove("error").filter(|error| !error.is_null())) {
        (Some(result), None) => Ok(result),
        (None | Some(Value::Null), Some(error)) => Err(error_of(&error)),
        (Some(_), Some(_)) => {
            return Some(Incoming::Unreadable { id, why: "it has a result and an error".to_owned() });
        }
        (None, None) => return None,
    };
    Some(Incoming::Answer { id, outcome })
}

fn error_of(error: &Value) -> Box<RpcError> {
    let code = error.get("code").map(Value::to_string).unwrap_or_default();
    let message = error.get("message").and_then(Value::as_str).unwrap_or_default();
    Box::new(RpcError { code, message: quoted(message), data: error.get("data").cloned().unwrap_or_default() })
}

/// What a server's request is answered with. Unanswered, a server waits for good: a question is declined, and all else is not
/// known here.
fn reply(id: &Value, method: &str) -> Value {
    match method {
        "ping" => json!({ "jsonrpc": "2.0", "id": id, "result": {} }),
        "elicitation/create" => json!({ "jsonrpc": "2.0", "id": id, "result": { "action": "cancel" } }),
        _ => {
            let error = json!({ "code": METHOD_NOT_FOUND, "message": "this client does not answer it" });
            json!({ "jsonrpc": "2.0", "id": id, "error": error })
        }
    }
}

/// The beginning of a text.
pub(super) fn quoted(text: &str) -> String {
    match text.char_indices().nth(MAX_QUOTED) {
        Some((at, _)) => format!("{}...", text.get(..at).unwrap_or_default()),
        None => text.to_owned(),
    }
}

impl RpcError {
    /// In a line: `-32602 Unknown tool`.
    pub(super) fn line(&self) -> String {
        format!("{} {}", self.code, self.message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_message_is_noise_and_a_blank_line_is_nothing() {
        assert!(read(b"  \r\n").is_none());
        for line in [
            &b"listening on 3000"[..],
            b"{\"jsonrpc\": \"2.0\", \"id\": 1, \"result\":",
            b"[1]",
            b"7",
            b"{\"jsonrpc\": \"1.0\", \"id\": 1, \"result\": 1}",
            b"{\"jsonrpc\": \"2.0\", \"id\": 1}",
            b"{\"jsonrpc\": \"2.0\", \"id\": \"one\", \"result\": 1}",
            b"{\"jsonrpc\": \"2.0\", \"method\": 7}",
            b"\xff\xfe",
            b"log: {\"jsonrpc\": \"2.0\", \"id\": 1, \"result\": 1}",
        ] {
            let read = read(line);
            assert!(matches!(read, Some(Incoming::Noise(_))), "{read:?}");
        }
    }

    #[test]
    fn an_answer_that_can_not_be_read_is_known() {
        let text = "{\"jsonrpc\": \"2.0\", \"id\": 7, \"result\": {\"n\": NaN}}";
        assert!(matches!(read(text.as_bytes()), Some(Incoming::Unreadable { id: 7, .. })));
        let half = "{\"jsonrpc\": \"2.0\", \"id\": 7, \"result\": \"\\ud800\"}";
        let Some(Incoming::Answer { id: 7, outcome: Ok(result) }) = read(half.as_bytes()) else { panic!() };
        assert_eq!(result, "\u{fffd}");
    }

    #[test]
    fn an_answer_whose_id_is_a_text_or_that_has_two_outcomes_ends_its_request() {
        let of_text = read(b"{\"jsonrpc\": \"2.0\", \"id\": \"7\", \"result\": 1, \"error\": null}");
        assert!(matches!(of_text, Some(Incoming::Answer { id: 7, outcome: Ok(_) })), "{of_text:?}");
        let both = read(b"{\"jsonrpc\": \"2.0\", \"id\": 7, \"result\": {}, \"error\": {\"code\": 1}}");
        assert!(matches!(both, Some(Incoming::Unreadable { id: 7, .. })), "{both:?}");
        let failed = read(b"{\"jsonrpc\": \"2.0\", \"id\": 7, \"result\": null, \"error\": {\"code\": 1}}");
        assert!(matches!(failed, Some(Incoming::Answer { id: 7, outcome: Err(_) })), "{failed:?}");
    }

    #[test]
    fn an_answer_with_a_key_twice_is_not_taken_by_one_of_the_two() {
        let answer =
            |result: &str| read(format!("{{\"jsonrpc\": \"2.0\", \"id\": 7, \"result\": {result}}}").as_bytes());
        let twice = answer("{\"content\": [], \"structuredContent\": {\"fee\": 1.5, \"fee\": 15}}");
        let Some(Incoming::Unreadable { id: 7, why }) = twice else { panic!("{twice:?}") };
        assert_eq!(why, "the key \"fee\" is in it twice");
        let list = answer("{\"tools\": [{\"name\": \"a\", \"title\": \"A\", \"title\": \"B\"}]}");
        assert!(matches!(list, Some(Incoming::Answer { id: 7, outcome: Ok(_) })), "{list:?}");
    }

    #[test]
    fn an_answer_keeps_its_digits_and_a_mark_before_it_is_no_part_of_it() {
        let text = "\u{feff}{\"jsonrpc\": \"2.0\", \"id\": 7, \"result\": {\"n\": 12345678901234567890.10}}";
        let Some(Incoming::Answer { id: 7, outcome: Ok(result) }) = read(text.as_bytes()) else { panic!() };
        assert_eq!(result.to_string(), "{\"n\":12345678901234567890.10}");
        let Some(Incoming::Answer { outcome: Err(error), .. }) =
            read(b"{\"jsonrpc\": \"2.0\", \"id\": 7, \"error\": {\"code\": -32602, \"message\": \"Unknown tool\"}}")
        else {
            panic!()
        };
        assert_eq!(error.line(), "-32602 Unknown tool");
    }

    #[test]
    fn each_request_of_a_server_has_an_answer() {
        let reply = |method: &str| match read(
            format!("{{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"method\":\"{method}\"}}").as_bytes(),
        ) {
            Some(Incoming::Request { reply }) => reply,
            other => panic!("{other:?}"),
        };
        assert_eq!(reply("ping")["result"], json!({}));
        assert_eq!(reply("elicitation/create")["result"]["action"], "cancel");
        assert_eq!(reply("sampling/createMessage")["error"]["code"], -32601);
        assert_eq!(reply("ping")["id"], "a");
    }
}
