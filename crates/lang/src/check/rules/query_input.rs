//! Values of a step that a query of SQLite takes otherwise than they are meant: a text that it calculates with, and a list in
//! the place of one value.

use crate::check::steps::WrittenStep;
use crate::check::{Rule, Subject, Used};
use crate::compile::steps::{DeclaredText, JsonTypes};
use crate::diagnostic::{Diagnostic, Severity};
use crate::language::Action;
use crate::policy::sql::{PlaceholderValue, placeholders};

/// How a query uses a value.
#[derive(Clone, Copy, PartialEq)]
enum QueryUse {
    Calculated,
    /// As one value, which a row's is compared with.
    Compared {
        /// Whether it is the only one between the brackets of `IN`.
        in_brackets: bool,
    },
}

/// Reports the values that a step gives to the query of its action.
pub(super) fn check(
    rule: &Rule,
    subject: &Subject<'_>,
    step: &WrittenStep<'_>,
    used: &Used<'_>,
    found: &mut Vec<Diagnostic>,
) {
    let Action::Db(db) = &*used.action else { return };
    let source = subject.project().and_then(|project| project.datasources.get(&db.datasource));
    if !source.is_some_and(|source| source.url.starts_with("sqlite:")) || !db.params.is_empty() {
        return;
    }
    for placeholder in placeholders(&db.query) {
        let PlaceholderValue::Named(name) = &placeholder.takes else { continue };
        let Some(value) = step.properties.get(name) else { continue };
        let before = db.query.get(..placeholder.range.start).unwrap_or_default();
        let after = db.query.get(placeholder.range.end..).unwrap_or_default();
        let at = step.property(name);
        let known = subject.compiled.steps.known.get(&at);
        let types = known.map_or_else(|| JsonTypes::of(value), |known| known.types);
        let is_list = types == JsonTypes::LIST && (known.is_some() || value.is_array());
        let is_cell = known.is_some_and(|known| known.text == DeclaredText::Cell) && !is_declared(used, name);
        let shown = || value.as_str().map_or_else(|| format!("`{name}`"), |path| format!("`{path}`"));
        let (message, help) = match query_use(before, after) {
            Some(QueryUse::Calculated) if is_cell => (
                format!(
                    "{} is a text: a query that calculates with `{name}` takes the number that it begins with, or 0",
                    shown()
                ),
                format!(
                    "declare the number: `\"columns\"` of the document, or `{name}` among the action's `parameters` as \
                     {{\"type\": \"number\"}}"
                ),
            ),
            Some(QueryUse::Compared { in_brackets }) if is_list => (
                format!("{} is a list: the query compares with its JSON as one text, and finds no row", shown()),
                match in_brackets {
                    true => format!("write `IN (SELECT value FROM json_each(:{name}))`"),
                    false => format!("compare with each entry: `IN (SELECT value FROM json_each(:{name}))`"),
                },
            ),
            _ => continue,
        };
        let fault = subject.at(&at).report(rule, message).help(help);
        let fault = Diagnostic { severity: Severity::Warning, ..fault };
        let query = used.at("/query").inside(placeholder.range.clone());
        found.push(fault.related(&query.place(), "the query takes it here"));
        return;
    }
}

/// Whether the action says what a value is: a text that is no number is refused then.
fn is_declared(used: &Used<'_>, name: &str) -> bool {
    let part = used.written().get("parameters").and_then(|schema| schema.get("properties")?.get(name));
    part.and_then(|part| part.get("type")).is_some_and(|kind| kind != "string")
}

/// How a query uses the value between these parts of it.
fn query_use(before: &str, after: &str) -> Option<QueryUse> {
    let (before, after) = (before.trim_end(), after.trim_start());
    // `||` joins texts, `->` looks into JSON, `--` and `/*` begin a comment.
    let calculates = |text: &str| text.starts_with(['*', '/', '+', '-', '%']);
    let begins_other = ["->", "--", "/*"].iter().any(|mark| after.starts_with(mark));
    let ends = before.chars().next_back().is_some_and(|last| calculates(&last.to_string()));
    let ends_other = ["->", "--", "/*", "*/"].iter().any(|mark| before.ends_with(mark));
    // `SELECT * :x` is nothing that a database reads.
    if (calculates(after) && !begins_other) || (ends && !ends_other) {
        return Some(QueryUse::Calculated);
    }
    let lower = before.to_ascii_lowercase();
    let is_in = lower.strip_suffix('(').is_some_and(|rest| {
        let rest = rest.trim_end();
        rest.strip_suffix("in").is_some_and(|rest| rest.ends_with(char::is_whitespace))
    });
    if is_in {
        return Some(QueryUse::Compared { in_brackets: after.starts_with(')') });
    }
    let is_equal = before.ends_with('=') && !before.ends_with(":=");
    // `SET tags = :tags` keeps the list as JSON.
    let is_set = lower.rfind("set ").is_some_and(|set| !lower.get(set..).is_some_and(|rest| rest.contains("where")));
    (is_equal && !is_set).then_some(QueryUse::Compared { in_brackets: false })
}
