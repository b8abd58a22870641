//! The answers of the Responses API, whole and in pieces.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::drive::model::failure::{AttemptFailure, Peer};
use crate::drive::model::reasoning::BEFORE_TEXT;
use crate::drive::model::reply::{AttemptReply, CountedTokens, StreamedReply, UnreadableReply};
use crate::drive::model::stop_reason::{StopReason, StopReasons};
use crate::engine::event::SaidCall;
use crate::engine::json::from_bytes;

/// The statuses of a response, and the reasons of one that is incomplete. All other statuses are those of a response
/// that failed, or has not ended.
const STATUSES: &StopReasons = &[(&["completed"], StopReason::Stop), (&["incomplete"], StopReason::Length)];
const INCOMPLETE_REASONS: &StopReasons =
    &[(&["content_filter"], StopReason::Filtered), (&["max_output_tokens"], StopReason::Length)];

/// A response: only what is needed of it.
#[derive(Deserialize)]
struct WholeResponse<'a> {
    #[serde(default)]
    status: Option<String>,
    #[serde(default)]
    model: Option<String>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
    #[serde(borrow, default)]
    output: Option<Vec<&'a RawValue>>,
    #[serde(default)]
    incomplete_details: Option<IncompleteDetails>,
    #[serde(borrow, default)]
    usage: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct IncompleteDetails {
    #[serde(default)]
    reason: Option<String>,
}

/// An item of the output.
#[derive(Deserialize)]
struct OutputItem<'a> {
    #[serde(default, rename = "type")]
    kind: String,
    #[serde(default)]
    content: Option<Vec<OutputText>>,
    #[serde(default)]
    summary: Option<Vec<OutputText>>,
    #[serde(borrow, default)]
    encrypted_content: Option<&'a RawValue>,
    #[serde(default)]
    call_id: Option<String>,
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    arguments: Option<String>,
}

#[derive(Deserialize)]
struct OutputText {
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    refusal: Option<String>,
}

#[derive(Deserialize)]
struct ResponseUsage {
    #[serde(default)]
    input_tokens: Option<u64>,
    #[serde(default)]
    output_tokens: Option<u64>,
    #[serde(default)]
    input_tokens_details: Option<ResponseTokenDetails>,
    #[serde(default)]
    output_tokens_details: Option<ResponseTokenDetails>,
}

#[derive(Deserialize, Default)]
struct ResponseTokenDetails {
    #[serde(default)]
    cached_tokens: Option<u64>,
    #[serde(default)]
    reasoning_tokens: Option<u64>,
}

/// One event of a stream.
#[derive(Deserialize)]
struct ResponseEvent<'a> {
    #[serde(default, rename = "type")]
    kind: String,
    #[serde(default)]
    delta: Option<String>,
    #[serde(borrow, default)]
    item: Option<&'a RawValue>,
    #[serde(borrow, default)]
    response: Option<&'a RawValue>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
}

/// Reads a whole answer.
pub(super) fn read(peer: &Peer, body: &[u8]) -> Result<AttemptReply, UnreadableReply> {
    let response: WholeResponse<'_> = from_bytes(body)?;
    let mut whole = StreamedReply::default();
    for item in response.output.as_deref().ok_or_else(|| missing_output(peer, &response))? {
        whole_item(&mut whole, item, true)?;
    }
    ended(peer, &mut whole, response, None)?;
    Ok(whole.in_one_answer(peer)?)
}

/// Why an answer has no output.
fn missing_output(peer: &Peer, response: &WholeResponse<'_>) -> UnreadableReply {
    match response.error {
        Some(error) => UnreadableReply::Failed(peer.error_object(error.get().as_bytes())),
        None => UnreadableReply::Missing("output"),
    }
}

