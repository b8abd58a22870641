//! Names that the result of a query does not have, and what is meant by them.

use serde_json::{Map, Value};

use crate::compile::steps::{CHANGES, ROW_IDS, ROWS};
use crate::syntax::token;

/// What databases and their libraries call a number of rows, in small letters without `_`.
const COUNTS: [&str; 14] = [
    "rowcount",
    "rowscount",
    "totalrows",
    "totalcount",
    "length",
    "numrows",
    "rowsaffected",
    "affectedrows",
    "affected",
    "rowschanged",
    "changedrows",
    "changed",
    "change",
    "changes",
];
/// The same, of words that columns have too.
const SHORT_COUNTS: [&str; 4] = ["count", "total", "size", "n"];
/// The same of the id of a new row.
const NEW_IDS: [&str; 10] = [
    "id",
    "lastid",
    "insertid",
    "insertedid",
    "newid",
    "lastinsertid",
    "lastinsertedid",
    "lastinsertrowid",
    "lastrowid",
    "rowid",
];
/// The same of a list of rows.
const LISTS: [&str; 11] =
    ["row", "rows", "data", "result", "results", "items", "records", "entries", "list", "output", "value"];

/// What is said of a name that the result of a query does not have.
pub(in crate::check::rules) enum MeantPart {
    /// Another name says it.
    Meant { name: String, what: &'static str },
    /// The rows have a column of this name, or, where it is not certain, may have any.
    InRows { column: String, is_certain: bool },
    /// The rows are a list of their own.
    Entry(String),
    /// The query gives no rows.
    NoRows,
}

impl MeantPart {
    /// The name that is meant.
    pub fn meant(&self) -> Option<&str> {
        match self {
            Self::Meant { name, .. } => Some(name),
            _ => None,
        }
    }

    /// Whether nothing else can be meant.
    pub fn is_certain(&self) -> bool {
        match self {
            Self::Meant { .. } | Self::Entry(_) => true,
            Self::InRows { is_certain, .. } => *is_certain,
            Self::NoRows => false,
        }
    }

    /// What takes the place of the name in a JSON pointer, where nothing else can be meant.
    pub fn pointer(&self) -> Option<String> {
        let [rows, _] = ROWS;
        match self {
            Self::Meant { name, .. } => Some(name.clone()),
            Self::Entry(index) => Some(format!("{rows}/{index}")),
            Self::InRows { column, is_certain: true } => Some(format!("{rows}/0/{}", token(column))),
            Self::InRows { .. } | Self::NoRows => None,
        }
    }

    /// How to fix it; `path` is that of the result.
    pub fn help(&self, path: &str) -> String {
        let [rows, _] = ROWS;
        match self {
            Self::Meant { name, what } => format!("{what} is `{name}`"),
            Self::InRows { column, .. } => format!(
                "its rows have it: `{path}.{rows}.0.{column}` is that of the first one, and `{path}.{rows}` their list"
            ),
            Self::Entry(index) => format!("its rows are a list of their own: `{path}.{rows}.{index}`"),
            Self::NoRows => format!(
                "the query gives no rows: it has `{CHANGES}`, the number of rows that it changed. A `RETURNING` clause gives the rows"
            ),
        }
    }
}

/// What is meant by a name that an object does not have; nothing when the object is no result of a query.
pub(in crate::check::rules) fn advice(members: &Map<String, Value>, name: &str) -> Option<MeantPart> {
    let [rows, count] = ROWS;
    let word: String = name.chars().filter(|letter| *letter != '_').flat_map(char::to_lowercase).collect();
    let is_of = |words: &[&str]| words.contains(&word.as_str());
    let is_number = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_digit());
    let meant = |name: &str, what| Some(MeantPart::Meant { name: name.to_owned(), what });
    if members.contains_key(rows) && members.contains_key(count) {
        let columns = members.get(rows)?.pointer("/items/properties").and_then(Value::as_object);
        let in_rows = |is_certain| Some(MeantPart::InRows { column: name.to_owned(), is_certain });
        return match columns {
            Some(columns) if columns.contains_key(name) => in_rows(true),
            _ if is_number => Some(MeantPart::Entry(name.to_owned())),
            _ if is_of(&COUNTS) => meant(count, "the number of its rows"),
            _ if is_of(&LISTS) => meant(rows, "the list of its rows"),
            None => in_rows(false),
            Some(_) if is_of(&SHORT_COUNTS) => meant(count, "the number of its rows"),
            Some(_) => None,
        };
    }
    if !members.contains_key(CHANGES) || !members.keys().all(|key| key == CHANGES || ROW_IDS.contains(&key.as_str())) {
        return None;
    }
    let id = ROW_IDS.into_iter().find(|id| members.contains_key(*id));
    match id.filter(|_| is_of(&NEW_IDS)) {
        Some(id) => meant(id, "the id of the row that it added"),
        None if is_of(&COUNTS) || is_of(&SHORT_COUNTS) => meant(CHANGES, "the number of rows that it changed"),
        None if is_of(&LISTS) || is_number => Some(MeantPart::NoRows),
        None => None,
    }
}
