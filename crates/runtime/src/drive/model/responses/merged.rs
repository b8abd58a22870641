//! What the sources of a stream have in common: the last event, the items that ended, the texts, and the calls that began.
//! One rule says whether an item of a later source is one that an earlier source has: it has a name of that item (an id,
//! or its place), or else its content, each item of a source for one of another at most.

use std::collections::HashMap;

use serde_json::value::RawValue;

use super::arrived_texts::ItemPlace;
use super::items::OutputItem;
use crate::drive::model::compact_json::compact;
use crate::drive::model::surrogate_halves;
use loopctl_lang::policy::json_text;

/// All items of a response.
pub(super) struct ReconciledItems {
    pub(super) items: Vec<Box<RawValue>>,
    /// Whether one of them is a call that began, and of whose input nothing came.
    pub(super) has_lost_call: bool,
}

/// Where an item is from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OutputSource {
    /// The last event.
    Last,
    /// The events of items that ended.
    Done,
    /// The texts that came in pieces, or whole.
    Texts,
    /// The events of calls that began.
    Started,
}

/// An item that came, with its place.
#[derive(Debug)]
pub(super) struct ArrivedItem {
    pub(super) place: ItemPlace,
    pub(super) json: Box<RawValue>,
}

/// What an item is compared by.
#[derive(Debug, Clone, PartialEq, Eq)]
enum ItemContent {
    /// A message: its text without blanks.
    Text(String),
    /// A call of a tool. `input` is empty for one without arguments: another source may have them.
    Call { name: String, input: String },
    /// What has names only.
    Other,
}

/// An item of a source that is taken in.
struct NewItem {
    source: OutputSource,
    index: Option<u64>,
    is_reasoning: bool,
    /// What it is known by wherever it comes: its ids, and its place.
    names: Vec<String>,
    content: ItemContent,
    json: Box<RawValue>,
}

impl NewItem {
    /// Reads an item; `None` for one that counts for nothing. `has_halves`: its texts may have marks of halves of signs.
    fn read(source: OutputSource, arrived: ArrivedItem, has_halves: bool) -> Result<Option<Self>, serde_json::Error> {
        let ArrivedItem { place, json } = arrived;
        let item: OutputItem<'_> = json_text::read(json.get())?;
        let whole = |text: &str| {
            let mut whole = text.to_owned();
            if has_halves {
                surrogate_halves::join(&mut whole);
            }
            whole
        };
        let id = item.id.as_ref().or(place.id.as_ref()).filter(|id| !id.is_empty());
        let mut names: Vec<String> = id.map(|id| format!("{} {id}", item.kind)).into_iter().collect();
        let call_id = item.call_id.as_ref().filter(|id| !id.is_empty()).map(|id| format!("call {id}"));
        let content = match item.kind.as_str() {
            "message" => {
                let said: String = whole(&item.said()).split_whitespace().collect();
                if said.is_empty() {
                    return Ok(None);
                }
                ItemContent::Text(said)
            }
            "function_call" => {
                let Some(name) = item.name.clone() else { return Ok(None) };
                // A gateway may write one input in several ways.
                let input = compact(&whole(item.arguments.as_deref().unwrap_or_default()));
                names.extend(call_id);
                names.extend(place.index.map(|index| format!("at {index} {name} {input}")));
                ItemContent::Call { name, input }
            }
            "reasoning" => {
                names.extend(item.encrypted_content.map(|sealed| format!("sealed {sealed}")));
                names.extend(place.index.map(|index| format!("reasoning at {index}")));
                ItemContent::Other
            }
            _ if item.is_foreign_call() => {
                names.extend(call_id);
                ItemContent::Other
            }
            _ => return Ok(None),
        };
        let is_reasoning = item.kind == "reasoning";
        Ok(Some(Self { source, index: place.index, is_reasoning, names, content, json }))
    }

    /// Whether it is a call without arguments.
    fn is_bare(&self) -> bool {
        matches!(&self.content, ItemContent::Call { input, .. } if input.is_empty())
    }

