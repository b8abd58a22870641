//! A first wait that is longer than the longest.

use crate::check::{Rule, Subject};
use crate::diagnostic::{Diagnostic, codes};

/// The rule.
pub const RULE: Rule = Rule { code: codes::RETRY_BOUNDS, check };

fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let Some(retry) = subject.react(&["retry"]).map(|react| &react.retry) else { return };
    let (first, longest) = (retry.base_ms, retry.max_ms);
    let cursor = subject.property("retry/base_ms").or_else(|| subject.property("retry/max_ms"));
    if let Some(cursor) = cursor.filter(|_| first > longest) {
        let message = format!("the first wait is {first} ms, and the longest one {longest} ms");
        found.push(
            cursor
                .report(&RULE, message)
                .help("waits double from `base_ms` up to `max_ms`: `max_ms` is the larger one"),
        );
    }
}
