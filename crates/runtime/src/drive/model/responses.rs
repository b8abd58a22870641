//! OpenAI's Responses API, without anything stored at the server (developers.openai.com/api/docs/guides/reasoning and
//! api-reference/responses, read in November 2026): each request has the whole conversation, with the encrypted
//! reasoning items as they came, and with the phases of the model's messages (guides/text, on `phase`): what it says
//! as commentary is sent back as such.

mod answer;
mod arrived_texts;
pub(super) mod items;
mod merged;

use bytes::BytesMut;
use serde_json::{Map, Value};
use url::Url;

use super::Ask;
use super::constraint::TurnMeans;
use super::failure::Peer;
use super::protocol::{NewMessages, Protocol, openai_turn_means};
use super::reasoning::{BEFORE_TEXT, BEHIND_TEXT, SealedPart, behind_call, returned};
use super::refused_fields::RequestField;
use super::reply::{AttemptReply, StreamedReply, UnreadableReply};
use super::settings::put;
use super::wire::{RequestForm, file_address, json, more_text, open_text, stays_open, tools};
use loopctl_engine::conversation::{Message, Native, Role};
use loopctl_engine::event::InputFile;
use loopctl_lang::language::project::Model;

/// The protocol.
pub(super) struct Responses;

impl Protocol for Responses {
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

    fn tail(&self, buffer: &mut BytesMut, _form: &RequestForm, last: Option<Role>, _ask: &Ask<'_>) {
        buffer.extend_from_slice(if last.is_some_and(stays_open) { b"\"}]}" } else { b"]}" });
    }

    fn settings(&self, model: &Model) -> Map<String, Value> {
        let mut fields = Map::new();
        let effort = model.reasoning_effort.map(|effort| serde_json::json!({ "effort": effort }));
        put(&mut fields, "reasoning", effort);
        put(&mut fields, "top_p", model.top_p);
        fields
    }

    fn turn_means(&self, _id: &str, url: &Url) -> TurnMeans {
        openai_turn_means(url)
    }

    fn read(&self, peer: &Peer, body: &[u8]) -> Result<AttemptReply, UnreadableReply> {
        answer::read(peer, body)
    }

    fn piece(&self, peer: &Peer, reply: &mut StreamedReply, data: &[u8]) -> Result<bool, UnreadableReply> {
        answer::piece(peer, reply, data)
    }
}

/// Writes a request up to its items. Returns how many messages it took: none, the system prompt is an item.
fn head(buffer: &mut BytesMut, form: &RequestForm, ask: &Ask<'_>) -> usize {
    let takes = |field| !form.refused.contains(field);
    buffer.extend_from_slice(b"{\"model\":");
    json(buffer, &form.id);
    buffer.extend_from_slice(b",\"store\":false");
    if takes(RequestField::Include) {
        buffer.extend_from_slice(b",\"include\":[\"reasoning.encrypted_content\"]");
    }
    if let Some(temperature) = form.temperature(ask) {
        buffer.extend_from_slice(b",\"temperature\":");
        json(buffer, &temperature);
    }
    buffer.extend_from_slice(b",\"max_output_tokens\":");
    json(buffer, &ask.max_tokens);
    form.settings.write(buffer, &form.refused);
    buffer.extend_from_slice(form.settings.extra.as_bytes());
    if form.streams(ask) {
        buffer.extend_from_slice(b",\"stream\":true");
    }
    form.constraint.write_openai(buffer, ask, b",\"text\":{\"format\":{\"type\":\"json_schema\",", b"}}");
    // Strict schemas are another language than the ones of tools: the engine validates the input.
    if tools(buffer, form, ask, [b"{\"type\":\"function\",\"name\":", b",\"parameters\":", b",\"strict\":false}"]) {
        let one = ask.program.is_some_and(|program| program.properties.max_tool_calls_per_turn == 1);
        if one && takes(RequestField::ParallelToolCalls) {
            buffer.extend_from_slice(b",\"parallel_tool_calls\":false");
        }
        buffer.extend_from_slice(if form.must_call(ask) { b",\"tool_choice\":\"required\"" } else { b"" });
    }
    buffer.extend_from_slice(b",\"input\":[");
    0
}

