//! The items of a response. A stream brings them in pieces, whole, and again with its last event; servers leave one or
//! the other out. Each item counts once, wherever it stood.

use std::collections::{HashMap, HashSet};

use serde::Deserialize;
use serde_json::value::{RawValue, to_raw_value};

use super::arrived_texts::{ArrivedPart, ArrivedText, ArrivedTexts, ItemPlace, TextPlace};
use super::merged::{ArrivedItem, MergedItems, OutputSource, ReconciledItems};
use crate::drive::model::call_arguments;
use loopctl_lang::policy::json_text;

/// The phase of the messages that are the answer.
pub(super) const FINAL: &str = "final_answer";

/// An item of the output: only what is needed of it.
#[derive(Deserialize)]
pub(super) struct OutputItem<'a> {
    #[serde(default, rename = "type")]
    pub(super) kind: String,
    #[serde(default)]
    pub(super) id: Option<String>,
    #[serde(default)]
    pub(super) status: Option<String>,
    #[serde(default)]
    pub(super) phase: Option<String>,
    #[serde(default)]
    pub(super) content: Option<Vec<OutputText>>,
    #[serde(default)]
    pub(super) summary: Option<Vec<OutputText>>,
    #[serde(borrow, default)]
    pub(super) encrypted_content: Option<&'a RawValue>,
    #[serde(default)]
    pub(super) call_id: Option<String>,
    #[serde(default)]
    pub(super) name: Option<String>,
    #[serde(default, deserialize_with = "call_arguments::member")]
    pub(super) arguments: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct OutputText {
    #[serde(default)]
    pub(super) text: Option<String>,
    #[serde(default)]
    pub(super) refusal: Option<String>,
}

impl OutputItem<'_> {
    /// Whether it is a message in which the model says what it is about to do: no part of its answer.
    pub(super) fn is_commentary(&self) -> bool {
        self.kind == "message" && self.phase.as_deref() == Some("commentary")
    }

    /// Whether it is a message that says that it is the answer.
    pub(super) fn is_final(&self) -> bool {
        self.kind == "message" && self.phase.as_deref() == Some(FINAL)
    }

    /// Whether it is a call of a kind that nobody offers, which waits for an answer.
    pub(super) fn is_foreign_call(&self) -> bool {
        let kinds = ["custom_tool_call", "local_shell_call", "shell_call", "apply_patch_call", "computer_call"];
        kinds.contains(&self.kind.as_str())
    }

    /// All that a message says.
    pub(super) fn said(&self) -> String {
        let parts = self.content.iter().flatten().flat_map(|part| [&part.text, &part.refusal]);
        parts.flatten().map(String::as_str).collect()
    }
}

/// Arguments of a call that came, as a piece or whole.
#[derive(Debug)]
struct ArrivedPiece {
    place: ItemPlace,
    text: String,
}

/// What a stream has brought so far.
#[derive(Debug, Default)]
pub(in crate::drive::model) struct OutputItems {
    started: Vec<ArrivedItem>,
    done: Vec<ArrivedItem>,
    texts: ArrivedTexts,
    arguments: Vec<ArrivedPiece>,
    /// Arguments that came whole.
    whole_arguments: Vec<ArrivedPiece>,
    /// Whether there may be marks of halves of signs in the texts.
    pub(in crate::drive::model) has_halves: bool,
    /// The messages that are commentary, by their indices and ids.
    commentary: (HashSet<u64>, HashSet<String>),
}

impl OutputItems {
    /// Whether there is none yet.
    pub(in crate::drive::model) fn is_empty(&self) -> bool {
        self.started.is_empty() && self.done.is_empty() && self.texts.is_empty()
    }

