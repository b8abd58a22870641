//! Anthropic's messages (platform.claude.com/docs, `build-with-claude/extended-thinking`, `adaptive-thinking`,
//! `prompt-caching` and `structured-outputs`, read in November 2026).

mod answer;

use std::borrow::Cow;

use bytes::BytesMut;
use serde_json::{Map, Value};
use url::Url;

use super::Ask;
use super::constraint::{TURN, TurnMeans};
use super::failure::Peer;
use super::protocol::{NewMessages, Protocol};
use super::reasoning::{BEFORE_TEXT, BEHIND_TEXT, SealedPart, behind_call, returned};
use super::refused_fields::RequestField;
use super::reply::{AttemptReply, StreamedReply, UnreadableReply};
use super::settings::put;
use super::wire::{RequestForm, json, stops, tools};
use loopctl_engine::conversation::{Message, Native, Role};
use loopctl_engine::digest::Sha256;
use loopctl_engine::event::{InputFile, InputFileContent};
use loopctl_lang::language::project::{Model, ReasoningEffort};
use loopctl_lang::policy::provider::takes_schemas;

/// The version of the protocol.
const VERSION: &str = "2023-06-01";

/// The least tokens that a model is given to think.
const LEAST_THINKING: u32 = 1_024;

/// What closes a request: the last text, its message, and the list of messages.
const TAIL: &[u8] = b"}]}]";
/// The same, and the server keeps what it read: the next request begins with it.
const TAIL_CACHED: &[u8] = b",\"cache_control\":{\"type\":\"ephemeral\"}}]}]";

/// The beginning of a history whose own is gone, up to the model's first word.
const FIRST: &[u8] = br#"{"role":"user","content":[{"type":"text","text":"Earlier messages are left out."}]},{"role":"assistant","content":["#;

/// The protocol.
pub(super) struct Anthropic;

impl Protocol for Anthropic {
    fn head(&self, buffer: &mut BytesMut, form: &RequestForm, ask: &Ask<'_>) -> usize {
        head(buffer, form, ask)
    }

    fn messages(
        &self,
        buffer: &mut BytesMut,
        form: &RequestForm,
        last: Option<Role>,
        messages: NewMessages<'_>,
    ) -> Option<Role> {
        messages.iter().fold(last, |last, message| write_message(buffer, form, last, message))
    }

    fn tail(&self, buffer: &mut BytesMut, form: &RequestForm, last: Option<Role>, ask: &Ask<'_>) {
        buffer.extend_from_slice(tail(last, ask));
        // A model that is made to call the tool of its turn can't think.
        let is_made_to_call = || form.constraint.turn(ask).is_some_and(|turn| turn.is_tool);
        if let Some(thinking) = thinking_of(form, ask)
            && may_think(form, ask)
            && !(thinks(form) && is_made_to_call())
        {
            buffer.extend_from_slice(b",\"thinking\":");
            buffer.extend_from_slice(thinking.as_bytes());
        }
        buffer.extend_from_slice(b"}");
    }

    fn settings(&self, model: &Model) -> Map<String, Value> {
        let mut fields = Map::new();
        put(&mut fields, "top_p", model.top_p);
        put(&mut fields, "top_k", model.top_k);
        fields
    }

    fn turn_means(&self, id: &str, _url: &Url) -> TurnMeans {
        if takes_schemas(id) { TurnMeans::Closed } else { TurnMeans::Tool }
    }

    fn read(&self, peer: &Peer, body: &[u8]) -> Result<AttemptReply, UnreadableReply> {
        answer::read(peer, body)
    }

    fn piece(&self, peer: &Peer, reply: &mut StreamedReply, data: &[u8]) -> Result<bool, UnreadableReply> {
        answer::piece(peer, reply, data)
    }

    fn headers(&self) -> &'static [(&'static str, &'static str)] {
        &[("anthropic-version", VERSION)]
    }
}

