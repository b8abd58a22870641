//! Actions of kind `custom-table`.

use serde_json::{Map, Value, json};

use super::{ActionKind, ActionText, CallSpeed};

/// The datasource of the tables.
pub const TABLES: &str = "tables";

/// The names of a call's input.
const INPUTS: [&str; 5] = ["table", "operation", "keys", "values", "fields"];

super::action! {
    /// Rows of a table of the datasource `tables` are written or read. Each call says which.
    CustomTableAction {
        /// The tables that it may use. An agent's tool uses no others; without it, only steps use the action.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        tables: Vec<String>,
        /// Whether the database refuses writes.
        #[serde(default = "crate::language::react::defaults::yes")]
        read_only: bool,
        /// The most rows that a call reads. Default: 1,000. A step with a larger result fails; an agent reads the first rows,
        /// and that there are more.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[schemars(range(min = 1, max = 100_000))]
        max_rows: Option<u32>,
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

    fn input_schema(&self) -> Option<Value> {
        let operations: &[&str] = if self.read_only { &["read"] } else { &["read", "write", "update", "upsert"] };
        let rows = "which rows are read, changed, or looked for before one is added";
        let table = match self.tables.as_slice() {
            [] => json!({ "type": "string" }),
            tables => json!({ "type": "string", "enum": tables }),
        };
        let parts = [
            table,
            json!({ "type": "string", "enum": operations }),
            json!({ "type": "array", "items": { "type": "string" }, "description": format!("Columns: {rows}.") }),
            json!({ "type": "array", "description": "The values of these columns, in the same order." }),
            json!({ "type": "object", "description": "Columns with their values: what is written." }),
        ];
        let properties: Map<String, Value> = INPUTS.iter().map(|name| (*name).to_owned()).zip(parts).collect();
        Some(json!({
            "type": "object",
            "properties": properties,
            "required": ["table", "operation"],
            "additionalProperties": false,
        }))
    }

    fn datasource(&self) -> Option<&str> {
        Some(TABLES)
    }
}
