//! The items of a response. A stream brings them in pieces, whole, and again with its last event; servers leave one or
//! the other out. Each item counts once, wherever it stood.

use std::collections::{BTreeMap, HashMap, HashSet};

use serde::Deserialize;
use serde_json::value::{RawValue, to_raw_value};

use crate::drive::model::compact_json::compact;
use crate::drive::model::surrogate_halves;
use loopctl_lang::policy::json_text;

/// The phase of the messages that are the answer.
pub(super) const FINAL: &str = "final_answer";

/// An item of the output: only what is needed of it.
#[derive(Deserialize)]
pub(super) struct OutputItem<'a> {
    #[serde(default, rename = "type")]
    pub(super) kind: String,
    #[serde(default)]
    id: Option<String>,
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
    #[serde(default)]
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

/// Where a piece belongs, as far as its event says so.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(super) struct ItemPlace {
    pub(super) index: Option<u64>,
    pub(super) id: Option<String>,
}

impl ItemPlace {
    fn is_same(&self, other: &Self) -> bool {
        match (&self.id, &other.id) {
            (Some(id), Some(other)) => id == other,
            _ => self.index == other.index,
        }
    }
}

#[derive(Debug)]
struct ArrivedItem {
    place: ItemPlace,
    json: Box<RawValue>,
}

/// A text that came in pieces.
#[derive(Debug)]
struct ArrivedText {
    place: ItemPlace,
    text: String,
    is_refusal: bool,
}

/// What a stream has brought so far.
#[derive(Debug, Default)]
pub(in crate::drive::model) struct OutputItems {
    started: Vec<ArrivedItem>,
    done: Vec<ArrivedItem>,
    texts: Vec<ArrivedText>,
    arguments: Vec<ArrivedText>,
    /// Arguments that came whole.
    whole_arguments: Vec<ArrivedText>,
    /// The places that a text has come for.
    said: HashSet<ItemPlace>,
    /// Whether there may be marks of halves of signs in the texts.
    pub(in crate::drive::model) has_halves: bool,
    /// The messages that are commentary, by their indices and ids.
    commentary: (HashSet<u64>, HashSet<String>),
}

impl OutputItems {
    /// Whether there is none yet.
    pub(in crate::drive::model) fn is_empty(&self) -> bool {
        self.started.is_empty() && self.done.is_empty() && self.said.is_empty()
    }

