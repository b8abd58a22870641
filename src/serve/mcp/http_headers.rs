//! The headers of streamable HTTP that repeat what the body says: proxies judge by them, so both must say the same.

use axum::http::HeaderMap;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;

use super::client_message::{ClientRequest, HEADER_MISMATCH, McpRefusal};
use super::protocol::{self, ClientEra};
use crate::language::mcp::McpProtocol;

/// The header that names the revision.
const VERSION: &str = "mcp-protocol-version";
/// The session that an older client names, by which its requests are cancelled.
pub const SESSION: &str = "mcp-session-id";
/// The most bytes of a session that are looked at.
const MAX_SESSION_BYTES: usize = 128;

/// How a request is to be answered. No state is kept: a request of an older revision names it in its header.
///
/// # Errors
/// When it says nothing that is known, or its headers say something else than its body.
pub fn era(request: &ClientRequest, headers: &HeaderMap) -> Result<ClientEra, McpRefusal> {
    let named = text(headers, VERSION)?;
    if let Some(word) = protocol::named_in_body(request) {
        must_say(VERSION, named, word)?;
    }
    let settled = match named {
        // The revisions before June 2025 have no such header.
        None => Some(McpProtocol::March2025),
        Some(word) => protocol::settled_by(word)?,
    };
    let era = ClientEra::of(request, settled)?;
    if era.protocol.is_modern() {
        must_say("mcp-method", text(headers, "mcp-method")?, &request.method)?;
        let tool = request.params.get("name").and_then(serde_json::Value::as_str);
        let tool = tool.filter(|_| request.method == "tools/call");
        if let Some(name) = tool.or_else(|| protocol::named_task(request)) {
            let header = text(headers, "mcp-name")?;
            must_say("mcp-name", header.map(decoded).transpose()?.as_deref(), name)?;
        }
    }
    Ok(era)
}

/// The session that an older client names.
pub fn session(headers: &HeaderMap) -> Option<String> {
    let session = headers.get(SESSION)?.to_str().ok()?;
    (session.len() <= MAX_SESSION_BYTES).then(|| session.to_owned())
}

/// Whether a client takes a stream.
pub fn takes_stream(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(axum::http::header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    accepted.flat_map(|value| value.split(',')).any(|kind| {
        let kind = kind.split(';').next().unwrap_or_default().trim();
        kind.eq_ignore_ascii_case("text/event-stream") || kind == "*/*"
    })
}

fn text<'h>(headers: &'h HeaderMap, name: &str) -> Result<Option<&'h str>, McpRefusal> {
    let mut values = headers.get_all(name).iter();
    match (values.next().map(|value| value.to_str()), values.next()) {
        (None, _) => Ok(None),
        (Some(Ok(value)), None) => Ok(Some(value.trim())),
        _ => Err(McpRefusal::new(HEADER_MISMATCH, format!("the header {name} comes once, in letters of ASCII"))),
    }
}

fn must_say(name: &str, said: Option<&str>, meant: &str) -> Result<(), McpRefusal> {
    if said == Some(meant) {
        return Ok(());
    }
    let what = if said.is_some() { "says something else than the body" } else { "is missing" };
    Err(McpRefusal::new(HEADER_MISMATCH, format!("the header {name} {what}")))
}

/// A value that is written in base64 where it is no plain text.
fn decoded(value: &str) -> Result<String, McpRefusal> {
    let Some(coded) = value.strip_prefix("=?base64?").and_then(|value| value.strip_suffix("?=")) else {
        return Ok(value.to_owned());
    };
    let text = BASE64_STANDARD.decode(coded).ok().and_then(|bytes| String::from_utf8(bytes).ok());
    text.ok_or_else(|| McpRefusal::new(HEADER_MISMATCH, "the header mcp-name is not in base64"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::{HeaderName, HeaderValue};
    use serde_json::{Value, json};

    fn judged(headers: &[(&str, &str)], params: Value) -> Result<ClientEra, i64> {
        let Value::Object(params) = params else { panic!() };
        let request = ClientRequest { id: json!(1), method: "tools/call".to_owned(), params };
        let headers = headers.iter().map(|(name, value)| {
            (HeaderName::from_bytes(name.as_bytes()).unwrap(), HeaderValue::from_str(value).unwrap())
        });
        era(&request, &headers.collect()).map_err(|refusal| refusal.code)
    }

    fn modern() -> Value {
        json!({ "name": "é", "_meta": { "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {} } })
    }

    #[test]
    fn the_headers_of_the_newest_revision_say_what_the_body_says() {
        let sound = [(VERSION, "2026-07-28"), ("Mcp-Method", "tools/call"), ("Mcp-Name", "=?base64?w6k=?=")];
        assert_eq!(judged(&sound, modern()).unwrap().protocol, McpProtocol::July2026);
        for (at, value) in [(0, "2025-11-25"), (1, "tools/list"), (2, "=?base64?%?="), (2, "e")] {
            let mut odd = sound;
            odd[at].1 = value;
            assert_eq!(judged(&odd, modern()), Err(HEADER_MISMATCH), "{odd:?}");
            odd[at].0 = "x-other";
            assert_eq!(judged(&odd, modern()), Err(HEADER_MISMATCH), "{odd:?}");
        }
        let twice = [sound[0], sound[1], sound[2], ("mcp-name", "e")];
        assert_eq!(judged(&twice, modern()), Err(HEADER_MISMATCH));
    }

    #[test]
    fn an_older_revision_is_named_by_its_header_or_by_none() {
        let params = || json!({ "name": "a" });
        assert_eq!(judged(&[], params()).unwrap().protocol, McpProtocol::March2025);
        assert_eq!(judged(&[(VERSION, "2025-11-25")], params()).unwrap().protocol, McpProtocol::November2025);
        assert_eq!(judged(&[(VERSION, "2026-07-28")], params()), Err(-32602));
        assert_eq!(judged(&[(VERSION, "1999-01-01")], params()), Err(-32022));
    }
}
