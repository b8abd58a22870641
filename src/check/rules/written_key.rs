//! A model's key that does not say where it is.

use super::written_secret::{is_source, with_help};
use crate::check::{Rule, Subject};
use crate::diagnostic::{Diagnostic, codes};
use crate::syntax::{quoted, token};

/// The rule.
pub const RULE: Rule = Rule { code: codes::WRITTEN_KEY, check };

fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let Some(project) = subject.project() else { return };
    for (name, model) in &project.models {
        let Some(source) = model.api_key.as_deref().filter(|source| !is_source(source)) else { continue };
        let Some(cursor) = subject.in_project(&format!("/models/{}/api_key", token(name))) else { continue };
        if subject.is_reported(&cursor.place()) {
            continue;
        }
        let fault = cursor
            .report(&RULE, format!("`api_key` of the model `{name}` must say where the key is, and not what it is"));
        let key = source.strip_prefix("orgconfig:").and_then(|key| project.orgconfig.get(key));
        found.push(match key.filter(|source| is_source(source)) {
            Some(source) => fault.help(format!("it takes the source itself: `{source}`")).suggest(quoted(source)),
            None => with_help(fault, source),
        });
    }
}
