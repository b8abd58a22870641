//! OpenAI's chat completions, which many servers speak.

mod answer;
mod reasoning;

use bytes::BytesMut;
use serde_json::{Map, Value};
use url::Url;

use super::Ask;
use super::constraint::TurnMeans;
use super::failure::Peer;
use super::protocol::{NewMessages, Protocol, openai_turn_means};
use super::reasoning::{SealedPart, returned};
use super::refused_fields::RequestField;
use super::reply::{AttemptReply, StreamedReply, UnreadableReply};
use super::settings::put;
use super::wire::{RequestForm, call_id, file_address, json, more_text, open_text, stays_open, stops, tools};
use loopctl_engine::conversation::{Message, Native, Role};
use loopctl_engine::event::InputFile;
use loopctl_lang::language::project::Model;
use reasoning::{write_extra, write_fields, write_reasoning};

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

    fn tail(&self, buffer: &mut BytesMut, _form: &RequestForm, last: Option<Role>, _ask: &Ask<'_>) {
        buffer.extend_from_slice(if last.is_some_and(stays_open) { b"\"}]}" } else { b"]}" });
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

    fn has_words_for(&self, missing: RequestField) -> bool {
        matches!(missing, RequestField::MissingSignature | RequestField::MissingReasoning)
    }
}

/// Writes a request up to its messages, which come last so that nothing behind them changes. Returns
/// how many messages it took.
fn head(buffer: &mut BytesMut, form: &RequestForm, ask: &Ask<'_>) -> usize {
    buffer.extend_from_slice(b"{\"model\":");
    json(buffer, &form.id);
    let takes = |field| !form.refused.contains(field);
    if let Some(temperature) = form.temperature(ask) {
        buffer.extend_from_slice(b",\"temperature\":");
        json(buffer, &temperature);
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
    form.settings.write(buffer, &form.refused);
    buffer.extend_from_slice(form.settings.extra.as_bytes());
    if form.streams(ask) {
        buffer.extend_from_slice(b",\"stream\":true");
        if takes(RequestField::StreamOptions) {
            buffer.extend_from_slice(b",\"stream_options\":{\"include_usage\":true}");
        }
    }
    let begin = b",\"response_format\":{\"type\":\"json_schema\",\"json_schema\":{";
    form.constraint.write_openai(buffer, ask, begin, b"}}");
    if tools(buffer, form, ask, [b"{\"type\":\"function\",\"function\":{\"name\":", b",\"parameters\":", b"}}"]) {
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

/// Whether each turn of the model must have reasoning.
fn wants_reasoning(form: &RequestForm) -> bool {
    form.refused.contains(RequestField::MissingReasoning) && !form.refused.contains(RequestField::Reasoning)
}

/// What the model has said between the results of its calls and a message of ours, where a server wants the roles to
/// take turns there too.
const BETWEEN: &[u8] = br#",{"role":"assistant","content":"I have read the results."},"#;

/// Writes a message behind the one that `last` said.
fn write_message(buffer: &mut BytesMut, form: &RequestForm, last: Option<Role>, message: &Message) -> Role {
    match last {
        Some(last) if last == message.role && stays_open(last) && message.native.is_none() => {
            more_text(buffer, &message.text);
            return last;
        }
        Some(last) if stays_open(last) => buffer.extend_from_slice(b"\"},"),
        Some(Role::Tool) if message.role == Role::User && form.refused.contains(RequestField::UserBehindTool) => {
            buffer.extend_from_slice(BETWEEN);
        }
        Some(_) => buffer.extend_from_slice(b","),
        None => {}
    }
    buffer.extend_from_slice(match message.role {
        Role::System => b"{\"role\":\"system\",\"content\":".as_slice(),
        Role::User => b"{\"role\":\"user\",\"content\":",
        Role::Assistant => b"{\"role\":\"assistant\",\"content\":",
        Role::Tool => b"{\"role\":\"tool\",\"content\":",
    });
    if stays_open(message.role) && message.native.is_none() {
        open_text(buffer, &message.text);
        return message.role;
    }
    match message.native.as_deref() {
        None => {
            json(buffer, &*message.text);
            if message.role == Role::Assistant && wants_reasoning(form) {
                write_reasoning(buffer, &[]);
            }
        }
        Some(native) => with_native(buffer, form, message, native),
    }
    buffer.extend_from_slice(b"}");
    // A message with files is no text that another one could be added to.
    if stays_open(message.role) { Role::Tool } else { message.role }
}

/// Writes the value of `"content":` and what follows it, for a message with native calls or reasoning, or for an
/// observation.
fn with_native(buffer: &mut BytesMut, form: &RequestForm, message: &Message, native: &Native) {
    let text = &*message.text;
    match native {
        Native::Files(files) => with_files(buffer, text, files),
        Native::Answers { id, .. } => {
            json(buffer, text);
            buffer.extend_from_slice(b",\"tool_call_id\":");
            json(buffer, call_id(form, id).as_ref());
        }
        Native::Reply { calls, .. } => {
            if text.is_empty() {
                buffer.extend_from_slice(b"null");
            } else {
                json(buffer, text);
            }
            let sealed = &sealed(form, message);
            match wants_reasoning(form) {
                true => write_reasoning(buffer, sealed),
                false => write_fields(buffer, sealed),
            }
            if calls.is_empty() {
                return;
            }
            let signs = form.refused.contains(RequestField::MissingSignature);
            for (place, call) in calls.iter().enumerate() {
                buffer.extend_from_slice(if place == 0 { b",\"tool_calls\":[".as_slice() } else { b"," });
                buffer.extend_from_slice(b"{\"id\":");
                json(buffer, call_id(form, &call.id).as_ref());
                buffer.extend_from_slice(b",\"type\":\"function\",\"function\":{\"name\":");
                json(buffer, &call.name);
                buffer.extend_from_slice(b",\"arguments\":");
                json(buffer, &call.arguments);
                buffer.extend_from_slice(b"}");
                // Calls beside each other share the signature of the first one.
                write_extra(buffer, sealed, place, signs && place == 0);
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
