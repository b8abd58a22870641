//! A tool of the program around the engine that is not what the project's file says, or that shares its name.

use crate::check::{Rule, Subject};
use crate::diagnostic::{Diagnostic, codes};
use crate::syntax::document::DocumentKind;

pub const RULE: Rule = Rule { code: codes::EMBEDDED_TOOL, check };

fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let texts = subject.texts;
    if let Some(file) = &texts.embedded_file {
        found.extend(file.faults.iter().cloned());
        for own in &texts.embedded {
            let Some((kept, place)) = file.tools.iter().find(|(kept, _)| kept.name == own.name) else { continue };
            if let Some(field) = kept.differing(own) {
                let message = format!("the tool `{}` of the program has another `{field}` than this", own.name);
                let fault = Diagnostic::error(RULE.code, message, "", place.clone());
                found
                    .push(fault.help("write the file again: it is the JSON of `signatures()` of the program's engine"));
            }
        }
    }
    // A document of actions may be that of another program.
    if subject.document().kind == Some(DocumentKind::Actions) && texts.embedded_file.is_none() {
        return;
    }
    for used in subject.actions() {
        if texts.embedded_tool(used.name()).is_some() {
            let message =
                format!("the action `{}` has the name of a tool of the program around the engine", used.name());
            let fault = used.at("/action_name").report(&RULE, message);
            found.push(fault.help("give the action another name, or take it out: the tool needs no action"));
        }
    }
}
