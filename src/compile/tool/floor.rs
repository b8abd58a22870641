//! The limits that an action sets for its own calls: no declaration can loosen them.

use serde_json::Value;

use crate::language::Action;
use crate::language::tool::ActionTool;

/// The lower of two limits, if there are two.
pub(super) fn least<N: Ord>(one: Option<N>, other: Option<N>) -> Option<N> {
    one.into_iter().chain(other).min()
}

/// The fields of a declaration that would loosen limits of its action, each with the action's value. `written`
/// is the declaration as written.
pub fn loosened(declaration: &ActionTool, written: &Value, action: &Action) -> Vec<(&'static str, String)> {
    let Some(head) = action.head() else { return Vec::new() };
    let mut found = Vec::new();
    if head.requires_approval && written.get("requires_approval") == Some(&Value::Bool(false)) {
        found.push(("requires_approval", "true".to_owned()));
    }
    if let (Some(own), Some(floor)) = (declaration.max_calls, head.max_calls)
        && own > floor
    {
        found.push(("max_calls", floor.to_string()));
    }
    if let (Some(own), Some(floor)) = (declaration.timeout_ms, head.timeout_ms)
        && own > floor
    {
        found.push(("timeout_ms", floor.to_string()));
    }
    found
}