/// Writes a request up to its messages. Returns how many messages it took: the system prompt is a
/// field of its own.
fn head(buffer: &mut BytesMut, form: &RequestForm, ask: &Ask<'_>) -> usize {
    buffer.extend_from_slice(b"{\"model\":");
    json(buffer, &form.id);
    buffer.extend_from_slice(b",\"max_tokens\":");
    json(buffer, &ask.max_tokens);
    // A model that thinks takes no temperature, and no model takes one beside `top_p`.
    let is_alone = !form.sends(RequestField::TopP, ask, form.refused.snapshot());
    if let Some(temperature) = form.temperature(ask).filter(|_| is_alone && !thinks(form)) {
        buffer.extend_from_slice(b",\"temperature\":");
        // Temperatures end at 1 here.
        json(buffer, &temperature.min(1.0));
    }
    let stop = stops(form, ask);
    if !stop.is_empty() {
        buffer.extend_from_slice(b",\"stop_sequences\":");
        json(buffer, &stop);
    }
    form.settings.write(buffer, &form.refused);
    buffer.extend_from_slice(form.settings.extra.as_bytes());
    if form.streams(ask) {
        buffer.extend_from_slice(b",\"stream\":true");
    }
    let system: Vec<&str> = system_of(ask).map(|message| &*message.text).collect();
    if !system.is_empty() {
        buffer.extend_from_slice(b",\"system\":[{\"type\":\"text\",\"text\":");
        json(buffer, &system.join("\n\n"));
        // The tools and the prompt stay cached when the history behind them is trimmed.
        buffer.extend_from_slice(b",\"cache_control\":{\"type\":\"ephemeral\"}}]");
    }
    let turn = form.constraint.turn(ask);
    let format = turn.as_ref().filter(|turn| !turn.is_tool).map(|turn| turn.schema);
    output_config(buffer, form.settings.effort, format);
    if let Some(turn) = turn.filter(|turn| turn.is_tool) {
        // A forced tool is this protocol's way: its input is the turn.
        buffer.extend_from_slice(b",\"tools\":[{\"name\":");
        json(buffer, TURN);
        buffer.extend_from_slice(b",\"description\":\"Takes your turn.\",\"input_schema\":");
        buffer.extend_from_slice(turn.schema.as_bytes());
        buffer.extend_from_slice(b"}],\"tool_choice\":{\"type\":\"tool\",\"name\":");
        json(buffer, TURN);
        buffer.extend_from_slice(b"}");
    }
    let has_tools = tools(buffer, form, ask, [b"{\"name\":", b",\"input_schema\":", b"}"]);
    // Beside thinking, the server refuses a request that forces a call.
    if has_tools && form.must_call(ask) && !thinks(form) {
        buffer.extend_from_slice(b",\"tool_choice\":{\"type\":\"any\"}");
    }
    buffer.extend_from_slice(b",\"messages\":[");
    system.len()
}

/// Writes how much the model reasons, and the schema of its reply.
fn output_config(buffer: &mut BytesMut, effort: Option<ReasoningEffort>, schema: Option<&str>) {
    let mut open = b",\"output_config\":{".as_slice();
    if let Some(effort) = effort {
        buffer.extend_from_slice(open);
        buffer.extend_from_slice(b"\"effort\":");
        json(buffer, &effort);
        open = b",";
    }
    if let Some(schema) = schema {
        buffer.extend_from_slice(open);
        buffer.extend_from_slice(b"\"format\":{\"type\":\"json_schema\",\"schema\":");
        buffer.extend_from_slice(schema.as_bytes());
        buffer.extend_from_slice(b"}");
    }
    if effort.is_some() || schema.is_some() {
        buffer.extend_from_slice(b"}");
    }
}

fn system_of<'a>(ask: &Ask<'a>) -> impl Iterator<Item = &'a Message> {
    ask.conversation.messages.iter().take_while(|message| message.role == Role::System)
}

/// Writes a message behind the one that `last` said, and leaves its last block open: one of the same
/// role is added to it, as roles must take turns. The server refuses blank texts; they are left out.
fn write_message(buffer: &mut BytesMut, form: &RequestForm, last: Option<Role>, message: &Message) -> Option<Role> {
    // A system message in the middle is said by the engine, as observations are.
    let role = if message.role == Role::Assistant { Role::Assistant } else { Role::User };
    let mut last = last;
    if let Some(Native::Answers { id, failed }) = message.native.as_deref() {
        block(buffer, last, role);
        buffer.extend_from_slice(b"{\"type\":\"tool_result\",\"tool_use_id\":");
        json(buffer, plain_id(id).as_ref());
        if *failed {
            buffer.extend_from_slice(b",\"is_error\":true");
        }
        buffer.extend_from_slice(b",\"content\":");
        json(buffer, &*message.text);
        return Some(role);
    }
    let sealed = returned(&form.origin, message);
    last = thinking(buffer, last, &sealed, BEFORE_TEXT);
    if !message.text.trim().is_empty() {
        block(buffer, last, role);
        buffer.extend_from_slice(b"{\"type\":\"text\",\"text\":");
        json(buffer, &*message.text);
        last = Some(role);
    }
    for file in message.files() {
        block(buffer, last, role);
        write_file(buffer, file);
        last = Some(role);
    }
    last = thinking(buffer, last, &sealed, BEHIND_TEXT);
    for (place, call) in message.calls().iter().enumerate() {
        block(buffer, last, role);
        buffer.extend_from_slice(b"{\"type\":\"tool_use\",\"id\":");
        json(buffer, plain_id(&call.id).as_ref());
        buffer.extend_from_slice(b",\"name\":");
        json(buffer, &call.name);
        // The engine keeps only what is strict JSON of an object.
        buffer.extend_from_slice(b",\"input\":");
        buffer.extend_from_slice(call.arguments.as_bytes());
        last = thinking(buffer, Some(role), &sealed, behind_call(place));
    }
    last
}

