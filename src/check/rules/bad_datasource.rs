//! A datasource that can't be opened.

use super::bad_store::{NO_OPTIONS, has_options};
use crate::check::{Rule, Subject};
use crate::diagnostic::{Diagnostic, codes};
use crate::language::Action;
use crate::syntax::{quoted, token};

/// The rule.
pub const RULE: Rule = Rule { code: codes::BAD_DATASOURCE, check };

fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let Some(project) = subject.project() else { return };
    for (name, datasource) in &project.datasources {
        let url = datasource.url.as_str();
        let path = datasource.sqlite_path();
        // As for a store: `sqlite:///x` is an absolute path.
        let slashed = |path: &str| path.starts_with("//") && !path.starts_with("///");
        let opens = path.is_some_and(|path| {
            !path.is_empty() && !path.starts_with(":memory:") && !slashed(path) && !has_options(path)
        });
        if url.starts_with("orgconfig:") || opens {
            continue;
        }
        let Some(cursor) = subject.in_project(&format!("/datasources/{}/url", token(name))) else { continue };
        // The address may hold a password: only its scheme is reported.
        let mut meant = None;
        let message = match url.split_once(':') {
            Some(("sqlite", "")) => format!("the datasource `{name}` names no file"),
            Some(("sqlite", path)) if slashed(path) => {
                meant = path.strip_prefix("//").filter(|path| !path.is_empty());
                format!("the path of the datasource `{name}` follows `sqlite:` at once, without `//`")
            }
            Some(("sqlite", path)) if has_options(path) => NO_OPTIONS.to_owned(),
            Some(("sqlite", _)) => format!("the datasource `{name}` is in memory, and empty at each call"),
            Some((scheme, _)) if scheme.len() < 20 => format!("a database of the kind `{scheme}:` can't be opened"),
            _ => {
                meant = Some(url).filter(|url| has_database_ending(url));
                format!("the address of the datasource `{name}` says no kind of database")
            }
        };
        let mut fault = cursor.report(&RULE, message).help("write `sqlite:PATH`, relative to the project file");
        if let Some(path) = meant {
            fault = fault.suggest(quoted(&format!("sqlite:{path}")));
        }
        let used =
            subject.actions().iter().find(|used| matches!(&*used.action, Action::Db(db) if db.datasource == *name));
        found.push(match used {
            Some(used) => fault.related(&used.at("/datasource").place(), "it is used here"),
            None => fault,
        });
    }
}

fn has_database_ending(path: &str) -> bool {
    [".db", ".sqlite", ".sqlite3", ".db3"].iter().any(|ending| path.ends_with(ending))
}
