//! A setting of a model that can't be sent.

use crate::check::{Rule, Subject};
use crate::diagnostic::{Diagnostic, codes};
use crate::language::project::SettingFault;
use crate::syntax::token;

pub const RULE: Rule = Rule { code: codes::BAD_MODEL_SETTING, check };

fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let Some(project) = subject.project() else { return };
    for (name, model) in &project.models {
        // A model without an id has its name as one.
        let of_name = (model.model.is_none() && model.provider.facts().server.is_some())
            .then(|| model.provider.path_of(name).is_none().then(|| SettingFault::of_id(name)))
            .flatten()
            .map(|fault| SettingFault { pointer: String::new(), ..fault });
        for fault in of_name.into_iter().chain(model.setting_faults()) {
            let place = format!("/models/{}{}", token(name), fault.pointer);
            let Some(cursor) = subject.in_project(&place) else { continue };
            let has = |name: &str| model.provider.facts().settings.contains(&name);
            let help = if fault.pointer.starts_with("/extra_body/") {
                "take it out of extra_body: a field of the loop or of the model sets it"
            } else if fault.pointer == "/thinking" && has("reasoning_effort") && !has("thinking") {
                "how much such a model thinks is `reasoning_effort`: \"low\", \"medium\", \"high\""
            } else if fault.pointer == "/thinking/type" {
                "how many tokens it may think: {\"type\": \"enabled\", \"budget_tokens\": 4096}; or {\"type\": \"adaptive\"}"
            } else if matches!(fault.pointer.as_str(), "" | "/model") {
                "write the id as the provider does: it may be a part of the address that is asked, and has no `..` and no empty part"
            } else {
                "take it out"
            };
            found.push(cursor.key().report(&RULE, fault.message).help(help));
        }
    }
}
