//! A tool that the provider knows by another name.

use crate::check::{Rule, Subject};
use crate::diagnostic::{Diagnostic, codes};
use crate::language::ToolDeclaration;
use crate::language::react::Dialect;
use crate::policy::name_pattern::is_pattern;
use crate::program::builtin;
use crate::program::tool_names::ToolNames;

pub const RULE: Rule = Rule { code: codes::NATIVE_NAME, check };

fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let dialect = subject.react(&["dialect", "builtins"]).map(|react| react.dialect);
    if !matches!(dialect, Some(Dialect::ToolCalls | Dialect::FinalAnswer)) {
        return;
    }
    // Those that a pattern names are not renamed one by one.
    let declared =
        subject.declarations().filter_map(|(_, declaration)| name(declaration)).filter(|name| !is_pattern(name));
    let names = ToolNames::of(declared.filter(|name| !builtin::NAMES.contains(name)).chain(builtin::NAMES));
    for (tool, called) in names.changed() {
        let declared = subject.declarations().find(|(_, declaration)| name(declaration) == Some(tool));
        let Some((pointer, declaration)) = declared else { continue };
        let cursor = match declaration {
            ToolDeclaration::Typed(_) => subject.at(pointer).below("/name"),
            ToolDeclaration::Legacy(_) => subject.at(pointer),
        };
        let message = format!("the model sees the tool `{tool}` as `{called}`");
        found.push(cursor.report(&RULE, message).help(
            "native tool calls take 1 to 64 letters, digits, `_` and `-` of ASCII, the first a letter or `_`; the document, the \
             trace and the store keep the name as it is",
        ));
    }
}

fn name(declaration: &ToolDeclaration) -> Option<&str> {
    match declaration {
        ToolDeclaration::Typed(tool) => tool.name(),
        ToolDeclaration::Legacy(name) => Some(name),
    }
}
