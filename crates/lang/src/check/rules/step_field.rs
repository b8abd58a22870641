//! A field of a step, in a loop that is no step.

use crate::check::{Rule, Subject};
use crate::diagnostic::{Diagnostic, codes};
use crate::syntax::document::DocumentKind;

pub const RULE: Rule = Rule { code: codes::STEP_FIELD, check };

fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    if subject.document().kind != Some(DocumentKind::Loop) {
        return;
    }
    for (field, what) in [
        ("/filter", "the loop runs whether it holds or not"),
        ("/onFalse", "no step runs in the place of this one"),
        ("/outputKey", "no step comes after this one to read it"),
    ] {
        let cursor = subject.at(field);
        if cursor.is_written() && !subject.is_faulty(field) {
            let name = field.trim_start_matches('/');
            let fault = cursor.key().report(&RULE, format!("`{name}` means nothing here: {what}"));
            found.push(fault.help("it belongs to a step of a workflow; take it out of a loop that stands alone"));
        }
    }
}