    /// Takes in the beginning of an item.
    pub(super) fn begin(&mut self, place: ItemPlace, json: &RawValue) {
        let item = json_text::read::<OutputItem<'_>>(json.get());
        let Ok(item) = item else { return };
        let is_commentary = item.is_commentary();
        let place = ItemPlace { id: place.id.or(item.id), ..place };
        if is_commentary {
            self.commentary.0.extend(place.index);
            self.commentary.1.extend(place.id.clone());
        }
        match item.kind.as_str() {
            "message" => self.texts.announce(place.id),
            "function_call" => self.started.push(ArrivedItem { place, json: json.to_owned() }),
            _ => {}
        }
    }

    /// Takes in an item that has ended.
    pub(super) fn end(&mut self, place: ItemPlace, json: &RawValue) {
        self.done.push(ArrivedItem { place, json: json.to_owned() });
    }

    /// Whether pieces of this place are commentary.
    pub(super) fn is_commentary(&self, place: &ItemPlace) -> bool {
        place.index.is_some_and(|index| self.commentary.0.contains(&index))
            || place.id.as_ref().is_some_and(|id| self.commentary.1.contains(id))
    }

    /// Adds a piece of a message.
    pub(super) fn add_text(&mut self, place: &ItemPlace, part: TextPlace, piece: &str) {
        self.texts.part(place, part).pieces.push_str(piece);
    }

    /// Adds a piece of the arguments of a call.
    pub(super) fn add_arguments(&mut self, place: ItemPlace, piece: &str) {
        match self.arguments.last_mut().filter(|last| last.place == place) {
            Some(last) => last.text.push_str(piece),
            None => self.arguments.push(ArrivedPiece { place, text: piece.to_owned() }),
        }
    }

    /// Takes in a text that is whole. Returns whether nothing of it came before.
    pub(super) fn end_text(&mut self, place: &ItemPlace, part: TextPlace, text: &str) -> bool {
        let part = self.texts.part(place, part);
        if part.whole.ends_with(text) {
            return false;
        }
        // Some servers do not say which part of a message it is.
        part.whole.push_str(text);
        part.pieces.is_empty()
    }

    /// Takes in the arguments of a call that are whole.
    pub(super) fn end_arguments(&mut self, place: ItemPlace, text: &str) {
        self.whole_arguments.push(ArrivedPiece { place, text: text.to_owned() });
    }

    /// All items, those of the last event first where both have one.
    ///
    /// # Errors
    /// When one is no item.
    pub(super) fn reconciled(mut self, last: &[&RawValue]) -> Result<ReconciledItems, serde_json::Error> {
        let texts = std::mem::take(&mut self.texts).into_texts();
        let texts = texts.map(|text| self.message(text)).collect::<Result<_, _>>()?;
        let mut arguments = ArrivedArguments::new(self.arguments, self.whole_arguments, &self.started, &self.done)?;
        let mut merged = MergedItems::new(self.has_halves);
        let last = (0..).zip(last).map(|(index, json)| {
            let place = ItemPlace { index: Some(index), id: None };
            ArrivedItem { place, json: (*json).to_owned() }
        });
        merged.take(OutputSource::Last, last.collect())?;
        let done = self.done.into_iter().map(|ArrivedItem { place, json }| {
            let arrived = if is_bare(&json)? { arguments.of(&place) } else { None };
            Ok(ArrivedItem { json: with_arguments(json, arrived)?, place })
        });
        merged.take(OutputSource::Done, done.collect::<Result<_, serde_json::Error>>()?)?;
        merged.take(OutputSource::Texts, texts)?;
        let started = self.started.into_iter().map(|ArrivedItem { place, json }| {
            let json = without_status(&with_arguments(json, arguments.of(&place))?)?;
            Ok(ArrivedItem { place, json })
        });
        merged.take(OutputSource::Started, started.collect::<Result<_, serde_json::Error>>()?)?;
        Ok(merged.in_order())
    }