/// Writes the block of a file, and leaves it open.
fn write_file(buffer: &mut BytesMut, file: &InputFile) {
    let kind: &[u8] = if file.media_type.is_image() { b"image" } else { b"document" };
    buffer.extend_from_slice(b"{\"type\":\"");
    buffer.extend_from_slice(kind);
    buffer.extend_from_slice(b"\",\"source\":{\"type\":");
    match &file.content {
        InputFileContent::Url(url) => {
            buffer.extend_from_slice(b"\"url\",\"url\":");
            json(buffer, url);
        }
        InputFileContent::Data { base64, .. } => {
            buffer.extend_from_slice(b"\"base64\",\"media_type\":");
            json(buffer, file.media_type.name());
            buffer.extend_from_slice(b",\"data\":\"");
            // Base64 has no character that JSON escapes.
            buffer.extend_from_slice(base64.as_bytes());
            buffer.extend_from_slice(b"\"");
        }
    }
    buffer.extend_from_slice(b"}");
}

/// Writes the thinking blocks of this place in the reply, as they came.
fn thinking(buffer: &mut BytesMut, last: Option<Role>, sealed: &[SealedPart], place: usize) -> Option<Role> {
    let mut last = last;
    for part in sealed.iter().filter(|part| part.at == place) {
        let Some(open) = part.json.get().trim_end().strip_suffix('}') else { continue };
        block(buffer, last, Role::Assistant);
        buffer.extend_from_slice(open.as_bytes());
        last = Some(Role::Assistant);
    }
    last
}

/// Writes what precedes a block of `role`.
fn block(buffer: &mut BytesMut, last: Option<Role>, role: Role) {
    if last == Some(role) {
        buffer.extend_from_slice(b"},");
        return;
    }
    buffer.extend_from_slice(match (last, role) {
        (Some(_), Role::Assistant) => b"}]},{\"role\":\"assistant\",\"content\":[".as_slice(),
        (Some(_), _) => b"}]},{\"role\":\"user\",\"content\":[",
        // The server wants the first word to be ours; of a trimmed history it may be the model's.
        (None, Role::Assistant) => FIRST,
        (None, _) => b"{\"role\":\"user\",\"content\":[",
    });
}

/// An id as the server takes it: letters, digits, `_` and `-`. One of another provider may have more: then its digest is
/// sent, so that ids that differ still do.
fn plain_id(id: &str) -> Cow<'_, str> {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if id.chars().all(fits) {
        return Cow::Borrowed(id);
    }
    let digest: String = Sha256::of(id).to_string().chars().take(24).collect();
    Cow::Owned(format!("call_{digest}"))
}

/// Whether the model is set to think.
fn thinks(form: &RequestForm) -> bool {
    form.settings.thinking.as_deref().is_some_and(|thinking| !thinking.contains("disabled"))
}

/// How the model thinks in this request, as JSON. What it may think is less than its whole reply, and at least
/// [`LEAST_THINKING`]: the server refuses other sizes.
fn thinking_of<'a>(form: &'a RequestForm, ask: &Ask<'_>) -> Option<Cow<'a, str>> {
    let written = form.settings.thinking.as_deref()?;
    if form.settings.thinking_budget.is_none_or(|budget| budget < ask.max_tokens) {
        return Some(Cow::Borrowed(written));
    }
    let budget = (ask.max_tokens / 2).max(LEAST_THINKING);
    (budget < ask.max_tokens).then(|| format!("{{\"type\":\"enabled\",\"budget_tokens\":{budget}}}").into())
}

/// Whether the model may think in this request. Within a turn of calls, the server refuses it when the model's last
/// message has no thinking block: another model made it, or it was made before thinking was turned on. Where the model
/// decides how much it thinks, it may (`adaptive-thinking`, on validation), and so it may where such calls are not sent
/// as calls.
fn may_think(form: &RequestForm, ask: &Ask<'_>) -> bool {
    if form.settings.is_adaptive || form.refused.contains(RequestField::MissingReasoningOfCalls) {
        return true;
    }
    let mut messages = ask.conversation.messages.iter().rev();
    let last = messages.find(|message| message.role == Role::Assistant);
    last.is_none_or(|message| message.calls().is_empty() || !returned(&form.origin, message).is_empty())
}

/// What closes the messages of a request. The prompt cache is asked for in conversations that have a system prompt:
/// those continue, and a single question does not.
fn tail(last: Option<Role>, ask: &Ask<'_>) -> &'static [u8] {
    match last {
        None => b"]",
        Some(_) if system_of(ask).next().is_some() => TAIL_CACHED,
        Some(_) => TAIL,
    }
}
