//! Tables of a store that are copied as they are, row by row: what it knows beside its runs and the audit. A row is known by its
//! key; each table says what of a row that both stores have becomes of it.

/// The most rows that are read or written at a time.
pub const PAGE_ROWS: usize = 500;

/// A table.
#[derive(Debug, PartialEq, Eq)]
pub struct CopiedTable {
    /// Its name.
    pub name: &'static str,
    /// The columns that are copied; those of its key come first.
    pub columns: &'static [CopiedColumn],
    /// The number of columns of its key.
    pub key: usize,
    /// A column that counts the rows in the order in which they came: each store counts its own.
    pub counter: Option<&'static str>,
    /// A column whose greater value stays where both stores have a row.
    pub raised: Option<&'static str>,
    /// Columns of whole numbers that are 0 in the copy.
    pub zeroed: &'static [&'static str],
}

/// A column.
#[derive(Debug, PartialEq, Eq)]
pub struct CopiedColumn {
    /// Its name.
    pub name: &'static str,
    /// What it holds.
    pub kind: ColumnKind,
}

/// What a column holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnKind {
    /// A text.
    Text,
    /// A text that may have a NUL in it, which a database may keep as bytes.
    AnyText,
    /// A whole number.
    Integer,
    /// Yes or no.
    Flag,
}

/// A value; that of a flag is 0 or 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cell {
    /// None.
    Null,
    /// A text.
    Text(String),
    /// A whole number.
    Integer(i64),
}

/// A row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CopiedRow {
    /// The values of the columns.
    pub cells: Vec<Cell>,
    /// Its number in the store that it was read from, where its table counts the rows.
    pub number: Option<i64>,
}

const fn column(name: &'static str, kind: ColumnKind) -> CopiedColumn {
    CopiedColumn { name, kind }
}

/// What sessions remember, also those all of whose runs were deleted.
pub const MEMORY: CopiedTable = CopiedTable {
    name: "session_memory",
    columns: &[
        column("session", ColumnKind::Text),
        column("key", ColumnKind::AnyText),
        column("value", ColumnKind::AnyText),
    ],
    key: 2,
    counter: None,
    raised: None,
    zeroed: &[],
};

/// The events from outside that are kept.
pub const OUTSIDE_EVENTS: CopiedTable = CopiedTable {
    name: "outside_events",
    columns: &[
        column("org", ColumnKind::Text),
        column("id", ColumnKind::Text),
        column("event", ColumnKind::Text),
        column("data", ColumnKind::AnyText),
        column("at_ms", ColumnKind::Integer),
        column("keep_until_ms", ColumnKind::Integer),
        column("taken", ColumnKind::Flag),
    ],
    key: 2,
    counter: Some("number"),
    raised: Some("taken"),
    zeroed: &[],
};

/// What was spent in the accounts of spending limits. What calls under way may still spend is of their leases.
pub const LEDGER: CopiedTable = CopiedTable {
    name: "ledger",
    columns: &[
        column("account", ColumnKind::Text),
        column("from_ms", ColumnKind::Integer),
        column("until_ms", ColumnKind::Integer),
        column("stays_ms", ColumnKind::Integer),
        column("most_tokens", ColumnKind::Integer),
        column("most_nanos", ColumnKind::Integer),
        column("settled_tokens", ColumnKind::Integer),
        column("settled_nanos", ColumnKind::Integer),
        column("warned_ms", ColumnKind::Integer),
    ],
    key: 1,
    counter: None,
    raised: None,
    zeroed: &["reserved_tokens", "reserved_nanos"],
};

/// The parts of accounts with a rolling window.
pub const LEDGER_PARTS: CopiedTable = CopiedTable {
    name: "ledger_parts",
    columns: &[
        column("account", ColumnKind::Text),
        column("part_ms", ColumnKind::Integer),
        column("tokens", ColumnKind::Integer),
        column("nanos", ColumnKind::Integer),
    ],
    key: 2,
    counter: None,
    raised: None,
    zeroed: &[],
};

