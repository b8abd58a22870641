//! Long texts that many runs share: the events of a run name them by their digest, and the texts are stored
//! beside the events, once for all runs.

use std::ops::Deref;
use std::sync::Arc;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::digest::Digest;

/// A text with its digest, cheap to clone. It is serialized as the digest alone; after deserialization it is
/// empty until [`Blob::put_back`] restores the text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Blob {
    digest: Digest,
    text: Arc<str>,
}

impl Blob {
    /// A text; only this function computes its digest.
    pub fn new(text: impl Into<Arc<str>>) -> Self {
        let text = text.into();
        Self { digest: Digest::of(&text), text }
    }

    /// The digest, which replaces the text in events.
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// The text, to be shared.
    pub fn shared(&self) -> &Arc<str> {
        &self.text
    }

    /// Restores the text after deserialization.
    ///
    /// # Errors
    /// Its digest, when none of `texts` has it.
    pub fn put_back(&mut self, texts: &[Self]) -> Result<(), Digest> {
        let found = texts.iter().find(|text| text.digest == self.digest).ok_or(self.digest)?;
        self.text = Arc::clone(&found.text);
        Ok(())
    }
}

impl Deref for Blob {
    type Target = str;

    fn deref(&self) -> &str {
        &self.text
    }
}

impl From<&str> for Blob {
    fn from(text: &str) -> Self {
        Self::new(text)
    }
}

impl Serialize for Blob {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.digest)
    }
}

impl<'de> Deserialize<'de> for Blob {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let digest = String::deserialize(deserializer)?;
        let digest = digest.parse().map_err(|_| D::Error::custom(format!("{digest:?} is no digest of a text")))?;
        Ok(Self { digest, text: Arc::default() })
    }
}
