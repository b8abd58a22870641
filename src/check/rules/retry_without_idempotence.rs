//! A retry of an action that may not be repeated.

use crate::check::{Rule, Subject, Used};
use crate::diagnostic::{Diagnostic, codes};

/// The rule.
pub const RULE: Rule = Rule { code: codes::RETRY_WITHOUT, check };

fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let known = |used: &&Used<'_>| used.knows(&["/idempotent", "/http_method", "/retry"]);
    for used in subject.actions().iter().filter(known) {
        let kind = used.action.kind();
        if kind.retry().is_none() || kind.head().idempotent.unwrap_or_else(|| kind.is_idempotent()) {
            continue;
        }
        let what = kind.repeated().unwrap_or_else(|| "a call".to_owned());
        let fault =
            used.at("/retry").report(&RULE, format!("{what} that failed may have happened, and would be made again"));
        found.push(fault.help(
            "write \"idempotent\": true when the other side knows a repeated call by its `Idempotency-Key`, or take `retry` \
             out: then the model reads that the call failed",
        ));
    }
}
