//! Limits of an action that is written like another one.

use crate::check::{Rule, Subject};
use crate::diagnostic::{Diagnostic, codes, nearest};
use crate::syntax::{quoted, token};

pub const RULE: Rule = Rule { code: codes::UNKNOWN_LIMITED_ACTION, check };

/// An action may be one of another document, or of the program that embeds the engine: only a name that is nearly that of an action here
/// is reported.
fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let Some(project) = subject.project().filter(|project| !project.action_limits.is_empty()) else { return };
    let known = subject.registered();
    for name in project.action_limits.keys().filter(|name| !known.contains(&name.as_str())) {
        let Some(near) = nearest(name, known.iter().copied()) else { continue };
        let Some(cursor) = subject.in_project(&format!("/action_limits/{}", token(name))) else { continue };
        let message = format!("the limits are for {}, which is no action here", quoted(name));
        let fault = cursor.key().report(&RULE, message).help(format!("write `{near}`, by which it is called"));
        found.push(fault.suggest(quoted(near)));
    }
}
