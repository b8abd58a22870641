//! The rows of a result, within its limits.

use serde_json::{Map, Value, json};

/// The most rows of a result.
pub(super) const MAX_ROWS: usize = 1000;

/// The most bytes of a result, roughly.
pub(super) const MAX_BYTES: usize = 10 * 1024 * 1024;

/// The rows that were read so far.
#[derive(Clone)]
pub(super) struct ResultRows {
    names: Vec<String>,
    rows: Vec<Value>,
    bytes: usize,
    is_truncated: bool,
}

impl ResultRows {
    /// Rows with these columns; the second of two equal names becomes `NAME_2`, so that none is lost.
    pub(super) fn new<'a>(columns: impl Iterator<Item = &'a str>) -> Self {
        let mut names: Vec<String> = Vec::new();
        for written in columns {
            let mut name = written.to_owned();
            let mut number = 1_u32;
            while names.contains(&name) {
                number += 1;
                name = format!("{written}_{number}");
            }
            names.push(name);
        }
        Self { names, rows: Vec::new(), bytes: 0, is_truncated: false }
    }

    /// Takes a row: the values of its columns, and about how many bytes they are. Returns whether more may follow;
    /// once it did not, nothing more is kept.
    pub(super) fn push(&mut self, values: Vec<Value>, bytes: usize) -> bool {
        let names = self.names.iter().map(String::len).sum::<usize>();
        self.bytes = self.bytes.saturating_add(bytes).saturating_add(names);
        self.is_truncated |= self.rows.len() >= MAX_ROWS || self.bytes > MAX_BYTES;
        if !self.is_truncated {
            let fields: Map<String, Value> = self.names.iter().cloned().zip(values).collect();
            self.rows.push(Value::Object(fields));
        }
        !self.is_truncated
    }

    /// Whether there are as many rows as a result may have.
    #[cfg(any(feature = "postgres", feature = "mysql"))]
    pub(super) fn is_full(&self) -> bool {
        self.rows.len() >= MAX_ROWS
    }

    /// `{"rows", "row_count"}`, with `"truncated": true` when there are more.
    pub(super) fn into_value(self) -> Value {
        let mut result = Map::new();
        let count = self.rows.len();
        result.insert("rows".to_owned(), Value::Array(self.rows));
        result.insert("row_count".to_owned(), json!(count));
        if self.is_truncated {
            result.insert("truncated".to_owned(), Value::Bool(true));
        }
        Value::Object(result)
    }
}
