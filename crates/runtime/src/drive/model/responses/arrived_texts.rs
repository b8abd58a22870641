//! The texts of messages as a stream brings them: in pieces, whole, or both, each with what its event says of its place.

use std::collections::{BTreeMap, HashMap, HashSet};

/// Where a piece belongs, as far as its event says so.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(super) struct ItemPlace {
    pub(super) index: Option<u64>,
    pub(super) id: Option<String>,
}

/// The part of a message that a text is. For a server that does not number the parts there is one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct TextPlace {
    pub(super) number: u64,
    pub(super) is_refusal: bool,
}

/// What has come of a part.
#[derive(Debug, Default)]
pub(super) struct ArrivedPart {
    pub(super) pieces: String,
    /// The text that came whole.
    pub(super) whole: String,
}

/// What has come of a message.
#[derive(Debug)]
pub(super) struct ArrivedText {
    pub(super) place: ItemPlace,
    pub(super) parts: BTreeMap<TextPlace, ArrivedPart>,
}

/// What has come of all messages.
#[derive(Debug, Default)]
pub(super) struct ArrivedTexts {
    /// By the order in which they began.
    texts: BTreeMap<usize, ArrivedText>,
    by_id: HashMap<String, usize>,
    /// Those that came without an index, too.
    by_index: HashMap<Option<u64>, usize>,
    /// The ids of the messages that began. Some gateways give each event an id of its own: then the index says what a
    /// text belongs to.
    announced: HashSet<String>,
}

impl ArrivedTexts {
    /// Whether none has come.
    pub(super) fn is_empty(&self) -> bool {
        self.texts.is_empty()
    }

    /// A message began.
    pub(super) fn announce(&mut self, id: Option<String>) {
        self.announced.extend(id);
    }

    /// A part of the message at this place.
    pub(super) fn part(&mut self, place: &ItemPlace, part: TextPlace) -> &mut ArrivedPart {
        let at = self.known(place).unwrap_or(self.texts.len());
        if let Some(id) = place.id.as_ref().filter(|id| !self.by_id.contains_key(*id)) {
            self.by_id.insert(id.clone(), at);
        }
        if place.index.is_some() || at == self.texts.len() {
            self.by_index.entry(place.index).or_insert(at);
        }
        let new = || ArrivedText { place: place.clone(), parts: BTreeMap::new() };
        let text = self.texts.entry(at).or_insert_with(new);
        text.place.index = text.place.index.or(place.index);
        text.parts.entry(part).or_default()
    }

    /// The message that a place is of, among those that came.
    fn known(&self, place: &ItemPlace) -> Option<usize> {
        if let Some(known) = place.id.as_ref().and_then(|id| self.by_id.get(id)) {
            return Some(*known);
        }
        let of_index = self.by_index.get(&place.index).or_else(|| self.by_index.get(&None)).copied();
        let last = || self.texts.len().checked_sub(1).filter(|_| place.index.is_none());
        let known = of_index.or_else(last)?;
        // Without an index the ids say it, and two messages that began under one index are two.
        let is_announced = |id: &Option<String>| id.as_ref().is_some_and(|id| self.announced.contains(id));
        let is_other = |text: &ArrivedText| {
            let have_ids = place.id.is_some() && text.place.id.is_some();
            have_ids && (place.index.is_none() || is_announced(&place.id) && is_announced(&text.place.id))
        };
        (!self.texts.get(&known).is_some_and(is_other)).then_some(known)
    }

    /// All of them.
    pub(super) fn into_texts(self) -> impl Iterator<Item = ArrivedText> {
        self.texts.into_values()
    }
}
