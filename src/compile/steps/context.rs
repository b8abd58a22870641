//! The context of a step: the names that the run and the steps before it supply.

/// The names that a step can take values from.
#[derive(Debug, Clone, Default)]
pub(in crate::compile) struct Context {
    names: Vec<String>,
    /// Whether there may be others: a step before writes what can't be known here.
    open: bool,
}

impl Context {
    /// That of a workflow's first step, beside what every loop knows.
    pub(super) fn first() -> Self {
        Self { names: vec!["__step".to_owned()], open: false }
    }

    /// The names, beside those that every loop knows.
    pub(in crate::compile) fn names(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(String::as_str)
    }

    /// Whether there may be names that nobody can know here.
    pub(in crate::compile) fn is_open(&self) -> bool {
        self.open
    }

    /// A name is written.
    pub(super) fn add(&mut self, name: &str) {
        // A path's first part is what is looked up.
        let first = name.trim_start_matches('@').split('.').next().unwrap_or_default();
        if !first.is_empty() && !self.names.iter().any(|known| known == first) {
            self.names.push(first.to_owned());
        }
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
