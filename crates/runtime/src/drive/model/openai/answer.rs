//! The answers of chat completions, whole and in pieces.

use std::borrow::Cow;

use serde::Deserialize;
use serde::de::{Deserializer, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::reasoning::ReasoningFields;
use crate::drive::model::call_arguments;
use crate::drive::model::failure::{AttemptFailure, Peer, SentPart};
use crate::drive::model::reply::{AttemptReply, StreamedReply, UnreadableReply};
use crate::drive::model::stop_reason::{StopReason, StopReasons};
use crate::drive::model::usage_fields::{CountedTokens, UsageFields};
use loopctl_engine::event::SaidCall;
use loopctl_engine::json::from_bytes;
use loopctl_lang::policy::json_text;

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
    object: Option<&'a RawValue>,
    #[serde(borrow, default)]
    message: Option<&'a RawValue>,
    #[serde(borrow, default)]
    choices: Option<Vec<OpenaiChoice<'a>>>,
    #[serde(borrow, default)]
    usage: Option<&'a RawValue>,
    #[serde(borrow, default)]
    model: Option<&'a RawValue>,
}

impl<'a> OpenaiAnswer<'a> {
    /// The error that it reports, as a member or as the whole, as vLLM, llama.cpp and gateways write it.
    fn failed(&self, whole: &'a [u8]) -> Option<&'a [u8]> {
        let is_empty = self.choices.as_ref().is_none_or(Vec::is_empty);
        let is_error = || {
            self.object.is_some_and(|object| object.get() == "\"error\"")
                || self.message.is_some_and(|message| message.get().starts_with('"'))
        };
        self.error.map(|error| error.get().as_bytes()).or_else(|| (is_empty && is_error()).then_some(whole))
    }
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
    /// Null in a piece of a stream.
    #[serde(borrow, default, deserialize_with = "written")]
    finish_reason: Option<Option<Cow<'a, str>>>,
    /// The word of the provider behind a gateway: OpenRouter's own one is `stop` for some of those that say more.
    #[serde(borrow, default)]
    native_finish_reason: Option<Cow<'a, str>>,
    /// Azure's filters, and whether each of them fired.
    #[serde(borrow, default)]
    content_filter_results: Option<&'a RawValue>,
    /// Where Moonshot counts the tokens of a stream.
    #[serde(borrow, default)]
    usage: Option<&'a RawValue>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
}

/// A member that is there, if only as null.
fn written<'de: 'a, 'a, D: Deserializer<'de>>(member: D) -> Result<Option<Option<Cow<'a, str>>>, D::Error> {
    Option::deserialize(member).map(Some)
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
    /// Its calls. Some servers write one of them in both ways, and others one that says nothing beside each text.
    fn take_calls(&mut self) -> Vec<OpenaiCall<'a>> {
        let calls = self.tool_calls.take().filter(|calls| !calls.is_empty());
        let call = |function| OpenaiCall { index: Some(0), id: None, function: Some(function), extra_content: None };
        let mut calls = calls.or_else(|| Some(vec![call(self.function_call.take()?)])).unwrap_or_default();
        calls.retain(|call| !call.says_nothing());
        calls
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
    /// Whether it has neither an id nor a name nor arguments: no call, and no piece of one.
    fn says_nothing(&self) -> bool {
        let function = self.function.as_ref();
        let name = function.and_then(|function| function.name.as_deref());
        let arguments = function.and_then(|function| function.arguments).map_or("null", RawValue::get);
        let texts = [self.id.as_deref(), name];
        texts.into_iter().flatten().all(str::is_empty)
            && matches!(arguments, "null" | "\"\"")
            && self.extra_content.is_none()
    }

    /// Whether its server gives the input as JSON that it has read, and not as the text of the model.
    fn is_read(&self) -> bool {
        let arguments = self.function.as_ref().and_then(|function| function.arguments);
        arguments.is_some_and(|arguments| arguments.get().starts_with('{'))
    }

    fn call(self) -> SaidCall {
        let OpenaiFunction { name, arguments } = self.function.unwrap_or_default();
        let arguments = call_arguments::text(arguments);
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
            #[serde(default, rename = "type")]
            kind: Option<String>,
            #[serde(default)]
            text: Option<String>,
        }
        let mut whole = String::new();
        while let Some(TextPart { kind, text }) = parts.next_element::<TextPart>()? {
            match kind.as_deref() {
                // A call that would be lost, while the text beside it became the answer.
                Some(kind @ ("tool_use" | "tool_call" | "function_call")) => {
                    return Err(serde::de::Error::custom(format_args!("its content has a part of the type {kind}")));
                }
                Some("reasoning" | "reasoning_text" | "thinking") => {}
                _ => whole.push_str(text.as_deref().unwrap_or_default()),
            }
        }
        Ok(whole)
    }
}

