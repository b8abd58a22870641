//! JSON by what it says: two servers, or two events of one, may write one input in two ways.

use serde_json::Value;

use loopctl_lang::policy::json_text;

/// JSON without what means nothing in it; a text that is no JSON as it is.
pub(super) fn compact(json: &str) -> String {
    json_text::read::<Value>(json).map_or_else(|_| json.to_owned(), |value| value.to_string())
}
