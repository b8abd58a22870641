//! Where an embedded tool comes from: the program around the engine, or a server of the Model Context Protocol.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::Tool;
use super::ToolKind;
use super::schema::Schema;
use super::template::{Template, ValueEscape};
use crate::language::mcp::{LockedTool, McpProtocol, McpServer, OauthClient};

/// Where an embedded tool comes from.
#[derive(Debug)]
pub enum ToolOrigin {
    /// The program that embeds the engine.
    Program,
    /// An MCP server.
    Server(Arc<ServedTool>),
}

/// A tool of an MCP server, as it is locked.
#[derive(Debug)]
pub struct ServedTool {
    /// The server, by its name in the project.
    pub server: String,
    /// The tool, by the name that the server has for it.
    pub name: String,
    /// The revision of the protocol that the server is spoken to in.
    pub protocol: McpProtocol,
    /// What the lock file says of it.
    pub locked: LockedTool,
    /// Whether what the server says of it may make a call repeatable.
    pub trusts_annotations: bool,
    /// Whether a human may have to approve its calls.
    pub may_ask: bool,
    /// Where its input is sent as a header beside the body: the path of members, and the header's name.
    pub headers: Vec<(Vec<String>, String)>,
    /// The schema of what a call of a step gives: its structure alone, of which later steps name parts.
    pub output: Option<Schema>,
}

impl ServedTool {
    /// The schema of a server's tool, as JSON Schema writes it.
    pub fn plain_schema(written: &Value) -> Value {
        let mut read = written.clone();
        // Servers write the name of an older draft, or none, for schemas that mean the same in the newest one.
        if let Some(members) = read.as_object_mut() {
            members.remove("$schema");
        }
        take_nulls(&mut read);
        read
    }

    /// The members of an input schema that are sent as headers too (`x-mcp-header`).
    ///
    /// # Errors
    /// Why a server's tool with this schema can't be called over HTTP, in a sentence without a final stop.
    pub fn headers_of(schema: &Value) -> Result<Vec<(Vec<String>, String)>, String> {
        let mut found = Vec::new();
        walk(schema, &mut Vec::new(), &mut found)?;
        let marked = count(schema);
        if marked != found.len() {
            return Err("`x-mcp-header` is written where no header can be made of it".to_owned());
        }
        let mut names: Vec<String> = found.iter().map(|(_, name)| name.to_ascii_lowercase()).collect();
        names.sort_unstable();
        names.dedup();
        if names.len() == found.len() { Ok(found) } else { Err("two `x-mcp-header` have one name".to_owned()) }
    }
}

/// The texts of a server's headers or variables, in which a secret is `orgconfig:KEY`.
///
/// # Errors
/// The name of one that can't be used, and why, in a sentence without a final stop.
pub fn sent_texts(written: &BTreeMap<String, String>) -> Result<Vec<(String, Template)>, String> {
    let compiled = |(name, text): (&String, &String)| {
        let template =
            Template::compile(text, ValueEscape::Plain).map_err(|fault| format!("`{name}`: {}", fault.message))?;
        if template.variables().is_empty() {
            Ok((name.clone(), template))
        } else {
            Err(format!("`{name}` takes a value: a server has the same settings for all runs"))
        }
    };
    written.iter().map(compiled).collect()
}

/// The texts by which a client of an authorization server says who it is, by their fields.
pub fn oauth_texts(client: &OauthClient) -> BTreeMap<String, String> {
    let OauthClient { issuer: _, client_id, client_secret, private_key, key_id: _, scopes: _ } = client;
    let texts = [
        ("client_id", Some(client_id)),
        ("client_secret", client_secret.as_ref()),
        ("private_key", private_key.as_ref()),
    ];
    texts.into_iter().filter_map(|(field, text)| Some((field.to_owned(), text?.clone()))).collect()
}

/// The keys of the secrets that a server is given, or that are sent for it.
pub fn secrets(server: &McpServer) -> Vec<String> {
    let of = |written| sent_texts(written).unwrap_or_default();
    let client = server.oauth.as_ref().map(oauth_texts).unwrap_or_default();
    let all = of(&server.env).into_iter().chain(of(&server.headers)).chain(of(&client));
    all.flat_map(|(_, text)| text.secrets().to_vec()).collect()
}

/// How deep members are looked for.
const MAX_DEPTH: usize = 32;

const MARK: &str = "x-mcp-header";

