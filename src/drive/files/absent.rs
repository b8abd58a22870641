//! Files that a project file names and that are not there.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::Value;

use crate::diagnostic::Source;

/// The scripts of models, and the texts that make databases which are not there yet, as the project file
/// writes them; nothing when it can't be read.
pub fn absent(project: &Source, root: &Path) -> BTreeSet<String> {
    let read: Value = serde_json::from_str(&project.text).unwrap_or_default();
    let all = |name: &str| read.get(name).and_then(Value::as_object).into_iter().flat_map(|all| all.values());
    let text = |value: &Value, name: &str| value.get(name).and_then(Value::as_str).map(str::to_owned);
    let is_there = |file: &str| root.join(file).is_file();
    let scripts = all("models").filter_map(|model| text(model, "script"));
    let is_made = |datasource: &Value| {
        let url = text(datasource, "url").unwrap_or_default();
        url.strip_prefix("sqlite:").is_some_and(is_there)
    };
    let inits = all("datasources").filter(|made| !is_made(made)).filter_map(|made| text(made, "init"));
    scripts.chain(inits).filter(|file| !is_there(file)).collect()
}
