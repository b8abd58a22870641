//! Texts that many runs share, held once: a thousand runs of one loop begin with the same prompt.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use loopctl_engine::blob::{Blob, TextRole};

/// The maximum number of texts that are searched.
const TEXTS: usize = 128;
/// The maximum size in bytes of texts that no run uses any more.
const BYTES: usize = 16 << 20;

/// The long texts of the last runs.
#[derive(Debug, Default)]
pub(super) struct SharedTexts(Mutex<VecDeque<Blob>>);

impl SharedTexts {
    /// The held text, or this one, which is held from now on.
    pub fn share<T: AsRef<str> + Into<Arc<str>>>(&self, text: T) -> Blob {
        self.share_as(TextRole::Other, text)
    }

    /// The same of a document.
    pub fn share_document(&self, text: Arc<str>) -> Blob {
        self.share_as(TextRole::Document, text)
    }

    fn share_as<T: AsRef<str> + Into<Arc<str>>>(&self, kind: TextRole, text: T) -> Blob {
        if let Some(held) = self.find(kind, text.as_ref()) {
            return held;
        }
        let text = Blob::of(kind, text);
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        held.push_back(text.clone());
        let mut bytes: usize = held.iter().map(|text| text.len()).sum();
        while held.len() > TEXTS || bytes > BYTES {
            let Some(gone) = held.pop_front() else { break };
            bytes = bytes.saturating_sub(gone.len());
        }
        text
    }

    fn find(&self, kind: TextRole, text: &str) -> Option<Blob> {
        let held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Most texts differ in length already.
        held.iter().find(|held| ***held == *text && held.kind() == Some(kind)).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_texts_are_held_once_and_others_apart() {
        let texts = SharedTexts::default();
        let (one, two) = (texts.share("a prompt".to_owned()), texts.share(Arc::<str>::from("a prompt")));
        assert!(Arc::ptr_eq(one.shared(), two.shared()));
        assert_eq!(one, Blob::new("a prompt"));
        assert_ne!(texts.share("another".to_owned()), one);
        assert_ne!(texts.share_document("a prompt".into()), one, "a document is named otherwise");
    }

    #[test]
    fn neither_many_nor_large_texts_are_held_for_long() {
        let texts = SharedTexts::default();
        for number in 0..1_000 {
            texts.share(number.to_string());
        }
        assert_eq!(texts.0.lock().unwrap().len(), TEXTS);
        texts.share("x".repeat(BYTES));
        assert_eq!(texts.0.lock().unwrap().len(), 1);
        assert_eq!(texts.share("x".repeat(BYTES + 1)).len(), BYTES + 1);
        assert!(texts.0.lock().unwrap().is_empty());
    }
}
