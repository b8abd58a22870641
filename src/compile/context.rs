//! The context of a step: the names that the run and the steps before it supply.

use std::collections::BTreeSet;

/// The most names that are kept. Each of a thousand steps has a context of its own.
const MAX_NAMES: usize = 1_000;

/// The names that a step can take values from.
#[derive(Debug, Clone, Default)]
pub(in crate::compile) struct Context {
    /// In the order in which they are written.
    names: Vec<String>,
    known: BTreeSet<String>,
    /// Whether there may be others: a step before writes what can't be known here.
    open: bool,
}

impl Context {
    /// That of a workflow's first step, beside what every loop knows.
    pub(super) fn first() -> Self {
        let mut context = Self::default();
        context.add("__step");
        context
    }

    /// The names, beside those that every loop knows.
    pub(in crate::compile) fn names(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(String::as_str)
    }

    /// Whether it has a name.
    pub(in crate::compile) fn has(&self, name: &str) -> bool {
        self.known.contains(name)
    }

    /// Whether there may be names that nobody can know here.
    pub(in crate::compile) fn is_open(&self) -> bool {
        self.open
    }

    /// Whether it has all the names that it keeps.
    pub(super) fn is_full(&self) -> bool {
        self.names.len() >= MAX_NAMES
    }

    /// A name is written. Beyond [`MAX_NAMES`], any other may be, too.
    pub(super) fn add(&mut self, name: &str) {
        // A path's first part is what is looked up.
        let first = name.trim_start_matches('@').split('.').next().unwrap_or_default();
        if first.is_empty() || self.has(first) {
            return;
        }
        if self.is_full() {
            self.open = true;
            return;
        }
        self.names.push(first.to_owned());
        self.known.insert(first.to_owned());
    }

    /// Something is written whose name can't be known.
    pub(super) fn open(&mut self) {
        self.open = true;
    }

    /// Whether there may be names that nobody can know here, from now on.
    pub(super) fn set_open(&mut self, open: bool) {
        self.open = open;
    }

    /// What another way to the same place wrote is there, too, but for some names.
    pub(super) fn join(&mut self, other: &Self, but: &[&str]) {
        self.open |= other.open;
        for name in other.names.iter().filter(|name| !but.contains(&name.as_str())) {
            self.add(name);
        }
    }
}