    /// Takes in the beginning of an item.
    pub(super) fn begin(&mut self, place: ItemPlace, json: &RawValue) {
        let item = json_text::read::<OutputItem<'_>>(json.get());
        let Ok(item) = item else { return };
        if item.is_commentary() {
            self.commentary.0.extend(place.index);
            self.commentary.1.extend(place.id.or(item.id));
        } else if item.kind == "function_call" {
            let place = ItemPlace { id: place.id.or(item.id), ..place };
            self.started.push(ArrivedItem { place, json: json.to_owned() });
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
    pub(super) fn add_text(&mut self, place: ItemPlace, piece: &str, is_refusal: bool) {
        if !self.said.contains(&place) {
            self.said.insert(place.clone());
        }
        add(&mut self.texts, ArrivedText { place, text: piece.to_owned(), is_refusal });
    }

    /// Adds a piece of the arguments of a call.
    pub(super) fn add_arguments(&mut self, place: ItemPlace, piece: &str) {
        add(&mut self.arguments, ArrivedText { place, text: piece.to_owned(), is_refusal: false });
    }

    /// Takes in a text that is whole, unless it came in pieces. Returns whether it did not.
    pub(super) fn end_text(&mut self, place: ItemPlace, text: &str, is_refusal: bool) -> bool {
        let is_new = self.said.insert(place.clone());
        if is_new {
            self.texts.push(ArrivedText { place, text: text.to_owned(), is_refusal });
        }
        is_new
    }

    /// Takes in the arguments of a call that are whole.
    pub(super) fn end_arguments(&mut self, place: ItemPlace, text: &str) {
        self.whole_arguments.push(ArrivedText { place, text: text.to_owned(), is_refusal: false });
    }

    /// All items, those of the last event first where both have one.
    ///
    /// # Errors
    /// When one is no item.
    pub(super) fn reconciled(mut self, last: &[&RawValue]) -> Result<ReconciledItems, serde_json::Error> {
        let mut merged = MergedItems::default();
        if self.has_halves {
            let pieces = self.texts.iter_mut().chain(&mut self.arguments);
            pieces.for_each(|arrived| surrogate_halves::join(&mut arrived.text));
        }
        let texts = self.texts.iter().map(|text| self.message(text)).collect::<Result<Vec<_>, _>>()?;
        for (index, json) in (0..).zip(last) {
            merged.take(&ItemPlace { index: Some(index), id: None }, (*json).to_owned())?;
        }
        merged.close_source();
        let mut arguments = ArrivedArguments::new(self.arguments, self.whole_arguments, &self.started, &self.done)?;
        for ArrivedItem { place, json } in self.done {
            let arrived = if is_bare(&json)? { arguments.of(&place) } else { None };
            merged.take(&place, with_arguments(json, arrived)?)?;
        }
        merged.close_source();
        for (text, json) in self.texts.into_iter().zip(texts) {
            merged.take(&text.place, json)?;
        }
        merged.close_source();
        for ArrivedItem { place, json } in self.started {
            let json = without_status(&with_arguments(json, arguments.of(&place))?)?;
            merged.take_started(place, json)?;
        }
        merged.in_order()
    }

    /// A text that came in pieces, as the item that it is of.
    fn message(&self, arrived: &ArrivedText) -> Result<Box<RawValue>, serde_json::Error> {
        let key = if arrived.is_refusal { "refusal" } else { "text" };
        let phase = self.is_commentary(&arrived.place).then_some("commentary");
        let id = &arrived.place.id;
        to_raw_value(
            &serde_json::json!({ "type": "message", "id": id, "phase": phase, "content": [{ key: arrived.text }] }),
        )
    }
}

/// Adds a piece to the text that it continues.
fn add(texts: &mut Vec<ArrivedText>, piece: ArrivedText) {
    let is_same = |known: &&mut ArrivedText| known.is_refusal == piece.is_refusal && known.place.is_same(&piece.place);
    match texts.last_mut().filter(is_same) {
        Some(known) => known.text.push_str(&piece.text),
        None => texts.push(piece),
    }
}

/// All items of a response.
pub(super) struct ReconciledItems {
    pub(super) items: Vec<Box<RawValue>>,
    /// Whether one of them is a call that began, and of whose input nothing came.
    pub(super) has_lost_call: bool,
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
        pieces: Vec<ArrivedText>,
        whole: Vec<ArrivedText>,
        started: &[ArrivedItem],
        done: &[ArrivedItem],
    ) -> Result<Self, serde_json::Error> {
        let mut known = Self { ids: HashSet::new(), by_id: HashMap::new(), by_index: HashMap::new() };
        for ArrivedItem { place, json } in started.iter().chain(done) {
            let item: OutputItem<'_> = json_text::read(json.get())?;
            known.ids.extend([place.id.clone(), item.id].into_iter().flatten());
        }
        for ArrivedText { place, text, .. } in pieces {
            if let Some(arguments) = known.at(place) {
                arguments.push_str(&text);
            }
        }
        for ArrivedText { place, text, .. } in whole {
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

/// What a call with an input is known by when its ids rotate.
fn has_input(index: u64, name: &str) -> String {
    format!("input at {index} {name}")
}

/// Whether an item is a call without arguments.
fn is_bare(json: &RawValue) -> Result<bool, serde_json::Error> {
    let item: OutputItem<'_> = json_text::read(json.get())?;
    Ok(item.kind == "function_call" && item.arguments.as_deref().is_none_or(str::is_empty))
}

/// Items of several sources. One of a later source is taken when no earlier one has it.
#[derive(Default)]
struct MergedItems {
    /// Each item by its place in the output, reasoning before what it is about.
    items: BTreeMap<(u64, bool, usize), Box<RawValue>>,
    /// What the items of the earlier sources are known by.
    known: HashSet<String>,
    /// The same for the source that is taken in.
    new: HashSet<String>,
    /// The texts of messages by their index.
    texts: HashMap<u64, String>,
    new_texts: HashMap<u64, String>,
    /// Calls without arguments: another source may have them.
    bare: Vec<BareCall>,
}

/// A call without arguments.
struct BareCall {
    place: ItemPlace,
    json: Box<RawValue>,
    /// Whether only its beginning came.
    is_started: bool,
}

impl MergedItems {
    fn close_source(&mut self) {
        self.known.extend(self.new.drain());
        self.texts.extend(self.new_texts.drain());
    }

    fn take(&mut self, place: &ItemPlace, json: Box<RawValue>) -> Result<(), serde_json::Error> {
        if is_bare(&json)? {
            self.bare.push(BareCall { place: place.clone(), json, is_started: false });
            return Ok(());
        }
        self.add(place, json).map(drop)
    }

    /// Takes a call that began. It is the one of its place and name that is known with its input, whatever its ids.
    fn take_started(&mut self, place: ItemPlace, json: Box<RawValue>) -> Result<(), serde_json::Error> {
        let item: OutputItem<'_> = json_text::read(json.get())?;
        if let (Some(index), Some(name)) = (place.index, item.name.as_deref())
            && self.known.contains(&has_input(index, name))
        {
            return Ok(());
        }
        if is_bare(&json)? {
            self.bare.push(BareCall { place, json, is_started: true });
            return Ok(());
        }
        self.add(&place, json).map(drop)
    }

    /// Adds an item, unless it is known. Returns whether it is not.
    fn add(&mut self, place: &ItemPlace, json: Box<RawValue>) -> Result<bool, serde_json::Error> {
        let item: OutputItem<'_> = json_text::read(json.get())?;
        let Some(keys) = self.keys(&item, place) else { return Ok(false) };
        let is_known = keys.iter().any(|key| self.known.contains(key));
        self.new.extend(keys);
        if !is_known {
            let order = (place.index.unwrap_or(u64::MAX), item.kind != "reasoning", self.items.len());
            self.items.insert(order, json);
        }
        Ok(!is_known)
    }

    /// What an item is known by; `None` for one that counts for nothing, or whose text is there already.
    fn keys(&mut self, item: &OutputItem<'_>, place: &ItemPlace) -> Option<Vec<String>> {
        let id = item.id.as_ref().or(place.id.as_ref()).filter(|id| !id.is_empty());
        let mut keys: Vec<String> = id.map(|id| format!("{} {id}", item.kind)).into_iter().collect();
        match item.kind.as_str() {
            "message" => {
                let said = item.said();
                if said.trim().is_empty() {
                    return None;
                }
                if let Some(index) = place.index {
                    let other = self.texts.get(&index).filter(|other| !other.is_empty());
                    if other.is_some_and(|other| other.starts_with(&said) || said.starts_with(other)) {
                        return None;
                    }
                    self.new_texts.insert(index, said.clone());
                }
                keys.push(format!("says {said}"));
            }
            "function_call" => {
                let (name, arguments) = (item.name.as_deref()?, item.arguments.as_deref().unwrap_or_default());
                keys.extend(item.call_id.as_ref().filter(|id| !id.is_empty()).map(|id| format!("call {id}")));
                match place.index {
                    Some(index) => {
                        if !arguments.is_empty() {
                            self.new.insert(has_input(index, name));
                        }
                        // A gateway may write one input in several ways.
                        keys.push(format!("at {index} {name} {}", compact(arguments)));
                    }
                    None if keys.is_empty() => keys.push(format!("does {name} {arguments}")),
                    None => {}
                }
            }
            "reasoning" => {
                keys.extend(item.encrypted_content.map(|sealed| format!("sealed {sealed}")));
                keys.extend(place.index.map(|index| format!("reasoning at {index}")));
            }
            _ if item.is_foreign_call() => {
                keys.extend(item.call_id.as_ref().filter(|id| !id.is_empty()).map(|id| format!("call {id}")));
            }
            _ => return None,
        }
        Some(keys)
    }

    fn in_order(mut self) -> Result<ReconciledItems, serde_json::Error> {
        self.close_source();
        let mut has_lost_call = false;
        for BareCall { place, json, is_started } in std::mem::take(&mut self.bare) {
            let is_new = self.add(&place, json)?;
            has_lost_call = has_lost_call || is_new && is_started;
            self.close_source();
        }
        Ok(ReconciledItems { items: self.items.into_values().collect(), has_lost_call })
    }
}
