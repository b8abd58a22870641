//! A call that is not idempotent and is made again in doubt.

use crate::check::{Rule, Subject, Used};
use crate::diagnostic::{Diagnostic, codes};
use crate::language::Action;
use crate::language::action::OnUncertain;

/// The rule.
pub const RULE: Rule = Rule { code: codes::RETRIED_DOUBT, check };

fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let known = |used: &&Used<'_>| used.knows(&["/idempotent", "/http_method", "/read_only"]);
    for used in subject.actions().iter().filter(known) {
        let Some(head) = used.action.head().filter(|head| head.on_uncertain == OnUncertain::Retry) else { continue };
        let (what, harmless) = match &used.action {
            Action::Http(http) => {
                (format!("a {} request", http.http_method.as_str()), http.http_method.is_idempotent())
            }
            Action::Db(db) => ("a write".to_owned(), db.read_only),
            Action::Command(command) => (format!("the program `{}`", command.program), false),
            // To ask a model twice costs, and does no harm.
            Action::Llm(_) | Action::Matcher(_) | Action::CustomTable(_) => continue,
        };
        let cursor = used.at("/on_uncertain");
        if !head.idempotent.unwrap_or(harmless) && cursor.is_written() {
            let fault =
                cursor.report(&RULE, format!("after a crash, {what} that may have happened would be made again"));
            found.push(fault.help(
                "write \"pause\", so that a human looks; or \"idempotent\": true, when the other side knows a \
                 repeated call by its `Idempotency-Key`",
            ));
        }
    }
}
