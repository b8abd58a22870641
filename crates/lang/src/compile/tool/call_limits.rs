//! The limits that an action sets for its own calls: no declaration can loosen them.

use serde_json::Value;

use crate::language::Action;
use crate::language::approval::{OnExpiry, RequiresApproval};
use crate::language::tool::ActionTool;

/// The lower of two limits, if there are two.
pub(super) fn least<N: Ord>(one: Option<N>, other: Option<N>) -> Option<N> {
    one.into_iter().chain(other).min()
}

/// The fields of a declaration that would loosen limits of its action, each with the action's value. `written`
/// is the declaration as written.
pub fn loosened(declaration: &ActionTool, written: &Value, action: &Action) -> Vec<(&'static str, String)> {
    let head = action.head();
    let mut found = Vec::new();
    let is_weaker = match head.requires_approval {
        RequiresApproval::Always(always) => {
            *always && written.get("requires_approval").is_some_and(|own| *own != Value::Bool(true))
        }
        RequiresApproval::When(_) => written.get("requires_approval") == Some(&Value::Bool(false)),
    };
    if is_weaker && let Ok(floor) = serde_json::to_string(head.requires_approval) {
        found.push(("requires_approval", floor));
    }
    if let (Some(own), Some(floor)) = (&declaration.approval, &head.approval) {
        let word = |on_expiry| serde_json::to_string(&on_expiry).unwrap_or_default();
        if let (Some(time), Some(floor)) = (own.expires_after_ms, floor.expires_after_ms)
            && time > floor
        {
            found.push(("approval/expires_after_ms", floor.to_string()));
        }
        let expiry = floor.on_expiry.or(floor.expires_after_ms.map(|_| OnExpiry::default()));
        if let (Some(own), Some(floor)) = (own.on_expiry, expiry)
            && own < floor
        {
            found.push(("approval/on_expiry", word(floor)));
        }
        if let (Some(own), Some(floor)) = (own.approvers, floor.approvers)
            && own < floor
        {
            found.push(("approval/approvers", floor.to_string()));
        }
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
