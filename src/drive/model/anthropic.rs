//! Anthropic's messages.

use std::borrow::Cow;

use bytes::BytesMut;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::Ask;
use super::failure::Peer;
use super::protocol::Protocol;
use super::reply::{AttemptReply, Deltas, StreamedReply, UnreadableReply};
use super::wire::{RequestForm, json, tools};
use crate::engine::conversation::{Message, Native, Role};
use crate::engine::event::{Finish, SaidCall, Tokens};

/// The version of the protocol.
const VERSION: &str = "2023-06-01";

/// What closes a request: the last text, its message, and the list of messages.
const TAIL: &[u8] = b"}]}]}";
/// The same, and the server keeps what it read: the next request begins with it.
const TAIL_CACHED: &[u8] = b",\"cache_control\":{\"type\":\"ephemeral\"}}]}]}";

/// The beginning of a history whose own is gone, up to the model's first word.
const FIRST: &[u8] = br#"{"role":"user","content":[{"type":"text","text":"Earlier messages are left out."}]},{"role":"assistant","content":["#;

/// The protocol.
pub(super) struct Anthropic;

impl Protocol for Anthropic {
    fn head(&self, buffer: &mut BytesMut, form: &RequestForm, ask: &Ask<'_>) -> usize {
        head(buffer, form, ask)
    }

    fn messages(&self, buffer: &mut BytesMut, last: Option<Role>, messages: &[Message]) -> Option<Role> {
        messages.iter().fold(last, |last, message| write_message(buffer, last, message))
    }

    fn tail(&self, last: Option<Role>, ask: &Ask<'_>) -> &'static [u8] {
        tail(last, ask)
    }

    fn read(&self, peer: &Peer, body: &[u8]) -> Result<AttemptReply, UnreadableReply> {
        read(peer, body)
    }

    fn piece(
        &self,
        peer: &Peer,
        reply: &mut StreamedReply,
        data: &[u8],
        deltas: Deltas<'_>,
    ) -> Result<bool, UnreadableReply> {
        piece(peer, reply, data, deltas)
    }

    fn headers(&self) -> &'static [(&'static str, &'static str)] {
        &[("anthropic-version", VERSION)]
    }

    fn key_header(&self, key: &str) -> (&'static str, String) {
        ("x-api-key", key.to_owned())
    }
}

/// Writes a request up to its messages. Returns how many messages it took: the system prompt is a
/// field of its own.
fn head(buffer: &mut BytesMut, form: &RequestForm, ask: &Ask<'_>) -> usize {
    buffer.extend_from_slice(b"{\"model\":");
    json(buffer, &form.id);
    buffer.extend_from_slice(b",\"max_tokens\":");
    json(buffer, &ask.max_tokens);
    if !form.fixed_temperature {
        buffer.extend_from_slice(b",\"temperature\":");
        // Temperatures end at 1 here.
        json(buffer, &ask.temperature.min(1.0));
    }
    if !ask.stop.is_empty() {
        buffer.extend_from_slice(b",\"stop_sequences\":");
        json(buffer, ask.stop);
    }
    if ask.deltas.is_some() {
        buffer.extend_from_slice(b",\"stream\":true");
    }
    let system: Vec<&str> = system_of(ask).map(|message| &*message.text).collect();
    if !system.is_empty() {
        buffer.extend_from_slice(b",\"system\":");
        json(buffer, &system.join("\n\n"));
    }
    tools(buffer, ask, [b"{\"name\":", b",\"input_schema\":", b"}"]);
    buffer.extend_from_slice(b",\"messages\":[");
    system.len()
}

fn system_of<'a>(ask: &Ask<'a>) -> impl Iterator<Item = &'a Message> {
    ask.conversation.messages.iter().take_while(|message| message.role == Role::System)
}

/// Writes a message behind the one that `last` said, and leaves its last block open: one of the same
/// role is added to it, as roles must take turns. The server refuses blank texts; they are left out.
fn write_message(buffer: &mut BytesMut, last: Option<Role>, message: &Message) -> Option<Role> {
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
    if !message.text.trim().is_empty() {
        block(buffer, last, role);
        buffer.extend_from_slice(b"{\"type\":\"text\",\"text\":");
        json(buffer, &*message.text);
        last = Some(role);
    }
    for call in message.calls() {
        block(buffer, last, role);
        buffer.extend_from_slice(b"{\"type\":\"tool_use\",\"id\":");
        json(buffer, plain_id(&call.id).as_ref());
        buffer.extend_from_slice(b",\"name\":");
        json(buffer, &call.name);
        // The engine keeps only what is strict JSON of an object.
        buffer.extend_from_slice(b",\"input\":");
        buffer.extend_from_slice(call.arguments.as_bytes());
        last = Some(role);
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

/// An id as the server takes it: letters, digits, `_` and `-`. One of another provider may have more.
fn plain_id(id: &str) -> Cow<'_, str> {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if id.chars().all(fits) {
        return Cow::Borrowed(id);
    }
    // Each other character by its number: ids that differ still do.
    id.chars().map(|c| if fits(c) { c.to_string() } else { format!("-{:x}-", u32::from(c)) }).collect()
}

