//! What an action says about its own calls: a floor that no declaration lowers.

use serde_json::Value;

use crate::language::Action;
use crate::language::tool::ActionTool;

/// The lower of two bounds, where there are two.
pub(super) fn least<N: Ord>(one: Option<N>, other: Option<N>) -> Option<N> {
    one.into_iter().chain(other).min()
}

/// The fields of a declaration that would loosen what its action says, each with what the action says.
/// `written` is the declaration as it is written.
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
