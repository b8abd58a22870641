//! The call of a step of type `notify`: a request to the address of its target.

use serde::Deserialize as _;
use serde_json::{Map, Value, json};

use super::layout;
use crate::language::Project;
use crate::language::action::HttpAction;
use crate::language::notify::{NOTIFY, NotifyKind, NotifyTarget};
use crate::language::retry::CallRetry;
use crate::program::approval::ApprovalPolicy;
use crate::program::schema::Schema;
use crate::program::template::{Template, ValueEscape};
use crate::program::{Body, HttpTool, Tool, ToolKind};

/// The target that a step names.
pub(super) fn target(project: &Project, properties: &Map<String, Value>) -> Option<NotifyTarget> {
    let to = properties.get("to")?.as_str()?;
    Some(project.notify.get(to).cloned().unwrap_or_else(|| absent(to)))
}

/// The target of a project that has none of this name, which `check` reports. A run of another folder can be read, and is
/// not continued: no project has the secret.
fn absent(to: &str) -> NotifyTarget {
    let key: String = to.chars().map(|sign| if sign.is_ascii_alphanumeric() { sign } else { '_' }).collect();
    NotifyTarget { kind: NotifyKind::Webhook, url: format!("orgconfig:notify_{key}") }
}

/// The tool that posts a question to a target. No script answers for it.
pub fn question_tool(to: &str, target: &NotifyTarget) -> Option<Tool> {
    tool(target, None, None).map(|tool| Tool { name: format!("the question to {to}"), ..tool })
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
