//! The answers of the Responses API, whole and in pieces.

use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

use super::arrived_texts::{ItemPlace, TextPlace};
use super::items::{FINAL, OutputItem, OutputItems};
use super::merged::ReconciledItems;
use crate::drive::model::call_arguments;
use crate::drive::model::failure::{AttemptFailure, Peer, SentPart};
use crate::drive::model::reasoning::{BEFORE_TEXT, BEHIND_TEXT};
use crate::drive::model::reply::{AttemptReply, StreamedReply, UnreadableReply};
use crate::drive::model::stop_reason::{StopReason, StopReasons};
use crate::drive::model::usage_fields::{CountedTokens, UsageFields};
use loopctl_engine::event::SaidCall;
use loopctl_engine::json::from_bytes;
use loopctl_lang::policy::json_text;

/// The statuses of a response, and the reasons of one that is incomplete. All other statuses are those of a response
/// that failed, or has not ended.
const STATUSES: &StopReasons = &[(&["completed"], StopReason::Stop), (&["incomplete"], StopReason::Length)];
const INCOMPLETE_REASONS: &StopReasons = &[
    (&["content_filter", "content_filtered", "guardrail_intervened", "safety", "refusal"], StopReason::Filtered),
    (&["max_output_tokens", "max_tokens", "length"], StopReason::Length),
];
/// The statuses of items that are not whole. `length` is of gateways; other words of theirs, and null, say nothing.
const ITEM_STATUSES: &StopReasons =
    &[(&["incomplete", "length", "max_output_tokens", "max_tokens"], StopReason::Length)];
const UNFINISHED: &[&str] = &["in_progress", "queued", "searching", "failed", "cancelled"];

/// A response: only what is needed of it.
#[derive(Deserialize)]
struct WholeResponse<'a> {
    /// Of a whole answer it is never null.
    #[serde(default, deserialize_with = "written")]
    status: Option<Option<String>>,
    #[serde(default)]
    model: Option<String>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
    #[serde(borrow, default)]
    output: Option<Vec<&'a RawValue>>,
    #[serde(default)]
    incomplete_details: Option<IncompleteDetails>,
    /// Azure's filters, and whether each of them fired.
    #[serde(borrow, default)]
    content_filters: Option<&'a RawValue>,
    #[serde(borrow, default)]
    usage: Option<&'a RawValue>,
}

/// A member that is there, if only as null.
fn written<'de, D: Deserializer<'de>>(member: D) -> Result<Option<Option<String>>, D::Error> {
    Option::deserialize(member).map(Some)
}

#[derive(Deserialize)]
struct IncompleteDetails {
    #[serde(default)]
    reason: Option<String>,
}

/// One event of a stream.
#[derive(Deserialize)]
struct ResponseEvent<'a> {
    #[serde(default, rename = "type")]
    kind: String,
    #[serde(default)]
    output_index: Option<u64>,
    #[serde(default)]
    content_index: Option<u64>,
    #[serde(default)]
    item_id: Option<String>,
    #[serde(default)]
    delta: Option<String>,
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    refusal: Option<String>,
    #[serde(default, deserialize_with = "call_arguments::member")]
    arguments: Option<String>,
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
    let output = response.output.as_deref().ok_or_else(|| missing_output(peer, &response))?;
    take_items(&mut whole, &OutputItems::default().reconciled(output)?)?;
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
    let event: ResponseEvent<'_> = from_bytes(data)?;
    let place = ItemPlace { index: event.output_index, id: event.item_id.filter(|id| !id.is_empty()) };
    let delta = event.delta.as_deref().unwrap_or_default();
    let part = |is_refusal| TextPlace { number: event.content_index.unwrap_or(0), is_refusal };
    match (event.kind.as_str(), event.response, event.item) {
        ("error", ..) => {
            let error = event.error.map_or(data, |error| error.get().as_bytes());
            return Err(UnreadableReply::Failed(peer.error_object(error)));
        }
        ("response.output_text.delta", ..) => add_text(pieces, &place, part(false), delta),
        ("response.refusal.delta", ..) => add_text(pieces, &place, part(true), delta),
        ("response.output_text.done", ..) => end_text(pieces, &place, part(false), event.text.as_deref()),
        ("response.refusal.done", ..) => end_text(pieces, &place, part(true), event.refusal.as_deref()),
        ("response.function_call_arguments.delta", ..) => {
            pieces.announce(delta);
            pieces.output_items.add_arguments(place, delta);
        }
        ("response.function_call_arguments.done", ..) => {
            pieces.output_items.end_arguments(place, event.arguments.as_deref().unwrap_or_default());
        }
        ("response.reasoning_summary_text.delta" | "response.reasoning_text.delta", ..) => pieces.announce(delta),
        ("response.output_item.added", _, Some(item)) => pieces.output_items.begin(place, item),
        ("response.output_item.done", _, Some(item)) => pieces.output_items.end(place, item),
        (
            kind @ ("response.completed"
            | "response.incomplete"
            | "response.failed"
            | "response.cancelled"
            | "response.done"),
            Some(response),
            _,
        ) => {
            let response: WholeResponse<'_> = json_text::read(response.get())?;
            let items = std::mem::take(&mut pieces.output_items);
            let items = items.reconciled(response.output.as_deref().unwrap_or_default())?;
            pieces.say_again();
            take_items(pieces, &items)?;
            let status = kind.strip_prefix("response.").filter(|status| *status != "done");
            ended(peer, pieces, response, status)?;
            if items.has_lost_call && !pieces.is_cut_off() {
                pieces.stop(StopReason::Broken("a call of which only the beginning came".to_owned()));
            }
        }
        _ => {}
    }
    Ok(pieces.ended)
}

