//! The answers of the Gemini API. A piece of a stream has the form of a whole answer.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::drive::model::failure::Peer;
use crate::drive::model::reasoning::{BEHIND_TEXT, behind_call};
use crate::drive::model::reply::{AttemptReply, StreamedReply, UnreadableReply};
use crate::drive::model::stop_reason::{StopReason, StopReasons};
use crate::drive::model::usage_fields::{CountedTokens, UsageFields};
use loopctl_engine::event::SaidCall;
use loopctl_engine::json::from_bytes;
use loopctl_lang::policy::json_text;

/// Gemini's words. Not in it are `OTHER`, and those of what the model could not write as a call or a reply
/// (`MALFORMED_FUNCTION_CALL`, `UNEXPECTED_TOOL_CALL`, `TOO_MANY_TOOL_CALLS`, `MISSING_THOUGHT_SIGNATURE`,
/// `MALFORMED_RESPONSE`): it may be written well the next time.
const REASONS: &StopReasons = &[
    (&["stop"], StopReason::Stop),
    (&["max_tokens"], StopReason::Length),
    (
        &[
            "safety",
            "recitation",
            "language",
            "blocklist",
            "prohibited_content",
            "spii",
            "model_armor",
            "image_safety",
            "image_prohibited_content",
            "image_recitation",
        ],
        StopReason::Filtered,
    ),
];
/// The default of the protocol: no reason yet.
const NO_REASON: &str = "FINISH_REASON_UNSPECIFIED";

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct GeminiAnswer<'a> {
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
    #[serde(borrow, default)]
    candidates: Option<Vec<GeminiCandidate<'a>>>,
    #[serde(borrow, default)]
    prompt_feedback: Option<PromptFeedback<'a>>,
    #[serde(borrow, default)]
    usage_metadata: Option<&'a RawValue>,
    #[serde(default)]
    model_version: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct GeminiCandidate<'a> {
    #[serde(borrow, default)]
    content: Option<GeminiContent<'a>>,
    #[serde(default)]
    finish_reason: Option<String>,
    #[serde(default)]
    finish_message: Option<String>,
    #[serde(borrow, default)]
    safety_ratings: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct GeminiContent<'a> {
    #[serde(borrow, default)]
    parts: Option<Vec<GeminiPart<'a>>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct GeminiPart<'a> {
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    thought: Option<bool>,
    #[serde(borrow, default)]
    function_call: Option<GeminiCall<'a>>,
    #[serde(borrow, default)]
    thought_signature: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct GeminiCall<'a> {
    #[serde(default)]
    id: Option<String>,
    #[serde(default)]
    name: Option<String>,
    #[serde(borrow, default)]
    args: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PromptFeedback<'a> {
    #[serde(default)]
    block_reason: Option<String>,
    #[serde(default)]
    block_reason_message: Option<String>,
    #[serde(borrow, default)]
    safety_ratings: Option<&'a RawValue>,
}

/// Reads a whole answer.
pub(super) fn read(peer: &Peer, body: &[u8]) -> Result<AttemptReply, UnreadableReply> {
    let mut whole = StreamedReply::default();
    if !take(peer, &mut whole, body, true)? {
        return Err(UnreadableReply::Missing("candidates"));
    }
    if !whole.has_stopped() {
        whole.stop(StopReason::Broken("no reason: it has no finishReason".to_owned()));
    }
    Ok(whole.in_one_answer(peer)?)
}

/// Takes one event of a stream. The stream ends without a last one.
pub(super) fn piece(peer: &Peer, pieces: &mut StreamedReply, data: &[u8]) -> Result<bool, UnreadableReply> {
    take(peer, pieces, data, false)?;
    Ok(false)
}

