//! Long texts that many runs share: the events of a run name them by their digest, and the texts are stored
//! beside the events, once for all runs.

use std::cell::OnceCell;
use std::collections::HashMap;
use std::fmt;
use std::ops::Deref;
use std::str::FromStr;
use std::sync::Arc;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::digest::{Digest, Sha256};

/// What an event names a text by. The documents of a run have a name space of their own: what a caller sends can never be
/// taken for one of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TextName {
    /// A document of the run: `document:` and 64 hexadecimal digits.
    Document(Sha256),
    /// Another text, such as a prompt or a part of the input: `text:` and 64 hexadecimal digits.
    Other(Sha256),
    /// Either of them in an older journal: 32 hexadecimal digits, which do not protect against forgery.
    Older(Digest),
}

/// What a text is for its run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextRole {
    /// A document, which is executed.
    Document,
    /// Another text.
    Other,
}

const DOCUMENT: &str = "document:";
const OTHER: &str = "text:";

impl fmt::Display for TextName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Document(sha256) => write!(formatter, "{DOCUMENT}{sha256}"),
            Self::Other(sha256) => write!(formatter, "{OTHER}{sha256}"),
            Self::Older(digest) => write!(formatter, "{digest}"),
        }
    }
}

impl FromStr for TextName {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        if let Some(digits) = text.strip_prefix(DOCUMENT) {
            return digits.parse().map(Self::Document);
        }
        if let Some(digits) = text.strip_prefix(OTHER) {
            return digits.parse().map(Self::Other);
        }
        text.parse().map(Self::Older).map_err(drop)
    }
}

/// A text with its name, cheap to clone. It is serialized as the name alone; after deserialization it is
/// empty until `Blob::put_back` restores the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blob {
    name: TextName,
    text: Arc<str>,
}

/// Why a text can't be restored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TextFault {
    /// None of the run's texts has its name.
    Missing(TextName),
    /// Two different texts of the run have its name, which is of an older journal.
    Ambiguous(TextName),
    /// It is named as a text of the other kind.
    OtherKind(TextName),
    /// The documents are not those of which the start of the run has the SHA-256.
    OtherDocuments,
}

impl fmt::Display for TextFault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing(name) => write!(formatter, "its text {name} is missing"),
            Self::Ambiguous(name) => write!(
                formatter,
                "two different texts of the run have the digest {name}: which of them is meant is not known, so none is \
                 executed"
            ),
            Self::OtherKind(name) => {
                write!(
                    formatter,
                    "its text {name} is of the other kind: documents and other texts have names of their own"
                )
            }
            Self::OtherDocuments => formatter.write_str("its documents are not those that the run was started with"),
        }
    }
}

impl Blob {
    /// A text that is no document; only this function and [`Blob::document`] compute its digest.
    pub fn new(text: impl Into<Arc<str>>) -> Self {
        Self::of(TextRole::Other, text)
    }

    /// A document.
    pub fn document(text: impl Into<Arc<str>>) -> Self {
        Self::of(TextRole::Document, text)
    }

    /// A text of this kind.
    pub fn of(kind: TextRole, text: impl Into<Arc<str>>) -> Self {
        let text = text.into();
        let sha256 = Sha256::of(&text);
        let name = match kind {
            TextRole::Document => TextName::Document(sha256),
            TextRole::Other => TextName::Other(sha256),
        };
        Self { name, text }
    }

    /// Its name, which replaces the text in events.
    pub fn name(&self) -> TextName {
        self.name
    }

    /// The SHA-256 of the text, whatever it is for its run: a store keeps equal texts once.
    pub fn sha256(&self) -> Sha256 {
        match self.name {
            TextName::Document(sha256) | TextName::Other(sha256) => sha256,
            TextName::Older(_) => Sha256::of(&self.text),
        }
    }

    /// What it is; none where an older journal does not say so.
    pub fn kind(&self) -> Option<TextRole> {
        match self.name {
            TextName::Document(_) => Some(TextRole::Document),
            TextName::Other(_) => Some(TextRole::Other),
            TextName::Older(_) => None,
        }
    }

    /// The text, to be shared.
    pub fn shared(&self) -> &Arc<str> {
        &self.text
    }

    /// Restores the text after deserialization.
    ///
    /// # Errors
    /// When it is not among the texts of the run, or is named as a text of another kind.
    pub(super) fn put_back(&mut self, texts: &KnownTexts<'_>, kind: TextRole) -> Result<(), TextFault> {
        if self.kind().is_some_and(|own| own != kind) {
            return Err(TextFault::OtherKind(self.name));
        }
        self.text = texts.find(self.name)?;
        Ok(())
    }
}

