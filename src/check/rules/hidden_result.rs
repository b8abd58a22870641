//! A result key that is one of the engine's own names.

use crate::check::{Rule, Subject};
use crate::diagnostic::{Diagnostic, codes};

/// The rule.
pub const RULE: Rule = Rule { code: codes::HIDDEN_RESULT, check };

fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let Some(key) = subject.react(&["result_key"]).and_then(|react| react.result_key.as_deref()) else { return };
    let what = match key {
        "input" => "the run's input",
        "now" => "the moment",
        "__run_id" => "the run's id",
        "item" => "the item of a `foreach` loop",
        _ => return,
    };
    if let Some(cursor) = subject.property("result_key") {
        let fault = cursor.report(&RULE, format!("`@{key}` is {what}: a result of that name could never be read"));
        found.push(fault.help("give the result a name of its own, like `triage_result`"));
    }
}
