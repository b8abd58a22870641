//! A step that chooses between lists of steps: those of the first case whose condition holds.

use schemars::Schema;
use serde_json::{Value, json};

/// The word of `type`. With `cases` it is this step; without them, it may be the name of an action.
pub const CHOOSE: &str = "choose";

/// The schema of such a step, from those of a step and of a case.
pub(super) fn branch(step: &Schema, case: &Schema) -> Value {
    let about = "Chooses between lists of steps: the first case that holds.";
    json!({
        "type": "object",
        "description": about,
        "properties": {
            "type": { "const": CHOOSE, "type": "string", "description": about },
            "id": {
                "type": ["string", "null"],
                "minLength": 1,
                "description": "The step's name in addresses, in place of its number: `route.0.1` is step 1 of case 0.",
            },
            "cases": {
                "type": "array",
                "minItems": 1,
                "items": case,
                "description": "The cases, in their order. The steps of the first one whose `when` holds run.",
            },
            "otherwise": {
                "anyOf": [{ "type": "array", "items": step }, { "type": "null" }],
                "description": "The steps that run when no case holds. Without it, nothing runs then.",
            },
        },
        "required": ["type", "cases"],
        "additionalProperties": false,
    })
}