/// Adds a piece of a message. Nobody is shown commentary as a part of the answer.
fn add_text(pieces: &mut StreamedReply, place: &ItemPlace, part: TextPlace, delta: &str) {
    if pieces.output_items.is_commentary(place) {
        pieces.announce(delta);
    } else {
        pieces.add(delta);
    }
    pieces.output_items.add_text(place, part, delta);
}

/// Takes in a text that is whole, as some servers send it without its pieces.
fn end_text(pieces: &mut StreamedReply, place: &ItemPlace, part: TextPlace, text: Option<&str>) {
    let text = text.unwrap_or_default();
    let is_commentary = pieces.output_items.is_commentary(place);
    if pieces.output_items.end_text(place, part, text) && !is_commentary {
        pieces.add(text);
    }
}

/// Takes the items of a response in.
fn take_items(whole: &mut StreamedReply, items: &ReconciledItems) -> Result<(), UnreadableReply> {
    let read = items.items.iter().map(|raw| Ok((raw, json_text::read::<OutputItem<'_>>(raw.get())?)));
    let read = read.collect::<Result<Vec<_>, serde_json::Error>>()?;
    // Where messages say that they are the answer, no other one is a part of it.
    let is_final = read.iter().any(|(_, item)| item.is_final());
    for (raw, mut item) in read {
        if matches!(item.kind.as_str(), "message" | "function_call") {
            take_item_status(whole, &mut item);
        }
        match item.kind.as_str() {
            "message" if item.is_commentary() || is_final && !item.is_final() => take_commentary(whole, &item.said())?,
            "message" => {
                whole.add(&item.said());
                whole.refused = whole.refused || item.content.iter().flatten().any(|part| part.refusal.is_some());
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
            kind if item.is_foreign_call() => whole.stop(StopReason::Broken(format!("a call of the kind {kind}"))),
            _ => {}
        }
    }
    if is_final {
        whole.reasoning.add(BEHIND_TEXT, &to_raw_value(FINAL)?);
    }
    Ok(())
}

/// Takes in what a message or a call says of its end. A call that is not whole is not made.
fn take_item_status(whole: &mut StreamedReply, item: &mut OutputItem<'_>) {
    let status = item.status.as_deref().unwrap_or_default().trim().to_ascii_lowercase();
    if StopReason::of(&status, ITEM_STATUSES) == Some(StopReason::Length) {
        whole.stop(StopReason::Length);
        item.arguments.take_if(|_| item.kind == "function_call");
    } else if UNFINISHED.contains(&status.as_str()) {
        whole.stop(StopReason::Broken(format!("a {} whose status is {status}", item.kind)));
    }
}

/// Takes in what the model says about its work: a thought, which goes back as the message that it was.
fn take_commentary(whole: &mut StreamedReply, text: &str) -> Result<(), UnreadableReply> {
    whole.reasoning.end_paragraph();
    whole.reasoning.read(text);
    let message = serde_json::json!({ "role": "assistant", "phase": "commentary", "content": text });
    let place = whole.place();
    whole.reasoning.add(place, &to_raw_value(&message)?);
    Ok(())
}

/// Takes in what a response says at its end. `event` is the status that the event of a stream names.
fn ended(
    peer: &Peer,
    whole: &mut StreamedReply,
    response: WholeResponse<'_>,
    event: Option<&str>,
) -> Result<(), UnreadableReply> {
    let usage = UsageFields::read(response.usage);
    whole.count(CountedTokens {
        input: usage.count(&["/input_tokens"]),
        output: usage.count(&["/output_tokens"]),
        cached_input: usage.count(&["/input_tokens_details/cached_tokens"]),
        cache_write: None,
        reasoning: usage.count(&["/output_tokens_details/reasoning_tokens"]),
        total: usage.count(&["/total_tokens"]),
        ..CountedTokens::default()
    });
    if let Some(error) = response.error {
        let failure = peer.error_object(error.get().as_bytes());
        let sent = if whole.has_begun() { SentPart::Request } else { failure.sent };
        return Err(UnreadableReply::Failed(AttemptFailure { usage: whole.usage(), sent, ..failure }));
    }
    whole.response_model = response.model;
    let filters = response.content_filters.and_then(|filters| json_text::read::<Value>(filters.get()).ok());
    for filter in filters.as_ref().and_then(Value::as_array).into_iter().flatten() {
        whole.refusal.add_fired(&filter["content_filter_results"]);
    }
    let reason = response.incomplete_details.and_then(|details| details.reason).unwrap_or_default();
    let status = response.status.as_ref().map(|status| status.as_deref().unwrap_or_default().trim());
    if event.is_none() && status == Some("") {
        whole.stop(StopReason::Broken("no status: it is null".to_owned()));
    }
    for status in [event, status].into_iter().flatten() {
        match StopReason::of(status, STATUSES) {
            Some(StopReason::Length) if StopReason::of(&reason, INCOMPLETE_REASONS) == Some(StopReason::Filtered) => {
                whole.stop_with(&reason, INCOMPLETE_REASONS);
            }
            Some(StopReason::Broken(status)) => whole.stop(StopReason::Broken(format!("the status {status}"))),
            Some(stopped) => whole.stop(stopped),
            None => {}
        }
    }
    // Some servers name what a reply lacks, and call it completed all the same.
    if let Some(stopped @ (StopReason::Length | StopReason::Filtered)) = StopReason::of(&reason, INCOMPLETE_REASONS) {
        match stopped {
            StopReason::Filtered => whole.stop_with(&reason, INCOMPLETE_REASONS),
            stopped => whole.stop(stopped),
        }
    }
    if whole.is_cut_off() && whole.place() == BEFORE_TEXT {
        // The item that must follow its reasoning was never written.
        whole.reasoning.drop_all();
    }
    whole.ended = true;
    Ok(())
}
