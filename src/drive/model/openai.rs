//! OpenAI's chat completions, which many servers speak.

use bytes::BytesMut;
use serde::Deserialize;
use serde::de::{Deserializer, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::Ask;
use super::failure::Peer;
use super::reply::{Deltas, Pieces, Said, Unread};
use super::wire::{Form, json, tools};
use crate::engine::conversation::{Message, Native, Role};
use crate::engine::event::{Finish, SaidCall, Tokens};

/// What closes a request.
pub(super) const TAIL: &[u8] = b"]}";

/// Whether OpenAI's own model of this id takes no temperature, and counts tokens by another name.
pub(super) fn reasons(id: &str) -> bool {
    ["o1", "o3", "o4", "gpt-5"].iter().any(|family| id.starts_with(family))
}

/// Writes a request up to its messages, which come last so that nothing behind them changes. Returns
/// how many messages it took.
pub(super) fn head(buffer: &mut BytesMut, form: &Form, ask: &Ask<'_>) -> usize {
    buffer.extend_from_slice(b"{\"model\":");
    json(buffer, &form.id);
    if form.fixed_temperature {
        buffer.extend_from_slice(b",\"max_completion_tokens\":");
        json(buffer, &ask.max_tokens);
    } else {
        buffer.extend_from_slice(b",\"temperature\":");
        json(buffer, &ask.temperature);
        buffer.extend_from_slice(b",\"max_tokens\":");
        json(buffer, &ask.max_tokens);
        // The models of the other branch refuse this one too.
        if !ask.stop.is_empty() {
            buffer.extend_from_slice(b",\"stop\":");
            json(buffer, ask.stop);
        }
    }
    if ask.deltas.is_some() {
        buffer.extend_from_slice(b",\"stream\":true,\"stream_options\":{\"include_usage\":true}");
    }
    if tools(buffer, ask, [b"{\"type\":\"function\",\"function\":{\"name\":", b",\"parameters\":", b"}}"]) {
        let one = ask.program.is_some_and(|program| program.properties.max_tool_calls_per_turn == 1);
        // Some models that reason refuse this field, too. More calls than one are not made either way.
        if one && !form.fixed_temperature {
            buffer.extend_from_slice(b",\"parallel_tool_calls\":false");
        }
    }
    buffer.extend_from_slice(b",\"messages\":[");
    0
}

/// Writes a message behind the one that `last` said.
pub(super) fn message(buffer: &mut BytesMut, last: Option<Role>, message: &Message) -> Option<Role> {
    if last.is_some() {
        buffer.extend_from_slice(b",");
    }
    buffer.extend_from_slice(match message.role {
        Role::System => b"{\"role\":\"system\",\"content\":".as_slice(),
        Role::User => b"{\"role\":\"user\",\"content\":",
        Role::Assistant => b"{\"role\":\"assistant\",\"content\":",
        Role::Tool => b"{\"role\":\"tool\",\"content\":",
    });
    match message.native.as_deref() {
        None => json(buffer, &*message.text),
        Some(native) => with_native(buffer, &message.text, native),
    }
    buffer.extend_from_slice(b"}");
    Some(message.role)
}

/// Writes what stands behind `"content":` of a message with native calls, or of an observation of one.
fn with_native(buffer: &mut BytesMut, text: &str, native: &Native) {
    match native {
        Native::Answers { id, .. } => {
            json(buffer, text);
            buffer.extend_from_slice(b",\"tool_call_id\":");
            json(buffer, id);
        }
        Native::Calls(calls) => {
            if text.is_empty() {
                buffer.extend_from_slice(b"null");
            } else {
                json(buffer, text);
            }
            for (place, call) in calls.iter().enumerate() {
                buffer.extend_from_slice(if place == 0 { b",\"tool_calls\":[".as_slice() } else { b"," });
                buffer.extend_from_slice(b"{\"id\":");
                json(buffer, &call.id);
                buffer.extend_from_slice(b",\"type\":\"function\",\"function\":{\"name\":");
                json(buffer, &call.name);
                buffer.extend_from_slice(b",\"arguments\":");
                json(buffer, &call.arguments);
                buffer.extend_from_slice(b"}}");
            }
            buffer.extend_from_slice(b"]");
        }
    }
}

/// An answer, or one event of a stream: only what is needed of it.
#[derive(Deserialize)]
struct Answer<'a> {
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
    #[serde(borrow, default)]
    choices: Option<Vec<Choice<'a>>>,
    #[serde(borrow, default)]
    usage: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Choice<'a> {
    #[serde(borrow, default)]
    message: Option<Content<'a>>,
    #[serde(borrow, default)]
    delta: Option<Content<'a>>,
    #[serde(default)]
    finish_reason: Option<String>,
}

#[derive(Deserialize, Default)]
struct Content<'a> {
    #[serde(default)]
    content: Text,
    #[serde(default)]
    refusal: Text,
    #[serde(borrow, default)]
    tool_calls: Option<Vec<Called<'a>>>,
}

