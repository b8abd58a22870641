//! The call of a step of type `notify`: a request to the address of its target.

use serde::Deserialize as _;
use serde_json::{Map, Value, json};

use super::layout;
use crate::language::Project;
use crate::language::action::HttpAction;
use crate::language::notify::{NOTIFY, NotifyTarget};
use crate::language::retry::CallRetry;
use crate::program::approval::ApprovalPolicy;
use crate::program::schema::Schema;
use crate::program::template::{Template, ValueEscape};
use crate::program::{Body, HttpTool, Tool, ToolKind};

/// The target that a step names; none when the project has no such target, which `check` reports.
pub(super) fn target<'p>(project: &'p Project, properties: &Map<String, Value>) -> Option<&'p NotifyTarget> {
    project.notify.get(properties.get("to")?.as_str()?)
}

/// The tool that sends a text to a target. Its call carries a key, and is made again like that of an idempotent action.
pub(super) fn tool(target: &NotifyTarget, timeout_ms: Option<u64>, retry: Option<&CallRetry>) -> Option<Tool> {
    let action = json!({ "action_name": NOTIFY, "http_method": "POST", "url": target.url });
    let parameters = json!({
        "type": "object",
        "properties": { "to": { "type": "string" }, "text": { "type": "string", "minLength": 1 } },
        "required": ["to", "text"],
        "additionalProperties": false,
    });
    let http = HttpTool {
        action: HttpAction::deserialize(action).ok()?,
        url: Template::compile(&target.url, ValueEscape::Plain).ok()?,
        headers: Vec::new(),
        query: Vec::new(),
        body: Some(Body::Notice(target.kind)),
        used: Vec::new(),
        bare: None,
    };
    Some(Tool {
        name: NOTIFY.to_owned(),
        description: "Sends a text.".to_owned(),
        parameters: Schema::compile(parameters).ok()?,
        kind: ToolKind::Http(http),
        approval: ApprovalPolicy::default(),
        max_calls: None,
        timeout_ms: timeout_ms.unwrap_or(layout::defaults()?.tool_timeout_ms),
        polling: false,
        remember: std::collections::BTreeMap::new(),
        idempotent: true,
        read_only: false,
        on_uncertain: None,
        retry: Some(retry.cloned().unwrap_or_default()),
    })
}
