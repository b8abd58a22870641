//! What a call of a custom table asks for, judged before the database is asked.

use serde::Deserialize;
use serde_json::Value;

use crate::diagnostic::nearest;
use crate::language::action::CustomTableAction;
use crate::language::step::{CustomTable, TableOperation};

/// What a call asks of a table. No column is twice in a list.
#[derive(Debug, Clone, PartialEq)]
pub struct TableRequest {
    /// The table.
    pub table: String,
    /// What is done with it.
    pub operation: TableOperation,
    /// The columns that a row is found by.
    pub keys: Vec<ColumnValue>,
    /// The other columns.
    pub fields: Vec<ColumnValue>,
    /// The tables that may be named to whoever calls; all when there are none.
    pub tables: Vec<String>,
    /// Whether the database is opened for reading only.
    pub read_only: bool,
}

/// A column with its value.
#[derive(Debug, Clone, PartialEq)]
pub struct ColumnValue {
    /// The column.
    pub column: String,
    /// Its value.
    pub value: Value,
}

impl TableRequest {
    /// What an input of a tool asks for.
    ///
    /// # Errors
    /// A sentence that says what is missing, or can't be used.
    pub fn of(tool: &CustomTableAction, input: &Value) -> Result<Self, String> {
        let CustomTable { table, operation, keys, values, fields, max_rows } =
            CustomTable::deserialize(input).map_err(|error| error.to_string())?;
        if max_rows.is_some() {
            return Err("`max_rows` is a setting of the action, and no call gives it".to_owned());
        }
        let table = allowed(tool, table.ok_or("`table` is missing")?)?;
        let operation = operation.ok_or("`operation` is missing: read, write, update or upsert")?;
        if tool.read_only && operation != TableOperation::Read {
            return Err("this tool only reads: `operation` must be `read`".to_owned());
        }
        let (keys, values) = (keys.unwrap_or_default(), values.unwrap_or_default());
        if keys.len() != values.len() {
            return Err(format!("`keys` names {} columns, and `values` has {} values", keys.len(), values.len()));
        }
        let keys: Vec<ColumnValue> =
            keys.into_iter().zip(values).map(|(column, value)| ColumnValue { column, value }).collect();
        let fields = fields.unwrap_or_default().into_iter();
        let fields: Vec<ColumnValue> = fields.map(|(column, value)| ColumnValue { column, value }).collect();
        let needed = match operation {
            TableOperation::Read => None,
            TableOperation::Write if keys.is_empty() && fields.is_empty() => Some("`write` needs `fields`"),
            TableOperation::Update if fields.is_empty() => Some("`update` needs `fields`: what the rows get"),
            TableOperation::Update if keys.is_empty() => {
                Some("`update` needs `keys` and `values`: which rows it changes")
            }
            TableOperation::Upsert if keys.is_empty() => {
                Some("`upsert` needs `keys` and `values`: which row it changes")
            }
            _ => None,
        };
        match needed {
            Some(needed) => Err(needed.to_owned()),
            None => Ok(Self {
                table,
                operation,
                keys,
                fields,
                tables: tool.tables.clone(),
                read_only: operation == TableOperation::Read,
            }),
        }
    }
}

/// The table of a call, when the tool may use it.
fn allowed(tool: &CustomTableAction, table: String) -> Result<String, String> {
    let is_named = tool.tables.iter().any(|known| known.eq_ignore_ascii_case(&table));
    if tool.tables.is_empty() || is_named {
        return Ok(table);
    }
    let known = tool.tables.iter().map(String::as_str);
    let table: String = table.chars().take(60).collect();
    Err(match nearest(&table, known.clone()) {
        Some(near) => format!("this tool has no table `{table}`; the nearest one is `{near}`"),
        None => {
            format!("this tool has no table `{table}`; it has {}", known.take(16).collect::<Vec<_>>().join(", "))
        }
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_a_call_asks_for_is_judged_before_the_database() {
        let tool = |tables: &[&str], read_only: bool| -> CustomTableAction {
            serde_json::from_value(json!({"action_name": "t", "tables": tables, "read_only": read_only})).unwrap()
        };
        let refused = |tool: CustomTableAction, input: Value| TableRequest::of(&tool, &input).unwrap_err();
        let any = || tool(&[], false);
        for (input, word) in [
            (json!({}), "`table` is missing"),
            (json!({"table": "t"}), "`operation` is missing"),
            (json!({"table": "t", "operation": "drop"}), "unknown variant `drop`"),
            (json!({"table": "t", "operation": "read", "keys": ["a"]}), "1 columns, and `values` has 0"),
            (json!({"table": "t", "operation": "write"}), "`write` needs"),
            (json!({"table": "t", "operation": "update", "keys": ["a"], "values": [1]}), "`update` needs `fields`"),
            (json!({"table": "t", "operation": "update", "fields": {"a": 1}}), "which rows"),
            (json!({"table": "t", "operation": "upsert", "fields": {"a": 1}}), "which row"),
            (json!({"table": "t", "operation": "read", "where": "1"}), "unknown field `where`"),
            (json!({"table": "t", "operation": "read", "max_rows": 9}), "a setting of the action"),
        ] {
            let why = refused(any(), input.clone());
            assert!(why.contains(word), "{input}: {why}");
        }
        let read = json!({"table": "Orders", "operation": "read"});
        assert!(refused(tool(&["order", "notes"], true), read.clone()).contains("the nearest one is `order`"));
        assert!(refused(tool(&["notes"], true), read.clone()).contains("it has notes"));
        assert!(TableRequest::of(&tool(&["orders"], true), &read).is_ok());
        let write = json!({"table": "orders", "operation": "write", "fields": {"a": 1}});
        assert!(refused(tool(&["orders"], true), write.clone()).contains("only reads"));
        let asked = |input| TableRequest::of(&any(), input).unwrap();
        assert!(!asked(&write).read_only && asked(&read).read_only);
    }
}
