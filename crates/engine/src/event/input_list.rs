//! The long lists of a run's input: they are stored as texts beside the events, and not in them.

use serde::{Deserialize, Serialize};

use super::Started;
use crate::blob::{Blob, KnownTexts, TextFault, TextRole};
use crate::canonical;
use loopctl_lang::program::bind::run_input::{LongList, LongLists, RunInput};

/// A long list of the input.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InputList {
    /// Its member in the input.
    pub name: String,
    /// Its items, in order: a line of JSON each, cut into pieces that a store takes one at a time.
    pub pieces: Vec<Blob>,
}

impl InputList {
    /// Lists that are stored.
    pub fn of(lists: LongLists) -> Vec<Self> {
        let stored = |name, list: &LongList| Self { name, pieces: list.pieces().cloned().map(Blob::new).collect() };
        lists.into_iter().map(|(name, list)| stored(name, &list)).collect()
    }

    /// Restores its texts.
    ///
    /// # Errors
    /// Why the first of them can't be restored.
    pub(super) fn put_back(&mut self, texts: &KnownTexts<'_>) -> Result<(), TextFault> {
        self.pieces.iter_mut().try_for_each(|piece| piece.put_back(texts, TextRole::Other))
    }
}

impl Started {
    /// The input of the run.
    pub fn run_input(&self) -> RunInput {
        let list = |list: &InputList| {
            let pieces = list.pieces.iter().map(|piece| std::sync::Arc::clone(piece.shared()));
            (list.name.clone(), LongList::of_pieces(pieces))
        };
        RunInput { value: self.input.clone(), lists: self.lists.iter().map(list).collect() }
    }

    /// Writes the canonical text of the whole input, piece by piece: the same, whether its lists are long or not.
    pub fn spell_input(&self, out: &mut impl FnMut(&str)) {
        spell_input(&self.run_input(), out);
    }
}

/// Writes the canonical text of an input, piece by piece: the same, whether its lists are long or not.
pub fn spell_input(input: &RunInput, out: &mut impl FnMut(&str)) {
    let RunInput { value, lists } = input;
    let Some(members) = value.as_object().filter(|_| !lists.is_empty()) else {
        return canonical::spell(value, out);
    };
    let mut names: Vec<&String> = members.keys().collect();
    names.sort_unstable();
    for (number, name) in names.into_iter().enumerate() {
        out(if number == 0 { "{" } else { "," });
        canonical::spell(&name.as_str().into(), out);
        out(":");
        let Some(list) = lists.get(name) else {
            members.get(name).into_iter().for_each(|member| canonical::spell(member, out));
            continue;
        };
        for (number, item) in list.items().enumerate() {
            out(if number == 0 { "[" } else { "," });
            canonical::spell(&item, out);
        }
        out("]");
    }
    out("}");
}
