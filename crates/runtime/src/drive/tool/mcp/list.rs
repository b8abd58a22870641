//! The tools of a server, as it lists them: page by page, and tool by tool, so that one bad tool hides no other.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::fault::McpFault;
use super::frame::quoted;
use loopctl_lang::language::mcp::{LockedTool, McpProtocol};
use loopctl_lang::program::mcp::ServedTool;

/// The most pages, tools and bytes of a list.
const MAX_PAGES: usize = 100;
const MAX_TOOLS: usize = 1_000;
const MAX_BYTES: usize = 8 << 20;
/// The most characters of a tool's name.
const MAX_NAME: usize = 128;

/// The list of a server, as far as it came.
#[derive(Debug, Default)]
pub(super) struct ToolList {
    /// The tools by name.
    pub tools: BTreeMap<String, LockedTool>,
    /// What was left out, and why.
    pub left_out: Vec<String>,
    cursors: BTreeSet<String>,
    pages: usize,
    bytes: usize,
}

impl ToolList {
    /// Takes a page. Returns the cursor of the next one.
    ///
    /// # Errors
    /// When it is no page, or the list has no end.
    pub(super) fn take(&mut self, page: &Value, protocol: McpProtocol) -> Result<Option<String>, McpFault> {
        let (tools_before, left_out_before) = (self.tools.len(), self.left_out.len());
        let malformed = |why: String| McpFault::Malformed(why);
        self.pages = self.pages.saturating_add(1);
        self.bytes = self.bytes.saturating_add(page.to_string().len());
        if self.bytes > MAX_BYTES {
            return Err(malformed(format!("its list of tools has more than {} MiB", MAX_BYTES >> 20)));
        }
        let Some(tools) = page.get("tools").and_then(Value::as_array) else {
            return Err(malformed("its list of tools has no `tools`".to_owned()));
        };
        for tool in tools {
            if self.tools.len() >= MAX_TOOLS {
                return Err(malformed(format!("it lists more than {MAX_TOOLS} tools")));
            }
            match read(tool) {
                Ok((name, _)) if self.tools.contains_key(&name) => {
                    self.left_out.push(format!("a second tool of the name {name:?}"));
                }
                Ok((name, tool)) => drop(self.tools.insert(name, tool)),
                Err(why) => self.left_out.push(why),
            }
        }
        // An empty one is the end of a list of an older server; the newest revision has it as one more cursor.
        let cursor = page.get("nextCursor").and_then(Value::as_str);
        let cursor = cursor.filter(|cursor| protocol.is_modern() || !cursor.is_empty());
        let Some(cursor) = cursor.map(str::to_owned) else { return Ok(None) };
        if self.pages >= MAX_PAGES {
            return Err(malformed(format!("its list of tools has more than {MAX_PAGES} pages")));
        }
        if !self.cursors.insert(cursor.clone()) {
            if self.tools.len() > tools_before {
                return Err(malformed("its list of tools comes back to a page that was read".to_owned()));
            }
            // It knows no more tools, and does not say so: each was read.
            self.left_out.truncate(left_out_before);
            self.left_out.push("what comes after a page that its list of tools repeats".to_owned());
            return Ok(None);
        }
        Ok(Some(cursor))
    }
}

impl ToolList {
    /// Leaves out the tools whose input can't be sent as headers in the way that they want.
    pub(super) fn leave_out_unmirrored(&mut self) {
        let Self { tools, left_out, .. } = self;
        tools.retain(|name, tool| match ServedTool::headers_of(&tool.input_schema) {
            Ok(_) => true,
            Err(why) => {
                left_out.push(format!("{name:?}: {why}"));
                false
            }
        });
    }
}

