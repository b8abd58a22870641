//! The tool that a tool of an MCP server makes: what its lock says, under what the declaration and the project say.

use std::sync::Arc;

use serde_json::Value;

use super::{approval, call_limits, parameters};
use crate::compile::ToolSignature;
use crate::language::ReactProperties;
use crate::language::approval::RequiresApproval;
use crate::language::mcp::{LockedTool, McpProtocol, McpServer, McpToolSettings};
use crate::language::tool::{ActionTool, McpTool};
use crate::program::approval::ApprovalPolicy;
use crate::program::fault::LocalFault;
use crate::program::mcp::{ServedTool, ToolOrigin};
use crate::program::schema::Schema;
use crate::program::{Tool, ToolKind};

/// A locked tool with all that is said of it.
pub(in crate::compile) struct ServedDeclaration<'d> {
    pub declaration: &'d McpTool,
    /// The name that the model sees.
    pub name: String,
    /// The name that the server has for it.
    pub own_name: &'d str,
    pub server: &'d McpServer,
    pub settings: Option<&'d McpToolSettings>,
    pub protocol: McpProtocol,
    pub locked: &'d LockedTool,
    /// Whether the declaration says who approves its calls.
    pub says_approval: bool,
    /// Whether it is called over HTTP.
    pub is_http: bool,
}

/// Why a locked tool makes none.
pub(in crate::compile) enum UnfitTool {
    /// No call of it can be made: why, in a sentence without a final stop.
    Schema(String),
    /// What is wrong with the approval that its declaration requires.
    Approval(Vec<LocalFault>),
}

/// The most parts of a schema that are reported.
const MAX_NOTES: usize = 3;

impl ServedDeclaration<'_> {
    /// Whether the server says that calls may destroy things, and nobody says what follows.
    pub fn is_undecided(&self) -> bool {
        let is_said = self.says_approval || self.settings.is_some_and(|settings| settings.requires_approval.is_some());
        !is_said && self.locked.hint("destructiveHint") == Some(true)
    }

    /// Who approves the calls: what the declaration says counts before what the project says, and that before the hint.
    fn approval(&self) -> RequiresApproval {
        if self.says_approval {
            return self.declaration.requires_approval.clone();
        }
        let of_project = self.settings.and_then(|settings| settings.requires_approval.clone());
        of_project.unwrap_or(RequiresApproval::Always(self.is_undecided()))
    }

    /// The tool as an embedder would register it.
    fn signature(&self, parameters: Value) -> ToolSignature {
        let hint = |name| self.server.trust_annotations && self.locked.hint(name) == Some(true);
        let reads = hint("readOnlyHint");
        let said = self.settings.and_then(|settings| settings.idempotent);
        let idempotent = said.unwrap_or(reads || hint("idempotentHint"));
        let of_project = self.settings.and_then(|settings| settings.description.clone());
        let described = of_project.unwrap_or_else(|| self.locked.description.clone());
        let description = match described.trim() {
            "" => format!("The tool {} of the server {}.", self.own_name, self.declaration.server),
            text => text.to_owned(),
        };
        ToolSignature { name: self.name.clone(), description, parameters, idempotent, read_only: reads }
    }
}

/// The tool, and what of its schema is not held.
pub(in crate::compile) fn made(
    served: &ServedDeclaration<'_>,
    properties: &ReactProperties,
) -> Result<(Tool, Vec<String>), UnfitTool> {
    let (schema, notes) = schema(&served.locked.input_schema).map_err(UnfitTool::Schema)?;
    let is_modern_http = served.is_http && served.protocol.is_modern();
    let headers = if is_modern_http { ServedTool::headers_of(&served.locked.input_schema) } else { Ok(Vec::new()) };
    let headers = headers.map_err(UnfitTool::Schema)?;
    let McpTool { description, approval, max_calls, timeout_ms, polling, remember, .. } = served.declaration.clone();
    let declaration = ActionTool {
        name: served.name.clone(),
        description,
        max_calls,
        timeout_ms: call_limits::least(timeout_ms, served.server.timeout_ms),
        polling,
        remember,
        ..ActionTool::default()
    };
    let mut policy = ApprovalPolicy::default();
    approval::require(&mut policy, &served.approval(), approval.as_ref()).map_err(UnfitTool::Approval)?;
    let tool = super::registered(&served.signature(Value::Null), &declaration, properties, schema);
    let origin = ServedTool {
        server: served.declaration.server.clone(),
        name: served.own_name.to_owned(),
        protocol: served.protocol,
        locked: served.locked.clone(),
        headers,
    };
    let kind = ToolKind::Embedded(ToolOrigin::Server(Arc::new(origin)));
    let on_uncertain = served.settings.and_then(|settings| settings.on_uncertain);
    Ok((Tool { kind, approval: policy, on_uncertain, ..tool }, notes))
}

/// What is held of a server's schema. It is nobody's here, so nothing in it is an error: what can't be met is left out, and
/// the server judges it.
fn schema(written: &Value) -> Result<(Schema, Vec<String>), String> {
    let mut read = written.clone();
    // Servers write the name of an older draft, or none, for schemas that mean the same in the newest one.
    if let Some(members) = read.as_object_mut() {
        members.remove("$schema");
    }
    let examined = Schema::examine(&Arc::new(read));
    let mut notes: Vec<String> = examined
        .faults
        .iter()
        .take(MAX_NOTES)
        .map(|fault| format!("{} (at `{}`)", fault.message, fault.path))
        .collect();
    if examined.faults.len() > notes.len() {
        notes.push(format!("{} more parts", examined.faults.len().saturating_sub(notes.len())));
    }
    let Some(schema) = examined.rest else {
        return Err(notes.into_iter().next().unwrap_or_else(|| "its schema is none".to_owned()));
    };
    match parameters::no_object(&schema) {
        Some(fault) => Err(fault.message),
        None => Ok((schema, notes)),
    }
}
