//! Columns of a table: as wide as their widest cell.

use unicode_width::UnicodeWidthStr as _;

use crate::trace::layout::{cut, pad, wrap};
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

/// The least width of a last column of texts that is wrapped.
const MIN_WRAPPED: usize = 24;

/// A table of the columns that have anything in them.
pub fn rows(look: &Look, columns: Vec<TableColumn>) -> String {
    rows_within(look, columns, None)
}

/// The same for a terminal of this many columns: the texts of the last one are wrapped, and the columns for which there is no
/// place follow in a table of their own, behind the first one.
pub fn rows_within(look: &Look, columns: Vec<TableColumn>, most: Option<usize>) -> String {
    let mut columns: Vec<TableColumn> = columns.into_iter().filter(|column| !column.is_empty()).collect();
    let wide = |columns: &[TableColumn]| columns.iter().map(|column| column.width + 2).sum::<usize>().saturating_sub(2);
    let Some(most) = most.filter(|most| wide(&columns) > *most) else { return table(look, &columns) };
    let others = wide(&columns).saturating_sub(columns.last().map_or(0, |column| column.width));
    let room = most.saturating_sub(others);
    if let Some(last) = columns.pop_if(|last| !last.is_number && room >= MIN_WRAPPED) {
        return table(look, &wrapped(columns, &last, room));
    }
    let mut shown = String::new();
    let mut rest = columns.into_iter();
    let Some(first) = rest.next() else { return shown };
    let mut block = vec![first];
    for column in rest {
        if block.len() > 1 && wide(&block) + 2 + column.width > most {
            shown.push_str(&table(look, &block));
            shown.push('\n');
            block.truncate(1);
        }
        block.push(column);
    }
    shown + &table(look, &block)
}

/// The columns with the texts of the last one in lines of their own.
fn wrapped(columns: Vec<TableColumn>, last: &TableColumn, room: usize) -> Vec<TableColumn> {
    let lines: Vec<Vec<String>> = last.cells.iter().map(|cell| wrap(cell, room)).collect();
    let mut columns: Vec<TableColumn> = columns
        .into_iter()
        .map(|column| {
            let cells = column.cells.iter().zip(&lines).flat_map(|(cell, lines)| {
                std::iter::once(cell.clone()).chain(lines.iter().skip(1).map(|_| String::new()))
            });
            TableColumn { cells: cells.collect(), ..column }
        })
        .collect();
    columns.push(TableColumn { cells: lines.into_iter().flatten().collect(), width: room, ..*last });
    columns
}

fn table(look: &Look, columns: &[TableColumn]) -> String {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn columns() -> Vec<TableColumn> {
        vec![
            TableColumn::new("LOOP", vec!["triage".to_owned(), "refund".to_owned()]),
            TableColumn::number("RUNS", vec!["1".to_owned(), "2".to_owned()]),
            TableColumn::new(
                "BOUNDED BY",
                vec!["max_items of rows 10000 (default), max_iterations 8".to_owned(), String::new()],
            ),
        ]
    }

    #[test]
    fn a_table_that_is_too_wide_is_wrapped_or_folded_and_loses_nothing() {
        let look = Look::plain(80);
        assert_eq!(rows(&look, columns()), rows_within(&look, columns(), Some(80)));
        for width in [20, 40, 50] {
            let shown = rows_within(&look, columns(), Some(width));
            let is_folded = width < 38;
            assert!(is_folded || shown.lines().all(|line| line.width() <= width), "{width}\n{shown}");
            for word in ["triage", "refund", "RUNS", "BOUNDED BY", "10000", "max_iterations"] {
                assert!(shown.contains(word), "{width}\n{shown}");
            }
        }
        let folded = rows_within(&look, columns(), Some(20));
        assert_eq!(folded.matches("LOOP").count(), 2, "{folded}");
    }
}