    /// What a call with an input is known by when its ids rotate: its place and its tool. Nothing for other items.
    fn place_of_input(&self) -> Option<String> {
        match (&self.content, self.index) {
            (ItemContent::Call { name, .. }, Some(index)) => Some(format!("input at {index} {name}")),
            _ => None,
        }
    }

    /// What an item of another source with the same content is found by.
    fn content_key(&self) -> Option<String> {
        match &self.content {
            ItemContent::Text(said) => Some(format!("says {said}")),
            ItemContent::Call { name, input } => Some(format!("does {name} {input}")),
            ItemContent::Other => None,
        }
    }

    /// What a call of the same tool is found by.
    fn tool_key(&self) -> Option<String> {
        match &self.content {
            ItemContent::Call { name, .. } => Some(format!("calls {name}")),
            ItemContent::Text(_) | ItemContent::Other => None,
        }
    }
}

/// An item that is one of the response.
struct MergedItem {
    /// Its place in the output, reasoning before what it is about.
    order: (u64, bool),
    content: ItemContent,
    json: Box<RawValue>,
    /// The sources that have it.
    sources: Vec<OutputSource>,
}

/// The items of one content.
#[derive(Default)]
struct AlikeItems {
    at: Vec<usize>,
    /// The source that was last looked for, and how many of them it has passed.
    passed: Option<(OutputSource, usize)>,
}

/// Items of several sources. One of a later source is taken when no earlier one has it.
#[derive(Default)]
pub(super) struct MergedItems {
    has_halves: bool,
    items: Vec<MergedItem>,
    /// The items of the earlier sources by their names.
    named: HashMap<String, usize>,
    /// The same for the source that is taken in.
    new: Vec<(String, usize)>,
    /// The messages of the earlier sources by their places.
    messages: HashMap<u64, usize>,
    new_messages: Vec<(u64, usize)>,
    /// The items by their content, and calls by their tools, too.
    alike: HashMap<String, AlikeItems>,
    /// Calls without arguments.
    bare: Vec<NewItem>,
}

impl MergedItems {
    pub(super) fn new(has_halves: bool) -> Self {
        Self { has_halves, ..Self::default() }
    }

    /// Takes in a source. What has the name of a known item is looked for first: it is no other one's then.
    pub(super) fn take(&mut self, source: OutputSource, arrived: Vec<ArrivedItem>) -> Result<(), serde_json::Error> {
        let has_halves = self.has_halves;
        let read = arrived.into_iter().filter_map(|item| NewItem::read(source, item, has_halves).transpose());
        let read = read.collect::<Result<Vec<_>, _>>()?;
        let is_said = self.has_said(&read);
        let mut unnamed = Vec::new();
        for item in read {
            match self.named(&item) {
                _ if is_said && matches!(item.content, ItemContent::Text(_)) => {}
                Some(known) => self.is_again(known, item),
                None if item.is_bare() => self.bare.push(item),
                None => unnamed.push(item),
            }
        }
        for item in unnamed {
            match item.content_key().and_then(|key| self.alike(&key, source)) {
                Some(known) => self.is_again(known, item),
                None => self.add(item),
            }
        }
        self.close_source();
        Ok(())
    }

    /// Whether the known messages say together what those of a source do, or begin with it.
    fn has_said(&self, source: &[NewItem]) -> bool {
        let texts = source.iter().filter_map(|item| match &item.content {
            ItemContent::Text(said) => Some(said.as_str()),
            ItemContent::Call { .. } | ItemContent::Other => None,
        });
        let said: String = texts.collect();
        if said.is_empty() {
            return false;
        }
        let mut known: Vec<_> = self.items.iter().filter(|item| matches!(item.content, ItemContent::Text(_))).collect();
        known.sort_by_key(|item| item.order);
        let mut rest = said.as_str();
        for item in known {
            let ItemContent::Text(known) = &item.content else { continue };
            match rest.strip_prefix(known.as_str()) {
                Some(behind) => rest = behind,
                None => return known.starts_with(rest),
            }
        }
        rest.is_empty()
    }

