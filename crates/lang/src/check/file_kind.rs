//! Whether a JSON file that was found in a folder is one of ours. Folders hold many others: a package
//! file, a schema, data. Those are passed by in silence, and nothing that may be meant for us is.

use crate::diagnostic::nearest;
use crate::language::Project;
use crate::syntax::Node;
use crate::syntax::document::{Document, DocumentKind};

/// Words of which every document of ours has one, and every one whose deciding field is misspelt.
const WORDS: [&str; 12] = [
    "\"loop\"",
    "objective",
    "action_name",
    "replies",
    "definition",
    "max_iterations",
    "\"scenarios\"",
    "\"actions\"",
    "\"expect\"",
    "\"action_input\"",
    "\"http_method\"",
    "\"tools\"",
];
/// The most fields at the top of a document that are compared with those that decide its kind.
const MAX_COMPARED: usize = 50;

/// Whether a text may be one of ours; when it is not, it need not be read.
pub fn may_be_ours(text: &str) -> bool {
    WORDS.iter().any(|word| text.contains(word))
}

/// Whether a document is one of ours.
pub fn is_ours(document: &Document) -> bool {
    let root = &document.tree.root;
    // A schema has the fields that it describes.
    let of_schemas =
        |name: &str| root.get(name).and_then(Node::as_str).is_some_and(|url| url.contains("json-schema.org"));
    if of_schemas("$schema") {
        return false;
    }
    if is_loop(root) || has_actions(root) {
        return true;
    }
    match document.kind {
        Some(DocumentKind::Project) => document.tree.source.name.rsplit(['/', '\\']).next() == Some(Project::FILE),
        Some(DocumentKind::AgentRequest) => ["tools", "config", "input"].iter().any(|name| root.get(name).is_some()),
        Some(DocumentKind::Workflow) => is_workflow(root),
        Some(DocumentKind::Scenario) => is_scenarios(root),
        Some(DocumentKind::Recording) => ["entries", "loop"].iter().all(|name| root.get(name).is_some()),
        Some(DocumentKind::Script) => is_script(root),
        None if root.members().is_none() => seems_ours(&document.tree.source.text),
        None => is_misspelt(root),
        _ => false,
    }
}

/// Whether a document is meant as scenarios, and the field that says so is misspelt.
pub fn is_nearly_scenarios(document: &Document) -> bool {
    let mut members = document.tree.root.members().into_iter().flatten().take(MAX_COMPARED);
    document.kind.is_none()
        && members.any(|member| nearest(&member.key, ["scenarios"]).is_some() && are_scenarios(&member.value))
}

/// Whether the field that decides the kind of a document is misspelt: its value is what that field has, which one of another
/// tool, as `definitions` in a schema, has not.
fn is_misspelt(root: &Node) -> bool {
    const FIELDS: [&str; 5] = ["definition", "scenarios", "replies", "objective", "action_name"];
    let is_text = |name: &str| root.get(name).and_then(Node::as_str).is_some();
    let is_list = |name: &str| root.get(name).and_then(Node::items).is_some();
    root.members().into_iter().flatten().take(MAX_COMPARED).any(|member| {
        let value = &member.value;
        let near = if &*member.key == "reply" { Some("replies") } else { nearest(&member.key, FIELDS) };
        match near {
            Some("definition") => value.get("actions").and_then(Node::items).is_some(),
            Some("scenarios") => are_scenarios(value),
            Some("replies") => {
                let is_reply = |reply: &Node| reply.get("action").is_some() && reply.get("action_input").is_some();
                value.items().is_some_and(|replies| replies.iter().any(is_reply))
            }
            Some("objective") => value.as_str().is_some() && is_list("tools"),
            Some("action_name") => value.as_str().is_some() && is_text("kind") && is_text("http_method"),
            _ => false,
        }
    })
}

fn are_scenarios(list: &Node) -> bool {
    let plays = |scenario: &Node| ["expect", "replies", "script"].iter().any(|name| scenario.get(name).is_some());
    list.items().is_some_and(|scenarios| scenarios.iter().any(plays))
}

/// Whether `type` says so, or nearly so, or the fields in `properties` do.
fn is_loop(root: &Node) -> bool {
    let word = root.get("type").and_then(Node::as_str);
    if word == Some("loop") {
        return true;
    }
    let Some(properties) = root.get("properties").filter(|properties| properties.members().is_some()) else {
        return false;
    };
    let text = |name: &str| properties.get(name).and_then(Node::as_str).is_some();
    let near = word.is_none_or(|word| nearest(word, ["loop"]).is_some());
    let mode = properties.get("mode").and_then(Node::as_str);
    let is_of_loop = matches!(mode, Some("react" | "foreach"));
    // Another word does not hide what only a loop has: `"type": "agent"`.
    let is_whole = || text("objective") && (is_of_loop || properties.get("tools").and_then(Node::items).is_some());
    near && (text("objective") || is_of_loop) || is_whole()
}

fn has_actions(root: &Node) -> bool {
    match root.items() {
        Some(items) => items.iter().any(is_action),
        None => is_action(root),
    }
}

fn is_action(node: &Node) -> bool {
    node.get("action_name").and_then(Node::as_str).is_some()
}

fn is_workflow(root: &Node) -> bool {
    let Some(definition) = root.get("definition") else { return false };
    ["actions", "condition", "onTrue", "onFalse"].iter().any(|name| definition.get(name).is_some())
}

