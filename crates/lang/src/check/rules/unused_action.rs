//! An action that the document carries along and no tool names.

use std::collections::HashSet;

use serde_json::Value;

use crate::check::used_actions::action_name;
use crate::check::{Rule, Subject};
use crate::compile::steps::is_foreach;
use crate::diagnostic::{Diagnostic, codes};
use crate::policy::name_pattern::{is_pattern, matches_pattern};

pub const RULE: Rule = Rule { code: codes::UNUSED_ACTION, check };

fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    // What is misspelt in `tools` or as a step is reported there, and what could not be read may be a tool.
    let foreach = is_foreach(subject.document());
    let readable = foreach || (subject.property("tools").is_some() && subject.react(&["tools"]).is_some());
    let misspelt = foreach && subject.compiled.diagnostics.iter().any(|fault| fault.code == codes::UNKNOWN_ACTION);
    if !subject.is_whole() || subject.is_step() || !readable || misspelt {
        return;
    }
    let own = subject.document().value.get("actions").and_then(Value::as_array).into_iter().flatten();
    let declared: HashSet<&str> = subject.declarations().filter_map(|(_, tool)| action_name(tool)).collect();
    let patterns: Vec<&str> = declared.iter().copied().filter(|name| is_pattern(name)).collect();
    let in_steps = subject.names_in_steps();
    for (at, action) in own.enumerate() {
        let Some(name) = action.get("action_name").and_then(Value::as_str) else { continue };
        let is_matched = || patterns.iter().any(|pattern| matches_pattern(pattern, name));
        if declared.contains(name) || is_matched() || in_steps.contains(name) {
            continue;
        }
        let cursor = subject.at(&format!("/actions/{at}/action_name"));
        if !subject.is_faulty(cursor.path()) {
            let fault = cursor.report(&RULE, format!("no tool uses the action `{name}`"));
            let tool = serde_json::json!({ "type": "action", "name": name });
            found.push(fault.help(format!("declare it in `tools` as {tool}, or take the action out")));
        }
    }
}