/// Takes one event of a stream. `true`: it was the last one.
pub(super) fn piece(peer: &Peer, pieces: &mut StreamedReply, data: &[u8]) -> Result<bool, UnreadableReply> {
    if data == b"[DONE]" {
        return Ok(true);
    }
    let event: ResponseEvent<'_> = from_bytes(data)?;
    match (event.kind.as_str(), event.response) {
        ("error", _) => {
            let error = event.error.map_or(data, |error| error.get().as_bytes());
            return Err(UnreadableReply::Failed(peer.error_object(error)));
        }
        ("response.output_text.delta", _) => pieces.add(event.delta.as_deref().unwrap_or_default()),
        ("response.refusal.delta", _) => {
            pieces.add(event.delta.as_deref().unwrap_or_default());
            pieces.refused = true;
        }
        (
            "response.function_call_arguments.delta"
            | "response.reasoning_summary_text.delta"
            | "response.reasoning_text.delta",
            _,
        ) => pieces.announce(event.delta.as_deref().unwrap_or_default()),
        ("response.output_item.done", _) => {
            if let Some(item) = event.item {
                whole_item(pieces, item, false)?;
            }
        }
        ("response.completed" | "response.incomplete" | "response.failed" | "response.cancelled", Some(response)) => {
            let status = event.kind.strip_prefix("response.");
            ended(peer, pieces, serde_json::from_str(response.get())?, status)?;
        }
        _ => {}
    }
    Ok(pieces.ended)
}

/// Takes an item in; its text only when it did not come in pieces.
fn whole_item(whole: &mut StreamedReply, raw: &RawValue, with_text: bool) -> Result<(), UnreadableReply> {
    let item: OutputItem<'_> = serde_json::from_str(raw.get())?;
    match item.kind.as_str() {
        "message" if with_text => {
            for part in item.content.unwrap_or_default() {
                whole.add(part.text.as_deref().unwrap_or_default());
                if let Some(refusal) = part.refusal {
                    whole.add(&refusal);
                    whole.refused = true;
                }
            }
        }
        "function_call" => whole.add_whole_call(SaidCall {
            id: item.call_id.unwrap_or_default(),
            name: item.name.unwrap_or_default(),
            arguments: item.arguments.unwrap_or_default(),
        }),
        "reasoning" => {
            for part in item.summary.iter().chain(&item.content).flatten() {
                whole.reasoning.end_paragraph();
                whole.reasoning.read(part.text.as_deref().unwrap_or_default());
            }
            // The server has stored nothing: an item without its content would not be found.
            if item.encrypted_content.is_some() || item.content.is_some_and(|content| !content.is_empty()) {
                let place = whole.place();
                whole.reasoning.add(place, raw);
            }
        }
        _ => {}
    }
    Ok(())
}

/// Takes in what a response says at its end. `event` is the status that the event of a stream names.
fn ended(
    peer: &Peer,
    whole: &mut StreamedReply,
    response: WholeResponse<'_>,
    event: Option<&str>,
) -> Result<(), UnreadableReply> {
    let usage = response.usage.and_then(|usage| serde_json::from_str::<ResponseUsage>(usage.get()).ok());
    if let Some(usage) = usage {
        whole.count(CountedTokens {
            input: usage.input_tokens,
            output: usage.output_tokens,
            cached_input: usage.input_tokens_details.unwrap_or_default().cached_tokens,
            cache_write: None,
            reasoning: usage.output_tokens_details.unwrap_or_default().reasoning_tokens,
        });
    }
    if let Some(error) = response.error {
        let failure = peer.error_object(error.get().as_bytes());
        return Err(UnreadableReply::Failed(AttemptFailure { usage: whole.usage(), ..failure }));
    }
    whole.response_model = response.model;
    let reason = response.incomplete_details.and_then(|details| details.reason).unwrap_or_default();
    for status in [event, response.status.as_deref()].into_iter().flatten() {
        match StopReason::of(status, STATUSES) {
            Some(StopReason::Length) if StopReason::of(&reason, INCOMPLETE_REASONS) == Some(StopReason::Filtered) => {
                whole.stop(StopReason::Filtered);
            }
            Some(StopReason::Broken(status)) => whole.stop(StopReason::Broken(format!("the status {status}"))),
            Some(stopped) => whole.stop(stopped),
            None => {}
        }
    }
    if whole.is_cut_off() && whole.place() == BEFORE_TEXT {
        // The item that must follow its reasoning was never written.
        whole.reasoning.drop_all();
    }
    whole.ended = true;
    Ok(())
}
