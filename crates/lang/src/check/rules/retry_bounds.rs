//! A first wait that is longer than the longest.

use crate::check::{Cursor, Rule, Subject};
use crate::diagnostic::{Diagnostic, codes};

pub const RULE: Rule = Rule { code: codes::RETRY_BOUNDS, check };

fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    if let Some(retry) = subject.react(&["retry/base_ms", "retry/max_ms"]).map(|react| &react.retry) {
        let cursor = subject.property("retry/base_ms").or_else(|| subject.property("retry/max_ms"));
        found.extend(cursor.and_then(|cursor| fault(retry.base_ms, retry.max_ms, &cursor)));
    }
    for used in subject.actions().iter().filter(|used| used.knows(&["/retry"])) {
        let Some(retry) = used.action.kind().retry() else { continue };
        let cursor = [used.at("/retry/base_ms"), used.at("/retry/max_ms")].into_iter().find(Cursor::is_written);
        found.extend(cursor.and_then(|cursor| fault(retry.base_ms, retry.max_ms, &cursor)));
    }
}

fn fault(first: u64, longest: u64, cursor: &Cursor<'_>) -> Option<Diagnostic> {
    (first > longest).then(|| {
        let message = format!("the first wait is {first} ms, and the longest one {longest} ms");
        cursor.report(&RULE, message).help("waits double from `base_ms` up to `max_ms`: `max_ms` is the larger one")
    })
}
