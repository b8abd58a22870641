//! The files of a project that workflows read as values, with the types of the columns of tables.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A file: its path, or a CSV file with the types of its columns.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum DocumentFile {
    /// Its path.
    Path(String),
    /// A CSV file with the types of its columns.
    Table(TypedTable),
}

/// A CSV file with the types of its columns.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TypedTable {
    /// Its path, relative to the project file.
    #[schemars(length(min = 1))]
    pub file: String,
    /// The types of its columns, by their names. The others are texts.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub columns: BTreeMap<String, ColumnType>,
    /// The sign before the fraction of its numbers. Default: `.`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decimal: Option<DecimalMark>,
    /// What an empty value is. Default: `text`, which is an error in a column of another type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub empty: Option<EmptyValue>,
}

/// How the values of a table are read. A run keeps it with the text of its file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableForm {
    /// The types of its columns, by their names.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub columns: BTreeMap<String, ColumnType>,
    /// The sign before the fraction of its numbers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decimal: Option<DecimalMark>,
    /// What an empty value is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub empty: Option<EmptyValue>,
}

/// The type of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ColumnType {
    /// The text as it stands.
    Text,
    /// A whole number.
    Integer,
    /// A number.
    Number,
    /// `true` or `false`.
    Boolean,
    /// An RFC 3339 date: `2026-12-31`.
    Date,
    /// An RFC 3339 date and time: `2026-12-31T10:00:00Z`.
    Time,
}

/// The sign before the fraction of a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum DecimalMark {
    /// `1.50`.
    #[serde(rename = ".")]
    Point,
    /// `1,50`.
    #[serde(rename = ",")]
    Comma,
}

/// What an empty value is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EmptyValue {
    /// A text without letters.
    Text,
    /// Null.
    Null,
}

impl DocumentFile {
    /// Its path, relative to the project file.
    pub fn path(&self) -> &str {
        match self {
            Self::Path(path) => path,
            Self::Table(table) => &table.file,
        }
    }

    /// How its values are read, where that is written.
    pub fn form(&self) -> Option<TableForm> {
        match self {
            Self::Path(_) => None,
            Self::Table(TypedTable { columns, decimal, empty, .. }) => {
                Some(TableForm { columns: columns.clone(), decimal: *decimal, empty: *empty })
            }
        }
    }
}
