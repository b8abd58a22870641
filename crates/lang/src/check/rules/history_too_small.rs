//! A history that is smaller than the first request.

use crate::check::{Rule, Subject, request_size};
use crate::diagnostic::{Diagnostic, codes};

pub const RULE: Rule = Rule { code: codes::HISTORY_TOO_SMALL, check };

fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let Some(properties) = subject.react(&["history/context_tokens"]) else { return };
    let Some(most) = properties.history.as_ref().and_then(|history| history.context_tokens) else { return };
    let Some(needed) = request_size::first_request(subject) else { return };
    if let Some(cursor) = subject.property("history/context_tokens").filter(|_| needed > most) {
        let message =
            format!("the objective and the tools alone take about {needed} tokens, and a request may have {most}");
        let help = "give it room for the conversation too: some thousands more; or declare fewer tools";
        found.push(cursor.report(&RULE, message).help(help));
    }
}
