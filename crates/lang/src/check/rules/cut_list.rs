//! Lists of which a query, or a table, may give a part only: the step that reads them fails then.

use serde_json::Value;

use crate::check::{Rule, Subject};
use crate::compile::steps::ListSource;
use crate::diagnostic::{Diagnostic, codes, few_of_many};
use crate::language::action::{DEFAULT_ROWS, MAX_ROWS};

pub const RULE: Rule = Rule { code: codes::CUT_LIST, check };

fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    if subject.is_step() {
        return;
    }
    for (at, source) in &subject.compiled.steps.cut_lists {
        let cursor = subject.at(at);
        if subject.is_faulty(at) || subject.has_error_in(&cursor.place()) {
            continue;
        }
        let path = subject.document().value.pointer(at).and_then(Value::as_str).unwrap_or_default();
        let (most, why, help): (u64, String, String) = match source {
            ListSource::Query => (
                DEFAULT_ROWS.into(),
                "the query has no LIMIT".to_owned(),
                format!(
                    "write `max_rows` into the action of the query (at most {MAX_ROWS}), or a LIMIT into the query"
                ),
            ),
            ListSource::Limit { asked, kept } => (
                *kept,
                format!("the query asks for up to {asked}"),
                if *asked <= MAX_ROWS.into() {
                    format!(
                        "write `\"max_rows\": {asked}` into the action of the query, or ask for {kept} rows at most"
                    )
                } else {
                    format!("a query gives at most {MAX_ROWS} rows: read them in several queries, or ask for fewer")
                },
            ),
            ListSource::Table => (
                DEFAULT_ROWS.into(),
                "all rows of a table are read".to_owned(),
                format!("write `max_rows` beside `table` (at most {MAX_ROWS}), or name rows by `keys` and `values`"),
            ),
        };
        let message = format!("`{path}` may have more than {most} rows, and its step fails then: {why}");
        found.push(cursor.report(&RULE, message).help(help));
        few_of_many(found);
    }
}
