//! A tool that must be called before an answer, and is not declared: no answer would ever be accepted.

use std::collections::HashSet;

use crate::check::{Rule, Subject};
use crate::diagnostic::{Diagnostic, Severity, codes};
use crate::language::react::RequiredTools;
use crate::policy::name_pattern::is_pattern;
use crate::program::{ToolKind, builtin};
use crate::syntax::Node;

pub const RULE: Rule = Rule { code: codes::UNKNOWN_REQUIRED_TOOL, check };

fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let Some(react) = subject.react(&["require_tool_before_answer"]) else { return };
    // Where a tool has no name that can be read, it may be any but a built-in one.
    let declared = declared(subject);
    let property = "require_tool_before_answer";
    let mut report = |at: String, message: String, help: String| {
        if let Some(cursor) = subject.property(&at) {
            found.push(cursor.report(&RULE, message).help(help));
        }
    };
    match &react.require_tool_before_answer {
        Some(RequiredTools::All(names)) if names.is_empty() => {
            if let Some(cursor) = subject.property(property) {
                let fault = cursor.report(&RULE, "the list is empty: no tool must be called before the answer");
                let fault = fault.help("name the tools, write \"any\", or remove the field");
                found.push(Diagnostic { severity: Severity::Warning, ..fault });
            }
        }
        Some(RequiredTools::All(names)) => {
            let by_name: Option<HashSet<&str>> = declared.as_ref().map(|declared| declared.iter().copied().collect());
            let is_unknown = |name: &str| match &by_name {
                Some(by_name) => !by_name.contains(name),
                None => builtin::NAMES.contains(&name),
            };
            for (at, name) in names.iter().enumerate().filter(|(_, name)| is_unknown(name)) {
                let near = subject.compiled.effort.nearest(name, declared.iter().flatten().copied());
                let help = near.map_or_else(
                    || "name a tool of `tools`; built-in tools do not count".to_owned(),
                    |near| format!("the nearest name is `{near}`"),
                );
                report(format!("{property}/{at}"), format!("the loop declares no tool `{name}`"), help);
            }
        }
        Some(RequiredTools::Any(_)) if declared.as_ref().is_some_and(Vec::is_empty) => {
            let message = "the loop declares no tool that could be called before the answer".to_owned();
            report(property.to_owned(), message, "declare a tool in `tools`, or remove the field".to_owned());
        }
        _ => {}
    }
}

/// The names of the tools, also of those with faults; nothing where one of them has no name that can be read.
fn declared<'a>(subject: &Subject<'a>) -> Option<Vec<&'a str>> {
    if let Some(program) = subject.program() {
        let own = program.tools().iter().filter(|tool| !matches!(tool.kind, ToolKind::Builtin(_)));
        return Some(own.map(|tool| tool.name.as_str()).collect());
    }
    let tools = subject.property("tools")?.node()?.items()?;
    let named = |tool: &'a Node| tool.as_str().or_else(|| tool.get("name")?.as_str()).filter(|name| !is_pattern(name));
    tools.iter().map(named).collect()
}
