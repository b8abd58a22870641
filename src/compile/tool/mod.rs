//! Declared tools.

use std::ops::Range;

use super::program::{Tool, ToolKind};
use super::schema::Schema;
use crate::diagnostic::Severity;
use crate::language::tool::ActionTool;
use crate::language::{Action, ReactProperties};

/// A fault in an action, at its place in the action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocalFault {
    /// The diagnostic's code.
    pub code: &'static str,
    /// How grave it is.
    pub severity: Severity,
    /// The JSON pointer from the action on.
    pub pointer: String,
    /// A part of the string there, in bytes of the string as it is meant.
    pub inside: Option<Range<usize>>,
    /// What is wrong.
    pub message: String,
    /// How to mend it.
    pub help: Option<String>,
}

/// The tool of a declaration.
///
/// # Errors
/// Every fault of the action.
pub fn declared(
    declaration: &ActionTool,
    action: &Action,
    properties: &ReactProperties,
) -> Result<(Tool, Vec<LocalFault>), Vec<LocalFault>> {
    if let Action::Llm(action) = action
        && action.template.contains("{{}}")
    {
        return Err(vec![LocalFault {
            code: "L050",
            severity: Severity::Error,
            pointer: "/template".to_owned(),
            inside: action.template.find("{{}}").map(|at| at..at + 4),
            message: "a name is missing".to_owned(),
            help: None,
        }]);
    }
    let tool = Tool {
        name: declaration.name.clone(),
        description: String::new(),
        parameters: Schema::compile(serde_json::json!({})).map_err(|_| Vec::new())?,
        kind: ToolKind::Embedded,
        requires_approval: declaration.requires_approval,
        max_calls: declaration.max_calls,
        timeout_ms: declaration.timeout_ms.unwrap_or(properties.tool_timeout_ms),
        polling: declaration.polling,
        idempotent: false,
        on_uncertain: crate::language::action::OnUncertain::Pause,
    };
    Ok((tool, Vec::new()))
}

/// The tool that an embedder's function makes, under the name of its declaration.
///
/// # Errors
/// When its parameters are no JSON Schema.
pub fn embedded(
    description: &str,
    parameters: &serde_json::Value,
    idempotent: bool,
    declaration: &ActionTool,
    properties: &ReactProperties,
) -> Result<Tool, Vec<LocalFault>> {
    Ok(Tool {
        name: declaration.name.clone(),
        description: declaration.description.as_deref().unwrap_or(description).to_owned(),
        parameters: Schema::compile(parameters.clone()).map_err(|_| Vec::new())?,
        kind: ToolKind::Embedded,
        requires_approval: declaration.requires_approval,
        max_calls: declaration.max_calls,
        timeout_ms: declaration.timeout_ms.unwrap_or(properties.tool_timeout_ms),
        polling: declaration.polling,
        idempotent,
        on_uncertain: crate::language::action::OnUncertain::Pause,
    })
}
