//! A datasource that a loop uses and that can't be opened.

use std::collections::HashSet;

use crate::check::{Rule, Subject};
use crate::diagnostic::{Diagnostic, codes};
use crate::language::Action;
use crate::syntax::token;

/// The rule.
pub const RULE: Rule = Rule { code: codes::BAD_DATASOURCE, check };

fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let Some(project) = subject.project() else { return };
    let mut reported = HashSet::new();
    for used in subject.actions() {
        let Action::Db(db) = &used.action else { continue };
        let name = db.datasource.as_str();
        let Some(datasource) = project.datasources.get(name).filter(|_| !reported.contains(name)) else { continue };
        let url = datasource.url.as_str();
        let path = datasource.sqlite_path();
        if url.starts_with("orgconfig:") || path.is_some_and(|path| !path.is_empty() && !path.starts_with(":memory:")) {
            continue;
        }
        let Some(cursor) = subject.in_project(&format!("/datasources/{}/url", token(name))) else { continue };
        reported.insert(name);
        // The address may hold a password: only its scheme is reported.
        let message = match url.split_once(':') {
            Some(("sqlite", "")) => format!("the datasource `{name}` names no file"),
            Some(("sqlite", _)) => format!("the datasource `{name}` is in memory, and empty at each call"),
            Some((scheme, _)) if scheme.len() < 20 => format!("a database of the kind `{scheme}:` can't be opened"),
            _ => format!("the address of the datasource `{name}` says no kind of database"),
        };
        let fault = cursor.report(&RULE, message).help("write `sqlite:PATH`, relative to the project file");
        found.push(fault.related(&used.at("/datasource").place(), "it is used here"));
    }
}
