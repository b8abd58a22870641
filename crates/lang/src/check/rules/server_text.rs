//! A text of an MCP server that looks like an instruction: models read it as a description of a tool.

use serde_json::Value;

use crate::check::{Rule, Subject};
use crate::diagnostic::{Diagnostic, codes};
use crate::language::ToolDeclaration;
use crate::language::tool::TypedTool;
use crate::policy::server_text::suspicions;
use crate::program::mcp::ServedTool;

pub const RULE: Rule = Rule { code: codes::SERVER_TEXT, check };

fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let Some(program) = subject.known_program() else { return };
    let served: Vec<&ServedTool> =
        program.tools().iter().filter_map(|tool| tool.served()).map(|served| &**served).collect();
    for (pointer, declaration) in subject.declarations() {
        let ToolDeclaration::Typed(TypedTool::Mcp(declaration)) = declaration else { continue };
        let others: Vec<&str> =
            served.iter().filter(|other| other.server != declaration.server).map(|other| other.name.as_str()).collect();
        let own = served.iter().filter(|tool| tool.server == declaration.server);
        let suspicious = own.filter_map(|tool| {
            let why =
                texts(tool).iter().find_map(|text| suspicions(text, others.iter().copied()).into_iter().next())?;
            Some((tool.name.as_str(), why))
        });
        let all: Vec<(&str, String)> = suspicious.collect();
        let Some((first, why)) = all.first() else { continue };
        let more = match all.len() {
            1 => String::new(),
            count => format!("; so do those of {} other tools", count.saturating_sub(1)),
        };
        let message = format!("the text of `{first}` looks like an instruction: {why}{more}");
        let fault = subject.at(pointer).below("/server").report(&RULE, message);
        found.push(fault.help(format!(
            "read it (`loopctl mcp list {}`), and write a description of your own in loopctl.json, or leave the tool out",
            declaration.server
        )));
    }
}

/// The texts of a tool that a model reads.
fn texts(tool: &ServedTool) -> Vec<&str> {
    let (mut texts, mut todo) = (vec![tool.locked.description.as_str()], vec![&tool.locked.input_schema]);
    while let Some(value) = todo.pop() {
        match value {
            Value::String(text) => texts.push(text),
            Value::Array(items) => todo.extend(items),
            Value::Object(members) => {
                texts.extend(members.keys().map(String::as_str));
                todo.extend(members.values());
            }
            _ => {}
        }
    }
    texts
}
