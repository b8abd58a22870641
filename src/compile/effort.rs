//! What judging a document may cost. A document can name one action from a thousand steps, and one wrong name
//! among many thousands: the work is counted, and ends at a bound that is the same on every machine.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;

use crate::diagnostic::{Diagnostic, Nearest, Source, codes};

/// The most work that is done for a document: about as many values, each looked at as a part of one loop.
const MOST: u64 = 300_000;
/// The most names that are looked at for the nearest one, and how often that is done.
pub(super) const MEASURED: (usize, usize) = (10_000, 50);
/// What a loop costs beside its actions.
pub(crate) const LOOP: u64 = 50;
/// So many bytes of a text cost as much as a value.
const BYTES: usize = 256;

/// The work that was done for a document. Its clones count together.
#[derive(Debug, Clone, Default)]
pub struct Effort(Arc<EffortCount>);

#[derive(Debug, Default)]
struct EffortCount {
    spent: AtomicU64,
    reported: AtomicBool,
    names: Mutex<Nearest>,
}

impl Effort {
    /// Counts work that is about to be done; false when it is too much, and must be left.
    pub(crate) fn spend(&self, work: u64) -> bool {
        self.0.spent.fetch_add(work, Ordering::Relaxed).saturating_add(work) <= MOST
    }

    /// The work that was asked for so far.
    pub fn spent(&self) -> u64 {
        self.0.spent.load(Ordering::Relaxed)
    }

    /// That it was too much: an error, once.
    pub(crate) fn too_much(&self, document: &Source) -> Option<Diagnostic> {
        let reported = self.0.reported.swap(true, Ordering::Relaxed);
        let message = "the document takes more work to judge than is done for one; the rest is not judged";
        let fault = Diagnostic::error(codes::TOO_MUCH, message, "", document.whole());
        (!reported).then(|| fault.help("give it fewer loops, or its loops fewer or smaller actions"))
    }

    /// The nearest name, among those candidates that may still be measured.
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

/// What it costs to look at a value and all that is in it.
pub(crate) fn weight(value: &Value) -> u64 {
    let mut work = 0_usize;
    let mut left = vec![value];
    while let Some(value) = left.pop() {
        work += 1;
        match value {
            Value::String(text) => work += text.len() / BYTES,
            Value::Array(items) => left.extend(items),
            Value::Object(members) => left.extend(members.values()),
            _ => {}
        }
    }
    u64::try_from(work).unwrap_or(u64::MAX)
}
