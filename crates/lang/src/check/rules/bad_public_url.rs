//! A `serve.public_url` that is no address, and one that is missing where pauses are posted.

use super::written_secret::is_source;
use crate::check::{Rule, Subject};
use crate::diagnostic::{Diagnostic, Severity, codes};
use crate::policy::public_url;

pub const RULE: Rule = Rule { code: codes::BAD_PUBLIC_URL, check };

const HELP: &str = "write the address at which others reach the server: \"https://loops.example.com\"";

fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let Some(project) = subject.project() else { return };
    let serve = &project.serve;
    let fault = match (&serve.public_url, &serve.callback_secret) {
        (Some(url), _) => {
            let Some(why) = public_url::fault(url) else { return };
            let cursor = subject.in_project("/serve/public_url").filter(|cursor| !subject.is_reported(&cursor.place()));
            // It may hold a password: it is not repeated.
            cursor.map(|cursor| cursor.report(&RULE, format!("`public_url` {why}")))
        }
        (None, Some(source)) if is_source(source) => subject.in_project("/serve/callback_secret").map(|cursor| {
            let message = "without `public_url`, a posted pause has only the path of its answer, and not the address";
            Diagnostic { severity: Severity::Warning, ..cursor.report(&RULE, message) }
        }),
        (None, _) => None,
    };
    found.extend(fault.map(|fault| fault.help(HELP)));
}