/// Scenarios name the document that they test; beside it there may be any other field.
fn is_scenarios(root: &Node) -> bool {
    let scenarios = root.get("scenarios").and_then(Node::items);
    let plays = |scenario: &Node| ["expect", "replies"].iter().any(|name| scenario.get(name).is_some());
    scenarios.is_some_and(|scenarios| root.get("document").is_some() || scenarios.iter().any(plays))
}

/// A reply of a script is a text, or has one of a script's fields; beside it there may be any other.
fn is_script(root: &Node) -> bool {
    const FIELDS: [&str; 7] = ["action", "calls", "answer", "thought", "text", "http", "delay_ms"];
    let replies = root.get("replies").and_then(Node::items);
    let one = |reply: &Node| reply.as_str().is_some() || FIELDS.iter().any(|name| reply.get(name).is_some());
    let is_case = |case: &Node| case.get("when").is_some() && case.get("replies").is_some();
    // A script for tools that take nothing of it: a model that is not asked.
    let is_alone = root.members().is_some_and(|members| members.len() == 1) && replies.is_some_and(<[_]>::is_empty);
    is_alone
        || root.get("cases").and_then(Node::items).is_some_and(|cases| cases.iter().any(is_case))
        || replies.is_some_and(|replies| replies.iter().any(one) || root.get("tools").or(root.get("loops")).is_some())
}

/// Whether a text that can't be read as JSON, as one without its first brace, was meant as one of ours.
pub fn seems_ours(text: &str) -> bool {
    let has = |name: &str| text.contains(&format!("\"{name}\""));
    has("action_name")
        || (has("objective") && (has("tools") || has("properties")))
        || (has("type") && has("loop") && has("properties"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnostic::Source;
    use crate::syntax::document::{read, read_as};

    fn ours(text: &str) -> bool {
        named("some.json", text)
    }

    fn named(name: &str, text: &str) -> bool {
        let source = Source::new(name, text);
        if name.ends_with("loopctl.json") {
            return is_ours(&read_as(&source, Some(DocumentKind::Project)));
        }
        may_be_ours(text) && is_ours(&read(&source))
    }

    #[test]
    fn documents_of_every_kind_are_known_and_so_are_those_with_a_slip() {
        for text in [
            r#"{"type": "loop", "properties": {"mode": "react"}}"#,
            r#"{"type": "loop"}"#,
            r#"{"type": "Loop", "properties": {"objective": "x"}}"#,
            r#"{"properties": {"mode": "react", "objective": "x"}}"#,
            r#"{"type": "loop", "properties": {"objective": "x",,}}"#,
            r#""type": "loop", "properties": {"objective": "x"}}"#,
            r#"{"objective": "x", "tools": []}"#,
            r#"{"action_name": "x", "kind": "http"}"#,
            r#"[{"action_name": "x", "kind": "htp"}, 7]"#,
            r#"{"replies": [{"thought": "x", "action": "y"}]}"#,
            r#"{"replies": [{"thought": "x", "action": "y"}, {"status": "open"}, 5], "tols": {}}"#,
            r#"{"replies": [{"calls": [{"action": "y"}]}]}"#,
            r#"{"replies": [], "tools": {"lookup": [1]}}"#,
            r#"{"replies": []}"#,
            r#"{"name": "w", "definition": {"actions": []}}"#,
            r#"{"name": "w", "definiton": {"actions": []}}"#,
            r#"{"name": "w", "definitions": {"actions": []}}"#,
            r#"{"type": "agent", "properties": {"objective": "x", "tools": []}}"#,
            r#"{"document": "loop.json", "scenario": [{"name": "n", "expect": {}}]}"#,
            r#"{"reply": [{"action": "x", "action_input": {}}]}"#,
            r#"{"objectiv": "x", "tools": []}"#,
            r#"{"actionName": "x", "kind": "http", "url": "x", "http_method": "GET"}"#,
        ] {
            assert!(ours(text), "{text}");
        }
        assert!(named("a/loopctl.json", "{}") && named("loopctl.json", "{\"modls\": {}}"));
    }

    #[test]
    fn files_of_other_tools_are_not() {
        for text in [
            r#"{"name": "x", "version": "1.0.0", "type": "module", "scripts": {"loop": "node loop.js"}, "dependencies": {}}"#,
            r#"{"compilerOptions": {"strict": true,}, /* objective */ "include": ["src"]}"#,
            r#"{"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object", "properties": {"objective": {"type": "string"}}}"#,
            r#"{"type": "object", "properties": {"objective": {"type": "string"}, "mode": {"const": "react"}}}"#,
            r#"[{"objective": "x"}, {"loop": 1}]"#,
            r#"[1, 2, 3]"#,
            r#"{"models": {"a": 1}}"#,
            r#"{"objective": "learn Rust"}"#,
            r#"{"replies": 5, "post": "x"}"#,
            r#"{"replies": [{"user": "a", "body": "b"}]}"#,
            r#"{"definition": "a word", "word": "loop"}"#,
            r#"{"properties": {"loop": true}, "type": "Feature"}"#,
            r#"{"definitions": {"actions": {"type": "array"}}, "tools": []}"#,
            r#"{"scenario": "x", "expect": "y"}"#,
            r#"{"type": "agent", "properties": {"objective": {"type": "string"}, "tools": {"type": "array"}}}"#,
            "",
            "null",
            "\"objective\"",
        ] {
            assert!(!ours(text), "{text}");
        }
        for kind in crate::language::schema::KINDS {
            let schema = crate::language::schema::schema(kind).unwrap().to_string();
            assert!(!ours(&schema), "the schema of {kind}");
        }
    }
}
