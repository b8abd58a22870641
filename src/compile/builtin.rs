//! The built-in tools.

use super::program::{Builtin, Tool, ToolKind};
use super::schema::Schema;

/// The names of the built-in tools.
pub const NAMES: [&str; 6] = [
    "__complete__",
    "__pause_for_human__",
    "__store_memory__",
    "__retrieve_memory__",
    "__log_progress__",
    "__run_workflow__",
];

/// Every built-in tool.
pub fn all() -> Vec<Tool> {
    [
        ("__complete__", Builtin::Complete),
        ("__pause_for_human__", Builtin::PauseForHuman),
        ("__store_memory__", Builtin::StoreMemory),
        ("__retrieve_memory__", Builtin::RetrieveMemory),
        ("__log_progress__", Builtin::LogProgress),
        ("__run_workflow__", Builtin::RunWorkflow),
    ]
    .into_iter()
    .filter_map(|(name, builtin)| {
        Some(Tool {
            name: name.to_owned(),
            description: String::new(),
            parameters: Schema::compile(serde_json::json!({})).ok()?,
            kind: ToolKind::Builtin(builtin),
            requires_approval: false,
            max_calls: None,
            timeout_ms: 1000,
            polling: false,
            idempotent: true,
            on_uncertain: crate::language::action::OnUncertain::Pause,
        })
    })
    .collect()
}
