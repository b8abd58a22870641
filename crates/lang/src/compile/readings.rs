//! Parsed documents: neighbours of one document are neighbours of others too, and are parsed once for all of
//! them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use crate::diagnostic::Source;
use crate::syntax::document::{Document, read};

/// The parsed texts, shared by the documents beside them.
#[derive(Debug, Clone, Default)]
pub struct Readings {
    /// By the address of the text in memory: the source in the slot keeps it valid.
    all: Arc<Mutex<HashMap<usize, ReadingSlot>>>,
}

/// A text and its document.
type ReadingSlot = Arc<(Source, OnceLock<Arc<Document>>)>;

impl Readings {
    /// The document of a text; parsed on first use.
    pub(crate) fn document(&self, source: &Source) -> Arc<Document> {
        let place = source.text.as_ptr().addr();
        let slot = {
            let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(all.entry(place).or_insert_with(|| Arc::new((source.clone(), OnceLock::new()))))
        };
        // Two empty texts may have the same address.
        if slot.0.name != source.name || slot.0.text != source.text {
            return Arc::new(read(source));
        }
        Arc::clone(slot.1.get_or_init(|| Arc::new(read(source))))
    }
}
