//! A call that is not idempotent and is made again in doubt.

use crate::check::{Rule, Subject, Used};
use crate::diagnostic::{Diagnostic, codes};
use crate::language::action::OnUncertain;

/// The rule.
pub const RULE: Rule = Rule { code: codes::RETRIED_DOUBT, check };

fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let known = |used: &&Used<'_>| used.knows(&["/idempotent", "/http_method", "/read_only"]);
    for used in subject.actions().iter().filter(known) {
        let kind = used.action.kind();
        if kind.head().on_uncertain != OnUncertain::Retry {
            continue;
        }
        // To ask a model twice costs, and does no harm.
        let Some(what) = kind.repeated() else { continue };
        let cursor = used.at("/on_uncertain");
        if !kind.head().idempotent.unwrap_or_else(|| kind.is_idempotent()) && cursor.is_written() {
            let fault =
                cursor.report(&RULE, format!("after a crash, {what} that may have happened would be made again"));
            found.push(fault.help(
                "write \"pause\", so that a human looks; or \"idempotent\": true, when the other side knows a \
                 repeated call by its `Idempotency-Key`",
            ));
        }
    }
}
