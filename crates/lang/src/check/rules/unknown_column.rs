//! A table or a column that the database of a query does not have.

use std::cell::LazyCell;

use serde_json::{Map, Value};

use crate::check::made_tables::MadeTables;
use crate::check::steps::{WrittenStep, steps};
use crate::check::{Cursor, Rule, Subject};
use crate::compile::{DatabaseProbe, DatabaseState, QueryFaultKind};
use crate::diagnostic::{Diagnostic, Severity, codes};
use crate::language::Action;
use crate::language::action::TABLES;
use crate::program::template::is_template;
use crate::syntax::{quoted, token};

pub const RULE: Rule = Rule { code: codes::UNKNOWN_COLUMN, check };

fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let Some(databases) = &subject.texts.outside.databases else { return };
    let made = LazyCell::new(|| MadeTables::of(subject));
    let effort = &subject.compiled.effort;
    for used in subject.actions() {
        let Action::Db(db) = &*used.action else { continue };
        if !used.knows(&["/query", "/datasource"]) || subject.has_error_in(&used.at("/query").place()) {
            continue;
        }
        let Some(fault) = databases.prepare(&db.datasource, &db.query) else { continue };
        let QueryFaultKind::UnknownName { name, is_table, known } = fault.kind else { continue };
        if is_table && made.has(&db.datasource, &name) {
            continue;
        }
        // `orders.total` is the column `total`.
        let bare = name.rsplit('.').next().unwrap_or(&name);
        let range =
            fault.offset.map(|at| at..at + name.len()).filter(|range| db.query.get(range.clone()) == Some(&name));
        let range = range.or_else(|| lone(&db.query, &name)).map(|range| range.end - bare.len()..range.end);
        let cursor = match &range {
            Some(range) => used.at("/query").inside(range.clone()),
            None => used.at("/query"),
        };
        let message = match is_table {
            true => format!("the database `{}` has no table `{name}`", db.datasource),
            false => format!("no table of the query has a column `{name}`"),
        };
        let severity = severity(databases.as_ref(), &db.datasource);
        let report = Diagnostic { severity, ..cursor.report(&RULE, message) };
        let of_init = help_of_init(subject, databases.as_ref(), &db.datasource, &db.query);
        found.push(match effort.nearest(bare, known.iter().map(String::as_str)) {
            _ if let Some(help) = of_init => report.help(help),
            Some(near) => {
                let report = report.help(format!("the nearest one is `{near}`"));
                if range.is_some() { report.suggest(near) } else { report }
            }
            None => report.help(listed(&known)),
        });
    }
    tables(subject, databases.as_ref(), &made, found);
}

/// The tables that registered actions and steps name, and the columns of steps.
fn tables(subject: &Subject<'_>, databases: &dyn DatabaseProbe, made: &MadeTables<'_>, found: &mut Vec<Diagnostic>) {
    let Some(known) = databases.tables(TABLES) else { return };
    let table_fault = |cursor: &Cursor<'_>, name: &str| {
        let fault = not_among(subject, databases, cursor, TableName { name, of: None }, &known);
        fault.filter(|_| !made.has(TABLES, name))
    };
    for used in subject.actions().iter().filter(|used| used.knows(&["/tables"])) {
        let Action::CustomTable(table) = &*used.action else { continue };
        let names = table.tables.iter().enumerate();
        found.extend(names.filter_map(|(at, name)| table_fault(&used.at(&format!("/tables/{at}")), name)));
    }
    for step in steps(subject).iter().filter(|step| step.kind == "custom-table") {
        let table = step.properties.get("table").and_then(Value::as_str).filter(is_literal);
        let Some(table) = table else { continue };
        match databases.columns(TABLES, table) {
            Some(columns) => {
                let names = columns_of(subject, step);
                let fault = |(cursor, name): (Cursor<'_>, &str)| {
                    not_among(subject, databases, &cursor, TableName { name, of: Some(table) }, &columns)
                };
                found.extend(names.into_iter().filter_map(fault));
            }
            None => found.extend(table_fault(&subject.at(&step.property("table")), table)),
        }
    }
}

