//! What a document says of itself as a tool of an MCP server, where that has no effect, or contradicts what it does.

use serde_json::Value;

use crate::check::{Rule, Subject};
use crate::diagnostic::{Diagnostic, codes};
use crate::program::ToolKind;

pub const RULE: Rule = Rule { code: codes::OFFERED_TOOL, check };

const READ_ONLY: &str = "/mcp/annotations/readOnlyHint";
const DESTRUCTIVE: &str = "/mcp/annotations/destructiveHint";

fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let document = &subject.document().value;
    if subject.is_step() || document.pointer("/mcp/annotations").is_none() || subject.is_faulty("/mcp") {
        return;
    }
    let mut report = |at: &str, message: String, help: &str| {
        found.push(subject.at(at).key().report(&RULE, message).help(help));
    };
    let description = document.get("description").and_then(Value::as_str);
    if description.is_none_or(|text| text.trim().is_empty()) {
        let message = "without a `description`, it is offered to no client, and nobody reads its hints".to_owned();
        return report("/mcp", message, "write a `description`: the model of a client chooses by it");
    }
    let says = |at: &str| document.pointer(at) == Some(&Value::Bool(true));
    if !says(READ_ONLY) {
        return;
    }
    if says(DESTRUCTIVE) {
        let message =
            "`readOnlyHint` says that a call changes nothing, and this that it may destroy something".to_owned();
        return report(DESTRUCTIVE, message, "leave out the one that does not hold");
    }
    // What a model or a matcher answers changes nothing outside.
    let reaches = |kind: &ToolKind| {
        matches!(
            kind,
            ToolKind::Http(_)
                | ToolKind::Mail(_)
                | ToolKind::Db(_)
                | ToolKind::Command(_)
                | ToolKind::Embedded(_)
                | ToolKind::Launch(_)
        )
    };
    let tools = subject.known_program().map(|program| program.all_tools()).unwrap_or_default();
    if let Some(tool) = tools.into_iter().find(|tool| !tool.idempotent && reaches(&tool.kind)) {
        let message =
            format!("`readOnlyHint` says that a call changes nothing, and `{}` may: it is not idempotent", tool.name);
        let help = "clients may call what is read-only without asking their user: leave the hint out, or say that the action is `idempotent`";
        report(READ_ONLY, message, help);
    }
}
