//! The reasoning of a reply, from the provider's answer to what is sealed, and back into requests.
//!
//! What is sealed is a JSON array of parts: each is JSON of the provider, and the place in the reply where it stood.
//! Only the protocol that wrote a part knows what is in it.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::surrogate_halves;
use loopctl_engine::conversation::{Message, Native, Role};
use loopctl_engine::event::Reasoning;
use loopctl_lang::policy::json_text;
use loopctl_lang::policy::reasoning::MAX_TEXT;

/// Before the reply's text.
pub(super) const BEFORE_TEXT: usize = 0;
/// Behind the reply's text, before its first call.
pub(super) const BEHIND_TEXT: usize = 1;

/// Behind the call at this place, from 0.
pub(super) fn behind_call(place: usize) -> usize {
    place.saturating_add(2)
}

/// JSON of a provider, and where it stood in the reply.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct SealedPart {
    /// [`BEFORE_TEXT`], [`BEHIND_TEXT`], or [`behind_call`].
    pub(super) at: usize,
    /// The provider's JSON, as it came.
    pub(super) json: Box<RawValue>,
}

/// A part that comes in pieces.
#[derive(Debug)]
struct GrowingPart {
    /// The provider's number of it.
    index: u64,
    at: usize,
    members: Map<String, Value>,
}

/// What has come of a reply's reasoning.
#[derive(Debug, Default)]
pub(super) struct ReasoningParts {
    parts: Vec<SealedPart>,
    growing: Option<GrowingPart>,
    text: String,
    /// The bytes of the whole text, also of what is not kept.
    written: usize,
}

impl ReasoningParts {
    /// Adds a part that came whole.
    pub(super) fn add(&mut self, at: usize, json: &RawValue) {
        self.parts.push(SealedPart { at, json: json.to_owned() });
    }

    /// Whether there is a part at this position that came whole.
    pub(super) fn has_part(&self, at: usize) -> bool {
        self.parts.iter().any(|part| part.at == at)
    }

    /// The members of the part of this index, which comes in pieces: a new part when the one before had another
    /// index.
    pub(super) fn growing(&mut self, index: u64, at: usize) -> &mut Map<String, Value> {
        if self.growing.as_ref().is_some_and(|part| part.index != index) {
            self.close();
        }
        &mut self.growing.get_or_insert_with(|| GrowingPart { index, at, members: Map::new() }).members
    }

    /// The members of the part of this index, when it is the one that is growing.
    pub(super) fn opened(&mut self, index: u64) -> Option<&mut Map<String, Value>> {
        self.growing.as_mut().filter(|part| part.index == index).map(|part| &mut part.members)
    }

    /// Drops the part that is growing when it lacks a member: the reply was cut off in it.
    pub(super) fn drop_unless_it_has(&mut self, member: &str) {
        self.growing = self.growing.take().filter(|part| part.members.contains_key(member));
    }

    /// Drops all that would be sent back; the readable text stays.
    pub(super) fn drop_all(&mut self) {
        self.parts.clear();
        self.growing = None;
    }

    /// Drops the parts of calls that are dropped, and moves the others. `dropped`: for each call whether it is.
    pub(super) fn drop_calls(&mut self, dropped: &[bool]) {
        self.close();
        let mut kept = 0;
        let place = |is_dropped: &bool| {
            let place = (!is_dropped).then(|| behind_call(kept));
            kept += usize::from(!is_dropped);
            place
        };
        let places: Vec<Option<usize>> = dropped.iter().map(place).collect();
        self.parts.retain_mut(|part| {
            let call = part.at.checked_sub(behind_call(0));
            let place = call.and_then(|call| places.get(call).copied()).unwrap_or(Some(part.at));
            part.at = place.unwrap_or(part.at);
            place.is_some()
        });
    }

    fn close(&mut self) {
        if let Some(GrowingPart { at, members, .. }) = self.growing.take()
            // What was read as JSON can be written as JSON.
            && let Ok(json) = serde_json::value::to_raw_value(&members)
        {
            self.parts.push(SealedPart { at, json });
        }
    }

    /// Adds to the text that people can read.
    pub(super) fn read(&mut self, text: &str) {
        self.written = self.written.saturating_add(text.len());
        // A text has at least a quarter as many characters as bytes.
        let room = (MAX_TEXT * 4).saturating_sub(self.text.len());
        self.text.push_str(text.get(..text.floor_char_boundary(room)).unwrap_or_default());
    }

    /// The bytes that could be read so far.
    pub(super) fn written(&self) -> usize {
        self.written
    }