/// For which times schedules started runs, also those that were deleted.
pub const SCHEDULED_RUNS: CopiedTable = CopiedTable {
    name: "scheduled_runs",
    columns: &[
        column("run_id", ColumnKind::Text),
        column("schedule", ColumnKind::AnyText),
        column("due_at_ms", ColumnKind::Integer),
        column("timetable", ColumnKind::Text),
        column("ahead", ColumnKind::Flag),
    ],
    key: 1,
    counter: None,
    raised: Some("ahead"),
    zeroed: &[],
};

/// Since when schedules are known.
pub const SCHEDULES: CopiedTable = CopiedTable {
    name: "schedules",
    columns: &[
        column("name", ColumnKind::AnyText),
        column("timetable", ColumnKind::Text),
        column("seen_at_ms", ColumnKind::Integer),
        column("place", ColumnKind::AnyText),
    ],
    key: 1,
    counter: None,
    raised: None,
    zeroed: &[],
};

/// How a database writes its statements.
#[cfg(any(feature = "sqlite", feature = "postgres"))]
pub(super) struct SqlForm {
    /// What comes before the name of a table.
    pub schema: &'static str,
    /// What comes before the number of a parameter.
    pub parameter: char,
    /// Whether the database itself counts the rows.
    pub counts: bool,
}

#[cfg(any(feature = "sqlite", feature = "postgres"))]
impl CopiedTable {
    /// The columns of the key.
    pub(super) fn key_columns(&self) -> &'static [CopiedColumn] {
        self.columns.get(..self.key).unwrap_or_default()
    }

    /// The columns by which the rows are in order.
    fn order(&self) -> Vec<&'static str> {
        match self.counter {
            Some(counter) => vec![counter],
            None => self.key_columns().iter().map(|column| column.name).collect(),
        }
    }

    /// The statement that reads rows: after one, whose values in the order of the table are its parameters, or from the first.
    /// The number of a row comes after its columns.
    pub(super) fn page_sql(&self, form: &SqlForm, is_first: bool) -> String {
        let SqlForm { schema, parameter, .. } = form;
        let order = self.order();
        let numbers: Vec<String> = (1..=order.len()).map(|number| format!("{parameter}{number}")).collect();
        let mut columns: Vec<&str> = self.columns.iter().map(|column| column.name).collect();
        columns.extend(self.counter);
        let order = order.join(", ");
        let after = if is_first { String::new() } else { format!(" WHERE ({order}) > ({})", numbers.join(", ")) };
        format!("SELECT {} FROM {schema}{}{after} ORDER BY {order} LIMIT {PAGE_ROWS}", columns.join(", "), self.name)
    }

    /// The statement that writes this number of rows.
    pub(super) fn put_sql(&self, form: &SqlForm, rows: usize) -> String {
        let SqlForm { schema, parameter, counts } = form;
        let (name, width) = (self.name, self.columns.len());
        let mut columns: Vec<&str> = self.columns.iter().map(|column| column.name).collect();
        let counter = self.counter.filter(|_| !counts);
        columns.extend(counter);
        columns.extend(self.zeroed);
        let row = |row: usize| {
            let mut values: Vec<String> =
                (1..=width).map(|at| format!("{parameter}{}", row.saturating_mul(width).saturating_add(at))).collect();
            values
                .extend(counter.map(|counter| format!("(SELECT coalesce(max({counter}), 0) + 1 FROM {schema}{name})")));
            values.extend(self.zeroed.iter().map(|_| "0".to_owned()));
            format!("({})", values.join(", "))
        };
        let key: Vec<&str> = self.key_columns().iter().map(|column| column.name).collect();
        let conflict = match self.raised {
            Some(raised) => format!("UPDATE SET {raised} = excluded.{raised} WHERE t.{raised} < excluded.{raised}"),
            None => "NOTHING".to_owned(),
        };
        format!(
            "INSERT INTO {schema}{name} AS t ({}) VALUES {} ON CONFLICT ({}) DO {conflict} RETURNING 1",
            columns.join(", "),
            (0..rows).map(row).collect::<Vec<_>>().join(", "),
            key.join(", ")
        )
    }
}
