//! Messages of JSON-RPC 2.0 that a client sends, and how they are answered.

use serde_json::{Map, Value, json};

use super::{MAX_ID_BYTES, MAX_MESSAGE_BYTES};
use crate::drive::broken_message::{OutermostMembers, repaired};
use crate::engine::json::from_bytes;
use crate::program::file_value;

/// The message is no JSON.
pub const PARSE_ERROR: i64 = -32700;
/// The message is no request.
pub const INVALID_REQUEST: i64 = -32600;
/// The method is not known here.
pub const METHOD_NOT_FOUND: i64 = -32601;
/// The parameters can't be taken.
pub const INVALID_PARAMS: i64 = -32602;
/// Something here failed.
pub const INTERNAL_ERROR: i64 = -32603;
/// The headers of a request say something else than its body.
pub const HEADER_MISMATCH: i64 = -32020;
/// The client can't do what the request needs.
pub const MISSING_CAPABILITY: i64 = -32021;
/// The revision is not spoken here.
pub const UNSUPPORTED_VERSION: i64 = -32022;

/// A message of a client.
#[derive(Debug)]
pub enum ClientMessage {
    /// A request, which is answered.
    Request(ClientRequest),
    /// A notification, which is not.
    Notification {
        /// What it is about.
        method: String,
        /// Its parameters.
        params: Map<String, Value>,
    },
    /// The answer to a request. None is sent from here.
    Response,
}

/// A request of a client.
#[derive(Debug, Clone)]
pub struct ClientRequest {
    /// Its id: a text or a whole number.
    pub id: Value,
    /// What is asked for.
    pub method: String,
    /// Its parameters.
    pub params: Map<String, Value>,
}

/// Why a message is refused: an error of JSON-RPC.
#[derive(Debug, Clone, PartialEq)]
pub struct McpRefusal {
    /// Its number.
    pub code: i64,
    /// Why, in a sentence.
    pub message: String,
    /// What programs need to know of it.
    pub data: Option<Value>,
}

impl McpRefusal {
    /// A refusal without data.
    pub fn new(code: i64, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None }
    }

    /// The parameters can't be taken.
    pub fn params(message: impl Into<String>) -> Self {
        Self::new(INVALID_PARAMS, message)
    }

    /// The answer to the request of this id; null when it could not be read.
    pub fn answer(&self, id: &Value) -> Value {
        let mut error = json!({ "code": self.code, "message": self.message });
        if let (Some(members), Some(data)) = (error.as_object_mut(), &self.data) {
            members.insert("data".to_owned(), data.clone());
        }
        json!({ "jsonrpc": "2.0", "id": id, "error": error })
    }
}

/// The answer to a request that was carried out.
pub fn answer(id: &Value, result: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "result": result })
}

/// A notification.
pub fn notification(method: &str, params: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "method": method, "params": params })
}

/// Reads a message.
///
/// # Errors
/// The answer that says why it can't be read.
pub fn read(bytes: &[u8]) -> Result<ClientMessage, Value> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let repaired_text;
    let (value, bytes): (Value, &[u8]) = match from_bytes(bytes) {
        Ok(value) => (value, bytes),
        // Halves of characters, and bytes that are no text, are read as U+FFFD: a text that was cut is written so.
        Err(error) => {
            repaired_text = repaired(bytes);
            match from_bytes(repaired_text.as_bytes()) {
                Ok(value) => (value, repaired_text.as_bytes()),
                Err(_) => return Err(unreadable(&repaired_text, &error.to_string())),
            }
        }
    };
    let Value::Object(mut message) = value else {
        let why = "a message is one JSON object: batches are not taken";
        return Err(McpRefusal::new(INVALID_REQUEST, why).answer(&Value::Null));
    };
    let id = message.shift_remove("id");
    // The answer to what can't be taken has the id, where that is one.
    let known = id.clone().filter(is_id).unwrap_or_default();
    let refuse = |why: &str| Err(McpRefusal::new(INVALID_REQUEST, why).answer(&known));
    if let Some(key) = str::from_utf8(bytes).ok().and_then(file_value::reserved_key) {
        return refuse(&file_value::reserved(&key));
    }
    if let Some(key) = str::from_utf8(bytes).ok().and_then(file_value::key_twice_in) {
        return refuse(&format!("the key {key:?} is twice in an object of the message, and JSON keeps one of the two"));
    }
    if message.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        return refuse("a message has \"jsonrpc\": \"2.0\"");
    }
    let method = match message.shift_remove("method") {
        Some(Value::String(method)) => method,
        None if message.contains_key("result") || message.contains_key("error") => return Ok(ClientMessage::Response),
        _ => return refuse("a request has a `method`, which is a text"),
    };
    let params = match message.shift_remove("params") {
        None => Map::new(),
        Some(Value::Object(params)) => params,
        Some(_) => return refuse("`params` is an object"),
    };
    match id {
        None => Ok(ClientMessage::Notification { method, params }),
        Some(id) if is_id(&id) => Ok(ClientMessage::Request(ClientRequest { id, method, params })),
        Some(_) => refuse(&format!("`id` is a text or a whole number of at most {MAX_ID_BYTES} bytes, and never null")),
    }
}

