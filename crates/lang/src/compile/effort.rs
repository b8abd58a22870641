//! Limits the work of checking a document. A document can name one action in a thousand steps, or one wrong
//! name among many thousands: the work is counted, and ends at a limit that is the same on every machine.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;

use crate::diagnostic::{Diagnostic, Nearest, Source, codes};

/// The most work for one document: about the number of values, each counted once for each loop that it is a
/// part of.
const MAX_DOCUMENT_WORK: u64 = 300_000;
/// The most names that are compared in the search for the nearest one, and the most searches.
pub(super) const MEASURED: (usize, usize) = (10_000, 50);
/// The cost of a loop besides its actions.
pub(crate) const LOOP: u64 = 50;
/// The bytes of a text that cost as much as one value.
const BYTES_PER_VALUE: usize = 256;

/// The work for a document so far. Clones share the counter.
#[derive(Debug, Clone, Default)]
pub struct Effort(Arc<EffortCount>);

#[derive(Debug, Default)]
struct EffortCount {
    spent: AtomicU64,
    reported: AtomicBool,
    names: Mutex<Nearest>,
}

impl Effort {
    /// Counts work before it is done; false when the limit is reached, and the work must not be done.
    pub(crate) fn spend(&self, work: u64) -> bool {
        self.0.spent.fetch_add(work, Ordering::Relaxed).saturating_add(work) <= MAX_DOCUMENT_WORK
    }

    /// The work that was requested so far.
    pub fn spent(&self) -> u64 {
        self.0.spent.load(Ordering::Relaxed)
    }

    /// The error when the limit was reached; returned once.
    pub(crate) fn too_much(&self, document: &Source) -> Option<Diagnostic> {
        let reported = self.0.reported.swap(true, Ordering::Relaxed);
        let message = "the document takes more work to judge than is done for one; the rest is not judged";
        let fault = Diagnostic::error(codes::TOO_MUCH, message, "", document.whole());
        (!reported).then(|| fault.help("give it fewer loops, or its loops fewer or smaller actions"))
    }

    /// The nearest name, among the candidates that may still be compared.
    pub(crate) fn nearest<'a>(&self, name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
        self.names().of(name, candidates)
    }

    /// The nearest name of a field or thing, and whether it is clear which one was meant.
    pub(crate) fn nearest_field<'a>(
        &self,
        name: &str,
        candidates: impl IntoIterator<Item = &'a str> + Clone,
    ) -> Option<(&'a str, bool)> {
        self.names().field(name, candidates)
    }

    fn names(&self) -> std::sync::MutexGuard<'_, Nearest> {
        self.0.names.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The cost of a value and everything in it. A document is never deeper than its reader allows: the recursion ends.
pub(crate) fn weight(value: &Value) -> u64 {
    let inside = match value {
        Value::String(text) => u64::try_from(text.len() / BYTES_PER_VALUE).unwrap_or(u64::MAX),
        Value::Array(items) => items.iter().map(weight).fold(0, u64::saturating_add),
        Value::Object(members) => members.values().map(weight).fold(0, u64::saturating_add),
        _ => 0,
    };
    inside.saturating_add(1)
}
