//! A store that can't be opened by its name.

use crate::check::{Rule, Subject};
use crate::diagnostic::{Diagnostic, codes};
use crate::policy::database_address::{has_password, may_hold_a_secret};
use crate::syntax::quoted;

pub const RULE: Rule = Rule { code: codes::BAD_STORE, check };

/// What is wrong with a path of SQLite that ends as a URL does.
pub(super) const NO_OPTIONS: &str =
    "a path of SQLite has no options: `?` and what follows it would be part of the file's name";

/// Whether a path ends with `?name=value`.
pub(super) fn has_options(path: &str) -> bool {
    path.split_once('?').is_some_and(|(_, options)| options.contains('='))
}

fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let Some(store) = subject.project().and_then(|project| project.store.as_deref()) else { return };
    let Some(cursor) = subject.in_project("/store") else { return };
    let (message, better) = match store.split_once(':') {
        None if store == "memory" => return,
        None if store.is_empty() => ("the store has no name".to_owned(), None),
        // Without a suggestion the report hides it.
        None if may_hold_a_secret(store) => ("the store says no kind of store".to_owned(), None),
        None => (format!("`{store}` says no kind of store"), Some(format!("sqlite:{store}"))),
        Some(("sqlite", "")) => ("the store names no file".to_owned(), None),
        Some(("sqlite", ":memory:")) => ("a store in memory is written `memory`".to_owned(), Some("memory".to_owned())),
        Some(("sqlite", path)) if path.starts_with("//") && !path.starts_with("///") => (
            "a path follows `sqlite:` at once".to_owned(),
            path.strip_prefix("//").map(|path| format!("sqlite:{path}")),
        ),
        Some(("sqlite", path)) if has_options(path) => (NO_OPTIONS.to_owned(), None),
        Some(("sqlite", _)) => return,
        Some(("postgres" | "postgresql", address)) => match fault_of_address(address) {
            Some(fault) => (fault.to_owned(), None),
            None => return,
        },
        Some(("env" | "file", name)) if !name.is_empty() => return,
        Some((kind, _)) => (format!("there is no store of the kind `{kind}`"), None),
    };
    let fault =
        cursor.report(&RULE, message).help(
        "a store is `sqlite:PATH`, relative to the project file, `postgres://USER@HOST/DATABASE`, or `memory`; or `env:VAR` or \
         `file:PATH`, which hold one of these",
    );
    found.push(match better {
        Some(better) => fault.suggest(quoted(&better)),
        None => fault,
    });
}

/// What is wrong with the address of a database, without what is before it.
fn fault_of_address(address: &str) -> Option<&'static str> {
    let Some(address) = address.strip_prefix("//") else {
        return Some("the address of a database is written `postgres://USER@HOST/DATABASE`");
    };
    has_password(address)
        .then_some("the store's address holds a password, which everybody who reads the project file sees")
}
