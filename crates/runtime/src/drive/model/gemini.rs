//! Google's Gemini API (ai.google.dev/api/generate-content, gemini-api/docs/function-calling and thought-signatures, read
//! in November 2026).

mod answer;

use bytes::BytesMut;
use serde_json::{Map, Value};
use url::Url;

use super::Ask;
use super::constraint::TurnMeans;
use super::failure::Peer;
use super::protocol::{NewMessages, Protocol};
use super::reasoning::{ANY_SIGNATURE, BEHIND_TEXT, SealedPart, behind_call, is_text, returned};
use super::refused_fields::RequestField;
use super::reply::{AttemptReply, StreamedReply, UnreadableReply};
use super::settings::put;
use super::wire::{RequestForm, json, stops, tool_list};
use loopctl_engine::conversation::{Message, Native, Role};
use loopctl_engine::event::{InputFile, InputFileContent};
use loopctl_lang::language::project::{Model, ReasoningEffort, ThinkingKind};

/// The beginning of a history whose own is gone, up to the model's first word.
const FIRST: &[u8] =
    br#"{"role":"user","parts":[{"text":"Earlier messages are left out."}]},{"role":"model","parts":["#;

/// The protocol.
pub(super) struct Gemini;

impl Protocol for Gemini {
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
        let signs = form.refused.contains(RequestField::MissingSignature);
        let mut contents = Contents { buffer, last, signs };
        for (at, message) in messages.numbered() {
            match message.native.as_deref() {
                Some(Native::Answers { id, .. }) => contents.answer(id, messages.called(at, id), &message.text),
                _ => contents.said(message, &returned(&form.origin, message)),
            }
        }
        contents.last
    }

    fn tail(&self, buffer: &mut BytesMut, _form: &RequestForm, last: Option<Role>, _ask: &Ask<'_>) {
        buffer.extend_from_slice(if last.is_some() { b"]}]}" } else { b"]}" });
    }

    /// The settings stand in `generationConfig`.
    fn settings(&self, model: &Model) -> Map<String, Value> {
        let mut fields = Map::new();
        put(&mut fields, "seed", model.seed);
        put(&mut fields, "topP", model.top_p);
        put(&mut fields, "topK", model.top_k);
        put(&mut fields, "frequencyPenalty", model.frequency_penalty);
        put(&mut fields, "presencePenalty", model.presence_penalty);
        put(&mut fields, "thinkingConfig", thinking(model));
        fields
    }

    fn turn_means(&self, _id: &str, _url: &Url) -> TurnMeans {
        TurnMeans::Flat
    }

    fn read(&self, peer: &Peer, body: &[u8]) -> Result<AttemptReply, UnreadableReply> {
        answer::read(peer, body)
    }

    fn piece(&self, peer: &Peer, reply: &mut StreamedReply, data: &[u8]) -> Result<bool, UnreadableReply> {
        answer::piece(peer, reply, data)
    }

    fn stream_url(&self, url: &Url) -> Option<Url> {
        let mut stream = url.clone();
        stream.set_path(&url.path().replace(":generateContent", ":streamGenerateContent"));
        stream.query_pairs_mut().append_pair("alt", "sse");
        Some(stream)
    }

    fn has_words_for(&self, missing: RequestField) -> bool {
        missing == RequestField::MissingSignature
    }
}

/// How much the model thinks: a level for newer models, a budget for older ones.
fn thinking(model: &Model) -> Option<Value> {
    let level = model.reasoning_effort.map(|effort| match effort {
        ReasoningEffort::None | ReasoningEffort::Minimal => "minimal",
        ReasoningEffort::Low => "low",
        ReasoningEffort::Medium => "medium",
        ReasoningEffort::High | ReasoningEffort::Xhigh | ReasoningEffort::Max => "high",
    });
    let budget = model.thinking.map(|thinking| match (thinking.kind, thinking.budget_tokens) {
        (ThinkingKind::Disabled, _) => 0,
        (ThinkingKind::Enabled, Some(budget)) => i64::from(budget),
        // The model decides.
        (ThinkingKind::Adaptive | ThinkingKind::Enabled, _) => -1,
    });
    if level.is_none() && budget.is_none() {
        return None;
    }
    let mut config = Map::new();
    put(&mut config, "includeThoughts", Some(budget != Some(0)));
    put(&mut config, "thinkingLevel", level);
    put(&mut config, "thinkingBudget", budget);
    Some(Value::Object(config))
}