/// A tool, or why it is left out.
fn read(tool: &Value) -> Result<(String, LockedTool), String> {
    let name = tool.get("name").and_then(Value::as_str).unwrap_or_default();
    if name.is_empty() {
        return Err("a tool without a name".to_owned());
    }
    if name.chars().count() > MAX_NAME {
        return Err(format!("{:?}: its name has more than {MAX_NAME} characters", quoted(name)));
    }
    let input_schema = match tool.get("inputSchema") {
        Some(schema) if schema.is_object() => schema.clone(),
        _ => return Err(format!("{name:?}: the schema of its input is no object, or can't be read")),
    };
    let execution = tool.get("execution").and_then(|execution| execution.get("taskSupport")).and_then(Value::as_str);
    if execution == Some("required") {
        return Err(format!("{name:?}: it is called as a task only, which is not done here"));
    }
    let of = |member: &str| tool.get(member).filter(|value| value.is_object()).cloned();
    let annotations = tool.get("annotations").and_then(Value::as_object).cloned().unwrap_or_else(Map::new);
    let description = tool.get("description").and_then(Value::as_str).unwrap_or_default().to_owned();
    Ok((name.to_owned(), LockedTool { description, input_schema, output_schema: of("outputSchema"), annotations }))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const OLDER: McpProtocol = McpProtocol::November2025;

    #[test]
    fn one_bad_tool_hides_no_other() {
        let mut list = ToolList::default();
        let page = json!({"tools": [
            {"name": "a", "inputSchema": {"type": "object"}},
            {"name": "", "inputSchema": {"type": "object"}},
            {"name": "b", "inputSchema": null},
            {"name": "c", "inputSchema": true},
            {"name": "x".repeat(130), "inputSchema": {}},
            {"name": "a", "inputSchema": {"type": "object", "properties": {"evil": {}}}},
            7,
            {"name": "slow", "inputSchema": {"type": "object"}, "execution": {"taskSupport": "required"}},
            {"name": "d e", "inputSchema": {}, "annotations": "no", "description": 7},
        ]});
        assert_eq!(list.take(&page, OLDER).unwrap(), None);
        assert_eq!(list.tools.keys().collect::<Vec<_>>(), ["a", "d e"]);
        assert_eq!(list.tools["a"].input_schema, json!({"type": "object"}));
        assert_eq!(list.left_out.len(), 7);
    }

    #[test]
    fn a_list_without_an_end_is_a_fault() {
        let mut list = ToolList::default();
        let page = |cursor: &str| json!({"tools": [], "nextCursor": cursor});
        let with = |name: &str| json!({"tools": [{"name": name, "inputSchema": {}}], "nextCursor": "a"});
        assert_eq!(list.take(&with("x"), OLDER).unwrap().as_deref(), Some("a"));
        assert!(list.take(&with("y"), OLDER).is_err());
        let mut list = ToolList::default();
        let pages = (0..200).map_while(|number| list.take(&page(&number.to_string()), OLDER).ok()).count();
        assert_eq!(pages, MAX_PAGES - 1);
        let mut list = ToolList::default();
        let many: Vec<Value> = (0..1_001).map(|n| json!({"name": format!("t{n}"), "inputSchema": {}})).collect();
        assert!(list.take(&json!({"tools": many}), OLDER).is_err());
        assert!(ToolList::default().take(&json!({"tools": {}}), OLDER).is_err());
    }

    #[test]
    fn a_list_whose_last_page_names_a_next_one_ends() {
        let page = |cursor: &str| json!({"tools": [{"name": "x", "inputSchema": {}}], "nextCursor": cursor});
        let mut list = ToolList::default();
        assert_eq!(list.take(&page(""), OLDER).unwrap(), None);
        assert_eq!(list.take(&page(""), McpProtocol::July2026).unwrap().as_deref(), Some(""));
        let mut list = ToolList::default();
        assert_eq!(list.take(&page("a"), OLDER).unwrap().as_deref(), Some("a"));
        assert_eq!(list.take(&page("a"), OLDER).unwrap(), None);
        assert_eq!((list.tools.len(), list.left_out.len()), (1, 1));
    }
}
