//! The settings of a custom table.

use serde_json::{Map, Value};

use super::WrittenSettings;
use crate::diagnostic::{Diagnostic, Severity};
use crate::program::reference::as_optional_path;
use crate::syntax::quoted;

/// What a custom table can't use.
pub(in crate::check) fn table(settings: &WrittenSettings<'_, '_>, found: &mut Vec<Diagnostic>) {
    let mut needed = vec!["table", "operation"];
    if settings.get("values").is_some() || settings.get("keys").is_some() {
        needed.extend(["keys", "values"]);
    }
    let help = "`table` is one of the datasource `tables`, `operation` is `read`, `write`, `update` or `upsert`, `keys` are the \
                columns that a row is found by, and `values` what they have, in their order";
    found.extend(settings.missing(&needed, help));
    let optional = |value: &Value| value.as_str().filter(|text| as_optional_path(text).is_some()).map(quoted);
    for (list, other) in [("keys", "values"), ("values", "keys")] {
        for (index, value) in settings.list(list).into_iter().flatten().enumerate() {
            let Some(text) = optional(value) else { continue };
            let cursor = settings.cursor(list).below(&format!("/{index}"));
            let message = format!("{text} may be left out, and each entry of `{list}` belongs to one of `{other}`");
            let help = match list {
                "values" => format!("a column that may be missing is one of `fields`: {{\"note\": {text}}}"),
                _ => "write the names of the columns".to_owned(),
            };
            found.push(cursor.report(settings.rule, message).help(help));
        }
    }
    if let Some(text) = settings.get("table").and_then(optional) {
        let fault = settings.at("table", format!("`table` is needed, and {text} may be left out"));
        found.extend(fault.map(|fault| fault.help("write the name of the table, or a path without `?`")));
    }
    let fields = settings.get("fields").and_then(Value::as_object);
    if settings.text("operation") == Some("update")
        && fields.is_some_and(|fields| !fields.is_empty() && fields.values().all(|value| optional(value).is_some()))
    {
        let message = "`update` writes nothing where all of its `fields` are left out, and its step fails";
        let fault =
            settings.at("fields", message.to_owned()).map(|fault| Diagnostic { severity: Severity::Warning, ..fault });
        found.extend(fault.map(|fault| fault.help("ask for one of them in the step's `filter` with `hasKey`")));
    }
    if let (Some(keys), Some(values)) = (settings.list("keys"), settings.list("values"))
        && keys.len() != values.len()
    {
        let message = format!("`keys` names {} columns, and `values` has {} values", keys.len(), values.len());
        let fault = settings.at("values", message);
        found.extend(fault.map(|fault| fault.help("each column takes one value, in their order")));
    }
    if let Some(operation) = settings.text("operation") {
        rows(settings, operation, found);
    }
}

/// An operation without what it writes, or without the rows that it changes.
fn rows(settings: &WrittenSettings<'_, '_>, operation: &str, found: &mut Vec<Diagnostic>) {
    let is_empty = |name: &str| match settings.get(name) {
        None => true,
        Some(Value::Object(members)) => members.is_empty(),
        Some(Value::Array(items)) => items.is_empty(),
        Some(_) => false,
    };
    let writes_nothing = match operation {
        "write" => is_empty("fields") && is_empty("values"),
        "update" => is_empty("fields"),
        _ => false,
    };
    if writes_nothing {
        let instead =
            if operation == "update" { "there are no `fields`" } else { "there are neither `fields` nor `values`" };
        let fault = settings.at("operation", format!("`{operation}` writes nothing: {instead}"));
        let help = "give the columns with their values: \"fields\": {\"status\": \"open\"}";
        found.extend(fault.map(|fault| fault.help(help)));
    } else if matches!(operation, "update" | "upsert") && is_empty("keys") {
        let fault = settings.at("operation", format!("`{operation}` needs `keys`: nothing says which rows it changes"));
        let help = "give the columns that a row is found by, and their values: \"keys\": [\"id\"], \"values\": [\"@input.id\"]";
        found.extend(fault.map(|fault| fault.help(help)));
    }
    if operation == "update" {
        return;
    }
    let is_key = |column: &str| settings.list("keys").into_iter().flatten().any(|key| key == column);
    let fields = settings.get("fields").and_then(Value::as_object).into_iter().flat_map(Map::keys);
    if let Some(column) = fields.map(String::as_str).find(|column| is_key(column)) {
        let fault = settings.at("fields", format!("the column `{column}` is in `keys` and in `fields`"));
        found.extend(fault.map(|fault| fault.help("give it one value, in one of the two")));
    }
}
