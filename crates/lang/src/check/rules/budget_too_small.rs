//! A budget that is smaller than the first request.

use crate::check::{Rule, Subject, request_size};
use crate::diagnostic::{Diagnostic, codes};

pub const RULE: Rule = Rule { code: codes::BUDGET_TOO_SMALL, check };

fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let Some(properties) = subject.react(&["budget/tokens"]) else { return };
    let Some(most) = properties.budget.as_ref().and_then(|budget| budget.tokens) else { return };
    let Some(needed) = request_size::first_request(subject) else { return };
    if let Some(cursor) = subject.property("budget/tokens").filter(|_| needed >= most) {
        let message = format!("the first request takes about {needed} tokens, and the whole run has {most}");
        let help = "the whole conversation is read at each iteration: count some thousands for each of them";
        found.push(cursor.report(&RULE, message).help(help));
    }
}
