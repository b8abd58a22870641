//! One iteration of a run: what its model was sent, what the run knew then, and what came of the reply.

use std::fmt::Write as _;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::escape;
use super::layout::{Look, Tone, wrap};
use super::redact::Redaction;
use super::result::RunResult;
use super::text::{Pieces, iterations};
use super::units::{dollars, duration, plural, rfc3339};
use crate::conversation::{Message, Native, Role};
use crate::record::TraceEntry;
use crate::state::LoopState;
use loopctl_lang::policy::json_text;

/// One iteration of a run.
#[derive(Debug, Serialize, JsonSchema)]
pub struct IterationView<'a> {
    /// The run.
    pub run_id: &'a str,
    /// The iteration, from 1.
    pub iteration: u32,
    /// When the model was asked, RFC 3339.
    pub timestamp: String,
    /// The active time of the run until then, in milliseconds.
    pub active_ms: u64,
    /// Tokens that were used until then, read and written.
    pub tokens: u64,
    /// What these cost in US dollars, when all prices are known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// What the model was sent, the system prompt first.
    pub messages: Vec<MessageView>,
    /// The names of the tools that were offered, of a loop that does not offer all.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub offered: Vec<String>,
    /// The memory of the run.
    pub memory: Value,
    /// What came of the reply: an entry a call, as in the trace.
    pub trace: Vec<&'a TraceEntry>,
}

/// A message that a model was sent.
#[derive(Debug, Serialize, JsonSchema)]
pub struct MessageView {
    /// `system`, `user`, `assistant` or `tool`.
    pub role: &'static str,
    /// Its text.
    pub text: String,
    /// The native calls of a reply.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<MessageCall>,
    /// The files that go with it, a line each.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
    /// The native call whose observation it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call_id: Option<String>,
}

/// A native call of a reply.
#[derive(Debug, Serialize, JsonSchema)]
pub struct MessageCall {
    /// The provider's id of the call.
    pub id: String,
    /// The tool's name, as the provider knows it.
    pub name: String,
    /// The input: JSON text, as far as the model kept to it.
    pub arguments: String,
}

impl<'a> IterationView<'a> {
    /// The iteration of a run. `asked` is the run when its model was asked, `offered` names the tools then, where not all
    /// were offered, and `result` contains the trace.
    pub fn new(
        iteration: u32,
        asked: &LoopState,
        offered: Vec<String>,
        result: &'a RunResult,
        redact: &Redaction,
    ) -> Self {
        let entries = result.trace.as_deref().unwrap_or_default();
        let memory = Value::Object(asked.memory.clone().into_iter().collect());
        Self {
            run_id: &result.run_id,
            iteration,
            timestamp: rfc3339(asked.now.wall_ms),
            active_ms: asked.now.active_ms,
            tokens: asked.counters.tokens.input.saturating_add(asked.counters.tokens.output),
            cost_usd: asked.cost_usd(),
            messages: asked.conversation.messages.iter().map(|message| MessageView::new(message, redact)).collect(),
            offered,
            memory: redact.value(&memory),
            trace: entries.iter().filter(|entry| entry.iteration == iteration).collect(),
        }
    }
}

impl MessageView {
    /// The message with its secrets hidden.
    pub fn new(message: &Message, redact: &Redaction) -> Self {
        let (mut calls, mut call_id) = (Vec::new(), None);
        match message.native.as_deref() {
            Some(Native::Reply { calls: said, .. }) => calls.extend(said.iter().map(|call| MessageCall {
                id: call.id.clone(),
                name: call.name.clone(),
                arguments: redact.text(&call.arguments).into_owned(),
            })),
            Some(Native::Answers { id, .. }) => call_id = Some(id.clone()),
            Some(Native::Files(_)) | None => {}
        }
        let files = message.files().iter().map(|file| redact.text(&file.account()).into_owned()).collect();
        let role = match message.role {
            Role::System => "system",
            Role::User => "user",
            Role::Assistant => "assistant",
            Role::Tool => "tool",
        };
        Self { role, text: hidden_in(&message.text, redact), calls, files, call_id }
    }
}