    /// Ends a paragraph of that text.
    pub(super) fn end_paragraph(&mut self) {
        if !self.text.is_empty() && !self.text.ends_with('\n') {
            self.read("\n");
        }
    }

    /// The whole; `None` when there was no reasoning. The caller adds where it is from, and says whether there may be
    /// marks of halves in it.
    pub(super) fn sealed(mut self, has_halves: bool) -> Option<Box<Reasoning>> {
        self.close();
        let mut text = self.text;
        if has_halves {
            surrogate_halves::join(&mut text);
        }
        if let Some((end, _)) = text.char_indices().nth(MAX_TEXT) {
            text.truncate(end);
        }
        text.truncate(text.trim_end().len());
        if self.parts.is_empty() && text.is_empty() {
            return None;
        }
        let mut sealed = String::new();
        if !self.parts.is_empty() {
            sealed = serde_json::to_string(&self.parts).unwrap_or_default();
            if has_halves {
                surrogate_halves::join(&mut sealed);
            }
        }
        Some(Box::new(Reasoning { origin: String::new(), sealed, text }))
    }
}

/// Adds a piece to a text member of a part.
pub(super) fn append(part: &mut Map<String, Value>, member: &str, piece: &str) {
    match part.get_mut(member) {
        Some(Value::String(text)) => text.push_str(piece),
        _ => drop(part.insert(member.to_owned(), Value::from(piece))),
    }
}

/// The signature, as JSON, that Google documents for a call that no Gemini made
/// (ai.google.dev/gemini-api/docs/thought-signatures, read in November 2026).
pub(super) const ANY_SIGNATURE: &str = r#""skip_thought_signature_validator""#;

/// The words that are sent where a server wants the reasoning of a turn and it is not there.
pub(super) const ANY_REASONING: &str = "The reasoning of this turn is not known.";

/// Whether JSON is a text with something in it.
pub(super) fn is_text(json: &str) -> bool {
    json_text::read::<Cow<'_, str>>(json).is_ok_and(|text| !text.trim().is_empty())
}

/// Whether a message is a turn of the model without reasoning that could go back to the model of this origin.
pub(super) fn lacks_reasoning(origin: &str, message: &Message) -> bool {
    message.role == Role::Assistant && returned(origin, message).is_empty()
}

/// The messages without the reasoning of this origin.
pub(super) fn without_reasoning(origin: &str, messages: &[Message]) -> Vec<Message> {
    let mut bare = messages.to_vec();
    for message in &mut bare {
        if let Some(Native::Reply { reasoning, .. }) = message.native.as_deref_mut() {
            reasoning.take_if(|reasoning| reasoning.origin == origin);
        }
    }
    bare
}

/// The messages without calls that lack their reasoning: such a call and its result are said in messages of ours, so
/// that the model neither answers for the reasoning nor writes calls in that form itself. One message each, as before.
pub(super) fn without_foreign_calls(origin: &str, messages: &[Message]) -> Vec<Message> {
    let mut names: BTreeMap<&str, &str> = BTreeMap::new();
    let said = |message: &Message, text: String| Message { role: Role::User, text: text.into(), ..message.clone() };
    let mut whole = Vec::with_capacity(messages.len());
    for message in messages {
        let called = match message.native.as_deref() {
            Some(Native::Answers { id, failed }) => names.get(id.as_str()).map(|name| {
                let what = if *failed { "failed" } else { "gave" };
                format!("The call of {name} {what}: {}", message.text)
            }),
            _ if !message.calls().is_empty() && lacks_reasoning(origin, message) => {
                names.extend(message.calls().iter().map(|call| (call.id.as_str(), call.name.as_str())));
                let calls =
                    message.calls().iter().map(|call| format!("{} was called with {}.", call.name, call.arguments));
                let words = Some(message.text.trim())
                    .filter(|text| !text.is_empty())
                    .map(|text| format!("It was said: {text}"));
                Some(words.into_iter().chain(calls).collect::<Vec<_>>().join("\n"))
            }
            _ => {
                for call in message.calls() {
                    names.remove(call.id.as_str());
                }
                None
            }
        };
        whole.push(match called {
            Some(text) => Message { native: None, ..said(message, format!("[In an earlier turn] {text}")) },
            None => message.clone(),
        });
    }
    whole
}

/// What goes back with a message to the model of this origin: nothing, when another one wrote it.
pub(super) fn returned(origin: &str, message: &Message) -> Vec<SealedPart> {
    let reasoning = message.reasoning().filter(|reasoning| reasoning.origin == origin);
    // A journal that someone changed may hold anything: what can't be read is not sent.
    reasoning.and_then(|reasoning| json_text::read(&reasoning.sealed).ok()).unwrap_or_default()
}
