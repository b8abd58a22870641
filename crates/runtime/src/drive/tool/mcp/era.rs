//! The two ways to begin: the older revisions with `initialize`, the newest one without anything kept between requests.

use serde_json::{Map, Value, json};

use super::fault::McpFault;
use super::frame::quoted;
use loopctl_lang::language::mcp::McpProtocol;

/// What a server says of itself.
#[derive(Debug, Clone, Default)]
pub(super) struct ServerFacts {
    pub name: Option<String>,
    pub version: Option<String>,
    pub instructions: Option<String>,
}

/// The keys of `_meta` that each request of the newest revision has.
const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const CLIENT: &str = "io.modelcontextprotocol/clientInfo";
const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
const SERVER: &str = "io.modelcontextprotocol/serverInfo";

fn client() -> Value {
    json!({ "name": "loopctl", "version": env!("CARGO_PKG_VERSION") })
}

/// The parameters of a request, with what each request of this revision says.
pub(super) fn params(protocol: McpProtocol, mut params: Map<String, Value>) -> Value {
    if protocol.is_modern() {
        // A server may ask the humans of a run, by a result; and nobody else.
        let capabilities = json!({ "elicitation": { "form": {}, "url": {} } });
        let meta = json!({ VERSION: protocol.word(), CLIENT: client(), CAPABILITIES: capabilities });
        params.insert("_meta".to_owned(), meta);
    }
    Value::Object(params)
}

/// The parameters of `initialize`. We declare nothing that a server could ask us for.
pub(super) fn initialize(protocol: McpProtocol) -> Value {
    json!({ "protocolVersion": protocol.word(), "capabilities": {}, "clientInfo": client() })
}

/// What the answer to `initialize` says: the revision, and the server.
///
/// # Errors
/// When it is none, or names a revision that is not spoken here.
pub(super) fn initialized(result: &Value) -> Result<(McpProtocol, ServerFacts), McpFault> {
    let word = result.get("protocolVersion").and_then(Value::as_str);
    let Some(word) = word else {
        return Err(McpFault::Malformed("its answer to `initialize` names no revision of the protocol".to_owned()));
    };
    let protocol = McpProtocol::of(word).filter(|protocol| !protocol.is_modern());
    let protocol = protocol.ok_or_else(|| {
        McpFault::Malformed(format!(
            "it speaks the revision {:?} after `initialize`, which is not spoken here",
            quoted(word)
        ))
    })?;
    Ok((protocol, facts(result, result.get("serverInfo"))))
}

/// What the answer to `server/discover` says, when its shape is that of a server of the newest revision.
pub(super) fn discovered(result: &Value) -> Option<(McpProtocol, ServerFacts)> {
    let supported = result.get("supportedVersions")?.as_array()?;
    result.get("capabilities")?.as_object()?;
    let complete = result.get("resultType").is_none_or(|kind| kind == "complete");
    let spoken = McpProtocol::ALL.into_iter().rev().filter(|protocol| protocol.is_modern());
    let protocol = spoken.filter(|_| complete).find(|protocol| supported.iter().any(|word| word == protocol.word()))?;
    let server = result.get("_meta").and_then(|meta| meta.get(SERVER)).or_else(|| result.get("serverInfo"));
    Some((protocol, facts(result, server)))
}

/// Whether the data of an error name a revision among those that a server speaks.
pub(super) fn supports(data: &Value, protocol: McpProtocol) -> bool {
    let supported = data.get("supported").and_then(Value::as_array);
    supported.is_some_and(|supported| supported.iter().any(|word| word == protocol.word()))
}

fn facts(result: &Value, server: Option<&Value>) -> ServerFacts {
    let text = |of: Option<&Value>, name: &str| of?.get(name)?.as_str().map(quoted);
    let instructions = result.get("instructions").and_then(Value::as_str).map(str::to_owned);
    ServerFacts { name: text(server, "name"), version: text(server, "version"), instructions }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_of_the_newest_revision_by_the_shape_of_its_answer() {
        let sound = json!({
            "resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}},
            "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "S", "version": "1"}},
        });
        let (protocol, facts) = discovered(&sound).unwrap();
        assert_eq!((protocol, facts.name.as_deref()), (McpProtocol::July2026, Some("S")));
        for odd in [
            json!({}),
            json!({"supportedVersions": "2026-07-28", "capabilities": {}}),
            json!({"supportedVersions": ["2026-07-28"]}),
            json!({"supportedVersions": ["2025-11-25"], "capabilities": {}}),
            json!({"supportedVersions": ["2026-07-28"], "capabilities": {}, "resultType": "odd"}),
            json!({"protocolVersion": "2026-07-28", "capabilities": {}, "serverInfo": {}}),
        ] {
            assert!(discovered(&odd).is_none(), "{odd}");
        }
    }

    #[test]
    fn only_requests_of_the_newest_revision_say_who_asks() {
        let newest = params(McpProtocol::July2026, Map::new());
        assert_eq!(newest["_meta"][VERSION], "2026-07-28");
        assert_eq!(params(McpProtocol::November2025, Map::new()), json!({}));
        assert!(initialized(&json!({"protocolVersion": "2026-07-28"})).is_err());
        assert_eq!(initialized(&json!({"protocolVersion": "2025-06-18"})).unwrap().0, McpProtocol::June2025);
    }
}
