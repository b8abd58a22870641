//! Actions of kind `matcher`, compiled, and the schema of what a call gives.

use serde_json::{Map, Value, json};

use super::ActionDraft;
use crate::diagnostic::codes;
use crate::language::action::{MATCHER_SETTINGS, MatcherAction};
use crate::program::fault::LocalFault;
use crate::program::matcher::{MatcherSide, MatcherTool};
use crate::program::reference::as_path;
use crate::program::schema::Schema;

/// The names of the two lists.
const SIDES: [&str; 2] = ["left", "right"];

pub(super) fn compile(action: &MatcherAction, work: &mut ActionDraft<'_>) -> Option<MatcherTool> {
    let [left, right] = SIDES;
    let mut tool = MatcherTool {
        settings: settings(action)?,
        left: side(action.left.as_ref(), left, work)?,
        right: side(action.right.as_ref(), right, work)?,
    };
    // A name that two lists have says nothing.
    if tool.left.name == tool.right.name {
        (tool.left.name, tool.right.name) = (None, None);
    }
    Some(tool)
}

fn settings(action: &MatcherAction) -> Option<Map<String, Value>> {
    match serde_json::to_value(action.settings()) {
        Ok(Value::Object(settings)) => Some(settings),
        _ => None,
    }
}

/// A written list, or none.
fn side(written: Option<&Value>, name: &str, work: &mut ActionDraft<'_>) -> Option<MatcherSide> {
    let Some(written) = written else { return Some(MatcherSide::default()) };
    let pointer = format!("/{name}");
    let before = work.secrets.len();
    let field = work.field(written, &pointer)?;
    if let Some(at) = work.secrets.get(before) {
        let message = "a secret in a list would be sent to the model";
        let fault = LocalFault::error(codes::SECRET_IN_PROMPT, at.clone(), message);
        work.push(fault.help("a secret never goes to a model: use it in an action's header, address or environment"));
    }
    let path = written.as_str().and_then(as_path);
    let is_free = |last: &String| !SIDES.contains(&last.as_str()) && !MATCHER_SETTINGS.contains(&last.as_str());
    Some(MatcherSide { field: Some(field), name: path.and_then(|mut path| path.pop()).filter(is_free) })
}

/// The names of a call's input that the tool reads without a template.
pub(super) fn inputs(tool: &MatcherTool) -> Vec<&str> {
    let names = [&tool.left, &tool.right].into_iter().filter_map(|side| side.name.as_deref());
    SIDES.into_iter().chain(MATCHER_SETTINGS).chain(names).collect()
}

/// The schema of a call's input: the lists that are not written, and what takes the place of what is written.
/// `arguments` are the names that written lists take.
pub(super) fn schema(tool: &MatcherTool, arguments: &[String]) -> Schema {
    let mut properties = Map::new();
    let mut required = Vec::new();
    for (name, side) in SIDES.into_iter().zip([&tool.left, &tool.right]) {
        let list = |about: String| json!({ "type": ["array", "string"], "description": about });
        match &side.field {
            None => {
                required.push(name);
                properties.insert(name.to_owned(), list(format!("The {name} list: objects. Or the JSON text of it.")));
            }
            Some(_) => {
                let instead = format!("In place of the {name} list that is set.");
                properties.insert(name.to_owned(), list(instead.clone()));
                if let Some(last) = &side.name {
                    properties.insert(last.clone(), list(instead));
                }
            }
        }
    }
    for name in arguments {
        properties.entry(name.clone()).or_insert_with(|| json!({}));
    }
    if !tool.settings.contains_key("matchOn") {
        required.push("matchOn");
    }
    if tool.settings.contains_key("fuzzyThreshold") && !tool.settings.contains_key("descriptionKey") {
        required.push("descriptionKey");
    }
    properties.extend(MATCHER_SETTINGS.into_iter().map(|name| (name.to_owned(), setting(name))));
    let source = json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    });
    Schema::compile(source).unwrap_or_else(|_| Schema::any())
}

/// The schema of a setting.
fn setting(name: &str) -> Value {
    match name {
        "matchOn" => json!({
            "type": "array",
            "items": { "type": "string" },
            "minItems": 1,
            "description": "The fields that must be equal.",
        }),
        "tolerance" => {
            json!({ "type": "number", "minimum": 0, "description": "How far the field `amount` may be apart." })
        }
        "tolerance_mode" => json!({
            "type": "string",
            "enum": ["absolute", "relative"],
            "description": "Whether the tolerance is an amount, or a share of the larger amount.",
        }),
        "dateWindowDays" => {
            json!({ "type": "number", "minimum": 0, "description": "How many days dates may be apart." })
        }
        "fuzzyThreshold" => json!({
            "type": "number",
            "minimum": 0,
            "maximum": 100,
            "description": "How alike the texts of `descriptionKey` must be.",
        }),
        "descriptionKey" => json!({ "type": "string", "description": "The field whose texts are compared." }),
        _ => json!({ "type": "string", "minLength": 1, "description": "A key of the result." }),
    }
}
