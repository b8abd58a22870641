//! Columns of a table: as wide as their widest cell.

use unicode_width::UnicodeWidthStr as _;

use crate::trace::layout::{cut, pad};
use crate::trace::{Look, Tone};

/// A column, with a cell for each row. The texts must be escaped.
pub struct TableColumn {
    /// Its head.
    pub head: &'static str,
    /// Its cells.
    pub cells: Vec<String>,
    /// Its width in columns of the terminal.
    pub width: usize,
    /// Whether it is aligned to the right.
    is_number: bool,
    /// Its tone.
    pub tone: Option<Tone>,
}

impl TableColumn {
    /// A column of texts.
    pub fn new(head: &'static str, cells: Vec<String>) -> Self {
        let width = cells.iter().map(|cell| cell.width()).max().unwrap_or_default();
        Self { head, cells, width: width.max(head.width()), is_number: false, tone: None }
    }

    /// A column of numbers.
    pub fn number(head: &'static str, cells: Vec<String>) -> Self {
        Self { is_number: true, ..Self::new(head, cells) }
    }

    /// The same, not narrower than this.
    pub fn at_least(self, width: usize) -> Self {
        Self { width: self.width.max(width), ..self }
    }

    /// The same, less important than the rest.
    pub fn dim(self) -> Self {
        Self { tone: Some(Tone::Dim), ..self }
    }

    /// Whether nothing is in it.
    pub fn is_empty(&self) -> bool {
        self.cells.iter().all(String::is_empty)
    }

    /// A text, as wide as the column.
    pub fn aligned(&self, cell: &str) -> String {
        let cell = cut(cell, self.width);
        match self.is_number {
            true => format!("{}{cell}", " ".repeat(self.width.saturating_sub(cell.width()))),
            false => pad(&cell, self.width),
        }
    }
}

/// A table of the columns that have anything in them.
pub fn rows(look: &Look, columns: Vec<TableColumn>) -> String {
    let columns: Vec<TableColumn> = columns.into_iter().filter(|column| !column.is_empty()).collect();
    let heads: Vec<String> = columns.iter().map(|column| column.aligned(column.head)).collect();
    let mut shown = look.paint(Tone::Dim, heads.join("  ").trim_end()) + "\n";
    for row in 0..columns.first().map_or(0, |column| column.cells.len()) {
        let cells: Vec<String> = columns
            .iter()
            .map(|column| column.aligned(column.cells.get(row).map(String::as_str).unwrap_or_default()))
            .collect();
        shown.push_str(cells.join("  ").trim_end());
        shown.push('\n');
    }
    shown
}
