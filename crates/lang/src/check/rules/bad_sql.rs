//! SQL that its database refuses: a query, or the script that makes the database.

use serde_json::Value;

use crate::check::{Rule, Subject, Used};
use crate::compile::{DatabaseState, QueryFaultKind, QueryParameter};
use crate::diagnostic::{Diagnostic, codes};
use crate::language::Action;
use crate::language::action::DbAction;
use crate::policy::database_address::DatabaseServer;
use crate::policy::sql::{self, PlaceholderValue};
use crate::syntax::token;

pub const RULE: Rule = Rule { code: codes::BAD_SQL, check };

/// Words of other databases, and what is written for SQLite.
const DIALECTS: [(&str, &str); 20] = [
    ("ilike", "`LIKE`, which takes letters of ASCII in either case"),
    ("now", "`datetime('now')`"),
    ("curdate", "`date('now')`"),
    ("getdate", "`datetime('now')`"),
    ("sysdate", "`datetime('now')`"),
    ("interval", "`date('now', '-7 days')`"),
    ("date_sub", "`date('now', '-7 days')`"),
    ("date_add", "`date('now', '+7 days')`"),
    ("dateadd", "`date('now', '+7 days')`"),
    ("datediff", "`julianday(a) - julianday(b)`"),
    ("date_trunc", "`strftime('%Y-%m-01', x)`"),
    ("extract", "`strftime('%Y', x)`"),
    ("to_char", "`strftime('%Y-%m-%d', x)`"),
    ("date_format", "`strftime('%Y-%m-%d', x)`"),
    ("top", "`LIMIT 10` at the end"),
    ("fetch", "`LIMIT 10` at the end"),
    ("len", "`length(x)`"),
    ("nvl", "`ifnull(x, y)`"),
    ("isnull", "`ifnull(x, y)`"),
    ("auto_increment", "`INTEGER PRIMARY KEY`"),
];

fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let Some(databases) = &subject.texts.outside.databases else { return };
    for used in subject.actions() {
        let Action::Db(db) = &*used.action else { continue };
        let place = used.at("/query").place();
        // A foreign placeholder is reported as one.
        if !used.knows(&["/query", "/datasource"]) || subject.has_error_in(&place) {
            continue;
        }
        let Some(fault) = databases.prepare(&db.datasource, &db.query) else {
            let (parameters, server) =
                (databases.parameters(&db.datasource, &db.query), databases.server(&db.datasource));
            found.extend(refused_parameters(used, db, &parameters, server));
            continue;
        };
        if fault.kind == QueryFaultKind::Invalid {
            let cursor = match fault.offset.map(|at| (at, word_at(&db.query, at))) {
                Some((at, length)) if length > 0 => used.at("/query").inside(at..at + length),
                _ => used.at("/query"),
            };
            let report = cursor.report(&RULE, format!("the database refuses the query: {}", fault.message));
            found.push(report.help(match databases.server(&db.datasource) {
                Some(server) => help_of_server(server, &fault.message),
                None => help(&db.query, &fault.message),
            }));
        }
    }
    let Some(project) = subject.project() else { return };
    for name in project.datasources.keys() {
        let DatabaseState::BadInit(fault) = databases.state(name) else { continue };
        if let Some(cursor) = subject.in_project(&format!("/datasources/{}/init", token(name))) {
            let message =
                format!("the script of the database `{name}` fails in line {}: {}", fault.line, fault.message);
            found.push(cursor.report(&RULE, message).help("each call would fail, until the script makes the database"));
        }
    }
}

/// The parameters whose declared type is none that their server takes.
fn refused_parameters(
    used: &Used<'_>,
    db: &DbAction,
    parameters: &[QueryParameter],
    server: Option<DatabaseServer>,
) -> Vec<Diagnostic> {
    let declared = db.parameters.as_ref().filter(|_| db.params.is_empty() && used.knows(&["/parameters"]));
    let Some(properties) = declared.and_then(|schema| schema.get("properties")?.as_object()) else { return Vec::new() };
    let mut found = Vec::new();
    for QueryParameter { name, type_name, takes } in parameters {
        let types: Vec<&str> = match properties.get(name).and_then(|property| property.get("type")) {
            Some(Value::String(one)) => vec![one],
            Some(Value::Array(several)) => several.iter().filter_map(Value::as_str).collect(),
            _ => continue,
        };
        if takes.is_empty() || types.is_empty() || types.iter().any(|of| takes.contains(of) || *of == "null") {
            continue;
        }
        let is_it = |takes: &PlaceholderValue| *takes == PlaceholderValue::Named(name.clone());
        let place = sql::placeholders(&db.query).into_iter().find(|placeholder| is_it(&placeholder.takes));
        let cursor = place.map_or_else(|| used.at("/query"), |placeholder| used.at("/query").inside(placeholder.range));
        let (types, takes) = (types.join(" or "), takes.join(" or "));
        let message = format!(
            "`{name}` is of type `{type_name}` in the database, which takes {takes}, and is declared as {types}"
        );
        let converted = if server == Some(DatabaseServer::Mysql) { "CAST(:name AS CHAR)" } else { ":name::integer" };
        let help = format!(
            "each call would fail: declare it as the database takes it, or convert it in the query, as `{converted}`"
        );
        found.push(cursor.report(&RULE, message).help(help));
    }
    found
}

/// How long the word, or the sign, at a place of a query is.
fn word_at(query: &str, at: usize) -> usize {
    let Some(rest) = query.get(at..) else { return 0 };
    let word = rest.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(rest.len());
    if word == 0 { rest.chars().next().map_or(0, char::len_utf8) } else { word }
}

/// How a query is fixed that a server refuses with a message.
fn help_of_server(server: DatabaseServer, message: &str) -> String {
    if message.contains("more than one") {
        return "give each statement an action of its own: a call of this one would fail".to_owned();
    }
    let needs_own_action = message.contains("action of its own");
    if needs_own_action || message.contains("no form in JSON") || message.contains("may not be") {
        return "each call of the action would fail".to_owned();
    }
    if server == DatabaseServer::Mysql {
        return "the query is one of MySQL: <https://dev.mysql.com/doc/refman/en/sql-statements.html>".to_owned();
    }
    "the query is one of PostgreSQL: <https://www.postgresql.org/docs/current/sql.html>; write `:name::integer` where it can't infer \
     the type of a value"
        .to_owned()
}

/// How a query is fixed that a database refuses with a message.
fn help(query: &str, message: &str) -> String {
    if message.contains("more than one") {
        return "give each statement an action of its own".to_owned();
    }
    if message.contains("not authorized") {
        return "a query reaches its own database only: other files and extensions are refused".to_owned();
    }
    let words = query.split(|c: char| !(c.is_alphanumeric() || c == '_'));
    let dialect = words
        .filter(|word| !word.is_empty())
        .find_map(|word| DIALECTS.iter().find(|(other, _)| other.eq_ignore_ascii_case(word)));
    match dialect {
        Some((word, here)) => format!("`{}` is of another database; SQLite has {here}", word.to_uppercase()),
        None if query.contains("::") => "`::` is of PostgreSQL; SQLite has `CAST(x AS TEXT)` and `date(x)`".to_owned(),
        None => "the query is one of SQLite: <https://sqlite.org/lang.html>".to_owned(),
    }
}