    /// A text that came, as the item that it is of.
    fn message(&self, arrived: ArrivedText) -> Result<ArrivedItem, serde_json::Error> {
        let ArrivedText { place, parts } = arrived;
        let pieces: String = parts.values().map(|part| part.pieces.as_str()).collect();
        let text = |part: &ArrivedPart| match part.whole.is_empty() {
            true => part.pieces.clone(),
            false => part.whole.clone(),
        };
        let whole: String = parts.values().map(text).collect();
        // The pieces may say more than the texts that came whole.
        let is_in_pieces = pieces.starts_with(&whole);
        let content = parts.iter().map(|(TextPlace { is_refusal, .. }, part)| {
            let key = if *is_refusal { "refusal" } else { "text" };
            serde_json::json!({ key: if is_in_pieces { part.pieces.clone() } else { text(part) } })
        });
        let phase = self.is_commentary(&place).then_some("commentary");
        let content: Vec<serde_json::Value> = content.collect();
        let item = serde_json::json!({ "type": "message", "id": place.id, "phase": phase, "content": content });
        Ok(ArrivedItem { json: to_raw_value(&item)?, place })
    }
}

/// The arguments of calls that came in pieces, by the ids and indices of the calls.
struct ArrivedArguments {
    /// The ids of the items that began or ended. Some gateways give each event an id of its own: then the index says
    /// what a piece belongs to.
    ids: HashSet<String>,
    by_id: HashMap<String, String>,
    by_index: HashMap<u64, String>,
}

impl ArrivedArguments {
    fn new(
        pieces: Vec<ArrivedPiece>,
        whole: Vec<ArrivedPiece>,
        started: &[ArrivedItem],
        done: &[ArrivedItem],
    ) -> Result<Self, serde_json::Error> {
        let mut known = Self { ids: HashSet::new(), by_id: HashMap::new(), by_index: HashMap::new() };
        for ArrivedItem { place, json } in started.iter().chain(done) {
            let item: OutputItem<'_> = json_text::read(json.get())?;
            known.ids.extend([place.id.clone(), item.id].into_iter().flatten());
        }
        for ArrivedPiece { place, text } in pieces {
            if let Some(arguments) = known.at(place) {
                arguments.push_str(&text);
            }
        }
        for ArrivedPiece { place, text } in whole {
            if let Some(arguments) = known.at(place) {
                *arguments = text;
            }
        }
        Ok(known)
    }

    fn at(&mut self, place: ItemPlace) -> Option<&mut String> {
        match (place.id, place.index) {
            (Some(id), index) if index.is_none() || self.ids.contains(&id) => Some(self.by_id.entry(id).or_default()),
            (_, Some(index)) => Some(self.by_index.entry(index).or_default()),
            (_, None) => None,
        }
    }

    fn of(&mut self, place: &ItemPlace) -> Option<String> {
        let by_id = place.id.as_ref().and_then(|id| self.by_id.remove(id));
        by_id.or_else(|| self.by_index.remove(&place.index?))
    }
}

/// A call with the arguments that came for it.
fn with_arguments(json: Box<RawValue>, arguments: Option<String>) -> Result<Box<RawValue>, serde_json::Error> {
    let Some(arguments) = arguments else { return Ok(json) };
    let mut members: serde_json::Map<String, serde_json::Value> = json_text::read(json.get())?;
    members.insert("arguments".to_owned(), arguments.into());
    to_raw_value(&members)
}

/// A call that began, without the status that it had then.
fn without_status(json: &RawValue) -> Result<Box<RawValue>, serde_json::Error> {
    let mut members: serde_json::Map<String, serde_json::Value> = json_text::read(json.get())?;
    members.shift_remove("status");
    to_raw_value(&members)
}

/// Whether an item is a call without arguments.
fn is_bare(json: &RawValue) -> Result<bool, serde_json::Error> {
    let item: OutputItem<'_> = json_text::read(json.get())?;
    Ok(item.kind == "function_call" && item.arguments.as_deref().is_none_or(str::is_empty))
}
