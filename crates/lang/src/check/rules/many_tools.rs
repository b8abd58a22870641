//! More tools of MCP servers than models choose well from: each of them is in every request.

use crate::check::{Rule, Subject};
use crate::diagnostic::{Diagnostic, codes};
use crate::language::ToolDeclaration;
use crate::language::tool::TypedTool;
use crate::program::Tool;

pub const RULE: Rule = Rule { code: codes::MANY_TOOLS, check };

/// The most tools of a loop, and the most bytes of the schemas of its servers' tools.
const MAX_TOOLS: usize = 40;
const MAX_SCHEMA_BYTES: usize = 20_000;

fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let Some(program) = subject.known_program() else { return };
    let served: Vec<&Tool> = program.tools().iter().filter(|tool| tool.served().is_some()).collect();
    let is_served = |declaration: &ToolDeclaration| matches!(declaration, ToolDeclaration::Typed(TypedTool::Mcp(_)));
    let Some((pointer, _)) = subject.declarations().find(|(_, declaration)| is_served(declaration)) else { return };
    let offered = program.offered().count();
    let bytes: usize = served.iter().map(|tool| tool.parameters.text().len() + tool.description.len()).sum();
    let message = if offered > MAX_TOOLS {
        format!("the model chooses from {offered} tools: models choose worse from more than {MAX_TOOLS}")
    } else if bytes > MAX_SCHEMA_BYTES {
        format!("the tools of servers take {bytes} bytes of each request")
    } else {
        return;
    };
    let fault = subject.at(pointer).report(&RULE, message);
    found.push(fault.help("name those that the loop needs: \"tools\": [\"read_text_file\"]"));
}
