//! Where an embedded tool comes from: the program around the engine, or a server of the Model Context Protocol.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use super::Tool;
use super::ToolKind;
use super::template::{Template, ValueEscape};
use crate::language::mcp::{LockedTool, McpProtocol, McpServer};

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
    /// Where its input is sent as a header beside the body: the path of members, and the header's name.
    pub headers: Vec<(Vec<String>, String)>,
}

impl ServedTool {
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

/// The keys of the secrets that a server is given.
pub fn secrets(server: &McpServer) -> Vec<String> {
    let of = |written| sent_texts(written).unwrap_or_default();
    let all = of(&server.env).into_iter().chain(of(&server.headers));
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

impl Tool {
    /// The tool of an MCP server that it is.
    pub fn served(&self) -> Option<&Arc<ServedTool>> {
        match &self.kind {
            ToolKind::Embedded(ToolOrigin::Server(served)) => Some(served),
            _ => None,
        }
    }
}
