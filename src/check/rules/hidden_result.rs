//! A result key that is one of the engine's own names.

use crate::check::steps::steps;
use crate::check::{Cursor, Rule, Subject};
use crate::diagnostic::{Diagnostic, codes};

/// The rule.
pub const RULE: Rule = Rule { code: codes::HIDDEN_RESULT, check };

fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let own = subject.react(&["result_key"]).and_then(|react| react.result_key.as_deref());
    if let (Some(key), Some(cursor)) = (own, subject.property("result_key")) {
        found.extend(hidden(&cursor, key));
    }
    for step in steps(subject) {
        found.extend(step.keys().into_iter().filter_map(|(at, key)| hidden(&subject.at(&at), key)));
    }
}

fn hidden(cursor: &Cursor<'_>, key: &str) -> Option<Diagnostic> {
    let what = match key {
        "input" => "the run's input",
        "now" => "the moment",
        "__run_id" => "the run's id",
        "item" => "the item of a `foreach` loop",
        _ => return None,
    };
    let fault = cursor.report(&RULE, format!("`@{key}` is {what}: a result of that name could never be read"));
    Some(fault.help("give the result a name of its own, like `triage_result`"))
}
