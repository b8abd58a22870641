//! The loops and workflows of a folder as tools: those that have a `description`, by which a model chooses.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::result_schema;
use crate::program::Program;
use crate::program::offer::client_schema;
use crate::serve::folder::ServedLoop;
use crate::trace::escape;

/// The most characters of a tool's name: clients refuse longer ones, and all tools of the server with them.
const MAX_NAME_CHARS: usize = 64;

/// The tools of a folder.
pub struct McpTools<'l> {
    /// By the names that clients call them by.
    pub by_name: BTreeMap<String, &'l ServedLoop>,
    /// The names of the loops and workflows that have a description, and would have the name of another tool.
    pub misnamed: Vec<&'l str>,
}

impl<'l> McpTools<'l> {
    /// The tools that these loops and workflows are. `may`: whether the client may start one.
    pub fn of(loops: &'l BTreeMap<String, ServedLoop>, may: impl Fn(&str) -> bool) -> Self {
        let described = |offered: &ServedLoop| description(&offered.program).is_some();
        let all = || loops.iter().filter(|(name, offered)| described(offered) && may(name));
        let mut by_name: BTreeMap<String, &ServedLoop> =
            all().filter(|(name, _)| is_name(name)).map(|(name, offered)| (name.clone(), offered)).collect();
        let mut misnamed = Vec::new();
        for (name, offered) in all().filter(|(name, _)| !is_name(name)) {
            let other = name_of(name);
            if is_name(&other) && !by_name.contains_key(&other) {
                by_name.insert(other, offered);
            } else {
                misnamed.push(&**name);
            }
        }
        Self { by_name, misnamed }
    }

    /// Why one of those is not offered.
    pub fn why_not(name: &str) -> String {
        let (shown, other) = (escape::line(name), name_of(name));
        match is_name(&other) {
            true => {
                format!("`{shown}` is not offered: it would be the tool `{}`, as another one is", escape::line(&other))
            }
            false => format!(
                "`{shown}` is not offered: the name of a tool has letters of ASCII, digits, `_` and `-`, at most {MAX_NAME_CHARS}"
            ),
        }
    }

    /// The tools as they are listed, in the order of their names.
    pub fn listed(&self) -> Vec<Value> {
        self.by_name.iter().map(|(name, offered)| tool(name, &offered.program)).collect()
    }
}

/// The name of a tool: models' interfaces take neither of the two signs.
fn name_of(name: &str) -> String {
    name.replace(['.', '/'], "_")
}

fn description(program: &Program) -> Option<&str> {
    program.description.as_deref().filter(|text| !text.trim().is_empty())
}

/// Whether clients and models' interfaces take a name.
fn is_name(name: &str) -> bool {
    let sign = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    (1..=MAX_NAME_CHARS).contains(&name.len()) && name.bytes().all(sign)
}

fn tool(name: &str, program: &Program) -> Value {
    let mut shown = description(program).map(escape::report).unwrap_or_default();
    // It is an object's, whatever else it says, and has no alternatives at its top: clients and models' interfaces refuse other ones.
    let input_schema = client_schema(program.input.as_ref().map(|schema| schema.source()), &mut shown);
    let mut tool = json!({
        "name": name,
        "description": shown,
        "inputSchema": input_schema,
        "outputSchema": result_schema::of(program),
    });
    if let (Some(members), Some(hints)) = (tool.as_object_mut(), &program.mcp.annotations) {
        members.insert("annotations".to_owned(), json!(hints));
    }
    tool
}
