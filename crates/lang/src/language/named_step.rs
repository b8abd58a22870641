//! A step that runs a loop or a workflow beside the document, by its name.

use serde_json::{Value, json};

/// The schemas of such steps. The `name` distinguishes them from other steps of the same type. `branch` makes the schema of a step by
/// what it is, its `type`, its `properties`, and what is required.
pub(super) fn branches(mut branch: impl FnMut(&str, &Value, &Value, &[&str]) -> Value) -> [Value; 2] {
    let a_loop = ("loop", "A loop beside the document, by its name.", "loops/*.json");
    let workflow = ("workflow", "A workflow beside the document, by its name.", "workflows/*.json");
    [a_loop, workflow].map(|(word, about, files)| {
        let kind = json!({ "const": word, "type": "string", "description": about });
        let values = json!({
            "type": "object",
            "description": format!("The input of the {word}: values for the names of its `input`."),
        });
        let mut step = branch(about, &kind, &values, &["type", "name"]);
        if let Some(fields) = step.get_mut("properties").and_then(Value::as_object_mut) {
            let name = format!("The `name` of a {word} in `{files}`.");
            let name = json!({ "type": "string", "minLength": 1, "description": name });
            let wait = json!({
                "type": ["boolean", "null"],
                "description": "Whether the step lasts until the end of the run. Default: true.",
            });
            let timeout_ms = json!({
                "type": ["integer", "null"],
                "format": "uint64",
                "minimum": 1,
                "description": format!("The active time of its run in milliseconds, if the {word} has more."),
            });
            // The name comes first where documents are formatted. A run continues where it stopped, and retries its own calls.
            let others = std::mem::take(fields).into_iter().filter(|(field, _)| field != "retry");
            for (field, schema) in others {
                let is_type = field == "type";
                fields.insert(field, schema);
                if is_type {
                    fields.insert("name".to_owned(), name.clone());
                    fields.extend((word == "workflow").then(|| ("wait".to_owned(), wait.clone())));
                }
            }
            fields.insert("timeout_ms".to_owned(), timeout_ms);
        }
        step
    })
}
