//! A tool that must be called before an answer, and is not declared: no answer would ever be accepted.

use crate::check::{Rule, Subject};
use crate::diagnostic::{Diagnostic, codes, nearest};
use crate::language::react::RequiredTools;
use crate::program::ToolKind;

/// The rule.
pub const RULE: Rule = Rule { code: codes::UNKNOWN_REQUIRED_TOOL, check };

fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let Some(program) = subject.program() else { return };
    let declared = || program.tools.iter().filter(|tool| !matches!(tool.kind, ToolKind::Builtin(_)));
    let property = "require_tool_before_answer";
    let mut report = |at: String, message: String, help: String| {
        if let Some(cursor) = subject.property(&at) {
            found.push(cursor.report(&RULE, message).help(help));
        }
    };
    match &program.properties.require_tool_before_answer {
        Some(RequiredTools::All(names)) => {
            for (at, name) in names.iter().enumerate().filter(|(_, name)| declared().all(|tool| tool.name != **name)) {
                let near = nearest(name, declared().map(|tool| tool.name.as_str()));
                let help = near.map_or_else(
                    || "name a tool of `tools`; built-in tools do not count".to_owned(),
                    |near| format!("the nearest name is `{near}`"),
                );
                report(format!("{property}/{at}"), format!("the loop declares no tool `{name}`"), help);
            }
        }
        Some(RequiredTools::Any(_)) if declared().next().is_none() => {
            let message = "the loop declares no tool that could be called before the answer".to_owned();
            report(property.to_owned(), message, "declare a tool in `tools`, or remove the field".to_owned());
        }
        _ => {}
    }
}
