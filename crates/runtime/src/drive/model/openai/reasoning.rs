//! Reasoning in chat completions. OpenAI's own protocol has none of it; servers added these fields, which they want
//! back (their public documentation and issues, read in November 2026):
//!
//! | field | servers | documented |
//! |---|---|---|
//! | `reasoning_content` of a message | DeepSeek, Kimi, MiMo, llama.cpp, vLLM | api-docs.deepseek.com/guides/thinking_mode (2026-04) |
//! | `reasoning_details` of a message, with `reasoning` as its text | OpenRouter | openrouter.ai/docs/guides/best-practices/reasoning-tokens (2026-06) |
//! | `reasoning` of a message, alone | vLLM since 0.12, Ollama, Groq | docs.vllm.ai/en/latest/features/reasoning_outputs |
//! | `extra_content` of a call or a message, with Google's `thought_signature` | Gemini | ai.google.dev/gemini-api/docs/thought-signatures (2026-05) |

use std::collections::BTreeMap;

use bytes::BytesMut;
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::drive::model::reasoning::{
    ANY_REASONING, ANY_SIGNATURE, BEFORE_TEXT, ReasoningParts, SealedPart, append, behind_call, is_text,
};
use crate::drive::model::wire::json;
use loopctl_lang::policy::json_text;

/// The field that most servers want back.
const CONTENT: &str = "reasoning_content";

/// The fields of a message, or of a piece of one, as they came.
#[derive(Clone, Copy, Default, Serialize)]
pub(super) struct ReasoningFields<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) reasoning_content: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) reasoning: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) reasoning_details: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) extra_content: Option<&'a RawValue>,
}

impl ReasoningFields<'_> {
    fn are_absent(self) -> bool {
        let Self { reasoning_content, reasoning, reasoning_details, extra_content } = self;
        [reasoning_content, reasoning, reasoning_details, extra_content].iter().all(Option::is_none)
    }

    /// Without what says nothing, or says again what another field has.
    fn without_doubles(mut self) -> Self {
        self.reasoning_details = self.reasoning_details.filter(|details| !details_of(details).is_empty());
        let is_empty = |text: &&RawValue| text.get() == "\"\"";
        let has_other = self.reasoning_content.is_some() || self.reasoning_details.is_some();
        self.reasoning = self.reasoning.filter(|text| !has_other && !is_empty(text));
        self
    }

    /// The text that people can read.
    fn text(self) -> String {
        let texts = [self.reasoning_content, self.reasoning].into_iter().flatten();
        let said = texts.filter_map(|text| json_text::read::<String>(text.get()).ok()).find(|text| !text.is_empty());
        said.or_else(|| {
            let details = details_of(self.reasoning_details?);
            Some(details.iter().filter_map(detail_text).collect())
        })
        .unwrap_or_default()
    }

    /// Adds those of a whole message.
    pub(super) fn add_to(self, parts: &mut ReasoningParts) {
        if self.are_absent() {
            return;
        }
        parts.read(&self.text());
        let kept = self.without_doubles();
        if !kept.are_absent()
            && let Ok(members) = serde_json::value::to_raw_value(&kept)
        {
            parts.add(BEFORE_TEXT, &members);
        }
    }

    /// Adds those of a piece of a message.
    pub(super) fn grow(self, parts: &mut ReasoningParts) {
        if self.are_absent() {
            return;
        }
        parts.read(&self.text());
        let details = self.reasoning_details.map(details_of).unwrap_or_default();
        let text = |raw: Option<&RawValue>| json_text::read::<String>(raw?.get()).ok();
        let (content, reasoning) = (text(self.reasoning_content), text(self.reasoning));
        if content.is_none() && details.is_empty() && self.extra_content.is_none() && reasoning.is_none() {
            return;
        }
        let members = parts.growing(0, BEFORE_TEXT);
        if let Some(content) = content {
            append(members, "reasoning_content", &content);
        }
        if !details.is_empty() {
            let known = members.entry("reasoning_details").or_insert_with(|| Value::Array(Vec::new()));
            if let Value::Array(known) = known {
                details.into_iter().for_each(|detail| add_detail(known, detail));
            }
        }
        if let Some(extra) = self.extra_content.and_then(|extra| json_text::read(extra.get()).ok()) {
            members.insert("extra_content".to_owned(), extra);
        }
        // The same text again, where one of the other two has it.
        if members.contains_key("reasoning_content") || members.contains_key("reasoning_details") {
            members.shift_remove("reasoning");
        } else if let Some(reasoning) = reasoning {
            append(members, "reasoning", &reasoning);
        }
    }
}

