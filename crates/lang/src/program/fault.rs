//! A fault in a part of a document, before the place of that part is known.

use std::ops::Range;

use crate::diagnostic::{Diagnostic, Severity};
use crate::program::template::TemplateFault;
use crate::syntax::Tree;

/// A fault at a position relative to a place that the caller knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocalFault {
    /// The code.
    pub code: &'static str,
    /// Its severity.
    pub severity: Severity,
    /// The JSON pointer of the faulty value, relative to the compiled part.
    pub pointer: String,
    /// The position in that value, if it is a string: bytes of the decoded string.
    pub inside: Option<Range<usize>>,
    /// What is wrong, in a sentence without a final stop.
    pub message: String,
    /// How to fix it.
    pub help: Option<String>,
    /// The name at its place, and the one that was most likely meant.
    pub rename: Option<(String, String)>,
    /// The JSON that was most likely meant in place of the whole value.
    pub replacement: Option<String>,
    /// Whether the fault is about the value's key.
    pub at_key: bool,
}

impl LocalFault {
    /// An error at a pointer.
    pub fn error(code: &'static str, pointer: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            code,
            severity: Severity::Error,
            pointer: pointer.into(),
            inside: None,
            message: message.into(),
            help: None,
            rename: None,
            replacement: None,
            at_key: false,
        }
    }

    /// A warning at a pointer.
    pub fn warning(code: &'static str, pointer: impl Into<String>, message: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, ..Self::error(code, pointer, message) }
    }

    /// The fault of the template at `pointer`.
    pub fn template(fault: TemplateFault, pointer: impl Into<String>) -> Self {
        let TemplateFault { code, message, range, help } = fault;
        Self { inside: range, help, ..Self::error(code, pointer, message) }
    }

    /// Adds help.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Adds a name that replaces the one at its place.
    #[must_use]
    pub fn rename(mut self, from: &str, to: &str) -> Self {
        self.rename = Some((from.to_owned(), to.to_owned()));
        self
    }

    /// Adds the JSON that takes the place of the whole value.
    #[must_use]
    pub fn replace_with(mut self, json: String) -> Self {
        self.replacement = Some(json);
        self
    }

    /// The same at the key of its value.
    #[must_use]
    pub fn at_key(mut self) -> Self {
        self.at_key = true;
        self
    }

    /// The same at a part of its string.
    #[must_use]
    pub fn inside(mut self, range: Range<usize>) -> Self {
        self.inside = Some(range);
        self
    }

    /// The diagnostic: `pointer` is that of the compiled part in this tree.
    pub fn placed(self, tree: &Tree, pointer: &str) -> Diagnostic {
        let path = format!("{pointer}{}", self.pointer);
        let place = match &self.inside {
            Some(inside) => tree.place_inside(&path, inside),
            None if self.at_key => tree.key_place(&path),
            None => tree.place(&path),
        };
        let raw = tree.source.text.get(place.start..place.end).unwrap_or_default();
        let renamed =
            self.rename.filter(|(from, _)| raw.contains(from.as_str())).map(|(from, to)| raw.replacen(&from, &to, 1));
        let fault = Diagnostic { severity: self.severity, ..Diagnostic::error(self.code, self.message, path, place) };
        let fault = match self.help {
            Some(help) => fault.help(help),
            None => fault,
        };
        match self.replacement.or(renamed) {
            Some(meant) => fault.suggest(meant),
            None => fault,
        }
    }

    /// The same relative to a place further up: `prefix` is the pointer of the compiled part.
    #[must_use]
    pub fn under(mut self, prefix: &str) -> Self {
        self.pointer.insert_str(0, prefix);
        self
    }

    /// Whether it is an error, so that the document can't run.
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }
}
