//! A spending limit for a model that the project does not have.

use crate::check::{Rule, Subject};
use crate::diagnostic::{Diagnostic, codes, nearest};
use crate::syntax::quoted;

pub const RULE: Rule = Rule { code: codes::UNKNOWN_LIMIT, check };

fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let Some(project) = subject.project() else { return };
    let Some(models) = subject.models() else { return };
    for (number, limit) in project.limits.iter().enumerate() {
        let Some(name) = limit.model.as_deref().filter(|name| !models.contains(name)) else { continue };
        // The model of loops that name none may be a provider's own id.
        if project.model.as_deref() == Some(name) {
            continue;
        }
        let Some(cursor) = subject.in_project(&format!("/limits/{number}/model")) else { continue };
        let fault = cursor
            .report(&RULE, format!("the spending limit is for {}, which is no model of the project", quoted(name)));
        let near = nearest(name, models.iter().copied());
        found.push(match near {
            Some(near) => fault.help(format!("write `{near}`, by which loops name it")).suggest(quoted(near)),
            None => fault
                .help("a loop that names a provider's own id is counted by that name; else name a model of `models`"),
        });
    }
}
