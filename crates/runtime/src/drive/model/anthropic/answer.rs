//! The answers of Anthropic's messages, whole and in pieces.

use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::drive::model::failure::{AttemptFailure, Peer};
use crate::drive::model::reasoning::append;
use crate::drive::model::reply::{AttemptReply, StreamedReply, UnreadableReply};
use crate::drive::model::stop_reason::{StopReason, StopReasons};
use crate::drive::model::usage_fields::{CountedTokens, UsageFields};
use loopctl_engine::event::SaidCall;
use loopctl_engine::json::from_bytes;
use loopctl_lang::policy::json_text;

/// Anthropic's words; those of chat completions come from gateways. Not in it are `pause_turn` and `compaction`: the
/// model has not ended its turn.
const REASONS: &StopReasons = &[
    (&["end_turn", "stop_sequence", "stop"], StopReason::Stop),
    (&["tool_use", "tool_calls"], StopReason::Calls),
    (&["max_tokens", "model_context_window_exceeded", "length"], StopReason::Length),
    (&["refusal", "content_filter", "content_filtered", "guardrail_intervened", "sensitive"], StopReason::Filtered),
];

/// An answer, or one event of a stream: only what is needed of it.
#[derive(Deserialize)]
struct AnthropicAnswer<'a> {
    #[serde(default, rename = "type")]
    kind: String,
    #[serde(default)]
    model: Option<String>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
    #[serde(borrow, default)]
    content: Option<Vec<&'a RawValue>>,
    /// Of a whole answer it is never null; one that a gateway put together of a broken stream has the null of its start.
    #[serde(default, deserialize_with = "written")]
    stop_reason: Option<Option<String>>,
    #[serde(borrow, default)]
    stop_details: Option<&'a RawValue>,
    #[serde(default)]
    index: Option<u64>,
    #[serde(borrow, default)]
    content_block: Option<&'a RawValue>,
    #[serde(borrow, default)]
    delta: Option<AnthropicBlock<'a>>,
    #[serde(borrow, default)]
    message: Option<AnthropicMessageStart<'a>>,
    #[serde(borrow, default)]
    usage: Option<&'a RawValue>,
}

/// A member that is there, if only as null.
fn written<'de, D: Deserializer<'de>>(member: D) -> Result<Option<Option<String>>, D::Error> {
    Option::deserialize(member).map(Some)
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
    thinking: Option<String>,
    #[serde(default)]
    signature: Option<String>,
    #[serde(default)]
    stop_reason: Option<String>,
    #[serde(borrow, default)]
    stop_details: Option<&'a RawValue>,
}

impl AnthropicBlock<'_> {
    /// Whether it is reasoning, which goes back as it came.
    fn is_thinking(&self) -> bool {
        matches!(self.kind.as_deref(), Some("thinking" | "redacted_thinking"))
    }

    /// The call of a `tool_use` block.
    fn call(self) -> SaidCall {
        let arguments = self.input.map_or_else(String::new, |input| input.get().to_owned());
        SaidCall { id: self.id.unwrap_or_default(), name: self.name.unwrap_or_default(), arguments }
    }
}

#[derive(Deserialize)]
struct AnthropicMessageStart<'a> {
    #[serde(default)]
    id: Option<String>,
    #[serde(default)]
    model: Option<String>,
    #[serde(borrow, default)]
    usage: Option<&'a RawValue>,
}

fn counted(usage: Option<&RawValue>) -> CountedTokens {
    let usage = UsageFields::read(usage);
    CountedTokens {
        input: usage.count(&["/input_tokens"]),
        output: usage.count(&["/output_tokens"]),
        cached_input: usage.count(&["/cache_read_input_tokens"]),
        cache_write: usage.count(&["/cache_creation_input_tokens"]),
        reasoning: usage.count(&["/output_tokens_details/thinking_tokens"]),
        cache_is_beside: true,
        ..CountedTokens::default()
    }
}

/// Reads a whole answer.
pub(super) fn read(peer: &Peer, body: &[u8]) -> Result<AttemptReply, UnreadableReply> {
    let answer: AnthropicAnswer<'_> = from_bytes(body)?;
    if let Some(error) = answer.error {
        return Err(UnreadableReply::Failed(peer.error_object(error.get().as_bytes())));
    }
    if answer.kind == "error" {
        return Err(UnreadableReply::Failed(peer.error_object(body)));
    }
    let mut whole = StreamedReply::default();
    whole.count(counted(answer.usage));
    whole.response_model = answer.model;
    match answer.stop_reason {
        Some(None) => whole.stop(StopReason::Broken("no reason: its stop_reason is null".to_owned())),
        word => stop(&mut whole, word.flatten().as_deref(), answer.stop_details),
    }
    let mut blocks = answer.content.ok_or(UnreadableReply::Missing("content"))?.into_iter().peekable();
    while let Some(raw) = blocks.next() {
        let block: AnthropicBlock<'_> = json_text::read(raw.get())?;
        match block.kind.as_deref() {
            Some("text") => whole.add(block.text.as_deref().unwrap_or_default()),
            Some("tool_use") => {
                whole.add_whole_call(block.call());
                whole.end_in_read_call();
            }
            _ if block.is_thinking() => {
                whole.reasoning.end_paragraph();
                whole.reasoning.read(block.thinking.as_deref().unwrap_or_default());
                // One that was cut off has no signature, and would be refused.
                if !whole.is_cut_off() || blocks.peek().is_some() || block.signature.is_some() {
                    let place = whole.place();
                    whole.reasoning.add(place, raw);
                }
            }
            // What a server may add.
            _ => {}
        }
    }
    Ok(whole.in_one_answer(peer)?)
}

