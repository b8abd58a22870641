//! The dialect `json`: one object a turn with `thought`, `action`, `action_input`.

use super::Reading;

/// The instructions at the end of the system prompt.
pub const INSTRUCTIONS: &str = "";

/// Reads a reply: forgiving where the meaning is plain, refusing where there are two.
pub fn read(_reply: &str) -> Reading {
    Reading::Unreadable { thought: String::new(), why: String::new() }
}