impl Default for Blob {
    fn default() -> Self {
        Self::new("")
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
        serializer.collect_str(&self.name)
    }
}

impl<'de> Deserialize<'de> for Blob {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        let name = name.parse().map_err(|()| D::Error::custom(format!("{name:?} is no digest of a text")))?;
        Ok(Self { name, text: Arc::default() })
    }
}

/// The texts of a run, to be found by their names.
pub(super) struct KnownTexts<'a> {
    texts: &'a [Blob],
    by_sha256: HashMap<Sha256, &'a Arc<str>>,
    /// By the digests of older journals; none where two different texts have one. Computed when a name asks for it.
    older: OnceCell<HashMap<Digest, Option<&'a Arc<str>>>>,
}

impl<'a> KnownTexts<'a> {
    /// The texts that a store has of a run.
    pub fn of(texts: &'a [Blob]) -> Self {
        let by_sha256 = texts.iter().map(|text| (text.sha256(), text.shared())).collect();
        Self { texts, by_sha256, older: OnceCell::new() }
    }

    fn find(&self, name: TextName) -> Result<Arc<str>, TextFault> {
        let found = match name {
            TextName::Document(sha256) | TextName::Other(sha256) => self.by_sha256.get(&sha256).copied(),
            TextName::Older(digest) => match self.older.get_or_init(|| older(self.texts)).get(&digest) {
                Some(None) => return Err(TextFault::Ambiguous(name)),
                found => found.copied().flatten(),
            },
        };
        found.map(Arc::clone).ok_or(TextFault::Missing(name))
    }
}

/// Texts by their digests in older journals. A caller can make a text with the digest of a document: then both are among
/// the texts of the run, and neither is taken.
fn older(texts: &[Blob]) -> HashMap<Digest, Option<&Arc<str>>> {
    let mut known: HashMap<Digest, Option<&Arc<str>>> = HashMap::new();
    for text in texts {
        let entry = known.entry(Digest::of(text)).or_insert(Some(text.shared()));
        if entry.is_some_and(|other| **other != **text.shared()) {
            *entry = None;
        }
    }
    known
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(name: &str) -> Blob {
        serde_json::from_value(name.into()).unwrap()
    }

    #[test]
    fn a_text_is_found_by_its_name_and_only_as_what_it_is() {
        let (document, other) = (Blob::document("{}"), Blob::new("{}"));
        assert_ne!(document.name(), other.name());
        assert_eq!(document.sha256(), other.sha256(), "a store keeps it once");
        let texts = [other.clone(), Blob::new("b")];
        let known = KnownTexts::of(&texts);
        for (blob, own, wrong) in
            [(&document, TextRole::Document, TextRole::Other), (&other, TextRole::Other, TextRole::Document)]
        {
            let mut written = read(&blob.name().to_string());
            assert_eq!(written.put_back(&known, wrong), Err(TextFault::OtherKind(blob.name())));
            assert_eq!(&*written, "");
            written.put_back(&known, own).unwrap();
            assert_eq!(&written, blob);
        }
        let mut gone = read(&Blob::new("c").name().to_string());
        assert!(gone.put_back(&known, TextRole::Other).unwrap_err().to_string().ends_with("is missing"));
        let (letters, signs) = ("x".repeat(32), "+".repeat(32));
        for wrong in ["", "document:", "text:00", "document:+0", "1234", letters.as_str(), signs.as_str()] {
            assert!(serde_json::from_value::<Blob>(wrong.into()).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_name_of_an_older_journal_is_taken_unless_two_texts_have_it() {
        let name = Digest::of("{}").to_string();
        let texts = [Blob::new("{}"), Blob::document("{}"), Blob::new("b")];
        for kind in [TextRole::Document, TextRole::Other] {
            let mut written = read(name.as_str());
            written.put_back(&KnownTexts::of(&texts), kind).unwrap();
            assert_eq!(
                (&*written, serde_json::to_value(&written).unwrap()),
                ("{}", serde_json::Value::from(name.clone()))
            );
        }
        let known = KnownTexts::of(&texts);
        let table = HashMap::from([(Digest::of("{}"), None)]);
        assert!(known.older.set(table).is_ok(), "as if a second text had it");
        let fault = read(name.as_str()).put_back(&known, TextRole::Document).unwrap_err();
        assert!(fault.to_string().contains("two different texts"), "{fault}");
    }
}
