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
use crate::program::{Body, HttpTool, MailTool, Tool, ToolKind};

/// The target that a step names.
pub(super) fn target(project: &Project, properties: &Map<String, Value>) -> Option<NotifyTarget> {
    let to = properties.get("to")?.as_str()?;
    Some(project.notify.get(to).cloned().unwrap_or_else(|| absent(to)))
}

/// The target of a project that has none of this name, which `check` reports. A run of another folder can be read, and is
/// not continued: no project has the secret.
fn absent(to: &str) -> NotifyTarget {
    let key: String = to.chars().map(|sign| if sign.is_ascii_alphanumeric() { sign } else { '_' }).collect();
    NotifyTarget {
        kind: NotifyKind::Webhook,
        url: Some(format!("orgconfig:notify_{key}")),
        smtp: None,
        from: None,
        to: None,
        username: None,
        password: None,
    }
}

/// The tool that posts a question to a target. No script answers for it.
pub fn question_tool(to: &str, target: &NotifyTarget) -> Option<Tool> {
    tool(target, None, None).map(|tool| Tool { name: format!("the question to {to}"), ..tool })
}

/// The tool that sends a text to a target. Its call carries a key, and is made again like that of an idempotent action.
pub(super) fn tool(target: &NotifyTarget, timeout_ms: Option<u64>, retry: Option<&CallRetry>) -> Option<Tool> {
    let parameters = json!({
        "type": "object",
        "properties": { "to": { "type": "string" }, "text": { "type": "string", "minLength": 1 } },
        "required": ["to", "text"],
        "additionalProperties": false,
    });
    Some(Tool {
        name: NOTIFY.to_owned(),
        description: "Sends a text.".to_owned(),
        parameters: Schema::compile(parameters).ok()?,
        kind: match target.kind {
            NotifyKind::Email => ToolKind::Mail(Box::new(mail(target)?)),
            _ => ToolKind::Http(post(target)?),
        },
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

/// The request to the address of a target.
fn post(target: &NotifyTarget) -> Option<HttpTool> {
    let url = target.url.as_deref()?;
    let action = json!({ "action_name": NOTIFY, "http_method": "POST", "url": url });
    Some(HttpTool {
        action: HttpAction::deserialize(action).ok()?,
        url: Template::compile(url, ValueEscape::Plain).ok()?,
        headers: Vec::new(),
        query: Vec::new(),
        body: Some(Body::Notice(target.kind)),
        used: Vec::new(),
        bare: None,
    })
}

/// The mail to the addresses of a target.
fn mail(target: &NotifyTarget) -> Option<MailTool> {
    let template = |text: &Option<String>| match text {
        Some(text) => Template::compile(text, ValueEscape::Plain).ok().map(Some),
        None => Some(None),
    };
    Some(MailTool {
        smtp: target.smtp.clone()?,
        from: target.from.clone()?,
        to: target.to.clone()?,
        username: template(&target.username)?,
        password: template(&target.password)?,
    })
}
