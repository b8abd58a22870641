//! A result key that is one of the engine's own names.

use crate::check::steps::steps;
use crate::check::{Cursor, Rule, Subject};
use crate::diagnostic::{Diagnostic, codes};
use crate::program::flow::APPROVAL_KEYS;

pub const RULE: Rule = Rule { code: codes::HIDDEN_RESULT, check };

fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let own = subject.react(&["result_key"]).and_then(|react| react.result_key.as_deref());
    if let (Some(key), Some(cursor)) = (own, subject.property("result_key")) {
        found.extend(hidden(&cursor, key));
    }
    for step in steps(subject) {
        let keys = step.keys();
        let of_action = || step.writes(subject).into_iter().find(|key| APPROVAL_KEYS.contains(&key.as_str()));
        if !matches!(step.kind, "PbotApproval" | "PbotForm") && !keys.iter().any(|(_, key)| is_decided(key)) {
            let cursor = subject.at(&format!("{}/type", step.at));
            found.extend(of_action().and_then(|key| hidden(&cursor, &key)));
        }
        let name = step.name_as_key(subject).filter(|(_, name)| !is_decided(name));
        found.extend(keys.into_iter().chain(name).filter_map(|(at, key)| hidden(&subject.at(&at), key)));
    }
}

fn is_decided(key: &str) -> bool {
    APPROVAL_KEYS.contains(&key.trim_start_matches('@'))
}

fn hidden(cursor: &Cursor<'_>, key: &str) -> Option<Diagnostic> {
    if is_decided(key) {
        let name = key.trim_start_matches('@');
        let message = format!("`@{name}` is what a human decided: a result of that name would count as a decision");
        let fault = cursor.report(&RULE, message);
        return Some(fault.help("give the result a name of its own, like `triage_result`"));
    }
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
