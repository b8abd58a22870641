//! Whether a JSON file that was found in a folder is one of ours. Folders hold many others: a package
//! file, a schema, data. Those are passed by in silence, and nothing that may be meant for us is.

use crate::diagnostic::nearest;
use crate::language::Project;
use crate::syntax::Node;
use crate::syntax::document::{Document, DocumentKind};

#[cfg(test)]
mod tests;

/// Words of which every document of ours has one.
const WORDS: [&str; 7] =
    ["\"loop\"", "objective", "action_name", "replies", "definition", "max_iterations", "\"scenarios\""];

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
        _ => false,
    }
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
    near && (text("objective") || matches!(mode, Some("react" | "foreach")))
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
    replies.is_some_and(|replies| replies.iter().any(one) || root.get("tools").or(root.get("loops")).is_some())
}

/// Whether a text that can't be read as JSON, as one without its first brace, was meant as one of ours.
pub fn seems_ours(text: &str) -> bool {
    let has = |name: &str| text.contains(&format!("\"{name}\""));
    has("action_name")
        || (has("objective") && (has("tools") || has("properties")))
        || (has("type") && has("loop") && has("properties"))
}
