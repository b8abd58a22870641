//! A secret of the project that does not say where it is.

use crate::check::{Cursor, Rule, Subject};
use crate::diagnostic::{Diagnostic, codes};
use crate::syntax::{quoted, token};

pub const RULE: Rule = Rule { code: codes::WRITTEN_SECRET, check };

fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let Some(project) = subject.project() else { return };
    let mut judge = |cursor: Option<Cursor<'_>>, key: &str, source: &str| {
        let Some(cursor) = cursor.filter(|cursor| !is_source(source) && !subject.is_reported(&cursor.place())) else {
            return;
        };
        // The value may be the secret itself: it is not repeated.
        let fault = cursor.report(&RULE, format!("`{key}` must say where its secret is, and not what it is"));
        found.push(with_help(fault, source));
    };
    for (key, source) in &project.orgconfig {
        // What a program prints is written nowhere.
        let Some(source) = source.written() else { continue };
        let pointer = format!("/orgconfig/{}", token(key));
        // Others are not written: the program around the engine gives them.
        if subject.project_document().is_some_and(|document| document.tree.at(&pointer).is_some()) {
            judge(subject.in_project(&pointer), key, source);
        }
    }
    for (name, datasource) in &project.datasources {
        let password = datasource.password.as_deref().filter(|source| !source.starts_with("orgconfig:"));
        if let Some(source) = password {
            judge(subject.in_project(&format!("/datasources/{}/password", token(name))), "password", source);
        }
    }
    if let Some(source) = &project.serve.callback_secret {
        judge(subject.in_project("/serve/callback_secret"), "callback_secret", source);
    }
}

/// Whether a text says where a secret is. The name of a variable has no sign by which shells mark one.
pub(super) fn is_source(text: &str) -> bool {
    let is_marked = |c: char| c.is_whitespace() || matches!(c, '$' | '{' | '}' | '%' | '=');
    match text.split_once(':') {
        Some(("env", name)) => !name.is_empty() && !name.contains(is_marked),
        Some(("file", path)) => !path.is_empty(),
        _ => false,
    }
}

/// The fault with what to write instead.
pub(super) fn with_help(fault: Diagnostic, source: &str) -> Diagnostic {
    match variable(source) {
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

/// Whether a text names a source in another spelling, or within other words.
pub(super) fn is_misspelt_source(text: &str) -> bool {
    let words = ["env:", "file:", "orgconfig:"];
    variable(text).is_some() || words.iter().any(|word| text.to_ascii_lowercase().contains(word))
}

/// The variable of the environment that a text names in another spelling: `$X`, `${X}`, `%X%`, `env:$X`, `ENV:X`,
/// `process.env.X`, `{{env.X}}`.
fn variable(source: &str) -> Option<&str> {
    const MARKS: [&str; 7] = ["env:", "ENV:", "Env:", "process.env.", "env.", "env/", "orgconfig:env:"];
    const SIGNS: [char; 5] = ['$', '{', '}', '%', ' '];
    let text = source.trim_matches(SIGNS);
    let after_mark = MARKS.iter().find_map(|mark| text.strip_prefix(mark));
    let name = after_mark.unwrap_or(text).trim_matches(SIGNS);
    // A bare word may be the secret itself.
    let is_marked = after_mark.is_some() || text.len() < source.len();
    let is_name = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
    (is_marked && name.starts_with(|c: char| c.is_ascii_uppercase() || c == '_') && name.chars().all(is_name))
        .then_some(name)
}