/// Takes an answer in. Returns whether it has a candidate, or says why not.
fn take(peer: &Peer, reply: &mut StreamedReply, data: &[u8], is_whole: bool) -> Result<bool, UnreadableReply> {
    let answer: GeminiAnswer<'_> = from_bytes(data)?;
    if let Some(error) = answer.error {
        return Err(UnreadableReply::Failed(peer.error_object(error.get().as_bytes())));
    }
    reply.response_model = answer.model_version.or_else(|| reply.response_model.take());
    reply.count(counted(answer.usage_metadata));
    let feedback = answer.prompt_feedback.as_ref();
    if let Some((feedback, reason)) = feedback.and_then(|feedback| Some((feedback, feedback.block_reason.as_ref()?))) {
        reply.add(&format!("The prompt was blocked: {reason}"));
        reply.refusal.add(reason);
        add_ratings(reply, feedback.safety_ratings);
        reply.refusal.add(feedback.block_reason_message.as_deref().unwrap_or_default());
        reply.refused = true;
        reply.stop(StopReason::Filtered);
        return Ok(true);
    }
    let Some(candidate) = answer.candidates.unwrap_or_default().into_iter().next() else { return Ok(false) };
    for part in candidate.content.and_then(|content| content.parts).unwrap_or_default() {
        take_part(reply, part, is_whole);
    }
    let word = candidate.finish_reason.filter(|word| is_whole || word != NO_REASON).unwrap_or_default();
    match (StopReason::of(&word, REASONS), candidate.finish_message) {
        (Some(StopReason::Broken(word)), Some(message)) => {
            reply.stop(StopReason::Broken(format!("{word}: {message}")));
        }
        (Some(StopReason::Filtered), message) => {
            reply.stop_with(&word, REASONS);
            add_ratings(reply, candidate.safety_ratings);
            reply.refusal.add(message.as_deref().unwrap_or_default());
        }
        (Some(reason), _) => reply.stop(reason),
        (None, _) => {}
    }
    Ok(true)
}

/// Adds the categories for which something was blocked.
fn add_ratings(reply: &mut StreamedReply, ratings: Option<&RawValue>) {
    if let Some(ratings) = ratings.and_then(|ratings| json_text::read(ratings.get()).ok()) {
        reply.refusal.add_fired(&ratings);
    }
}

fn take_part(reply: &mut StreamedReply, part: GeminiPart<'_>, is_whole: bool) {
    let is_call = part.function_call.is_some();
    let is_thought = part.thought == Some(true);
    if let Some(call) = part.function_call {
        reply.add_whole_call(SaidCall {
            id: call.id.unwrap_or_default(),
            name: call.name.unwrap_or_default(),
            arguments: call.args.map_or_else(String::new, |args| args.get().to_owned()),
        });
        reply.end_in_read_call();
    }
    let text = part.text.as_deref().unwrap_or_default();
    if is_thought {
        reply.reasoning.read(text);
        if !is_call {
            return;
        }
    } else if is_whole {
        reply.add(text);
    } else {
        reply.add_piece(text);
    }
    if let Some(signature) = part.thought_signature {
        // A call's stands behind that call, and one in a part of its own is of a call before it that has none; any other one belongs to
        // the text.
        let is_of_first_call = text.is_empty() && reply.has_call() && !reply.reasoning.has_part(behind_call(0));
        let place = match is_call {
            true => reply.place(),
            false if is_of_first_call => behind_call(0),
            false => BEHIND_TEXT,
        };
        reply.reasoning.add(place, signature);
    }
}

fn counted(usage: Option<&RawValue>) -> CountedTokens {
    let usage = UsageFields::read(usage);
    let sum = |first: Option<u64>, second: Option<u64>| {
        first.or(second.map(|_| 0)).map(|first| first.saturating_add(second.unwrap_or(0)))
    };
    CountedTokens {
        input: sum(usage.count(&["/promptTokenCount"]), usage.count(&["/toolUsePromptTokenCount"])),
        output: usage.count(&["/candidatesTokenCount"]),
        cached_input: usage.count(&["/cachedContentTokenCount"]),
        cache_write: None,
        reasoning: usage.count(&["/thoughtsTokenCount"]),
        total: usage.count(&["/totalTokenCount"]),
        reasoning_is_beside: true,
        ..CountedTokens::default()
    }
}
