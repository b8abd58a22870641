//! Actions of kind `custom-table`, compiled, and the schema of what a call gives.

use serde_json::{Map, Value, json};

use crate::language::action::CustomTableAction;
use crate::program::schema::Schema;
use crate::program::table::TableTool;

/// The names of a call's input.
pub(super) const INPUTS: [&str; 5] = ["table", "operation", "keys", "values", "fields"];

pub(super) fn compile(action: &CustomTableAction) -> TableTool {
    TableTool { tables: action.tables.clone(), read_only: action.read_only }
}

/// The schema of a call's input.
pub(super) fn schema(tool: &TableTool) -> Schema {
    let operations: &[&str] = if tool.read_only { &["read"] } else { &["read", "write", "update", "upsert"] };
    let rows = "which rows are read, changed, or looked for before one is added";
    let table = match tool.tables.as_slice() {
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
    let source = json!({
        "type": "object",
        "properties": properties,
        "required": ["table", "operation"],
        "additionalProperties": false,
    });
    Schema::compile(source).unwrap_or_else(|_| Schema::any())
}