fn details_of(details: &RawValue) -> Vec<Map<String, Value>> {
    json_text::read(details.get()).unwrap_or_default()
}

fn detail_text(detail: &Map<String, Value>) -> Option<&str> {
    detail.get("text").or_else(|| detail.get("summary")).and_then(Value::as_str)
}

/// Adds a piece of a list: it belongs to the last entry when it has the type and the index of that one.
fn add_detail(known: &mut Vec<Value>, detail: Map<String, Value>) {
    let same = |last: &&mut Map<String, Value>| {
        ["type", "index"].iter().all(|member| last.get(*member) == detail.get(*member)) && detail.contains_key("index")
    };
    let Some(last) = known.last_mut().and_then(Value::as_object_mut).filter(same) else {
        known.push(Value::Object(detail));
        return;
    };
    for (member, value) in detail {
        match (member.as_str(), value) {
            ("text" | "summary" | "data", Value::String(piece)) => append(last, &member, &piece),
            (_, Value::Null) => {}
            (_, value) => drop(last.insert(member, value)),
        }
    }
}

/// Writes the fields of a message again.
pub(super) fn write_fields(buffer: &mut BytesMut, sealed: &[SealedPart]) {
    for part in sealed.iter().filter(|part| part.at == BEFORE_TEXT) {
        let members = part.json.get().trim().strip_prefix('{').and_then(|members| members.strip_suffix('}'));
        if let Some(members) = members.filter(|members| !members.trim().is_empty()) {
            buffer.extend_from_slice(b",");
            buffer.extend_from_slice(members.as_bytes());
        }
    }
}

/// The same for a server that wants `reasoning_content` with each turn of the model: what there is of it, or words.
pub(super) fn write_reasoning(buffer: &mut BytesMut, sealed: &[SealedPart]) {
    let part = sealed.iter().find(|part| part.at == BEFORE_TEXT).map_or("{}", |part| part.json.get());
    let members: BTreeMap<String, &RawValue> = json_text::read(part).unwrap_or_default();
    let text = |name: &str| members.get(name).map(|json| json.get()).filter(|json| is_text(json));
    if text(CONTENT).is_some() {
        return write_fields(buffer, sealed);
    }
    buffer.extend_from_slice(b",\"reasoning_content\":");
    match text("reasoning") {
        Some(reasoning) => buffer.extend_from_slice(reasoning.as_bytes()),
        None => json(buffer, ANY_REASONING),
    }
    for (name, value) in members.into_iter().filter(|(name, _)| name != CONTENT && name != "reasoning") {
        buffer.extend_from_slice(b",");
        json(buffer, &name);
        buffer.extend_from_slice(b":");
        buffer.extend_from_slice(value.get().as_bytes());
    }
}

/// Writes what came beside the call at this place again. `signs`: if nothing came, a signature that Google takes for any
/// call.
pub(super) fn write_extra(buffer: &mut BytesMut, sealed: &[SealedPart], place: usize, signs: bool) {
    if let Some(part) = sealed.iter().find(|part| part.at == behind_call(place)) {
        buffer.extend_from_slice(b",\"extra_content\":");
        buffer.extend_from_slice(part.json.get().as_bytes());
    } else if signs {
        buffer.extend_from_slice(b",\"extra_content\":{\"google\":{\"thought_signature\":");
        buffer.extend_from_slice(ANY_SIGNATURE.as_bytes());
        buffer.extend_from_slice(b"}}");
    }
}
