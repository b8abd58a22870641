//! A datasource that can't be opened.

use std::cell::LazyCell;
use std::collections::HashMap;

use super::bad_store::{NO_OPTIONS, has_options};
use crate::check::{Cursor, Rule, Subject, Used};
use crate::diagnostic::{Diagnostic, Severity, codes};
use crate::language::Action;
use crate::language::action::TABLES;
use crate::language::project::Datasource;
use crate::policy::database_address::{DatabaseServer, HAS_MYSQL, NO_MYSQL, has_password};
use crate::syntax::{quoted, token};

pub const RULE: Rule = Rule { code: codes::BAD_DATASOURCE, check };

fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let Some(project) = subject.project() else { return };
    let first_use = LazyCell::new(|| {
        let uses = subject.actions().iter().rev().filter_map(|used| match &*used.action {
            Action::Db(db) => Some((db.datasource.as_str(), used)),
            _ => None,
        });
        uses.collect::<HashMap<_, _>>()
    });
    for (name, datasource) in &project.datasources {
        let url = datasource.url.as_str();
        let path = datasource.sqlite_path();
        found.extend(idle_password(subject, name, datasource));
        found.extend(idle_connections(subject, name, datasource));
        // As for a store: `sqlite:///x` is an absolute path.
        let slashed = |path: &str| path.starts_with("//") && !path.starts_with("///");
        let opens = path.is_some_and(|path| {
            !path.is_empty() && !path.starts_with(":memory:") && !slashed(path) && !has_options(path)
        });
        if is_held_elsewhere(url) || opens {
            continue;
        }
        let Some(cursor) = subject.in_project(&format!("/datasources/{}/url", token(name))) else { continue };
        // The address may hold a password: only its scheme is reported.
        let mut meant = None;
        let server = datasource.server();
        let message = match url.split_once(':') {
            Some((_, address)) if server.is_some_and(|_| !address.starts_with("//")) => {
                format!("the address of a server is written `{}`", server.map_or("", DatabaseServer::form))
            }
            Some((_, address)) if server.is_some() && has_password(address) => {
                let message = format!(
                    "the address of the datasource `{name}` holds a password, which everybody who reads the project file sees"
                );
                let help = "say in `password` where it is: `env:VARIABLE`, `file:PATH` or `orgconfig:KEY`; and make this \
                            one invalid";
                found.push(cursor.report(&RULE, message).help(help));
                continue;
            }
            Some(_) if server == Some(DatabaseServer::Mysql) && !HAS_MYSQL => NO_MYSQL.to_owned(),
            Some(_) if server.is_some() => {
                found.extend(misused(subject, name, datasource));
                found.extend(unprotected(&cursor, url));
                continue;
            }
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
        let mut fault = cursor.report(&RULE, message).help(
            "write `sqlite:PATH`, relative to the project file, `postgres://USER@HOST/DATABASE` or \
             `mysql://USER@HOST/DATABASE`; or `orgconfig:KEY`, `env:VARIABLE` or `file:PATH`, which hold one of these",
        );
        if let Some(path) = meant {
            fault = fault.suggest(quoted(&format!("sqlite:{path}")));
        }
        found.push(match first_use.get(name.as_str()) {
            Some(used) => fault.related(&used.at("/datasource").place(), "it is used here"),
            None => fault,
        });
    }
}

/// Whether a text says where the address is, and not what it is.
fn is_held_elsewhere(url: &str) -> bool {
    matches!(url.split_once(':'), Some(("orgconfig" | "env" | "file", rest)) if !rest.is_empty())
}

/// What the database of a server is used for that only an SQLite file can do.
fn misused(subject: &Subject<'_>, name: &str, datasource: &Datasource) -> Option<Diagnostic> {
    let at = format!("/datasources/{}", token(name));
    if datasource.init.is_some() {
        let message = format!("`init` makes an SQLite file, and the datasource `{name}` is a server");
        let help = "take it out: the tables of a server are made by its owner";
        return Some(subject.in_project(&format!("{at}/init"))?.report(&RULE, message).help(help));
    }
    let tables = |used: &&Used<'_>| name == TABLES && matches!(&*used.action, Action::CustomTable(_));
    let used = subject.actions().iter().find(tables)?;
    let message = format!("custom tables are those of an SQLite file, and the datasource `{name}` is a server");
    let fault = subject.in_project(&format!("{at}/url"))?.report(&RULE, message);
    Some(
        fault
            .help("write `sqlite:PATH`, or an action of kind `db`")
            .related(&used.at("/kind").place(), "it is used here"),
    )
}

/// A password of a file, which has no users.
fn idle_password(subject: &Subject<'_>, name: &str, datasource: &Datasource) -> Option<Diagnostic> {
    let is_idle = datasource.password.is_some() && datasource.sqlite_path().is_some();
    let cursor = subject.in_project(&format!("/datasources/{}/password", token(name))).filter(|_| is_idle)?;
    let message = format!("`password` is that of a server's user, and the datasource `{name}` is an SQLite file");
    let fault = cursor.report(&RULE, message).help("take it out");
    Some(Diagnostic { severity: Severity::Warning, ..fault })
}

/// A number of connections to a file, of which each call has one of its own.
fn idle_connections(subject: &Subject<'_>, name: &str, datasource: &Datasource) -> Option<Diagnostic> {
    let is_idle = datasource.connections.is_some() && datasource.sqlite_path().is_some();
    let cursor = subject.in_project(&format!("/datasources/{}/connections", token(name))).filter(|_| is_idle)?;
    let message = format!("`connections` are those to a server, and the datasource `{name}` is an SQLite file");
    let fault = cursor.report(&RULE, message).help("take it out: each call has a connection of its own");
    Some(Diagnostic { severity: Severity::Warning, ..fault })
}

/// A kind of protection that a connection to a server can't have.
fn unprotected(cursor: &Cursor<'_>, url: &str) -> Option<Diagnostic> {
    let (_, parameters) = url.split_once('?')?;
    let mode = parameters.split('&').find_map(|parameter| parameter.strip_prefix("sslmode="))?;
    let is_known = matches!(mode, "verify-full" | "disable");
    let message = || format!("`sslmode` is `verify-full` or `disable`, and not {}", quoted(mode));
    (!is_known).then(|| {
        cursor
            .report(&RULE, message())
            .help("a certificate that nobody checks protects nothing: write `sslmode=verify-full`")
    })
}

fn has_database_ending(path: &str) -> bool {
    [".db", ".sqlite", ".sqlite3", ".db3"].iter().any(|ending| path.ends_with(ending))
}