    /// The item of an earlier source that has one of the names of this one.
    fn named(&self, item: &NewItem) -> Option<usize> {
        let named = item.names.iter().find_map(|name| self.named.get(name));
        if let Some(known) = named {
            return Some(*known);
        }
        match (&item.content, item.source) {
            // It is the one of its place and name that is known with its input, whatever its ids.
            (ItemContent::Call { .. }, OutputSource::Started) => self.named.get(&item.place_of_input()?).copied(),
            (ItemContent::Text(said), _) => {
                let known = *self.messages.get(&item.index?)?;
                let ItemContent::Text(other) = &self.items.get(known)?.content else { return None };
                (other.starts_with(said.as_str()) || said.starts_with(other.as_str())).then_some(known)
            }
            _ => None,
        }
    }

    /// An item with this content that this source does not have yet.
    fn alike(&mut self, key: &str, source: OutputSource) -> Option<usize> {
        let alike = self.alike.get_mut(key)?;
        let from = alike.passed.filter(|(last, _)| *last == source).map_or(0, |(_, from)| from);
        let is_free = |at: &usize| self.items.get(*at).is_some_and(|item| !item.sources.contains(&source));
        let found = alike.at.iter().enumerate().skip(from).find(|(_, at)| is_free(at));
        alike.passed = Some((source, found.map_or(alike.at.len(), |(place, _)| place)));
        found.map(|(_, at)| *at)
    }

    /// A source has an item that is known.
    fn is_again(&mut self, known: usize, item: NewItem) {
        self.new.extend(item.names.into_iter().map(|name| (name, known)));
        if let Some(merged) = self.items.get_mut(known).filter(|merged| !merged.sources.contains(&item.source)) {
            merged.sources.push(item.source);
        }
    }

    /// Adds an item.
    fn add(&mut self, item: NewItem) {
        let at = self.items.len();
        if !item.is_bare() {
            self.new.extend(item.place_of_input().map(|name| (name, at)));
        }
        for key in [item.content_key(), item.tool_key()].into_iter().flatten() {
            self.alike.entry(key).or_default().at.push(at);
        }
        if let (ItemContent::Text(_), Some(index)) = (&item.content, item.index) {
            self.new_messages.push((index, at));
        }
        let NewItem { source, index, is_reasoning, names, content, json } = item;
        self.new.extend(names.into_iter().map(|name| (name, at)));
        let order = (index.unwrap_or(u64::MAX), !is_reasoning);
        self.items.push(MergedItem { order, content, json, sources: vec![source] });
    }

    /// From now on the items of the source are known.
    fn close_source(&mut self) {
        for (name, at) in self.new.drain(..) {
            self.named.entry(name).or_insert(at);
        }
        for (index, at) in self.new_messages.drain(..) {
            self.messages.entry(index).or_insert(at);
        }
    }

    /// All items, the calls without arguments last: one of them is the call of its tool that another source has, with
    /// what it is called with.
    pub(super) fn in_order(mut self) -> ReconciledItems {
        let mut has_lost_call = false;
        for item in std::mem::take(&mut self.bare) {
            let alike = |merged: &mut Self, key: Option<String>| merged.alike(&key?, item.source);
            let known = self
                .named(&item)
                .or_else(|| alike(&mut self, item.content_key()))
                .or_else(|| alike(&mut self, item.tool_key()));
            match known {
                Some(known) => self.is_again(known, item),
                None => {
                    has_lost_call = has_lost_call || item.source == OutputSource::Started;
                    self.add(item);
                }
            }
            self.close_source();
        }
        self.items.sort_by_key(|item| item.order);
        ReconciledItems { items: self.items.into_iter().map(|item| item.json).collect(), has_lost_call }
    }
}
