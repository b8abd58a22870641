//! A store that can't be opened by its name.

use crate::check::{Rule, Subject};
use crate::diagnostic::{Diagnostic, codes};
use crate::syntax::quoted;

/// The rule.
pub const RULE: Rule = Rule { code: codes::BAD_STORE, check };

fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let Some(store) = subject.project().and_then(|project| project.store.as_deref()) else { return };
    let Some(cursor) = subject.in_project("/store") else { return };
    let (message, better) = match store.split_once(':') {
        None if store == "memory" => return,
        None if store.is_empty() => ("the store has no name".to_owned(), None),
        None => (format!("`{store}` says no kind of store"), Some(format!("sqlite:{store}"))),
        Some(("sqlite", "")) => ("the store names no file".to_owned(), None),
        Some(("sqlite", ":memory:")) => ("a store in memory is written `memory`".to_owned(), Some("memory".to_owned())),
        Some(("sqlite", path)) if path.starts_with("//") && !path.starts_with("///") => (
            "a path follows `sqlite:` at once".to_owned(),
            path.strip_prefix("//").map(|path| format!("sqlite:{path}")),
        ),
        Some(("sqlite", _)) => return,
        Some((kind, _)) => (format!("there is no store of the kind `{kind}`"), None),
    };
    let fault =
        cursor.report(&RULE, message).help("a store is `sqlite:PATH`, relative to the project file, or `memory`");
    found.push(match better {
        Some(better) => fault.suggest(quoted(&better)),
        None => fault,
    });
}
