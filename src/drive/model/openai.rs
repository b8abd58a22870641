//! OpenAI's chat completions, which many servers speak.

mod answer;
mod reasoning;

use bytes::BytesMut;
use reqwest::Url;
use serde_json::{Map, Value};

use super::Ask;
use super::constraint::TurnMeans;
use super::failure::Peer;
use super::protocol::{NewMessages, Protocol, openai_turn_means};
use super::reasoning::{SealedPart, returned};
use super::refused::RequestField;
use super::reply::{AttemptReply, StreamedReply, UnreadableReply};
use super::settings::put;
use super::wire::{RequestForm, file_address, json, stops, tools};
use crate::engine::conversation::{Message, Native, Role};
use crate::engine::event::InputFile;
use crate::language::project::Model;
use reasoning::{write_extra, write_fields};

/// The protocol.
pub(super) struct Openai;

impl Protocol for Openai {
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
        messages.iter().fold(last, |last, message| Some(write_message(buffer, form, last, message)))
    }

    fn tail(&self, buffer: &mut BytesMut, _form: &RequestForm, _last: Option<Role>, _ask: &Ask<'_>) {
        buffer.extend_from_slice(b"]}");
    }

    fn settings(&self, model: &Model) -> Map<String, Value> {
        let mut fields = Map::new();
        put(&mut fields, "reasoning_effort", model.reasoning_effort);
        put(&mut fields, "seed", model.seed);
        put(&mut fields, "top_p", model.top_p);
        put(&mut fields, "top_k", model.top_k);
        put(&mut fields, "min_p", model.min_p);
        put(&mut fields, "frequency_penalty", model.frequency_penalty);
        put(&mut fields, "presence_penalty", model.presence_penalty);
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

    fn takes_pdf_by_address(&self) -> bool {
        false
    }
}

/// Writes a request up to its messages, which come last so that nothing behind them changes. Returns
/// how many messages it took.
fn head(buffer: &mut BytesMut, form: &RequestForm, ask: &Ask<'_>) -> usize {
    buffer.extend_from_slice(b"{\"model\":");
    json(buffer, &form.id);
    let takes = |field| !form.refused.contains(field);
    if takes(RequestField::Temperature) {
        buffer.extend_from_slice(b",\"temperature\":");
        json(buffer, &ask.temperature);
    }
    let most = if takes(RequestField::MaxTokens) { "max_tokens" } else { "max_completion_tokens" };
    buffer.extend_from_slice(b",\"");
    buffer.extend_from_slice(most.as_bytes());
    buffer.extend_from_slice(b"\":");
    json(buffer, &ask.max_tokens);
    let stop = stops(form, ask);
    if !stop.is_empty() && takes(RequestField::Stop) {
        buffer.extend_from_slice(b",\"stop\":");
        json(buffer, &stop);
    }
    buffer.extend_from_slice(form.settings.fields.as_bytes());
    buffer.extend_from_slice(form.settings.extra.as_bytes());
    if form.streams(ask) {
        buffer.extend_from_slice(b",\"stream\":true");
        if takes(RequestField::StreamOptions) {
            buffer.extend_from_slice(b",\"stream_options\":{\"include_usage\":true}");
        }
    }
    let begin = b",\"response_format\":{\"type\":\"json_schema\",\"json_schema\":{";
    form.constraint.write_openai(buffer, ask, begin, b"}}");
    if tools(buffer, ask, [b"{\"type\":\"function\",\"function\":{\"name\":", b",\"parameters\":", b"}}"]) {
        let one = ask.program.is_some_and(|program| program.properties.max_tool_calls_per_turn == 1);
        // Some models that reason refuse this field, too. More calls than one are not made either way.
        if one && takes(RequestField::ParallelToolCalls) {
            buffer.extend_from_slice(b",\"parallel_tool_calls\":false");
        }
        buffer.extend_from_slice(if form.must_call(ask) { b",\"tool_choice\":\"required\"" } else { b"" });
    }
    buffer.extend_from_slice(b",\"messages\":[");
    0
}

/// The reasoning that goes back with a message, unless the server does not take it.
fn sealed(form: &RequestForm, message: &Message) -> Vec<SealedPart> {
    if form.refused.contains(RequestField::Reasoning) { Vec::new() } else { returned(&form.origin, message) }
}

/// Writes a message behind the one that `last` said.
fn write_message(buffer: &mut BytesMut, form: &RequestForm, last: Option<Role>, message: &Message) -> Role {
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
        Some(native) => with_native(buffer, &message.text, native, &sealed(form, message)),
    }
    buffer.extend_from_slice(b"}");
    message.role
}

/// Writes the value of `"content":` and what follows it, for a message with native calls or reasoning, or for an
/// observation.
fn with_native(buffer: &mut BytesMut, text: &str, native: &Native, sealed: &[SealedPart]) {
    match native {
        Native::Files(files) => with_files(buffer, text, files),
        Native::Answers { id, .. } => {
            json(buffer, text);
            buffer.extend_from_slice(b",\"tool_call_id\":");
            json(buffer, id);
        }
        Native::Reply { calls, .. } => {
            if text.is_empty() {
                buffer.extend_from_slice(b"null");
            } else {
                json(buffer, text);
            }
            write_fields(buffer, sealed);
            if calls.is_empty() {
                return;
            }
            for (place, call) in calls.iter().enumerate() {
                buffer.extend_from_slice(if place == 0 { b",\"tool_calls\":[".as_slice() } else { b"," });
                buffer.extend_from_slice(b"{\"id\":");
                json(buffer, &call.id);
                buffer.extend_from_slice(b",\"type\":\"function\",\"function\":{\"name\":");
                json(buffer, &call.name);
                buffer.extend_from_slice(b",\"arguments\":");
                json(buffer, &call.arguments);
                buffer.extend_from_slice(b"}");
                write_extra(buffer, sealed, place);
                buffer.extend_from_slice(b"}");
            }
            buffer.extend_from_slice(b"]");
        }
    }
}

/// Writes a text with files as a list of parts.
fn with_files(buffer: &mut BytesMut, text: &str, files: &[InputFile]) {
    buffer.extend_from_slice(b"[{\"type\":\"text\",\"text\":");
    json(buffer, text);
    for file in files {
        match file.media_type.is_image() {
            true => {
                buffer.extend_from_slice(b"},{\"type\":\"image_url\",\"image_url\":{\"url\":");
                file_address(buffer, file);
                buffer.extend_from_slice(b"}");
            }
            false => {
                buffer.extend_from_slice(b"},{\"type\":\"file\",\"file\":{\"filename\":");
                json(buffer, &file.file_name());
                buffer.extend_from_slice(b",\"file_data\":");
                file_address(buffer, file);
                buffer.extend_from_slice(b"}");
            }
        }
    }
    buffer.extend_from_slice(b"}]");
}
