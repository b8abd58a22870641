//! Lists of which a query, or a table, may give a part only: the step that reads them fails then.

use serde_json::Value;

use crate::check::{Rule, Subject};
use crate::compile::steps::ListSource;
use crate::diagnostic::{Diagnostic, codes, few_of_many};
use crate::language::action::{DEFAULT_ROWS, MAX_ROWS};

/// The rule.
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
        let (why, help) = match source {
            ListSource::Query => (
                "the query has no LIMIT",
                format!(
                    "write `max_rows` into the action of the query (at most {MAX_ROWS}), or a LIMIT into the query"
                ),
            ),
            ListSource::Table => (
                "all rows of a table are read",
                format!("write `max_rows` beside `table` (at most {MAX_ROWS}), or name rows by `keys` and `values`"),
            ),
        };
        let message = format!("`{path}` may have more than {DEFAULT_ROWS} rows, and its step fails then: {why}");
        found.push(cursor.report(&RULE, message).help(help));
        few_of_many(found);
    }
}