/// Writes a request up to its contents. Returns how many messages it took: the system prompt is a field of its own.
fn head(buffer: &mut BytesMut, form: &RequestForm, ask: &Ask<'_>) -> usize {
    buffer.extend_from_slice(b"{\"generationConfig\":{\"maxOutputTokens\":");
    json(buffer, &ask.max_tokens);
    if let Some(temperature) = form.temperature(ask) {
        buffer.extend_from_slice(b",\"temperature\":");
        // Temperatures end at 2 here.
        json(buffer, &temperature.min(2.0));
    }
    let stop = stops(form, ask);
    if !stop.is_empty() {
        buffer.extend_from_slice(b",\"stopSequences\":");
        json(buffer, &stop);
    }
    form.settings.write(buffer, &form.refused);
    if let Some(turn) = form.constraint.turn(ask) {
        buffer.extend_from_slice(b",\"responseMimeType\":\"application/json\",\"responseJsonSchema\":");
        buffer.extend_from_slice(turn.schema.as_bytes());
    }
    buffer.extend_from_slice(b"}");
    buffer.extend_from_slice(form.settings.extra.as_bytes());
    let messages = &ask.conversation.messages;
    let system: Vec<&str> =
        messages.iter().take_while(|message| message.role == Role::System).map(|message| &*message.text).collect();
    if !system.is_empty() {
        buffer.extend_from_slice(b",\"systemInstruction\":{\"parts\":[{\"text\":");
        json(buffer, &system.join("\n\n"));
        buffer.extend_from_slice(b"}]}");
    }
    let list: [&[u8]; 2] = [b",\"tools\":[{\"functionDeclarations\":[", b"]}]"];
    let has_tools = tool_list(buffer, form, ask, list, [b"{\"name\":", b",\"parametersJsonSchema\":", b"}"]);
    if has_tools && form.must_call(ask) {
        buffer.extend_from_slice(b",\"toolConfig\":{\"functionCallingConfig\":{\"mode\":\"ANY\"}}");
    }
    buffer.extend_from_slice(b",\"contents\":[");
    system.len()
}

/// The contents of a request: parts of one role stand in one content, which is left open.
struct Contents<'a> {
    buffer: &'a mut BytesMut,
    last: Option<Role>,
    /// Whether the first call of a step must have a signature.
    signs: bool,
}

impl Contents<'_> {
    /// Writes what stands before a part of this role.
    fn part(&mut self, role: Role) -> &mut BytesMut {
        self.buffer.extend_from_slice(match (self.last, role) {
            (Some(last), _) if last == role => b",".as_slice(),
            (Some(_), Role::Assistant) => b"]},{\"role\":\"model\",\"parts\":[",
            (Some(_), _) => b"]},{\"role\":\"user\",\"parts\":[",
            // The server wants the first word to be ours; of a trimmed history it may be the model's.
            (None, Role::Assistant) => FIRST,
            (None, _) => b"{\"role\":\"user\",\"parts\":[",
        });
        self.last = Some(role);
        self.buffer
    }

    /// The result of the call of this id.
    fn answer(&mut self, id: &str, name: &str, text: &str) {
        let buffer = self.part(Role::User);
        buffer.extend_from_slice(b"{\"functionResponse\":{\"id\":");
        json(buffer, id);
        buffer.extend_from_slice(b",\"name\":");
        json(buffer, name);
        buffer.extend_from_slice(b",\"response\":{\"output\":");
        json(buffer, text);
        buffer.extend_from_slice(b"}}}");
    }

    /// A message with its calls, and the signature of each part as it came. The server refuses blank texts.
    fn said(&mut self, message: &Message, sealed: &[SealedPart]) {
        let role = if message.role == Role::Assistant { Role::Assistant } else { Role::User };
        if !message.text.trim().is_empty() {
            let buffer = self.part(role);
            buffer.extend_from_slice(b"{\"text\":");
            json(buffer, &*message.text);
            signature(buffer, sealed, BEHIND_TEXT, false);
        }
        for file in message.files() {
            write_file(self.part(role), file);
        }
        // Calls beside each other share the signature of the first one.
        let signs = self.signs;
        for (place, call) in message.calls().iter().enumerate() {
            let buffer = self.part(role);
            buffer.extend_from_slice(b"{\"functionCall\":{\"id\":");
            json(buffer, &call.id);
            buffer.extend_from_slice(b",\"name\":");
            json(buffer, &call.name);
            // The engine keeps only what is strict JSON of an object.
            buffer.extend_from_slice(b",\"args\":");
            buffer.extend_from_slice(call.arguments.as_bytes());
            buffer.extend_from_slice(b"}");
            signature(buffer, sealed, behind_call(place), signs && place == 0);
        }
    }
}

/// Writes the part of a file.
fn write_file(buffer: &mut BytesMut, file: &InputFile) {
    match &file.content {
        InputFileContent::Url(url) => {
            buffer.extend_from_slice(b"{\"fileData\":{\"mimeType\":");
            json(buffer, file.media_type.name());
            buffer.extend_from_slice(b",\"fileUri\":");
            json(buffer, url);
        }
        InputFileContent::Data { base64, .. } => {
            buffer.extend_from_slice(b"{\"inlineData\":{\"mimeType\":");
            json(buffer, file.media_type.name());
            buffer.extend_from_slice(b",\"data\":\"");
            // Base64 has no character that JSON escapes.
            buffer.extend_from_slice(base64.as_bytes());
            buffer.extend_from_slice(b"\"");
        }
    }
    buffer.extend_from_slice(b"}}");
}

/// Writes the signature of a part, and closes the part. `must_be`: another value takes its place if there is none.
fn signature(buffer: &mut BytesMut, sealed: &[SealedPart], place: usize, must_be: bool) {
    let own = sealed.iter().rfind(|part| part.at == place).map(|part| part.json.get());
    if let Some(signature) = own.filter(|json| !must_be || is_text(json)).or(must_be.then_some(ANY_SIGNATURE)) {
        buffer.extend_from_slice(b",\"thoughtSignature\":");
        buffer.extend_from_slice(signature.as_bytes());
    }
    buffer.extend_from_slice(b"}");
}
