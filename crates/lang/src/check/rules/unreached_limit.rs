//! A limit of model calls that another limit always reaches first.

use crate::check::{Rule, Subject};
use crate::diagnostic::{Diagnostic, codes};
use crate::language::ReactProperties;
use crate::language::react::OnLimit;

pub const RULE: Rule = Rule { code: codes::UNREACHED_LIMIT, check };

fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    kept(subject, found);
    let mut report = |property: &str, message: String, help: &str| {
        if let Some(cursor) = subject.property(property) {
            found.push(cursor.report(&RULE, message).help(help));
        }
    };
    // Each needs the properties that it compares: an error in another one hides nothing.
    let retry = subject.react(&["timeout_ms", "retry/for_ms", "retry/attempts"]);
    match retry.and_then(|react| Some((react.retry.for_ms?, react))) {
        Some((_, react)) if react.retry.attempts == Some(1) => {
            report("retry/for_ms", "with one attempt, nothing is retried".to_owned(), "raise `attempts`, or remove it");
        }
        Some((for_ms, react)) if for_ms > react.timeout_ms => {
            let run = react.timeout_ms;
            let message = format!("a model is retried for {for_ms} ms, and the whole run has {run} ms");
            report("retry/for_ms", message, "give the loop a larger `timeout_ms`, or `for_ms` a smaller value");
        }
        _ => {}
    }
    if let Some(react) = subject.react(&["timeout_ms", "reply_timeout_ms"])
        && react.reply_timeout_ms > react.timeout_ms
    {
        let (run, reply) = (react.timeout_ms, react.reply_timeout_ms);
        let message = format!("one reply may take {reply} ms, and the whole run has {run} ms");
        report("reply_timeout_ms", message, "give the loop a larger `timeout_ms`, or the reply a smaller one");
    }
    let stall = subject.react(&["stall_timeout_ms", "reply_timeout_ms"]);
    let stall = stall.and_then(|react| Some((react.stall_timeout_ms?, react.reply_timeout_ms)));
    if let Some((stall, reply)) = stall.filter(|(stall, reply)| stall >= reply) {
        let message = format!("a server may send nothing for {stall} ms, and the whole reply has {reply} ms");
        report("stall_timeout_ms", message, "`stall_timeout_ms` is the smaller one of the two");
    }
    if subject.react(&["on_limit"]).is_some_and(|react| react.on_limit == OnLimit::Fail) {
        let help = "add `\"on_limit\": \"answer\"`, or remove the field";
        report("last_call_timeout_ms", "without `on_limit: answer` there is no last call".to_owned(), help);
    }
}

/// `keep_last` without the limit that it belongs to.
fn kept(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let unlimited =
        |react: &&ReactProperties| react.history.as_ref().is_some_and(|history| history.max_messages.is_none());
    if subject.react(&["history/max_messages"]).filter(unlimited).is_some()
        && let Some(cursor) = subject.property("history/keep_last")
    {
        let message = "without `max_messages`, no number of messages is kept: `keep_last` has no effect";
        found.push(cursor.report(&RULE, message).help("add `max_messages`, or remove the field"));
    }
}