/// What closes a request. The prompt cache is asked for in conversations that have a system prompt:
/// those go on, and a single question does not.
fn tail(last: Option<Role>, ask: &Ask<'_>) -> &'static [u8] {
    match last {
        None => b"]}",
        Some(_) if system_of(ask).next().is_some() => TAIL_CACHED,
        Some(_) => TAIL,
    }
}

/// An answer, or one event of a stream: only what is needed of it.
#[derive(Deserialize)]
struct AnthropicAnswer<'a> {
    #[serde(default, rename = "type")]
    kind: String,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
    #[serde(borrow, default)]
    content: Option<Vec<AnthropicBlock<'a>>>,
    #[serde(default)]
    stop_reason: Option<String>,
    #[serde(default)]
    index: Option<u64>,
    #[serde(borrow, default)]
    content_block: Option<AnthropicBlock<'a>>,
    #[serde(borrow, default)]
    delta: Option<AnthropicBlock<'a>>,
    #[serde(borrow, default)]
    message: Option<AnthropicMessageStart<'a>>,
    #[serde(borrow, default)]
    usage: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct AnthropicBlock<'a> {
    #[serde(default, rename = "type")]
    kind: Option<String>,
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    id: Option<String>,
    #[serde(default)]
    name: Option<String>,
    #[serde(borrow, default)]
    input: Option<&'a RawValue>,
    #[serde(default)]
    partial_json: Option<String>,
    #[serde(default)]
    stop_reason: Option<String>,
}

impl AnthropicBlock<'_> {
    /// The call of a `tool_use` block.
    fn call(self) -> SaidCall {
        let arguments = self.input.map_or_else(String::new, |input| input.get().to_owned());
        SaidCall { id: self.id.unwrap_or_default(), name: self.name.unwrap_or_default(), arguments }
    }
}

#[derive(Deserialize)]
struct AnthropicMessageStart<'a> {
    #[serde(borrow, default)]
    usage: Option<&'a RawValue>,
}

#[derive(Deserialize, Default)]
struct AnthropicUsage {
    #[serde(default)]
    input_tokens: Option<u64>,
    #[serde(default)]
    cache_creation_input_tokens: Option<u64>,
    #[serde(default)]
    cache_read_input_tokens: Option<u64>,
    #[serde(default)]
    output_tokens: Option<u64>,
}

impl AnthropicUsage {
    /// A usage that can't be read is none.
    fn read(usage: Option<&RawValue>) -> Self {
        usage.and_then(|usage| serde_json::from_str(usage.get()).ok()).unwrap_or_default()
    }

    /// All that the model read, from its cache too.
    fn input(&self) -> Option<u64> {
        let cached = [self.cache_creation_input_tokens, self.cache_read_input_tokens];
        cached.into_iter().fold(self.input_tokens, |sum, part| sum?.checked_add(part.unwrap_or(0)))
    }
}

/// Reads a whole answer.
fn read(peer: &Peer, body: &[u8]) -> Result<AttemptReply, UnreadableReply> {
    let answer: AnthropicAnswer<'_> = serde_json::from_slice(body)?;
    if let Some(error) = answer.error {
        return Err(UnreadableReply::Failed(peer.error_object(error.get().as_bytes())));
    }
    let usage = AnthropicUsage::read(answer.usage);
    let usage = usage.input().zip(usage.output_tokens).map(|(input, output)| Tokens { input, output });
    let (mut text, mut calls) = (String::new(), Vec::new());
    for block in answer.content.ok_or(UnreadableReply::Missing("content"))? {
        match block.kind.as_deref() {
            Some("text") => text.push_str(block.text.as_deref().unwrap_or_default()),
            Some("tool_use") => calls.push(block.call()),
            // Thinking blocks, and what a server may add.
            _ => {}
        }
    }
    Ok(AttemptReply { text, calls, finish: finish(answer.stop_reason.as_deref()), usage })
}

/// Takes one event of a stream. `true`: it was the last one.
fn piece(peer: &Peer, pieces: &mut StreamedReply, data: &[u8], deltas: Deltas<'_>) -> Result<bool, UnreadableReply> {
    let answer: AnthropicAnswer<'_> = serde_json::from_slice(data)?;
    if let Some(error) = answer.error {
        return Err(UnreadableReply::Failed(peer.error_object(error.get().as_bytes())));
    }
    let usage = AnthropicUsage::read(answer.usage.or(answer.message.and_then(|message| message.usage)));
    pieces.input = usage.input().or(pieces.input);
    pieces.output = usage.output_tokens.or(pieces.output);
    match answer.kind.as_str() {
        "content_block_start" => {
            if let Some(block) = answer.content_block.filter(|block| block.kind.as_deref() == Some("tool_use")) {
                let mut call = block.call();
                // An empty input is a place for the pieces that follow.
                if call.arguments.trim() == "{}" {
                    call.arguments.clear();
                }
                pieces.add_call(answer.index, call);
            }
            Ok(false)
        }
        "content_block_delta" => {
            match answer.delta {
                Some(AnthropicBlock { kind: Some(kind), text: Some(text), .. }) if kind == "text_delta" => {
                    pieces.add(&text, deltas);
                }
                Some(AnthropicBlock { kind: Some(kind), partial_json: Some(arguments), .. })
                    if kind == "input_json_delta" =>
                {
                    pieces.add_call(answer.index, SaidCall { arguments, ..SaidCall::default() });
                }
                _ => {}
            }
            Ok(false)
        }
        "message_delta" => {
            if let Some(reason) = answer.delta.and_then(|delta| delta.stop_reason) {
                pieces.finish = Some(finish(Some(&reason)));
            }
            Ok(false)
        }
        "message_stop" => {
            pieces.ended = true;
            Ok(true)
        }
        _ => Ok(false),
    }
}

fn finish(reason: Option<&str>) -> Finish {
    match reason {
        Some("max_tokens" | "model_context_window_exceeded") => Finish::Length,
        Some("refusal") => Finish::Filtered,
        _ => Finish::Stop,
    }
}
