//! A new row without a column that its table needs.

use std::cell::LazyCell;

use serde_json::{Map, Value};

use super::unknown_column::{is_literal, severity};
use crate::check::made_tables::MadeTables;
use crate::check::steps::{WrittenStep, steps};
use crate::check::{Rule, Subject};
use crate::compile::DatabaseProbe;
use crate::diagnostic::{Diagnostic, codes};
use crate::language::Action;
use crate::language::action::TABLES;
use crate::policy::statement::{insert, verb};

pub const RULE: Rule = Rule { code: codes::MISSING_COLUMN, check };

fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let Some(databases) = &subject.texts.outside.databases else { return };
    let made = LazyCell::new(|| MadeTables::of(subject));
    for used in subject.actions() {
        let Action::Db(db) = &*used.action else { continue };
        let cursor = used.at("/query");
        if !used.knows(&["/query", "/datasource"]) || subject.has_error_in(&cursor.place()) {
            continue;
        }
        let Some(insert) = insert(&db.query) else { continue };
        let known = || databases.prepare(&db.datasource, &db.query).is_none();
        let missing = missing(databases.as_ref(), &db.datasource, &insert.table, &insert.columns);
        if missing.is_empty() || !known() || made.has(&db.datasource, &insert.table) {
            continue;
        }
        let word = insert_word(&db.query);
        let cursor = word.map_or(cursor.clone(), |range| cursor.inside(range));
        let message = format!("the query leaves out {}", needed(&missing, &insert.table));
        let severity = severity(databases.as_ref(), &db.datasource);
        found.push(Diagnostic { severity, ..cursor.report(&RULE, message) }.help(help(&missing)));
    }
    for step in steps(subject).iter().filter(|step| step.kind == "custom-table") {
        let Some((table, columns)) = written_row(step) else { continue };
        let missing = missing(databases.as_ref(), TABLES, table, &columns);
        let place = format!("{}/properties", step.at);
        if missing.is_empty() || step.is_misread(subject) || made.has(TABLES, table) {
            continue;
        }
        let cursor = match subject.at(&step.property("fields")) {
            fields if fields.is_written() => fields,
            _ => subject.at(&place).key(),
        };
        let message = format!("the row leaves out {}", needed(&missing, table));
        let severity = severity(databases.as_ref(), TABLES);
        found.push(Diagnostic { severity, ..cursor.report(&RULE, message) }.help(help(&missing)));
    }
}

/// The columns that a row must have and that are not among those that are written.
fn missing(databases: &dyn DatabaseProbe, datasource: &str, table: &str, written: &[String]) -> Vec<String> {
    let needed = databases.required_columns(datasource, table).unwrap_or_default();
    let is_written = |column: &String| written.iter().any(|name| name.eq_ignore_ascii_case(column));
    needed.into_iter().filter(|column| !is_written(column)).collect()
}

fn needed(missing: &[String], table: &str) -> String {
    let columns = missing.iter().take(12).map(|column| format!("`{column}`")).collect::<Vec<_>>().join(", ");
    format!("{columns}, which each row of the table `{table}` needs")
}

fn help(missing: &[String]) -> String {
    let column = match missing {
        [_] => "the column takes no NULL and has no default: name it with a value, or give it a default in its table",
        _ => {
            "the columns take no NULL and have no default: name them with values, or give them defaults in their table"
        }
    };
    column.to_owned()
}

/// The place of the word with which the statement begins.
fn insert_word(query: &str) -> Option<std::ops::Range<usize>> {
    verb(query).map(|(_, range)| range)
}

/// The table and the columns of a row that a step adds, where all of them are written out.
fn written_row<'a>(step: &WrittenStep<'a>) -> Option<(&'a str, Vec<String>)> {
    step.text("operation").filter(|operation| *operation == "write")?;
    let table = step.text("table").filter(is_literal)?;
    let keys = match step.properties.get("keys") {
        Some(keys) => keys.as_array()?.iter().map(Value::as_str).collect::<Option<Vec<_>>>()?,
        None => Vec::new(),
    };
    let none = Map::new();
    let fields = match step.properties.get("fields") {
        Some(fields) => fields.as_object()?,
        None => &none,
    };
    let columns: Vec<&str> = keys.into_iter().chain(fields.keys().map(String::as_str)).collect();
    columns.iter().all(is_literal).then(|| (table, columns.into_iter().map(str::to_owned).collect()))
}