/// Writes the items of a message behind what `last` said.
fn write_message(buffer: &mut BytesMut, form: &RequestForm, last: Option<Role>, message: &Message) -> Option<Role> {
    if let Some(last) = last.filter(|last| *last == message.role && stays_open(*last) && message.native.is_none()) {
        if !message.text.is_empty() {
            more_text(buffer, &message.text);
        }
        return Some(last);
    }
    let mut items = Items { buffer, is_first: last.is_none(), is_open: last.is_some_and(stays_open), is_new: false };
    if let Some(Native::Answers { id, .. }) = message.native.as_deref() {
        let buffer = items.next();
        buffer.extend_from_slice(b"{\"type\":\"function_call_output\",\"call_id\":");
        json(buffer, id);
        buffer.extend_from_slice(b",\"output\":");
        json(buffer, &*message.text);
        buffer.extend_from_slice(b"}");
        return Some(message.role);
    }
    let sealed = returned(&form.origin, message);
    items.reasoning(&sealed, BEFORE_TEXT);
    if !message.text.is_empty() || !message.files().is_empty() {
        let buffer = items.next();
        buffer.extend_from_slice(match message.role {
            Role::System => b"{\"role\":\"system\",\"content\":".as_slice(),
            Role::Assistant => b"{\"role\":\"assistant\",\"content\":",
            Role::User | Role::Tool => b"{\"role\":\"user\",\"content\":",
        });
        match message.files() {
            [] if stays_open(message.role) => {
                open_text(buffer, &message.text);
                return Some(message.role);
            }
            [] => json(buffer, &*message.text),
            files => with_files(buffer, &message.text, files),
        }
        if let Some(phase) = sealed.iter().find(|part| is_phase(part)) {
            buffer.extend_from_slice(b",\"phase\":");
            buffer.extend_from_slice(phase.json.get().as_bytes());
        }
        buffer.extend_from_slice(b"}");
    }
    items.reasoning(&sealed, BEHIND_TEXT);
    for (place, call) in message.calls().iter().enumerate() {
        let buffer = items.next();
        buffer.extend_from_slice(b"{\"type\":\"function_call\",\"call_id\":");
        json(buffer, &call.id);
        buffer.extend_from_slice(b",\"name\":");
        json(buffer, &call.name);
        buffer.extend_from_slice(b",\"arguments\":");
        json(buffer, &call.arguments);
        buffer.extend_from_slice(b"}");
        items.reasoning(&sealed, behind_call(place));
    }
    // A message with files is no text that another one could be added to.
    let role = if stays_open(message.role) { Role::Tool } else { message.role };
    if items.is_new { Some(role) } else { last }
}

/// Whether a part is the phase of the reply's text, and no item.
fn is_phase(part: &SealedPart) -> bool {
    part.json.get().starts_with('"')
}

/// The items of a request, each behind a comma but for the first.
struct Items<'a> {
    buffer: &'a mut BytesMut,
    is_first: bool,
    /// Whether the last message is open.
    is_open: bool,
    /// Whether an item was written.
    is_new: bool,
}

impl Items<'_> {
    fn next(&mut self) -> &mut BytesMut {
        self.is_new = true;
        if std::mem::replace(&mut self.is_open, false) {
            self.buffer.extend_from_slice(b"\"}");
        }
        if !std::mem::replace(&mut self.is_first, false) {
            self.buffer.extend_from_slice(b",");
        }
        self.buffer
    }

    /// Writes the reasoning items of this place in the reply, as they came.
    fn reasoning(&mut self, sealed: &[SealedPart], place: usize) {
        for part in sealed.iter().filter(|part| part.at == place && !is_phase(part)) {
            let item = part.json.get();
            self.next().extend_from_slice(item.as_bytes());
        }
    }
}

/// Writes a text with files as a list of parts.
fn with_files(buffer: &mut BytesMut, text: &str, files: &[InputFile]) {
    buffer.extend_from_slice(b"[{\"type\":\"input_text\",\"text\":");
    json(buffer, text);
    for file in files {
        if file.media_type.is_image() {
            buffer.extend_from_slice(b"},{\"type\":\"input_image\",\"image_url\":");
        } else if file.blob().is_some() {
            buffer.extend_from_slice(b"},{\"type\":\"input_file\",\"filename\":");
            json(buffer, &file.file_name());
            buffer.extend_from_slice(b",\"file_data\":");
        } else {
            buffer.extend_from_slice(b"},{\"type\":\"input_file\",\"file_url\":");
        }
        file_address(buffer, file);
    }
    buffer.extend_from_slice(b"}]");
}
