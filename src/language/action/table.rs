//! Actions of kind `custom-table`.

use super::{ActionKind, ActionText, CallSpeed};

super::action! {
    /// Rows of a table of the datasource `tables` are written or read. Each call says which.
    CustomTableAction {
        /// The tables that it may use. An agent's tool uses no others; without it, only steps use the action.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        tables: Vec<String>,
        /// Whether the database refuses writes.
        #[serde(default = "crate::language::react::defaults::yes")]
        read_only: bool,
    }
}

impl ActionKind for CustomTableAction {
    fn texts(&self) -> &'static [ActionText] {
        &[]
    }

    fn describe(&self) -> String {
        let does = if self.read_only { "Reads" } else { "Reads and changes" };
        match self.tables.as_slice() {
            [] => format!("{does} tables."),
            [one] => format!("{does} the table {one}."),
            all => format!("{does} the tables {}.", all.join(", ")),
        }
    }

    fn repeated(&self) -> Option<String> {
        Some("a write".to_owned())
    }

    fn is_idempotent(&self) -> bool {
        self.read_only
    }

    fn only_reads(&self, idempotent: bool) -> bool {
        idempotent && self.read_only
    }

    fn speed(&self) -> CallSpeed {
        CallSpeed::Local
    }
}
