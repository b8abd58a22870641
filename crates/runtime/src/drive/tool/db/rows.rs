//! The rows of a result, within its limits.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value, json};

use crate::drive::tool::output::fault;
use loopctl_engine::event::ToolFault;
use loopctl_lang::language::action::MAX_ROWS;
use loopctl_lang::program::flow::MAX_OUTPUT_BYTES;
use loopctl_lang::program::json_length::json_bytes;

/// The most bytes of a result, roughly.
pub(super) const MAX_BYTES: usize = 10 * 1024 * 1024;

/// How many rows of a result are kept, and what becomes of a larger one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RowLimit {
    /// The most rows.
    pub(super) most: usize,
    /// Whether a larger result is refused. Nobody reads what a step gives: its first rows would count as all.
    pub(super) is_whole: bool,
}

/// The bytes of NULL as JSON.
pub(super) const NULL_SIZE: usize = 4;

/// How many bytes a text takes as JSON: with its quotes, and what JSON escapes.
pub(super) fn text_size(bytes: &[u8]) -> usize {
    let escaped = |byte: &u8| match byte {
        b'"' | b'\\' | b'\n' | b'\r' | b'\t' | 8 | 12 => 2,
        0..=31 => 6,
        _ => 1_usize,
    };
    bytes.iter().map(escaped).fold(2, usize::saturating_add)
}

/// How many bytes as many bytes take in base64, with quotes.
pub(super) fn base64_size(bytes: usize) -> usize {
    bytes.div_ceil(3).saturating_mul(4).saturating_add(2)
}

/// The rows that were read so far.
#[derive(Clone)]
pub(super) struct ResultRows {
    names: Vec<String>,
    /// The bytes of the names in a row, with their quotes and signs.
    names_size: usize,
    rows: Vec<Value>,
    bytes: usize,
    limit: RowLimit,
    is_truncated: bool,
}

impl ResultRows {
    /// Rows with these columns; the second of two equal names becomes `NAME_2`, so that none is lost.
    pub(super) fn new<'a>(columns: impl IntoIterator<Item = &'a str>, limit: RowLimit) -> Self {
        let (mut names, mut used) = (Vec::new(), HashSet::new());
        // A name that is there a thousand times is not counted from 1 each time.
        let mut numbers: HashMap<&str, u32> = HashMap::new();
        for written in columns {
            let mut name = written.to_owned();
            let number = numbers.entry(written).or_insert(1);
            while !used.insert(name.clone()) {
                *number = number.saturating_add(1);
                name = format!("{written}_{number}");
            }
            names.push(name);
        }
        let names_size = names.iter().map(|name| text_size(name.as_bytes()).saturating_add(2)).sum();
        Self { names, names_size, rows: Vec::new(), bytes: 0, limit, is_truncated: false }
    }

    /// Counts a row whose values take this many bytes as JSON. Returns whether it may be kept; once one may not, none is.
    pub(super) fn has_room(&mut self, bytes: usize) -> bool {
        self.bytes = self.bytes.saturating_add(bytes).saturating_add(self.names_size);
        self.is_truncated |= self.is_full() || self.bytes > MAX_BYTES;
        !self.is_truncated
    }

    /// Keeps a row that there was room for: the values of its columns.
    pub(super) fn push(&mut self, values: Vec<Value>) {
        let fields: Map<String, Value> = self.names.iter().cloned().zip(values).collect();
        self.rows.push(Value::Object(fields));
    }

    /// Whether there are as many rows as a result may have.
    pub(super) fn is_full(&self) -> bool {
        self.rows.len() >= self.limit.most
    }

    /// The name of a column, by its place.
    #[cfg(feature = "sqlite")]
    pub(super) fn name(&self, at: usize) -> &str {
        self.names.get(at).map_or("", String::as_str)
    }

    /// `{"rows", "row_count"}`, with `"truncated": true` when there are more.
    ///
    /// # Errors
    /// When there are more and the result must be whole.
    pub(super) fn into_value(self) -> Result<Value, ToolFault> {
        if self.is_truncated && self.limit.is_whole {
            let what = if self.is_full() { Cut::Rows(self.limit.most) } else { Cut::Bytes(MAX_BYTES) };
            return Err(cut(what));
        }
        let mut result = Map::new();
        let count = self.rows.len();
        result.insert("rows".to_owned(), Value::Array(self.rows));
        result.insert("row_count".to_owned(), json!(count));
        if self.is_truncated {
            result.insert("truncated".to_owned(), Value::Bool(true));
        }
        let result = Value::Object(result);
        // A step can't give it, and what was written is taken back: the end of the step would find it too late.
        if self.limit.is_whole && json_bytes(&result) > MAX_OUTPUT_BYTES {
            return Err(cut(Cut::Bytes(MAX_OUTPUT_BYTES)));
        }
        Ok(result)
    }
}

/// What a result has too much of.
#[derive(Debug, Clone, Copy)]
pub(super) enum Cut {
    /// More than this many rows.
    Rows(usize),
    /// More than this many bytes.
    Bytes(usize),
}

/// The fault of a result that must be whole and is not.
pub(super) fn cut(what: Cut) -> ToolFault {
    let highest = usize::try_from(MAX_ROWS).unwrap_or(usize::MAX);
    let (what, help) = match what {
        Cut::Rows(most) if most < highest => (
            format!("has more than {most} rows"),
            format!("raise `max_rows`, to at most {highest}, or ask for fewer rows"),
        ),
        Cut::Rows(most) => (format!("has more than {most} rows"), "read them in parts".to_owned()),
        Cut::Bytes(most) => {
            (format!("is larger than {} MiB", most >> 20), "ask for fewer columns, or read it in parts".to_owned())
        }
    };
    fault(format!("database: the result {what}, and a step takes no part of a result for the whole: {help}"), "")
}