/// Reads a whole answer.
pub(super) fn read(peer: &Peer, body: &[u8]) -> Result<AttemptReply, UnreadableReply> {
    let answer: OpenaiAnswer<'_> = from_bytes(body)?;
    if let Some(error) = answer.failed(body) {
        return Err(UnreadableReply::Failed(peer.error_object(error)));
    }
    let mut whole = StreamedReply::default();
    whole.count(tokens(answer.usage));
    whole.response_model = name(answer.model);
    let mut choices = answer.choices.unwrap_or_default();
    // Others are of somebody who asked for several.
    let first = choices.iter().position(OpenaiChoice::is_first).unwrap_or_default();
    if first >= choices.len() {
        return Err(UnreadableReply::Missing("choices"));
    }
    let choice = choices.remove(first);
    stop(peer, &mut whole, &choice)?;
    let says_none = choice.finish_reason.as_ref().is_some_and(|word| word.as_deref().is_none_or(is_blank));
    // Ollama has written null for whole replies, and counts them. A gateway that put a broken stream together counts nothing.
    if says_none && !whole.is_counted() {
        whole.stop(StopReason::Broken("no reason: its finish_reason is empty, and it counts no tokens".to_owned()));
    }
    choices.into_iter().for_each(|other| take_beside(&mut whole, other));
    let is_withheld = whole.is_filtered();
    let mut content = match choice.message {
        Some(message) => message,
        // Azure leaves the message out where its filter withheld it.
        None if is_withheld => return Ok(whole.in_one_answer(peer)?),
        None => return Err(UnreadableReply::Missing("message")),
    };
    // What is beside a refusal is no answer, as in a stream.
    if !content.refusal.0.is_empty() {
        whole.add(&content.refusal.0);
        whole.refused = true;
        return Ok(whole.in_one_answer(peer)?);
    }
    content.reasoning().add_to(&mut whole.reasoning);
    whole.add(&content.content.0);
    for call in content.take_calls() {
        let (extra, is_read) = (call.extra_content, call.is_read());
        whole.add_whole_call(call.call());
        if is_read {
            whole.end_in_read_call();
        }
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
    if let Some(error) = answer.failed(data) {
        return Err(UnreadableReply::Failed(peer.error_object(error)));
    }
    if pieces.response_model.is_none() {
        pieces.response_model = name(answer.model);
    }
    // The event with the usage has no choice.
    for choice in answer.choices.unwrap_or_default() {
        if !choice.is_first() {
            take_beside(pieces, choice);
            continue;
        }
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

/// Takes in the calls of a choice that nobody asked for: GitHub Copilot puts those of some models there.
fn take_beside(pieces: &mut StreamedReply, choice: OpenaiChoice<'_>) {
    let mut calls = Vec::new();
    for mut content in [choice.message, choice.delta].into_iter().flatten() {
        calls.append(&mut content.take_calls());
    }
    let reason = StopReason::of(choice.finish_reason.flatten().as_deref().unwrap_or_default(), REASONS);
    if !calls.is_empty() || reason == Some(StopReason::Calls) {
        let beside = pieces.beside();
        calls.into_iter().for_each(|call| beside.add_call(call.index, call.call()));
        reason.into_iter().for_each(|reason| beside.stop(reason));
    }
}

fn take_delta(pieces: &mut StreamedReply, mut content: OpenaiContent<'_>) {
    content.reasoning().grow(&mut pieces.reasoning);
    pieces.add_piece(&content.content.0);
    if !content.refusal.0.is_empty() {
        pieces.add_piece(&content.refusal.0);
        pieces.refused = true;
    }
    for call in content.take_calls() {
        let (extra, is_read) = (call.extra_content, call.is_read());
        pieces.add_call(call.index, call.call());
        if is_read {
            pieces.end_in_read_call();
        }
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
    reply.count(tokens(choice.usage));
    if let Some(error) = choice.error {
        let failure = peer.error_object(error.get().as_bytes());
        // Beside a choice, it is no answer in place of a reply.
        let sent = SentPart::Request;
        return Err(UnreadableReply::Failed(AttemptFailure { usage: reply.usage(), sent, ..failure }));
    }
    let filters = choice.content_filter_results.and_then(|filters| json_text::read(filters.get()).ok());
    if let Some(filters) = filters {
        reply.refusal.add_fired(&filters);
    }
    if let Some(Some(word)) = choice.finish_reason.as_ref() {
        reply.stop_with(word, REASONS);
    }
    let native = choice.native_finish_reason.as_deref().unwrap_or_default();
    match StopReason::of(native, REASONS) {
        Some(StopReason::Length | StopReason::Filtered) => reply.stop_with(native, REASONS),
        Some(StopReason::Broken(word)) if is_of_broken_reply(&word) => reply.stop(StopReason::Broken(word)),
        _ => {}
    }
    Ok(())
}

fn is_blank(word: &str) -> bool {
    word.trim().is_empty()
}

/// Whether a provider's word that is in no table says that the reply was broken off.
fn is_of_broken_reply(word: &str) -> bool {
    let word = word.to_ascii_lowercase();
    word.contains("error") || word.contains("malformed")
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
    json_text::read(raw?.get()).ok()
}