/// The columns that a step names, with their places.
fn columns_of<'a>(subject: &Subject<'a>, step: &WrittenStep<'a>) -> Vec<(Cursor<'a>, &'a str)> {
    let keys = step.properties.get("keys").and_then(Value::as_array).into_iter().flatten().enumerate();
    let place = |at| subject.at(&format!("{}/{at}", step.property("keys")));
    let keys = keys.filter_map(|(at, key)| Some((place(at), key.as_str()?)));
    let fields = step.properties.get("fields").and_then(Value::as_object).into_iter().flat_map(Map::keys);
    let place = |name: &str| subject.at(&format!("{}/{}", step.property("fields"), token(name))).key();
    let fields = fields.map(|name| (place(name), name.as_str()));
    keys.chain(fields).filter(|(_, name)| is_literal(name)).collect()
}

/// Whether a text is neither a path nor a template.
pub(super) fn is_literal(text: &&str) -> bool {
    !text.starts_with('@') && !is_template(text)
}

/// A name of a table, or of a column of a table.
#[derive(Clone, Copy)]
struct TableName<'n> {
    name: &'n str,
    of: Option<&'n str>,
}

/// A name that the database does not have.
fn not_among(
    subject: &Subject<'_>,
    databases: &dyn DatabaseProbe,
    cursor: &Cursor<'_>,
    written: TableName<'_>,
    known: &[String],
) -> Option<Diagnostic> {
    let TableName { name, of } = written;
    if known.iter().any(|known| known.eq_ignore_ascii_case(name)) {
        return None;
    }
    let message = match of {
        None => format!("the database `{TABLES}` has no table `{name}`"),
        Some(table) => format!("the table `{table}` has no column `{name}`"),
    };
    let report = Diagnostic { severity: severity(databases, TABLES), ..cursor.report(&RULE, message) };
    let quoted_name = |name: &str| format!("\"{}\"", name.replace('"', "\"\""));
    let query = match of {
        None => format!("SELECT * FROM {}", quoted_name(name)),
        Some(table) => format!("SELECT {0}.{1} FROM {0}", quoted_name(table), quoted_name(name)),
    };
    if let Some(help) = help_of_init(subject, databases, TABLES, &query) {
        return Some(report.help(help));
    }
    Some(match subject.compiled.effort.nearest(name, known.iter().map(String::as_str)) {
        Some(near) => report.help(format!("the nearest one is `{near}`")).suggest(quoted(near)),
        None => report.help(listed(known)),
    })
}

/// A database that exists may be another one when the loop runs.
pub(super) fn severity(databases: &dyn DatabaseProbe, datasource: &str) -> Severity {
    match databases.state(datasource) {
        DatabaseState::Ready { is_made: true } => Severity::Error,
        _ => Severity::Warning,
    }
}

/// What to do when the script of a datasource would make what a query needs, and the file was there before the script said so.
fn help_of_init(subject: &Subject<'_>, databases: &dyn DatabaseProbe, datasource: &str, query: &str) -> Option<String> {
    let written = subject.project()?.datasources.get(datasource)?;
    let (file, init) = (written.sqlite_path()?, written.init.as_ref()?);
    databases.is_taken_after_init(datasource, query).then(|| {
        format!(
            "`init` runs only when the file is not there yet: {init} makes it now, and {file} is older. Make the change in \
             {file} too, or move that file away and let `init` make a new one"
        )
    })
}

fn listed(known: &[String]) -> String {
    match known {
        [] => "it has none".to_owned(),
        known => format!("there are {}", known.iter().take(16).map(String::as_str).collect::<Vec<_>>().join(", ")),
    }
}

/// The place of a name that is in a query once.
fn lone(query: &str, name: &str) -> Option<std::ops::Range<usize>> {
    let mut places = query.match_indices(name).map(|(at, _)| at..at + name.len());
    let first = places.next()?;
    places.next().is_none().then_some(first)
}