fn walk(schema: &Value, path: &mut Vec<String>, found: &mut Vec<(Vec<String>, String)>) -> Result<(), String> {
    let Some(members) = schema.get("properties").and_then(Value::as_object).filter(|_| path.len() < MAX_DEPTH) else {
        return Ok(());
    };
    for (name, member) in members {
        path.push(name.clone());
        if let Some(mark) = member.get(MARK) {
            let header = mark.as_str().filter(|text| !text.is_empty() && text.bytes().all(is_token));
            let header = header.ok_or_else(|| format!("`{MARK}` of `{name}` is no name of a header"))?;
            let kind = member.get("type").and_then(Value::as_str);
            if !matches!(kind, Some("string" | "integer" | "boolean")) {
                return Err(format!("`{MARK}` stands at `{name}`, which is no text, integer or boolean"));
            }
            found.push((path.clone(), header.to_owned()));
        }
        walk(member, path, found)?;
        path.pop();
    }
    Ok(())
}

/// How often a schema has the mark, anywhere.
fn count(schema: &Value) -> usize {
    let (mut marks, mut todo) = (0_usize, vec![schema]);
    while let Some(value) = todo.pop() {
        match value {
            Value::Array(items) => todo.extend(items),
            Value::Object(members) => {
                // A property of that name is a schema, and no mark.
                marks = marks.saturating_add(usize::from(members.get(MARK).is_some_and(|mark| !mark.is_object())));
                todo.extend(members.values());
            }
            _ => {}
        }
    }
    marks
}

/// The characters of a header's name.
fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// Writes out what `nullable` means: OpenAPI has it, JSON Schema does not, and servers write it all the same.
fn take_nulls(schema: &mut Value) {
    let mut todo = vec![schema];
    while let Some(value) = todo.pop() {
        let members = match value {
            Value::Array(schemas) => {
                todo.extend(schemas);
                continue;
            }
            Value::Object(members) => members,
            _ => continue,
        };
        if members.get("nullable") == Some(&Value::Bool(true)) {
            members.remove("nullable");
            take_null(members);
        }
        for (keyword, value) in members {
            match (keyword.as_str(), value) {
                // Values, and no schemas.
                ("const" | "default" | "enum" | "examples" | "required", _) => {}
                ("properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas", value) => {
                    todo.extend(value.as_object_mut().into_iter().flat_map(|named| named.values_mut()));
                }
                (_, value) => todo.push(value),
            }
        }
    }
}

fn take_null(members: &mut Map<String, Value>) {
    let null = json!("null");
    match members.get_mut("type") {
        Some(Value::String(kind)) => {
            let both = json!([kind, "null"]);
            members.insert("type".to_owned(), both);
        }
        Some(Value::Array(kinds)) if !kinds.contains(&null) => kinds.push(null),
        _ => {}
    }
    for (keyword, one_more) in
        [("enum", Value::Null), ("anyOf", json!({ "type": "null" })), ("oneOf", json!({ "type": "null" }))]
    {
        if let Some(Value::Array(values)) = members.get_mut(keyword).filter(|values| !is_in(values, &one_more)) {
            values.push(one_more);
        }
    }
}

fn is_in(values: &Value, one: &Value) -> bool {
    values.as_array().is_some_and(|values| values.contains(one))
}

impl Tool {
    /// The tool of an MCP server that it is.
    pub fn served(&self) -> Option<&Arc<ServedTool>> {
        match &self.kind {
            ToolKind::Embedded(ToolOrigin::Server(served)) => Some(served),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::Schema;

    #[test]
    fn a_null_that_openapi_allows_is_taken() {
        let written = json!({ "$schema": "http://json-schema.org/draft-04/schema#", "type": "object", "properties": {
            "assignee": { "type": "string", "nullable": true }, "kind": { "type": "string", "enum": ["a"], "nullable": true },
            "at": { "anyOf": [{ "type": "integer" }], "nullable": true }, "nullable": { "type": "boolean" },
            "name": { "type": "string", "default": { "nullable": true } } } });
        let read = ServedTool::plain_schema(&written);
        assert_eq!(read["properties"]["name"], written["properties"]["name"]);
        assert_eq!(read["properties"]["nullable"], written["properties"]["nullable"]);
        let schema = Schema::compile(read).unwrap();
        for (input, fits) in [
            (json!({ "assignee": null, "kind": null, "at": null }), true),
            (json!({ "assignee": "x", "kind": "a", "at": 1, "nullable": true }), true),
            (json!({ "name": null }), false),
            (json!({ "nullable": null }), false),
            (json!({ "kind": "b" }), false),
        ] {
            assert_eq!(schema.faults(&input).is_empty(), fits, "{input}");
        }
    }
}