/// A message with its secrets hidden: those of a well-known shape, and those in the fields of the JSON in it, since an
/// observation stands between words of ours.
fn hidden_in(text: &str, redact: &Redaction) -> String {
    /// The maximum number of brackets that begin no JSON and are looked at: each costs as much as what follows it.
    const MAX_BRACKETS: usize = 64;
    let (mut shown, mut rest, mut from, mut wrong) = (String::new(), text, 0, 0);
    while let Some(at) = rest.get(from..).and_then(|tail| tail.find(['{', '['])).map(|at| from + at) {
        let mut values = json_text::unchecked_reader(rest.get(at..).unwrap_or_default()).into_iter::<Value>();
        if let Some(Ok(value)) = values.next() {
            let end = at + values.byte_offset();
            shown.push_str(&redact.text(rest.get(..at).unwrap_or_default()));
            let hidden = redact.value(&value);
            match hidden == value {
                true => shown.push_str(rest.get(at..end).unwrap_or_default()),
                false => shown.push_str(&hidden.to_string()),
            }
            (rest, from) = (rest.get(end..).unwrap_or_default(), 0);
        } else if wrong == MAX_BRACKETS {
            let more = rest.len().saturating_sub(at);
            shown.push_str(&redact.text(rest.get(..at).unwrap_or_default()));
            let _ = write!(shown, "[{more} more bytes are not shown: they can't be searched for secrets]");
            return shown;
        } else {
            wrong += 1;
            from = at + 1;
        }
    }
    shown.push_str(&redact.text(rest));
    shown
}

/// The iteration as text.
pub fn text(look: Look, view: &IterationView<'_>, result: &RunResult) -> String {
    let mut shown = String::new();
    let title = format!("Iteration {} of {}", view.iteration, escape::line(view.run_id));
    let mut facts =
        vec![view.timestamp.clone(), format!("after {}", duration(view.active_ms)), plural(view.tokens, "token")];
    facts.extend(view.cost_usd.map(dollars));
    let _ = writeln!(shown, "{}  {}", look.paint(Tone::Bold, &title), look.paint(Tone::Dim, &facts.join(" · ")));
    let mut part = |title: &str, text: &str| {
        let _ = writeln!(shown, "\n{}", look.paint(Tone::Accent, title));
        for line in escape::terminal(text.trim_end()).split('\n') {
            for line in wrap(line, look.width.saturating_sub(2)) {
                let _ = writeln!(shown, "  {line}");
            }
        }
    };
    for message in &view.messages {
        let of = message.call_id.as_ref().map_or_else(String::new, |id| format!(" (of the call {})", escape::line(id)));
        let mut text = message.text.clone();
        for call in &message.calls {
            let line = if text.is_empty() { "" } else { "\n" };
            let _ = write!(text, "{line}→ {} {}", call.name, call.arguments);
        }
        for file in &message.files {
            let line = if text.is_empty() { "" } else { "\n" };
            let _ = write!(text, "{line}{file}");
        }
        part(&format!("{}{of}", message.role), &text);
    }
    if !view.offered.is_empty() {
        part("tools that were offered", &view.offered.join(", "));
    }
    if view.memory.as_object().is_some_and(|memory| !memory.is_empty()) {
        part("memory", &serde_json::to_string_pretty(&view.memory).unwrap_or_default());
    }
    let trace: Vec<TraceEntry> = view.trace.iter().copied().cloned().collect();
    let came = iterations(&Pieces { look, shorten: false }, result, &trace);
    let _ = write!(shown, "\n{}\n{came}", look.paint(Tone::Accent, "what came of it"));
    if came.is_empty() {
        shown.push_str("  nothing yet\n");
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_hidden_in_json_that_stands_between_words() {
        let redact = Redaction::new(&["pin".to_owned()]);
        let shown = |text: &str| hidden_in(text, &redact);
        let text = "Observation:\n{\"pin\": \"1234-x\", \"ok\": [1]}\n\nNext [step]? {\"pin\": \"5678-y\"}";
        let want = "Observation:\n{\"pin\":\"[hidden]\",\"ok\":[1]}\n\nNext [step]? {\"pin\":\"[hidden]\"}";
        assert_eq!(shown(text), want);
        assert_eq!(shown("a { b } [c] {\"d\":  1}"), "a { b } [c] {\"d\":  1}", "what hides nothing stays as it is");
        assert_eq!(shown("tail {\"pin\": \"12"), "tail {\"pin\": \"[hidden]", "what is cut is hidden too");
        let many = format!("{}{{\"pin\": \"1234-x\"}}", "[ ".repeat(100));
        assert!(!shown(&many).contains("1234-x"), "{}", shown(&many));
    }
}
