//! The answers of chat completions, whole and in pieces.

use std::borrow::Cow;

use serde::Deserialize;
use serde::de::{Deserializer, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::reasoning::ReasoningFields;
use crate::drive::model::failure::{AttemptFailure, Peer};
use crate::drive::model::reply::{AttemptReply, StreamedReply, UnreadableReply};
use crate::drive::model::stop_reason::{StopReason, StopReasons};
use crate::drive::model::usage_fields::{CountedTokens, UsageFields};
use loopctl_engine::event::SaidCall;
use loopctl_engine::json::from_bytes;

/// OpenAI's words, and those of servers and gateways that speak its protocol, some of which pass on another provider's:
/// `eos` (Together), `eos_token` (TGI), `end` (LM Studio), `complete` (Cohere), `model_length` (Mistral), `sensitive`
/// (GLM). Not in it are words of a reply that was broken off: `error`, `network_error` and `abort` (GLM, vLLM),
/// `insufficient_system_resource` (DeepSeek), `pause_turn`.
const REASONS: &StopReasons = &[
    (&["stop", "end_turn", "stop_sequence", "end", "eos", "eos_token", "complete", "completed"], StopReason::Stop),
    (&["tool_calls", "tool_call", "tool_use", "function_call"], StopReason::Calls),
    (
        &["length", "model_length", "max_tokens", "max_output_tokens", "model_context_window_exceeded"],
        StopReason::Length,
    ),
    (
        &[
            "content_filter",
            "content_filtered",
            "guardrail_intervened",
            "refusal",
            "sensitive",
            "safety",
            "recitation",
            "blocklist",
            "prohibited_content",
            "spii",
        ],
        StopReason::Filtered,
    ),
];

/// An answer, or one event of a stream: only what is needed of it.
#[derive(Deserialize)]
struct OpenaiAnswer<'a> {
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
    #[serde(borrow, default)]
    choices: Option<Vec<OpenaiChoice<'a>>>,
    #[serde(borrow, default)]
    usage: Option<&'a RawValue>,
    #[serde(borrow, default)]
    model: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct OpenaiChoice<'a> {
    #[serde(default)]
    index: Option<u64>,
    // Boxed: lists of choices are made with room for some.
    #[serde(borrow, default)]
    message: Option<Box<OpenaiContent<'a>>>,
    #[serde(borrow, default)]
    delta: Option<Box<OpenaiContent<'a>>>,
    #[serde(borrow, default)]
    finish_reason: Option<Cow<'a, str>>,
    /// Azure's filters, and whether each of them fired.
    #[serde(borrow, default)]
    content_filter_results: Option<&'a RawValue>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
}

impl OpenaiChoice<'_> {
    fn is_first(&self) -> bool {
        self.index.unwrap_or_default() == 0
    }
}

#[derive(Deserialize, Default)]
struct OpenaiContent<'a> {
    #[serde(default)]
    content: OpenaiText,
    #[serde(default)]
    refusal: OpenaiText,
    #[serde(borrow, default)]
    tool_calls: Option<Vec<OpenaiCall<'a>>>,
    /// The one call of a reply, as it was written before there were several.
    #[serde(borrow, default)]
    function_call: Option<OpenaiFunction<'a>>,
    #[serde(borrow, default)]
    reasoning_content: Option<&'a RawValue>,
    #[serde(borrow, default)]
    reasoning: Option<&'a RawValue>,
    #[serde(borrow, default)]
    reasoning_details: Option<&'a RawValue>,
    #[serde(borrow, default)]
    extra_content: Option<&'a RawValue>,
}

impl<'a> OpenaiContent<'a> {
    /// Its calls. Some servers write one of them in both ways.
    fn take_calls(&mut self) -> Vec<OpenaiCall<'a>> {
        let calls = self.tool_calls.take().filter(|calls| !calls.is_empty());
        let call = |function| OpenaiCall { index: Some(0), id: None, function: Some(function), extra_content: None };
        calls.or_else(|| Some(vec![call(self.function_call.take()?)])).unwrap_or_default()
    }

    fn reasoning(&self) -> ReasoningFields<'a> {
        ReasoningFields {
            reasoning_content: self.reasoning_content,
            reasoning: self.reasoning,
            reasoning_details: self.reasoning_details,
            extra_content: self.extra_content,
        }
    }
}

/// A native call, or a piece of one.
#[derive(Deserialize)]
struct OpenaiCall<'a> {
    #[serde(default)]
    index: Option<u64>,
    #[serde(default)]
    id: Option<String>,
    #[serde(borrow, default)]
    function: Option<OpenaiFunction<'a>>,
    #[serde(borrow, default)]
    extra_content: Option<&'a RawValue>,
}

#[derive(Deserialize, Default)]
struct OpenaiFunction<'a> {
    #[serde(default)]
    name: Option<String>,
    #[serde(borrow, default)]
    arguments: Option<&'a RawValue>,
}

impl OpenaiCall<'_> {
    fn call(self) -> SaidCall {
        let OpenaiFunction { name, arguments } = self.function.unwrap_or_default();
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

/// A text that servers write as a string, as null, or as a list of parts.
#[derive(Default)]
struct OpenaiText(String);

impl<'de> Deserialize<'de> for OpenaiText {
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
        struct TextPart {
            #[serde(default)]
            text: Option<String>,
        }
        let mut whole = String::new();
        while let Some(part) = parts.next_element::<TextPart>()? {
            whole.push_str(part.text.as_deref().unwrap_or_default());
        }
        Ok(whole)
    }
}

