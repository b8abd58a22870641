//! More tools than models choose well from: each of them is in every request.

use crate::check::{Rule, Subject};
use crate::diagnostic::{Diagnostic, codes};
use crate::language::ToolDeclaration;
use crate::language::tool::TypedTool;
use crate::policy::name_pattern::{is_pattern, matches_pattern};
use crate::program::Tool;

pub const RULE: Rule = Rule { code: codes::MANY_TOOLS, check };

/// The most tools of a loop, and the most bytes of those that are declared together.
const MAX_TOOLS: usize = 40;
const MAX_SCHEMA_BYTES: usize = 20_000;
/// Bytes of a token, estimated for English and JSON.
const BYTES_OF_A_TOKEN: usize = 4;

fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let Some(program) = subject.known_program().and_then(|program| program.as_loop()) else { return };
    // Few of them are in a request.
    if program.selection().is_some() {
        return;
    }
    let together = subject.declarations().find(|(_, declaration)| names_many(declaration));
    let last = subject.declarations().nth(MAX_TOOLS);
    let Some((pointer, _)) = together.or(last) else { return };
    let patterns: Vec<&str> = subject.declarations().filter_map(|(_, declaration)| pattern(declaration)).collect();
    let is_together =
        |tool: &&Tool| tool.served().is_some() || patterns.iter().any(|pattern| matches_pattern(pattern, &tool.name));
    let bytes = |tool: &Tool| tool.parameters.text().len() + tool.description.len();
    let offered = program.offered().count();
    let taken: usize = program.tools.iter().filter(is_together).map(bytes).sum();
    let message = if offered > MAX_TOOLS {
        let tokens = program.offered().map(bytes).sum::<usize>() / BYTES_OF_A_TOKEN;
        format!(
            "the model chooses from {offered} tools, which are about {tokens} tokens of each request: models choose worse \
             from more than {MAX_TOOLS}"
        )
    } else if taken > MAX_SCHEMA_BYTES {
        format!("the tools that are declared together take {taken} bytes of each request")
    } else {
        return;
    };
    let fault = subject.at(pointer).report(&RULE, message);
    let help = "name those that the loop needs, or let it find them: \"select\": {\"by\": \"search\"}";
    found.push(fault.help(help));
}

/// Whether a declaration may name many tools.
fn names_many(declaration: &ToolDeclaration) -> bool {
    matches!(declaration, ToolDeclaration::Typed(TypedTool::Mcp(_))) || pattern(declaration).is_some()
}

/// The pattern by which a declaration names actions.
fn pattern(declaration: &ToolDeclaration) -> Option<&str> {
    match declaration {
        ToolDeclaration::Typed(TypedTool::Action(tool)) => Some(tool.name.as_str()).filter(|name| is_pattern(name)),
        ToolDeclaration::Typed(_) | ToolDeclaration::Legacy(_) => None,
    }
}