/// A native call, or a piece of one.
#[derive(Deserialize)]
struct Called<'a> {
    #[serde(default)]
    index: Option<u64>,
    #[serde(default)]
    id: Option<String>,
    #[serde(borrow, default)]
    function: Option<Function<'a>>,
}

#[derive(Deserialize, Default)]
struct Function<'a> {
    #[serde(default)]
    name: Option<String>,
    #[serde(borrow, default)]
    arguments: Option<&'a RawValue>,
}

impl Called<'_> {
    fn said(self) -> SaidCall {
        let Function { name, arguments } = self.function.unwrap_or_default();
        let arguments = arguments.map_or("null", RawValue::get);
        // A string, as the protocol has it; some servers give the object itself.
        let arguments = match arguments {
            "null" => String::new(),
            text if text.starts_with('"') => serde_json::from_str(text).unwrap_or_default(),
            text => text.to_owned(),
        };
        SaidCall { id: self.id.unwrap_or_default(), name: name.unwrap_or_default(), arguments }
    }
}

#[derive(Deserialize)]
struct Usage {
    prompt_tokens: u64,
    completion_tokens: u64,
}

/// A text that servers write as a string, as null, or as a list of parts.
#[derive(Default)]
struct Text(String);

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TextVisitor).map(Self)
    }
}

struct TextVisitor;

impl<'de> Visitor<'de> for TextVisitor {
    type Value = String;

    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("a string, a list of text parts, or null")
    }

    fn visit_str<E>(self, text: &str) -> Result<String, E> {
        Ok(text.to_owned())
    }

    fn visit_string<E>(self, text: String) -> Result<String, E> {
        Ok(text)
    }

    fn visit_unit<E>(self) -> Result<String, E> {
        Ok(String::new())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut parts: A) -> Result<String, A::Error> {
        #[derive(Deserialize)]
        struct Part {
            #[serde(default)]
            text: Option<String>,
        }
        let mut whole = String::new();
        while let Some(part) = parts.next_element::<Part>()? {
            whole.push_str(part.text.as_deref().unwrap_or_default());
        }
        Ok(whole)
    }
}

/// Reads a whole answer.
pub(super) fn read(peer: &Peer, body: &[u8]) -> Result<Said, Unread> {
    let answer: Answer<'_> = serde_json::from_slice(body)?;
    if let Some(error) = answer.error {
        return Err(Unread::Failed(peer.error_object(error.get().as_bytes())));
    }
    let usage = tokens(answer.usage);
    let choice = answer.choices.unwrap_or_default().into_iter().next().ok_or(Unread::Missing("choices"))?;
    let content = choice.message.ok_or(Unread::Missing("message"))?;
    let finish = finish(choice.finish_reason.as_deref());
    if content.content.0.is_empty() && !content.refusal.0.is_empty() {
        return Ok(Said { text: content.refusal.0, finish: Finish::Filtered, usage, ..Said::default() });
    }
    let calls = content.tool_calls.unwrap_or_default().into_iter().map(Called::said).collect();
    Ok(Said { text: content.content.0, calls, finish, usage })
}

/// Takes one event of a stream. `true`: it was the last one.
pub(super) fn piece(peer: &Peer, pieces: &mut Pieces, data: &[u8], deltas: Deltas<'_>) -> Result<bool, Unread> {
    if data == b"[DONE]" {
        pieces.ended = true;
        return Ok(true);
    }
    let answer: Answer<'_> = serde_json::from_slice(data)?;
    if let Some(error) = answer.error {
        return Err(Unread::Failed(peer.error_object(error.get().as_bytes())));
    }
    if let Some(tokens) = tokens(answer.usage) {
        pieces.input = Some(tokens.input);
        pieces.output = Some(tokens.output);
    }
    // The event that tells the usage has no choice.
    let Some(choice) = answer.choices.unwrap_or_default().into_iter().next() else { return Ok(false) };
    let content = choice.delta.or(choice.message).unwrap_or_default();
    pieces.add(&content.content.0, deltas);
    if !content.refusal.0.is_empty() {
        pieces.add(&content.refusal.0, deltas);
        pieces.refused = true;
    }
    for call in content.tool_calls.unwrap_or_default() {
        pieces.add_call(call.index, call.said());
    }
    if let Some(reason) = &choice.finish_reason {
        pieces.finish = Some(finish(Some(reason)));
    }
    Ok(false)
}

fn finish(reason: Option<&str>) -> Finish {
    match reason {
        Some("length") => Finish::Length,
        Some("content_filter") => Finish::Filtered,
        _ => Finish::Stop,
    }
}

/// A usage that can't be read is none: the engine estimates then.
fn tokens(usage: Option<&RawValue>) -> Option<Tokens> {
    let usage: Usage = serde_json::from_str(usage?.get()).ok()?;
    Some(Tokens { input: usage.prompt_tokens, output: usage.completion_tokens })
}