/// Reads a whole answer.
pub(super) fn read(peer: &Peer, body: &[u8]) -> Result<AttemptReply, UnreadableReply> {
    let answer: OpenaiAnswer<'_> = from_bytes(body)?;
    if let Some(error) = answer.error {
        return Err(UnreadableReply::Failed(peer.error_object(error.get().as_bytes())));
    }
    let mut whole = StreamedReply::default();
    whole.count(tokens(answer.usage));
    whole.response_model = name(answer.model);
    let mut choices = answer.choices.unwrap_or_default();
    // Others are of somebody who asked for several.
    let first = choices.iter().position(OpenaiChoice::is_first).unwrap_or_default();
    let choice = choices.drain(..).nth(first).ok_or(UnreadableReply::Missing("choices"))?;
    stop(peer, &mut whole, &choice)?;
    let mut content = choice.message.ok_or(UnreadableReply::Missing("message"))?;
    // What is beside a refusal is no answer, as in a stream.
    if !content.refusal.0.is_empty() {
        whole.add(&content.refusal.0);
        whole.refused = true;
        return Ok(whole.in_one_answer(peer)?);
    }
    content.reasoning().add_to(&mut whole.reasoning);
    whole.add(&content.content.0);
    for call in content.take_calls() {
        let extra = call.extra_content;
        whole.add_whole_call(call.call());
        if let Some(extra) = extra {
            let place = whole.place();
            whole.reasoning.add(place, extra);
        }
    }
    Ok(whole.in_one_answer(peer)?)
}

/// Takes one event of a stream. `true`: it was the last one.
pub(super) fn piece(peer: &Peer, pieces: &mut StreamedReply, data: &[u8]) -> Result<bool, UnreadableReply> {
    let answer: OpenaiAnswer<'_> = from_bytes(data)?;
    pieces.count(tokens(answer.usage));
    if let Some(error) = answer.error {
        return Err(UnreadableReply::Failed(peer.error_object(error.get().as_bytes())));
    }
    if pieces.response_model.is_none() {
        pieces.response_model = name(answer.model);
    }
    // The event with the usage has no choice.
    for choice in answer.choices.unwrap_or_default().into_iter().filter(OpenaiChoice::is_first) {
        stop(peer, pieces, &choice)?;
        if let Some(delta) = choice.delta {
            take_delta(pieces, *delta);
        }
        if let Some(message) = choice.message {
            take_message(pieces, *message);
        }
    }
    Ok(false)
}

fn take_delta(pieces: &mut StreamedReply, mut content: OpenaiContent<'_>) {
    content.reasoning().grow(&mut pieces.reasoning);
    pieces.add_piece(&content.content.0);
    if !content.refusal.0.is_empty() {
        pieces.add_piece(&content.refusal.0);
        pieces.refused = true;
    }
    for call in content.take_calls() {
        let extra = call.extra_content;
        pieces.add_call(call.index, call.call());
        if let Some(extra) = extra {
            let place = pieces.place();
            pieces.reasoning.add(place, extra);
        }
    }
}

/// Takes in a message in a stream: some servers write it in the place of a piece, and others end with it. What of such
/// an end has come is not counted again.
fn take_message(pieces: &mut StreamedReply, mut message: OpenaiContent<'_>) {
    let known = pieces.text_so_far(false);
    let rest = message.content.0.strip_prefix(known).filter(|_| !known.is_empty()).map(str::to_owned);
    if rest.is_none() && !pieces.has_calls() {
        return take_delta(pieces, message);
    }
    message.content.0 = rest.unwrap_or(message.content.0);
    let tool_calls = message.tool_calls.filter(|_| !pieces.has_calls());
    let function_call = message.function_call.filter(|_| !pieces.has_calls());
    take_delta(
        pieces,
        OpenaiContent { content: message.content, tool_calls, function_call, ..OpenaiContent::default() },
    );
}

/// Takes in why the model stopped, and what failed at its server.
fn stop(peer: &Peer, reply: &mut StreamedReply, choice: &OpenaiChoice<'_>) -> Result<(), UnreadableReply> {
    if let Some(error) = choice.error {
        let failure = peer.error_object(error.get().as_bytes());
        return Err(UnreadableReply::Failed(AttemptFailure { usage: reply.usage(), ..failure }));
    }
    let filters = choice.content_filter_results.and_then(|filters| serde_json::from_str(filters.get()).ok());
    if let Some(filters) = filters {
        reply.refusal.add_fired(&filters);
    }
    if let Some(word) = choice.finish_reason.as_deref() {
        reply.stop_with(word, REASONS);
    }
    Ok(())
}

/// Counts as OpenAI writes them, and other servers: `prompt_cache_hit_tokens` is DeepSeek's, `cached_tokens` Kimi's;
/// `input_tokens` and `output_tokens` come from gateways.
fn tokens(usage: Option<&RawValue>) -> CountedTokens {
    let usage = UsageFields::read(usage);
    CountedTokens {
        input: usage.count(&["/prompt_tokens", "/input_tokens"]),
        output: usage.count(&["/completion_tokens", "/output_tokens"]),
        cached_input: usage.count(&[
            "/prompt_tokens_details/cached_tokens",
            "/prompt_cache_hit_tokens",
            "/cached_tokens",
        ]),
        cache_write: usage.count(&["/prompt_tokens_details/cache_write_tokens"]),
        reasoning: usage.count(&["/completion_tokens_details/reasoning_tokens", "/reasoning_tokens"]),
        total: usage.count(&["/total_tokens"]),
        ..CountedTokens::default()
    }
}

/// A name in an answer.
fn name(raw: Option<&RawValue>) -> Option<String> {
    serde_json::from_str(raw?.get()).ok()
}
