//! A secret of the project that does not say where it is.

use crate::check::{Rule, Subject};
use crate::diagnostic::{Diagnostic, codes};
use crate::syntax::{quoted, token};

/// The rule.
pub const RULE: Rule = Rule { code: codes::WRITTEN_SECRET, check };

fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let Some(project) = subject.project() else { return };
    for (key, source) in &project.orgconfig {
        let Some(cursor) = subject.in_project(&format!("/orgconfig/{}", token(key))) else { continue };
        if is_source(source) || subject.is_reported(&cursor.place()) {
            continue;
        }
        // The value may be the secret itself: it is not repeated.
        let fault = cursor.report(&RULE, format!("`{key}` must say where its secret is, and not what it is"));
        found.push(with_help(fault, source));
    }
}

/// Whether a text says where a secret is.
pub(super) fn is_source(text: &str) -> bool {
    let named = |kind: &str| text.strip_prefix(kind).is_some_and(|rest| !rest.is_empty());
    named("env:") || named("file:")
}

/// The fault with what to write instead.
pub(super) fn with_help(fault: Diagnostic, source: &str) -> Diagnostic {
    let variable = source.strip_prefix('$').map(|name| name.trim_matches(['{', '}'])).filter(|name| {
        !name.is_empty() && name.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_')
    });
    match variable {
        Some(name) => {
            let source = format!("env:{name}");
            fault.help(format!("a variable of the environment is written `{source}`")).suggest(quoted(&source))
        }
        None => fault.help(
            "write `env:VARIABLE` or `file:PATH`; when a real secret stood here, make that one invalid: files are \
             kept and shared",
        ),
    }
}
