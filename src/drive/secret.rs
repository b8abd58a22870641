//! The vault: resolves the secrets of the project by key, late, and removes them from texts.

mod decode;
mod encodings;
mod scrubber;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_bounds;
#[cfg(test)]
mod tests_growing;
#[cfg(test)]
mod tests_spellings;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;

use self::scrubber::Scrubber;
use crate::diagnostic::nearest;
use crate::program::reference::Secrets;
use crate::project::guarded::{self, Unread};

/// The longest secret in a file, in bytes.
const MAX_FILE: usize = 64 * 1024;

/// At most this number of texts that files held before are removed from texts.
const MOST_OLDER: usize = 256;

/// The shortest secret, in bytes, that is removed from texts. A shorter one would occur by chance in nearly
/// every text.
const MIN_SCRUBBED: usize = 4;

/// Resolves `env:VAR` and `file:PATH` on first use, and remembers the value to be able to remove it from texts.
/// Its `Debug` shows keys only.
///
/// A secret is found plain and under up to four layers of escapes (JSON and similar, percent, HTML), in
/// hexadecimal, in base64 and base32 at any offset, with or without blanks and line ends inside, and as UTF-16.
/// It is not found when it is shorter than 4 bytes, split, reversed, compressed, or encrypted.
pub struct Vault {
    keys: BTreeMap<String, String>,
    root: PathBuf,
    found: RwLock<FoundSecret>,
}

/// The values that were resolved so far.
#[derive(Default)]
struct FoundSecret {
    /// The texts by source (`env:VAR`).
    texts: BTreeMap<String, SecretString>,
    /// What files held before, by source, the newest last: it stays hidden.
    older: Vec<(String, SecretString)>,
    /// Finds every one of them; none when there is nothing to find.
    scrubber: Option<Arc<Scrubber>>,
}

impl fmt::Debug for Vault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Vault").field("keys", &self.keys.keys().collect::<Vec<_>>()).finish_non_exhaustive()
    }
}

impl Vault {
    /// A vault over the project's `orgconfig`; `file:` paths are relative to `root`.
    pub fn new(keys: BTreeMap<String, String>, root: &Path) -> Self {
        Self { keys, root: root.to_owned(), found: RwLock::default() }
    }

    /// The value of `env:VAR` or `file:PATH` (a regular file of at most 64 KiB of UTF-8, without its last line
    /// end). It is read once; later calls return the same value until [`Vault::refresh`].
    ///
    /// # Errors
    /// A sentence that names the source and never the text.
    pub fn read(&self, source: &str) -> Result<SecretString, String> {
        if let Some(text) = self.found.read().unwrap_or_else(PoisonError::into_inner).texts.get(source) {
            return Ok(SecretString::from(text.expose_secret()));
        }
        let text = self.load(source)?;
        if text.is_empty() {
            return Err(format!("the secret at `{source}` is empty"));
        }
        self.remember(vec![(source.to_owned(), text.clone())])?;
        Ok(SecretString::from(text))
    }

    /// Reads every secret of the project, so that all are removed from texts from the first one on: a tool or a
    /// model may know one before the action that uses it is called, and a process that resumes a run has called
    /// none yet. A secret that can't be read, or is too long to be searched for, is left to the call that needs
    /// it.
    pub fn find_all(&self) {
        self.refresh();
        let is_new = |source: &&String| {
            !self.found.read().unwrap_or_else(PoisonError::into_inner).texts.contains_key(source.as_str())
        };
        let read = |source: &String| Some((source.clone(), self.load(source).ok().filter(|text| !text.is_empty())?));
        let texts: Vec<(String, String)> = self.keys.values().filter(is_new).filter_map(read).collect();
        if !texts.is_empty() {
            drop(self.remember(texts));
        }
    }

    /// Reads again the files whose texts are known: from now on, each has the text that it holds now, or none when it can't
    /// be read. What it held before stays hidden.
    pub fn refresh(&self) {
        let known: Vec<(String, SecretString)> = {
            let found = self.found.read().unwrap_or_else(PoisonError::into_inner);
            let files = found.texts.iter().filter(|(source, _)| source.starts_with("file:"));
            files.map(|(source, text)| (source.clone(), text.clone())).collect()
        };
        let (mut changed, mut texts) = (Vec::new(), Vec::new());
        for (source, known) in known {
            let text = self.load(&source).ok().filter(|text| !text.is_empty());
            if text.as_deref() != Some(known.expose_secret()) {
                texts.extend(text.map(|text| (source.clone(), text)));
                changed.push((source, known));
            }
        }
        if changed.is_empty() {
            return;
        }
        {
            let mut found = self.found.write().unwrap_or_else(PoisonError::into_inner);
            for (source, known) in changed {
                found.texts.remove(&source);
                found.older.retain(|(_, text)| text.expose_secret() != known.expose_secret());
                found.older.push((source, known));
            }
            let excess = found.older.len().saturating_sub(MOST_OLDER);
            found.older.drain(..excess);
        }
        // A text that is too long to be searched for is not handed out: it is read again by the call that needs it.
        drop(self.remember(texts));
    }

    /// Keeps a secret that was passed in, so that it is removed from texts from now on. `source` names it in
    /// messages.
    ///
    /// # Errors
    /// A sentence that names the source, when the text is empty or too long to be searched for.
    pub fn keep(&self, source: &str, text: &SecretString) -> Result<(), String> {
        if text.expose_secret().is_empty() {
            return Err(format!("{source} is empty"));
        }
        self.remember(vec![(source.to_owned(), text.expose_secret().to_owned())])
    }

