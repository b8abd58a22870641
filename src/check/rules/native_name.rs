//! A tool that the provider knows by another name.

use crate::check::{Rule, Subject};
use crate::diagnostic::{Diagnostic, codes};
use crate::language::ToolDeclaration;
use crate::language::react::Dialect;

/// The rule.
pub const RULE: Rule = Rule { code: codes::NATIVE_NAME, check };

fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let Some(program) = subject.program() else { return };
    if !matches!(program.properties.dialect, Dialect::ToolCalls | Dialect::FinalAnswer) {
        return;
    }
    for (tool, called) in program.called.changed() {
        let declared = subject.declarations().iter().find(|(_, declaration)| name(declaration) == Some(tool));
        let Some((pointer, declaration)) = declared else { continue };
        let cursor = match declaration {
            ToolDeclaration::Typed(_) => subject.at(pointer).below("/name"),
            ToolDeclaration::Legacy(_) => subject.at(pointer),
        };
        let message = format!("the model sees the tool `{tool}` as `{called}`");
        found.push(cursor.report(&RULE, message).help(
            "native tool calls take 1 to 64 letters, digits, `_` and `-` of ASCII; the document, the trace and the \
             store keep the name as it is",
        ));
    }
}

fn name(declaration: &ToolDeclaration) -> Option<&str> {
    match declaration {
        ToolDeclaration::Typed(tool) => tool.name(),
        ToolDeclaration::Legacy(name) => Some(name),
    }
}