/// Takes one event of a stream. `true`: it was the last one.
pub(super) fn piece(peer: &Peer, pieces: &mut StreamedReply, data: &[u8]) -> Result<bool, UnreadableReply> {
    let answer: AnthropicAnswer<'_> = from_bytes(data)?;
    if let Some(error) = answer.error {
        return Err(UnreadableReply::Failed(peer.error_object(error.get().as_bytes())));
    }
    if let Some(message) = answer.message {
        // A gateway that asked again within the answer. What came of the first message is none of the second.
        if pieces.message_id.is_some() && message.id.is_some() && pieces.message_id != message.id {
            let failure = format!("the answer of {} has the beginning of another message in it", peer.name);
            let usage = pieces.usage();
            return Err(UnreadableReply::Failed(AttemptFailure { usage, ..AttemptFailure::protocol(failure) }));
        }
        pieces.count(counted(message.usage));
        pieces.response_model = message.model;
        pieces.message_id = message.id;
    }
    pieces.count(counted(answer.usage));
    match answer.kind.as_str() {
        "content_block_start" => block_start(pieces, answer.index, answer.content_block)?,
        "content_block_delta" => {
            if let Some(delta) = answer.delta {
                block_delta(pieces, answer.index, delta);
            }
        }
        "message_delta" => {
            let (word, details) = answer.delta.map_or((None, None), |delta| (delta.stop_reason, delta.stop_details));
            stop(pieces, word.or(answer.stop_reason.flatten()).as_deref(), details.or(answer.stop_details));
            if pieces.is_cut_off() {
                pieces.reasoning.drop_unless_it_has("signature");
            }
        }
        "message_stop" => pieces.ended = true,
        "error" => return Err(UnreadableReply::Failed(peer.error_object(data))),
        _ => {}
    }
    Ok(pieces.ended)
}

fn block_start(pieces: &mut StreamedReply, index: Option<u64>, raw: Option<&RawValue>) -> Result<(), UnreadableReply> {
    let Some(raw) = raw else { return Ok(()) };
    let block: AnthropicBlock<'_> = json_text::read(raw.get())?;
    let is_read = block.is_thinking() || matches!(block.kind.as_deref(), Some("tool_use" | "text") | None);
    if is_read {
        pieces.passed_over.remove(&index.unwrap_or(0));
    } else {
        pieces.passed_over.insert(index.unwrap_or(0));
    }
    if block.kind.as_deref() == Some("tool_use") {
        let mut call = block.call();
        // An empty input is a place for the pieces that follow.
        if call.arguments.trim() == "{}" {
            call.arguments.clear();
        }
        let is_whole = !call.arguments.is_empty();
        pieces.add_call(index, call);
        if is_whole {
            pieces.end_in_read_call();
            pieces.begun_whole.insert(index.unwrap_or(0));
        }
    } else if block.kind.as_deref() == Some("text") {
        pieces.add_piece(block.text.as_deref().unwrap_or_default());
    } else if block.is_thinking() {
        pieces.reasoning.end_paragraph();
        let place = pieces.place();
        let mut members: Map<String, Value> = json_text::read(raw.get())?;
        // Empty until its piece comes; a block that is cut off has none.
        members.retain(|member, value| member != "signature" || value.as_str() != Some(""));
        *pieces.reasoning.growing(index.unwrap_or(0), place) = members;
    }
    Ok(())
}

fn block_delta(pieces: &mut StreamedReply, index: Option<u64>, mut delta: AnthropicBlock<'_>) {
    let block = index.unwrap_or(0);
    if pieces.passed_over.contains(&block) {
        return;
    }
    match (delta.kind.take().as_deref(), delta) {
        (Some("text_delta"), AnthropicBlock { text: Some(text), .. }) => pieces.add_piece(&text),
        (Some("input_json_delta"), AnthropicBlock { partial_json: Some(arguments), .. }) => {
            if !arguments.is_empty() && pieces.begun_whole.remove(&block) {
                pieces.begin_arguments_again(block);
            }
            pieces.add_call(index, SaidCall { arguments, ..SaidCall::default() });
        }
        (Some("thinking_delta"), AnthropicBlock { thinking: Some(thought), .. }) => {
            pieces.reasoning.read(&thought);
            if let Some(part) = pieces.reasoning.opened(block) {
                append(part, "thinking", &thought);
            }
        }
        (Some("signature_delta"), AnthropicBlock { signature: Some(signature), .. }) => {
            if let Some(part) = pieces.reasoning.opened(block) {
                append(part, "signature", &signature);
            }
        }
        _ => {}
    }
}

/// Takes in why the model stopped. `details`: of a refusal, `{"type": "refusal", "category": "cyber", "explanation": ...}`.
fn stop(reply: &mut StreamedReply, word: Option<&str>, details: Option<&RawValue>) {
    let details = details.and_then(|details| json_text::read::<Value>(details.get()).ok()).unwrap_or_default();
    reply.refusal.add_value(details.get("category"));
    reply.refusal.add_value(details.get("explanation"));
    if let Some(word) = word {
        reply.stop_with(word, REASONS);
    }
}