    fn load(&self, source: &str) -> Result<String, String> {
        if let Some(name) = source.strip_prefix("env:") {
            return from_environment(name);
        }
        if let Some(path) = source.strip_prefix("file:") {
            return from_file(&self.root.join(path)).map_err(|why| format!("the secret file `{path}` {why}"));
        }
        // The value may be a secret that was written here by mistake: it is not repeated.
        Err("a secret's source must be `env:VAR` or `file:PATH`".to_owned())
    }

    /// Keeps resolved values by their sources, and finds them from now on.
    fn remember(&self, texts: Vec<(String, String)>) -> Result<(), String> {
        let sources: Vec<String> = texts.iter().map(|(source, _)| source.clone()).collect();
        let mut found = self.found.write().unwrap_or_else(PoisonError::into_inner);
        found.texts.extend(texts.into_iter().map(|(source, text)| (source, SecretString::from(text))));
        let older = found.older.iter().map(|(source, text)| (source, text));
        let secrets = found.texts.iter().chain(older).map(|(source, text)| (source, text.expose_secret()));
        let secrets = secrets.filter(|(_, text)| text.len() >= MIN_SCRUBBED);
        let mut secrets = secrets.map(|(source, text)| (text, format!("[secret {}]", self.label(source)))).peekable();
        if secrets.peek().is_none() {
            return Ok(());
        }
        let scrubber =
            Scrubber::new(secrets).map_err(|_| format!("the secret at `{}` is too long", sources.join("`, `")))?;
        found.scrubber = Some(Arc::new(scrubber));
        Ok(())
    }

    /// The key of a source in `orgconfig`, or else the source itself.
    fn label<'a>(&'a self, source: &'a str) -> &'a str {
        self.keys.iter().find(|(_, at)| at.as_str() == source).map_or(source, |(key, _)| key)
    }

    fn scrubber(&self) -> Option<Arc<Scrubber>> {
        self.found.read().unwrap_or_else(PoisonError::into_inner).scrubber.clone()
    }

    /// Replaces every resolved secret in a text by `[secret KEY]`, in all known encodings.
    pub fn scrub(&self, text: String) -> String {
        match self.scrubber() {
            Some(scrubber) => scrubber.text(text, false),
            None => text,
        }
    }

    /// The same for a text that may be the beginning of a longer one: at its end, a possible beginning of a
    /// secret is removed too.
    pub fn scrub_cut(&self, text: String) -> String {
        match self.scrubber() {
            Some(scrubber) => scrubber.text(text, true),
            None => text,
        }
    }

    /// Removes the secrets that are known now from a text that grows.
    pub fn growing(&self) -> GrowingScrubber {
        GrowingScrubber(self.scrubber())
    }

    /// The same for every string and key of a value; a number that is a secret becomes a string.
    pub fn scrub_value(&self, value: Value) -> Value {
        match self.scrubber() {
            Some(scrubber) => scrubber.value(value),
            None => value,
        }
    }
}

/// Removes secrets from a text that grows.
pub struct GrowingScrubber(Option<Arc<Scrubber>>);

impl GrowingScrubber {
    /// The part of the text in which nothing can change any more, without the secrets: one that is cut at the end of
    /// the text is not in it. The scrub of the whole text begins with it.
    pub fn settled<'a>(&self, text: &'a str) -> Cow<'a, str> {
        match &self.0 {
            Some(scrubber) => Cow::Owned(scrubber.settled(text)),
            None => Cow::Borrowed(text),
        }
    }

    /// The whole text without the secrets: nothing follows.
    pub fn whole<'a>(&self, text: &'a str) -> Cow<'a, str> {
        match &self.0 {
            Some(scrubber) => Cow::Owned(scrubber.text(text.to_owned(), false)),
            None => Cow::Borrowed(text),
        }
    }
}

impl Secrets for Vault {
    fn secret(&self, key: &str) -> Result<String, String> {
        let Some(source) = self.keys.get(key) else {
            let hint = nearest(key, self.keys.keys().map(String::as_str))
                .map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
            return Err(format!("there is no secret `{key}` in `orgconfig` of loopctl.json{hint}"));
        };
        let text = self.read(source).map_err(|why| format!("the secret `{key}` can't be read: {why}"))?;
        Ok(text.expose_secret().to_owned())
    }
}

#[expect(clippy::disallowed_methods, reason = "secrets are one of the two things that come from the environment")]
fn from_environment(name: &str) -> Result<String, String> {
    match std::env::var(name) {
        Ok(text) => Ok(text),
        Err(std::env::VarError::NotPresent) => Err(format!("the environment variable `{name}` is not set")),
        Err(std::env::VarError::NotUnicode(_)) => Err(format!("the environment variable `{name}` is not UTF-8")),
    }
}

fn from_file(path: &Path) -> Result<String, String> {
    let mut text = guarded::text(path, MAX_FILE).map_err(|unread| match unread {
        Unread::Failed(error) => format!("can't be read: {}", error.kind()),
        Unread::Folder | Unread::Irregular => "is not a regular file".to_owned(),
        Unread::TooLong => format!("is longer than {MAX_FILE} bytes"),
        Unread::NoText => "is not UTF-8".to_owned(),
    })?;
    if text.ends_with('\n') {
        text.pop();
        if text.ends_with('\r') {
            text.pop();
        }
    }
    Ok(text)
}
