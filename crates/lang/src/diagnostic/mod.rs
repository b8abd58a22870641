//! Diagnostics: one form for the faults of authors and those of a run, with a code, what happened, where, and
//! what to do about it. Every room may import this one; it imports `policy` only.

pub mod codes;
mod nearest;
mod remedy;
mod source;
#[cfg(test)]
mod tests;

use serde::Serialize;

use crate::policy::characters::deceives;

pub use nearest::{Nearest, is_lone, is_slip, nearest, nearest_field};
pub use remedy::{Help, Remedy};
pub use source::{Place, Source};

/// The severity of a fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// The document can't be run.
    Error,
    /// It can run, but is likely wrong.
    Warning,
}

/// A fault in what an author wrote, with its place and a way to fix it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Diagnostic {
    /// The rule's code, like `L012`; stable once released.
    pub code: &'static str,
    /// Its severity.
    pub severity: Severity,
    /// What is wrong, in one sentence without a final stop.
    pub message: String,
    /// The JSON pointer of the faulty value; empty for the document itself.
    pub path: String,
    /// Its place in the text.
    #[serde(flatten)]
    pub place: Place,
    /// How to fix it.
    pub help: Option<Help>,
    /// A replacement of the text at the place.
    pub suggestion: Option<Suggestion>,
    /// Other places that are related to it.
    pub related: Vec<Related>,
}

/// A replacement of a part of the text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Suggestion {
    /// The new text.
    pub replacement: String,
    /// The start of the replaced text, in bytes of the file.
    pub start: usize,
    /// The end of the replaced text, in bytes of the file.
    pub end: usize,
}

/// Another place that is related to a fault.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Related {
    /// The file.
    pub file: String,
    /// The line, from 1.
    pub line: u32,
    /// What is there.
    pub message: String,
}

impl Diagnostic {
    /// An error at a place.
    pub fn error(code: &'static str, message: impl Into<String>, path: impl Into<String>, place: Place) -> Self {
        Self {
            code,
            severity: Severity::Error,
            message: shown(&message.into()),
            path: path.into(),
            place,
            help: None,
            suggestion: None,
            related: Vec::new(),
        }
    }

    /// A warning at a place.
    pub fn warning(code: &'static str, message: impl Into<String>, path: impl Into<String>, place: Place) -> Self {
        Self { severity: Severity::Warning, ..Self::error(code, message, path, place) }
    }

    /// Adds help.
    #[must_use]
    pub fn help(mut self, help: impl Into<Help>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// The same with its remedy in the words of a surface.
    #[must_use]
    pub fn said(self, words: fn(&Remedy) -> String) -> Self {
        let help = self.help.map(|help| Help::from(&*help.said(words)));
        Self { help, ..self }
    }

    /// Adds a replacement for the text at its place.
    #[must_use]
    pub fn suggest(mut self, replacement: impl Into<String>) -> Self {
        self.suggestion =
            Some(Suggestion { replacement: replacement.into(), start: self.place.start, end: self.place.end });
        self
    }

    /// Adds a replacement for another part of the text.
    #[must_use]
    pub fn suggest_at(mut self, replacement: impl Into<String>, start: usize, end: usize) -> Self {
        self.suggestion = Some(Suggestion { replacement: replacement.into(), start, end });
        self
    }

    /// Adds a related place.
    #[must_use]
    pub fn related(mut self, place: &Place, message: impl Into<String>) -> Self {
        self.related.push(Related { file: place.file.to_string(), line: place.line, message: shown(&message.into()) });
        self
    }

    /// Whether it is an error, so that the document can't run.
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }
}

/// The most errors that are reported for one document, and the most warnings.
pub const MAX_REPORTED: usize = 1_000;

/// Sorts what was found in one text by where it begins there.
pub fn sort_by_place(faults: &mut [Diagnostic]) {
    faults.sort_by_key(|fault| fault.place.start);
}

/// Keeps the first errors and the first warnings, [`MAX_REPORTED`] of each. The fault that a limit was reached
/// always stays, as the last one.
pub fn few(faults: &mut Vec<Diagnostic>) {
    let (mut errors, mut warnings) = (0, 0);
    faults.retain(|fault| {
        if fault.code == codes::TOO_MUCH {
            return true;
        }
        let reported = if fault.is_error() { &mut errors } else { &mut warnings };
        *reported += 1;
        *reported <= MAX_REPORTED
    });
}

/// The same during collection: does something only when there are many, so that frequent calls cost nothing.
pub fn few_of_many(faults: &mut Vec<Diagnostic>) {
    if faults.len() > 4 * MAX_REPORTED {
        few(faults);
    }
}

/// The most characters of a message or a help.
const MAX_MESSAGE_CHARACTERS: usize = 1_000;

/// Escapes a text for people. It may repeat what an author wrote, which must not control a terminal, start a
/// new line of a log, change the reading direction, or look like another name.
pub fn shown(text: &str) -> String {
    let mut safe = String::with_capacity(text.len().min(MAX_MESSAGE_CHARACTERS));
    for (index, c) in text.chars().enumerate() {
        if index == MAX_MESSAGE_CHARACTERS {
            safe.push('\u{2026}');
            break;
        }
        if c.is_control() || deceives(c) {
            safe.push_str(&format!("\\u{{{:X}}}", u32::from(c)));
        } else {
            safe.push(c);
        }
    }
    safe
}
