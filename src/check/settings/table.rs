//! The settings of a custom table.

use super::WrittenSettings;
use crate::diagnostic::Diagnostic;

pub(in crate::check) fn table(settings: &WrittenSettings<'_, '_>, found: &mut Vec<Diagnostic>) {
    if settings.get("values").is_some() {
        found.extend(settings.missing(&["keys"], "they are the columns that take the `values`, in their order"));
    }
    if let (Some(keys), Some(values)) = (settings.list("keys"), settings.list("values"))
        && keys.len() != values.len()
    {
        let message = format!("`keys` names {} columns, and `values` has {} values", keys.len(), values.len());
        found.extend(
            settings.at("values", message).map(|fault| fault.help("each column takes one value, in their order")),
        );
    }
    let writes = settings.text("operation").is_some_and(|operation| operation != "read");
    let is_empty = |name: &str| match settings.get(name) {
        None => true,
        Some(value) => value.as_object().is_some_and(serde_json::Map::is_empty),
    };
    if writes && is_empty("fields") && settings.get("values").is_none() {
        let operation = settings.text("operation").unwrap_or_default();
        let fault =
            settings.at("operation", format!("`{operation}` writes nothing: there are neither `fields` nor `values`"));
        found.extend(
            fault.map(|fault| fault.help("give the columns with their values: \"fields\": {\"status\": \"open\"}")),
        );
    }
}
