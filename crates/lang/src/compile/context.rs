//! The context of a step: the names that the run and the steps before it supply.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;

/// The most names that are kept. Each of a thousand steps has a context of its own.
const MAX_NAMES: usize = 1_000;

/// The number of a step in its list.
pub(super) const STEP: &str = "__step";

/// The names that a step can take values from.
#[derive(Debug, Clone, Default)]
pub(in crate::compile) struct Context {
    /// In the order in which they are written.
    names: Vec<String>,
    known: BTreeSet<String>,
    /// The schemas of their values, of those that have one.
    schemas: BTreeMap<String, Arc<Value>>,
    /// Whether there may be others: a step before writes what can't be known here.
    open: bool,
    /// The name of the present item, in a loop over a list.
    item: Option<String>,
}

impl Context {
    /// That of a workflow's first step, beside what every loop knows.
    pub(super) fn first() -> Self {
        let mut context = Self::default();
        context.add(STEP);
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

    /// The name of the present item, in a loop over a list.
    pub(in crate::compile) fn item(&self) -> Option<&str> {
        self.item.as_deref()
    }

    /// What follows is done for each item of a list, which has this name.
    pub(super) fn set_item(&mut self, name: &str) {
        self.item = Some(name.to_owned());
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
        if name.is_empty() {
            return;
        }
        if self.has(name) {
            // The value may be that of either step.
            self.schemas.remove(name);
            return;
        }
        if self.is_full() {
            self.open = true;
            return;
        }
        self.names.push(name.to_owned());
        self.known.insert(name.to_owned());
    }

    /// A name is written, with a value that matches a schema.
    pub(super) fn add_value(&mut self, name: &str, schema: Value) {
        let before = self.schemas.get(name).cloned();
        let is_new = !self.has(name);
        self.add(name);
        if self.has(name) && (is_new || before.as_deref() == Some(&schema)) {
            self.schemas.insert(name.to_owned(), Arc::new(schema));
        }
    }

    /// The schema of a name's value, when it is known.
    pub(super) fn schema(&self, name: &str) -> Option<&Value> {
        self.shared_schema(name).map(|schema| &**schema)
    }

    /// The same, shared.
    pub(super) fn shared_schema(&self, name: &str) -> Option<&Arc<Value>> {
        self.schemas.get(name)
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
            match (other.schemas.get(name), self.schemas.get(name)) {
                // Nothing else wrote it in between.
                (Some(there), Some(here)) if Arc::ptr_eq(there, here) => {}
                (Some(schema), _) => self.add_value(name, Value::clone(schema)),
                (None, _) => self.add(name),
            }
        }
    }
}
