//! What a tool remembers, by a pointer or a key that can't be one.

use crate::check::{Rule, Subject};
use crate::diagnostic::{Diagnostic, codes};
use crate::language::ToolDeclaration;
use crate::language::tool::TypedTool;
use crate::syntax::token;

/// The rule.
pub const RULE: Rule = Rule { code: codes::BAD_POINTER, check };

/// The longest key of the memory, in characters.
const KEY_CHARS: usize = 256;

fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    for (at, declaration) in subject.declarations() {
        let ToolDeclaration::Typed(typed) = declaration else { continue };
        let remember = match typed {
            TypedTool::Action(tool) => &tool.remember,
            TypedTool::Workflow(tool) => &tool.remember,
            TypedTool::Loop(tool) => &tool.remember,
            TypedTool::Mcp(tool) => &tool.remember,
        };
        for (key, pointer) in remember {
            let cursor = subject.at(&format!("{at}/remember/{}", token(key)));
            if key.is_empty() || key.chars().count() > KEY_CHARS {
                let fault = cursor.report(&RULE, format!("a key of the memory has 1 to {KEY_CHARS} characters"));
                found.push(fault.help("name the key by what it holds, like `order_id`"));
            } else if let Some((message, help)) = fault_of(pointer) {
                found.push(cursor.report(&RULE, message).help(help));
            }
        }
    }
}

/// What is wrong with a JSON pointer (RFC 6901), and how to fix it.
fn fault_of(pointer: &str) -> Option<(String, String)> {
    if !pointer.is_empty() && !pointer.starts_with('/') {
        let path = pointer.trim_start_matches("$.").trim_start_matches('@').replace('.', "/");
        let message = format!("`{pointer}` is no JSON pointer: it must begin with `/`");
        return Some((message, format!("write `/{path}`; `\"\"` is the observation as a whole")));
    }
    let mut rest = pointer;
    while let Some((_, after)) = rest.split_once('~') {
        if !after.starts_with(['0', '1']) {
            let message = format!("`{pointer}` is no JSON pointer: `~` stands before `0` or `1` only");
            return Some((message, "write `~0` for a `~` in a name, and `~1` for a `/`".to_owned()));
        }
        rest = after;
    }
    None
}
