//! An `ask` by which nobody is asked: an empty list, a target that the project does not have, or one that is written twice.

use super::notify_target::unknown_target;
use crate::check::steps::steps;
use crate::check::{Cursor, Rule, Subject};
use crate::diagnostic::{Diagnostic, Nearest, codes};
use crate::language::ToolDeclaration;
use crate::language::step::PRIMITIVES;
use crate::syntax::quoted;

pub const RULE: Rule = Rule { code: codes::ASK_TARGET, check };

fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let mut named = Nearest::default();
    let [.., approval, form] = PRIMITIVES;
    for step in steps(subject).iter().filter(|step| step.kind == approval || step.kind == form) {
        let written = step.properties.get("ask").and_then(|ask| ask.as_array());
        let names: Option<Vec<String>> =
            written.map(|ask| ask.iter().filter_map(|name| name.as_str().map(str::to_owned)).collect());
        if let Some(names) = names {
            list(subject, &subject.at(&step.property("ask")), &names, &mut named, found);
        }
    }
    for (pointer, declaration) in subject.declarations() {
        let ToolDeclaration::Typed(tool) = declaration else { continue };
        if let Some(names) = tool.approval().1.and_then(|approval| approval.ask.as_deref()) {
            list(subject, &subject.at(&format!("{pointer}/approval/ask")), names, &mut named, found);
        }
    }
    for used in subject.actions().iter().filter(|used| used.knows(&["/approval"])) {
        if let Some(names) = used.action.head().approval.and_then(|approval| approval.ask.as_deref()) {
            list(subject, &used.at("/approval/ask"), names, &mut named, found);
        }
    }
}

/// What is wrong with a list of targets.
fn list(
    subject: &Subject<'_>,
    cursor: &Cursor<'_>,
    names: &[String],
    named: &mut Nearest,
    found: &mut Vec<Diagnostic>,
) {
    if names.is_empty() {
        let fault = cursor.clone().report(&RULE, "an empty `ask` asks nobody".to_owned());
        found.push(
            fault.help("name targets of the project's `notify`, or leave `ask` out: who looks at the run decides"),
        );
    }
    for (at, name) in names.iter().enumerate() {
        let cursor = cursor.below(&format!("/{at}"));
        if names.iter().take(at).any(|before| before == name) {
            let fault = cursor.report(&RULE, format!("{} is asked twice", quoted(name)));
            found.push(fault.help("each target is asked once: leave it out"));
        } else {
            found.extend(unknown_target(&RULE, subject, &cursor, name, named));
        }
    }
}
