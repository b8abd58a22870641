//! The tool that a tool of an MCP server makes: what its lock says, under what the declaration and the project say.

use std::sync::Arc;

use serde_json::Value;

use super::{approval, call_limits, parameters};
use crate::compile::ToolSignature;
use crate::compile::locked_tools::McpToolTerms;
use crate::language::ReactProperties;
use crate::language::approval::RequiresApproval;
use crate::language::mcp::{LockedTool, McpProtocol, McpToolSettings};
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
    /// What the project says of it.
    pub terms: &'d McpToolTerms,
    pub protocol: McpProtocol,
    pub locked: &'d LockedTool,
    /// Whether the declaration says who approves its calls.
    pub says_approval: bool,
    /// Whether a request brought the declaration: it may be another's, and only adds to what the project requires.
    pub is_request: bool,
    /// Whether a step makes the calls: later steps name parts of what it gives.
    pub is_step: bool,
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
    fn settings(&self) -> Option<&McpToolSettings> {
        self.terms.settings.as_ref()
    }

    /// Whether the server says that calls may destroy things, and nobody says what follows.
    pub fn is_undecided(&self) -> bool {
        let is_said =
            self.says_approval || self.settings().is_some_and(|settings| settings.requires_approval.is_some());
        !is_said && self.destroys()
    }

    fn destroys(&self) -> bool {
        self.locked.hint("destructiveHint") == Some(true)
    }

    /// Who approves the calls, all of it: what the declaration says counts before what the project says, and that before the
    /// hint. A request lays nothing of the project's aside.
    fn approvals(&self) -> Vec<RequiresApproval> {
        let of_project = self.settings().and_then(|settings| settings.requires_approval.clone());
        let of_project = || of_project.unwrap_or(RequiresApproval::Always(self.destroys()));
        match (self.says_approval, self.is_request) {
            (false, _) => vec![of_project()],
            (true, false) => vec![self.declaration.requires_approval.clone()],
            (true, true) => vec![self.declaration.requires_approval.clone(), of_project()],
        }
    }

    /// The tool as an embedder would register it.
    fn signature(&self, parameters: Value) -> ToolSignature {
        let hint = |name| self.terms.trust_annotations && self.locked.hint(name) == Some(true);
        let reads = hint("readOnlyHint");
        let said = self.settings().and_then(|settings| settings.idempotent);
        let idempotent = said.unwrap_or(reads || hint("idempotentHint"));
        let of_project = self.settings().and_then(|settings| settings.description.clone());
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
    let is_modern_http = served.terms.is_http && served.protocol.is_modern();
    let headers = if is_modern_http { ServedTool::headers_of(&served.locked.input_schema) } else { Ok(Vec::new()) };
    let headers = headers.map_err(UnfitTool::Schema)?;
    let McpTool { description, approval, max_calls, timeout_ms, polling, remember, .. } = served.declaration.clone();
    let declaration = ActionTool {
        name: served.name.clone(),
        description,
        max_calls,
        timeout_ms: call_limits::least(timeout_ms, served.terms.timeout_ms),
        polling,
        remember,
        ..ActionTool::default()
    };
    let mut policy = ApprovalPolicy::default();
    for required in served.approvals() {
        approval::require(&mut policy, &required, approval.as_ref()).map_err(UnfitTool::Approval)?;
    }
    let tool = super::registered(&served.signature(Value::Null), &declaration, properties, schema);
    let origin = ServedTool {
        server: served.declaration.server.clone(),
        name: served.own_name.to_owned(),
        protocol: served.protocol,
        locked: served.locked.clone(),
        trusts_annotations: served.terms.trust_annotations,
        may_ask: policy.may_ask(),
        headers,
        output: served.locked.output_schema.as_ref().filter(|_| served.is_step).map(output),
    };
    let kind = ToolKind::Embedded(ToolOrigin::Server(Arc::new(origin)));
    let on_uncertain = served.settings().and_then(|settings| settings.on_uncertain);
    Ok((Tool { kind, approval: policy, on_uncertain, ..tool }, notes))
}

/// What is held of the schema of a server's results. Where it is none, each structure is taken.
fn output(written: &Value) -> Schema {
    Schema::examine(&Arc::new(ServedTool::plain_schema(written))).rest.unwrap_or_else(Schema::any)
}

/// What is held of a server's schema. It is nobody's here, so nothing in it is an error: what can't be met is left out, and
/// the server judges it.
fn schema(written: &Value) -> Result<(Schema, Vec<String>), String> {
    let examined = Schema::examine(&Arc::new(ServedTool::plain_schema(written)));
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
