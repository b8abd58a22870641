//! A key by which a step hides the item of the loop around it from the steps after it.

use serde_json::Value;

use crate::check::key_flow::follow;
use crate::check::step_tree::tree;
use crate::check::steps::{WrittenStep, steps};
use crate::check::{Rule, Subject};
use crate::diagnostic::{Diagnostic, codes};

pub const RULE: Rule = Rule { code: codes::HIDDEN_ITEM, check };

/// What names a key, beside `outputKey` and `expected_keys`.
const NAMES: [&str; 5] = ["result_key", "summary_key", "outputMatched", "outputUnmatchedLeft", "outputUnmatchedRight"];

fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    if !steps(subject).iter().any(WrittenStep::is_foreach) {
        return;
    }
    follow(subject, &tree(subject), &mut |node, keys| {
        for key in node.step.writes(subject).into_iter().filter(|key| keys.is_item(key)) {
            // L046 reports a result of the name `item`.
            let is_other = |at: &String| key != "item" || at.contains("/expected_keys/");
            let Some(at) = written_at(&node.step, &key).filter(is_other) else { continue };
            let message =
                format!("`@{key}` is the item of the loop around the step: the steps after it could not read it");
            found.push(subject.at(&at).report(&RULE, message).help("give the key another name"));
        }
    });
}

/// Where a step names a key; none for the fields of a form, about which L236 says the same.
fn written_at(step: &WrittenStep<'_>, key: &str) -> Option<String> {
    let is_it = |value: &Value| value.as_str().is_some_and(|text| text.trim_start_matches('@') == key);
    if step.written.get("outputKey").is_some_and(is_it) {
        return Some(format!("{}/outputKey", step.at));
    }
    let asked = step.properties.get("expected_keys").and_then(Value::as_array);
    let asked = asked.and_then(|keys| keys.iter().position(is_it));
    let by_name = || NAMES.into_iter().find(|name| step.properties.get(*name).is_some_and(is_it));
    match (asked, by_name()) {
        (Some(index), _) => Some(format!("{}/{index}", step.property("expected_keys"))),
        (None, Some(name)) => Some(step.property(name)),
        // An action without another key writes one of its name.
        (None, None) => (step.kind == key).then(|| format!("{}/type", step.at)),
    }
}
