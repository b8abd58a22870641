//! A model of provider `script` that names no script.

use crate::check::{Rule, Subject};
use crate::diagnostic::{Diagnostic, Help, Remedy, codes};
use crate::language::project::Provider;
use crate::syntax::token;

pub const RULE: Rule = Rule { code: codes::MISSING_SCRIPT, check };

fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let Some(project) = subject.project() else { return };
    for (name, model) in &project.models {
        let knows = subject.knows_project(&format!("/models/{}/script", token(name)));
        if model.provider != Provider::Script || model.script.is_some() || !knows {
            continue;
        }
        if let Some(cursor) = subject.in_project(&format!("/models/{}/provider", token(name))) {
            let fault = cursor.report(&RULE, format!("the model `{name}` is scripted, and has no script"));
            found.push(
                fault.help(Help::ending("name its file: \"script\": \"script.json\"; without it ", Remedy::GiveScript)),
            );
        }
    }
}