/// The answer to a message that is no JSON, with the id that is in it: without one, its sender would wait for nothing.
fn unreadable(text: &str, error: &str) -> Value {
    let mut members = OutermostMembers::default();
    members.take(text.as_bytes());
    McpRefusal::new(PARSE_ERROR, format!("the message is no JSON: {error}")).answer(&requested(&members))
}

/// The answer to a message that is too long to be kept.
pub fn too_long(members: &OutermostMembers) -> Value {
    let why = format!("a message has at most {MAX_MESSAGE_BYTES} bytes");
    McpRefusal::new(INVALID_REQUEST, why).answer(&requested(members))
}

/// The id of a request that could not be read; null when it has none.
fn requested(members: &OutermostMembers) -> Value {
    members.id().filter(|id| members.has_method && is_id(id)).unwrap_or_default()
}

/// Whether a value is the id of a request.
fn is_id(id: &Value) -> bool {
    match id {
        Value::String(text) => text.len() <= MAX_ID_BYTES,
        Value::Number(number) => {
            let text = number.to_string();
            text.len() <= MAX_ID_BYTES && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-')
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> (i64, Value) {
        let answer = read(text.as_bytes()).unwrap_err();
        (answer["error"]["code"].as_i64().unwrap(), answer["id"].clone())
    }

    #[test]
    fn what_is_no_request_is_answered_with_the_id_that_it_has() {
        assert_eq!(refused("{"), (PARSE_ERROR, Value::Null));
        assert_eq!(refused("[]"), (INVALID_REQUEST, Value::Null));
        assert_eq!(refused("7"), (INVALID_REQUEST, Value::Null));
        assert_eq!(refused(r#"{"jsonrpc": "1.0", "id": 3, "method": "ping"}"#), (INVALID_REQUEST, json!(3)));
        assert_eq!(refused(r#"{"jsonrpc": "2.0", "id": "a"}"#), (INVALID_REQUEST, json!("a")));
        assert_eq!(refused(r#"{"jsonrpc": "2.0", "id": 3, "method": 7}"#), (INVALID_REQUEST, json!(3)));
        assert_eq!(refused(r#"{"jsonrpc": "2.0", "id": 3, "method": "x", "params": []}"#), (INVALID_REQUEST, json!(3)));
        for id in ["null", "1.5", "{}", "1e3"] {
            let text = format!(r#"{{"jsonrpc": "2.0", "id": {id}, "method": "ping"}}"#);
            assert_eq!(refused(&text), (INVALID_REQUEST, Value::Null), "{id}");
        }
        assert_eq!(refused(r#"{"jsonrpc": "2.0", "id": 3, "id": 4, "method": "ping"}"#).0, INVALID_REQUEST);
        assert!(read(b"\xff").is_err());
        // What is no JSON is answered to who waits for it.
        let odd = r#"{"jsonrpc": "2.0", "id": 7, "method": "x", "params": {"n": NaN}}"#;
        assert_eq!(refused(odd), (PARSE_ERROR, json!(7)));
        let levels = ("[".repeat(140), "]".repeat(140));
        let deep = format!(r#"{{"method":"x","params":{{"a":{}{}}},"jsonrpc":"2.0","id":"d"}}"#, levels.0, levels.1);
        assert_eq!(refused(&deep), (PARSE_ERROR, json!("d")));
        assert_eq!(refused(r#"{"jsonrpc": "2.0", "id": 7, "result": NaN}"#), (PARSE_ERROR, Value::Null));
    }

    #[test]
    fn a_request_a_notification_and_an_answer_are_three_things() {
        let of = |text: &str| read(text.as_bytes()).unwrap();
        let ClientMessage::Request(request) = of(r#"{"jsonrpc": "2.0", "id": 12345678901234567890, "method": "ping"}"#)
        else {
            panic!()
        };
        assert_eq!((request.id.to_string().as_str(), request.method.as_str()), ("12345678901234567890", "ping"));
        assert!(matches!(of(r#"{"jsonrpc": "2.0", "method": "notifications/x"}"#), ClientMessage::Notification { .. }));
        assert!(matches!(of(r#"{"jsonrpc": "2.0", "id": 1, "result": {}}"#), ClientMessage::Response));
        let ClientMessage::Request(cut) =
            of(r#"{"jsonrpc": "2.0", "id": 1, "method": "x", "params": {"a": "cut \ud83d", "b": "\ud83d\ude00"}}"#)
        else {
            panic!()
        };
        assert_eq!(json!(cut.params), json!({ "a": "cut \u{fffd}", "b": "\u{1f600}" }));
    }
}
