//! The values that texts take.

use std::collections::HashSet;

use super::SentText;
use crate::program::reference::Field;

/// The most paths that are kept.
const MAX_PATHS: usize = 1_000;
/// The most beginnings of a path that are kept, or looked for.
const MAX_DEPTH: usize = 16;

/// The paths of the values that some texts take.
#[derive(Default)]
pub(super) struct TakenPaths {
    /// The paths, with dots between their names.
    whole: HashSet<String>,
    /// What each path begins with: its first name, its first two, and so on.
    beginnings: HashSet<String>,
    /// The first name of each path, in the order of the texts.
    first_names: Vec<String>,
}

impl TakenPaths {
    /// Those of texts.
    pub fn of(texts: &[SentText<'_>]) -> Self {
        let mut taken = Self::default();
        for text in texts {
            match text.compiled() {
                Some(Field::Path(path) | Field::Optional(path)) if text.kind.takes_path() => taken.add(path),
                Some(Field::Template(template)) => {
                    template.variables().iter().for_each(|variable| taken.add(&variable.path));
                }
                _ => {}
            }
            if taken.first_names.len() > MAX_PATHS {
                break;
            }
        }
        taken
    }

    fn add(&mut self, path: &[String]) {
        let depths = 1..=path.len().min(MAX_DEPTH);
        self.beginnings.extend(depths.filter_map(|depth| Some(path.get(..depth)?.join("."))));
        self.whole.insert(path.join("."));
        self.first_names.extend(path.first().cloned());
    }

    /// Whether none is taken.
    pub fn is_empty(&self) -> bool {
        self.whole.is_empty()
    }

    /// The first name of each path.
    pub fn first_names(&self) -> impl Iterator<Item = &str> {
        self.first_names.iter().map(String::as_str)
    }

    /// Whether the value at a path is taken: itself, a part of it, or one that it is a part of. All of `input` is none
    /// of them.
    pub fn has(&self, path: &str) -> bool {
        let mut around = path.match_indices('.').take(MAX_DEPTH).filter_map(|(at, _)| path.get(..at));
        let is_it = path != "input" && (self.beginnings.contains(path) || self.whole.contains(path));
        is_it || around.any(|around| around != "input" && self.whole.contains(around))
    }
}
