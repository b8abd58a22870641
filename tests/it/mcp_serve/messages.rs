//! Messages that can't be read, and what is said back: each request has an answer that its sender knows.

use serde_json::{Value, json};

use super::client::StdioClient;
use super::{modern, offer, project};
use crate::common::{Place, complete};

#[test]
fn a_request_that_can_not_be_read_is_answered_under_its_id_and_shortly() {
    let place = Place::new();
    let hints = json!({ "title": "Quick", "readOnlyHint": true });
    let schema =
        json!({ "type": "object", "properties": { "n": { "type": "integer", "minimum": 1 } }, "required": ["n"] });
    let properties =
        json!({ "mode": "react", "model": "quick", "objective": "Do it.", "tools": [], "answer_schema": schema });
    let more = json!({ "properties": properties, "mcp": { "annotations": hints } });
    offer(&place, "quick", &[complete(json!({ "n": 7 }))], more);
    project(&place, &["quick"]);
    let mut client = StdioClient::start(&place, &["--store", "memory"]);
    let listed = client.ask("l", "tools/list", modern(json!({})))["result"]["tools"][0].clone();
    assert_eq!(listed["annotations"], hints);
    let answer = &listed["outputSchema"]["properties"]["answer"];
    assert_eq!((&answer["properties"], &answer["required"]), (&json!({ "n": { "type": "integer" } }), &json!(["n"])));
    let call = |id: &str, input: &str| {
        let meta = modern(json!({}))["_meta"].to_string();
        let params = format!(r#"{{"name":"quick","arguments":{{"a":{input}}},"_meta":{meta}}}"#);
        format!(r#"{{"method":"tools/call","params":{params},"jsonrpc":"2.0","id":"{id}"}}"#)
    };
    // A text that was cut in the middle of a character.
    client.write(call("half", r#""cut \ud83d""#).as_bytes());
    let given = client.answer(&json!("half"));
    assert_eq!(given["result"]["structuredContent"]["answer"], json!({ "n": 7 }), "{given}");
    client.write(call("deep", &format!("{}{}", "[".repeat(140), "]".repeat(140))).as_bytes());
    assert_eq!(client.answer(&json!("deep"))["error"]["code"], -32700);
    client.write(call("long", &format!("\"{}\"", "x".repeat(5 << 20))).as_bytes());
    assert_eq!(client.answer(&json!("long"))["error"]["code"], -32600);
    let long = "x".repeat(1 << 20);
    for (method, params) in [(long.as_str(), json!({})), ("tools/call", json!({ "name": long }))] {
        let refused = client.ask("echo", method, modern(params));
        assert!(refused["error"].is_object() && refused.to_string().len() < 1_000, "{}", refused.to_string().len());
    }
    assert_eq!(client.end(), Vec::<Value>::new());
}
