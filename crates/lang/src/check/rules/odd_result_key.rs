//! A result key that no path can name.

use crate::check::steps::steps;
use crate::check::{Cursor, Rule, Subject};
use crate::diagnostic::{Diagnostic, codes};
use crate::program::reference::as_path;
use crate::syntax::quoted;

pub const RULE: Rule = Rule { code: codes::ODD_RESULT_KEY, check };

fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let own = subject.react(&["result_key"]).and_then(|react| react.result_key.as_deref());
    if let (Some(key), Some(cursor)) = (own, subject.property("result_key")) {
        found.extend(odd(&cursor, key));
    }
    for step in steps(subject) {
        for (at, key) in step.keys() {
            found.extend(odd(&subject.at(&at), key).filter(|_| !subject.is_faulty(&at)));
        }
        if let Some((at, name)) = step.name_as_key(subject).filter(|(_, name)| !is_path(name)) {
            let message = format!("no path can name the output of the step, whose key is `{name}`");
            let fault = subject.at(&at).report(&RULE, message);
            found.push(fault.help("give the step an `outputKey` of letters, digits and `_`, a letter first"));
        }
    }
}

/// Whether a path finds a key.
fn is_path(key: &str) -> bool {
    as_path(&format!("@{key}")).is_some_and(|path| path.len() == 1)
}

/// What is wrong with a key at a place.
fn odd(cursor: &Cursor<'_>, key: &str) -> Option<Diagnostic> {
    if is_path(key) {
        return None;
    }
    if let Some(name) = key.strip_prefix('@').filter(|_| as_path(key).is_some_and(|path| path.len() == 1)) {
        let fault = cursor.report(&RULE, format!("no path can name the result key `{key}`"));
        return Some(fault.help("a key is written without the `@` of the paths that read it").suggest(quoted(name)));
    }
    let plain: String = key.chars().map(|c| if c.is_alphanumeric() || c == '_' { c } else { '_' }).collect();
    let message = format!("no path can name the result key `{key}`");
    let fault = cursor
        .report(&RULE, message)
        .help("a key that `@key.answer` finds has letters, digits and `_`, a letter first");
    let begins = plain.starts_with(|c: char| c.is_alphabetic() || c == '_');
    Some(if begins { fault.suggest(quoted(&plain)) } else { fault })
}
