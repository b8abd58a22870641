//! A text of an MCP server that looks like an instruction: models read it as a description of a tool.

use crate::check::{Rule, Subject};
use crate::compile::locked_tools::LockedTools;
use crate::diagnostic::{Diagnostic, codes};
use crate::language::ToolDeclaration;
use crate::language::tool::TypedTool;
use crate::policy::server_text::{suspicions, texts_of};
use crate::program::Tool;
use crate::program::mcp::ServedTool;

pub const RULE: Rule = Rule { code: codes::SERVER_TEXT, check };

fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let Some(program) = subject.known_program() else { return };
    let served: Vec<(&Tool, &ServedTool)> =
        program.tools().iter().filter_map(|tool| Some((tool, &**tool.served()?))).collect();
    for (pointer, declaration) in subject.declarations() {
        let ToolDeclaration::Typed(TypedTool::Mcp(declaration)) = declaration else { continue };
        // A name that several servers have is its own.
        let is_own = |name: &str| {
            is_locked(subject, &declaration.server, name)
                || served.iter().any(|(_, tool)| tool.server == declaration.server && tool.name == name)
        };
        let others = served.iter().filter(|(_, other)| other.server != declaration.server);
        let others: Vec<&str> = others.map(|(_, other)| other.name.as_str()).filter(|name| !is_own(name)).collect();
        let own = served.iter().filter(|(_, tool)| tool.server == declaration.server);
        let suspicious = own.filter_map(|(tool, served)| {
            let mut texts = texts(tool, served).into_iter();
            let why = texts.find_map(|text| suspicions(text, others.iter().copied()).into_iter().next())?;
            Some((served.name.as_str(), why))
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

/// Whether the lock file has a tool of a server, which a loop need not declare.
fn is_locked(subject: &Subject<'_>, server: &str, tool: &str) -> bool {
    let LockedTools::File(file) = &subject.texts.locked else { return false };
    file.lock().is_ok_and(|lock| lock.servers.get(server).is_some_and(|locked| locked.tools.contains_key(tool)))
}

/// The texts of a tool that a model reads: its description may be the project's own.
fn texts<'t>(tool: &'t Tool, served: &'t ServedTool) -> Vec<&'t str> {
    std::iter::once(tool.description.as_str()).chain(texts_of(&served.locked.input_schema)).collect()
}
