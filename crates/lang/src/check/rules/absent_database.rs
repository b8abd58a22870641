//! A database that is not there, or is none.

use super::bad_store::has_options;
use crate::check::{Rule, Subject};
use crate::compile::DatabaseState;
use crate::diagnostic::{Diagnostic, codes};
use crate::syntax::token;

pub const RULE: Rule = Rule { code: codes::ABSENT_DATABASE, check };

fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let (Some(databases), Some(project)) = (&subject.texts.outside.databases, subject.project()) else { return };
    for (name, datasource) in &project.datasources {
        // Its address is no path, may hold a password, and is reported as such.
        if datasource.sqlite_path().is_some_and(has_options) {
            continue;
        }
        let (message, help) = match databases.state(name) {
            DatabaseState::Absent => (
                format!("the database `{name}` is not there: `{}`", datasource.url),
                "paths start in the folder of the project file; `\"init\": \"FILE.sql\"` makes a database that is not there",
            ),
            DatabaseState::Unreadable(why) if databases.server(name).is_some() => (
                format!("no query of the database `{name}` could be prepared: {why}"),
                "the server must be reachable from here, with the user, password and TLS of the datasource",
            ),
            DatabaseState::Unreadable(why) => {
                (format!("the database `{name}` can't be read: {why}"), "name the file of an SQLite database")
            }
            _ => continue,
        };
        if let Some(cursor) = subject.in_project(&format!("/datasources/{}/url", token(name))) {
            found.push(cursor.report(&RULE, message).help(help));
        }
    }
}
