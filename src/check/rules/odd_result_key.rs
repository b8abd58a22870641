//! A result key that no path can name.

use crate::check::{Rule, Subject};
use crate::diagnostic::{Diagnostic, codes};
use crate::program::reference::as_path;
use crate::syntax::quoted;

/// The rule.
pub const RULE: Rule = Rule { code: codes::ODD_RESULT_KEY, check };

fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let Some(key) = subject.react(&["result_key"]).and_then(|react| react.result_key.as_deref()) else { return };
    let Some(cursor) = subject.property("result_key") else { return };
    if as_path(&format!("@{key}")).is_some_and(|path| path.len() == 1) {
        return;
    }
    let plain: String = key.chars().map(|c| if c.is_alphanumeric() || c == '_' { c } else { '_' }).collect();
    let message = format!("no path can name the result key `{key}`");
    let fault = cursor
        .report(&RULE, message)
        .help("a key that `@key.answer` finds has letters, digits and `_`, a letter first");
    let begins = plain.starts_with(|c: char| c.is_alphabetic() || c == '_');
    found.push(if begins { fault.suggest(quoted(&plain)) } else { fault });
}
