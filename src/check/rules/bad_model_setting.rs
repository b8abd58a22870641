//! A setting of a model that can't be sent.

use crate::check::{Rule, Subject};
use crate::diagnostic::{Diagnostic, codes};
use crate::syntax::token;

/// The rule.
pub const RULE: Rule = Rule { code: codes::BAD_MODEL_SETTING, check };

fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let Some(project) = subject.project() else { return };
    for (name, model) in &project.models {
        for fault in model.setting_faults() {
            let place = format!("/models/{}{}", token(name), fault.pointer);
            let Some(cursor) = subject.in_project(&place) else { continue };
            let has = |name: &str| model.provider.facts().settings.contains(&name);
            let help = if fault.pointer.starts_with("/extra_body/") {
                "take it out of extra_body: a field of the loop or of the model sets it"
            } else if fault.pointer == "/thinking" && has("reasoning_effort") && !has("thinking") {
                "how much such a model thinks is `reasoning_effort`: \"low\", \"medium\", \"high\""
            } else if fault.pointer == "/thinking/type" {
                "how many tokens it may think: {\"type\": \"enabled\", \"budget_tokens\": 4096}; or {\"type\": \"adaptive\"}"
            } else {
                "take it out"
            };
            found.push(cursor.key().report(&RULE, fault.message).help(help));
        }
    }
}
