//! The vault: resolves the secrets of the project by key, late, and removes them from texts.

mod address_parts;
mod decode;
mod encodings;
mod program;
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
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::iter;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;

use self::program::{AskedProgram, PrintedSecret, Programs, label_of, source_of};
use self::scrubber::Scrubber;
use crate::project::guarded_read::{self, ReadError};
use loopctl_lang::diagnostic::nearest;
use loopctl_lang::language::{SecretCommand, SecretSource};
use loopctl_lang::policy::characters::is_hidden;
use loopctl_lang::policy::secret_shapes;
use loopctl_lang::program::reference::Secrets;

pub use self::program::SecretPrograms;

/// The longest secret in a file, in bytes.
const MAX_FILE: usize = 64 * 1024;

/// How long a program is waited for when it is only asked whether it gives a secret.
const PROBE: Duration = Duration::from_secs(2);

/// At most this number of texts that sources held before are removed from texts.
const MOST_OLDER: usize = if cfg!(test) { 16 } else { 256 };

/// The shortest secret, in bytes, that is removed from texts. A shorter one would occur by chance in nearly
/// every text.
const MIN_SCRUBBED: usize = 4;

/// Resolves `env:VAR`, `file:PATH` and the programs that print secrets, and remembers each value to be able to remove it from
/// texts.
/// Its `Debug` shows keys only.
///
/// A secret is found plain and under up to four layers of escapes (JSON and similar, percent, HTML), in
/// hexadecimal, in base64 and base32 at any offset, with or without blanks and line ends inside, and as UTF-16.
/// It is not found when it is shorter than 4 bytes, split, reversed, compressed, or encrypted.
pub struct Vault {
    keys: BTreeMap<String, SecretSource>,
    root: PathBuf,
    /// The sources of addresses: parts of them are secrets too.
    addresses: BTreeSet<String>,
    found: RwLock<FoundSecret>,
    programs: Programs,
    /// What the program around the engine gives, by its key.
    given: BTreeMap<String, SecretString>,
    /// The programs that were asked, by the sources of their secrets.
    asked: Mutex<BTreeMap<String, Arc<AskedProgram>>>,
}

/// A secret as it was sent, and where it is.
pub struct HeldSecret {
    /// Where it is.
    pub source: SecretSource,
    /// What it was.
    pub text: SecretString,
}

/// The values that were resolved so far.
#[derive(Default)]
struct FoundSecret {
    /// The texts by source (`env:VAR`).
    texts: BTreeMap<String, SecretString>,
    /// What sources held before, the newest last: it stays hidden.
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
    pub fn new(keys: BTreeMap<String, SecretSource>, root: &Path) -> Self {
        Self {
            keys,
            root: root.to_owned(),
            addresses: BTreeSet::new(),
            found: RwLock::default(),
            programs: None,
            given: BTreeMap::new(),
            asked: Mutex::default(),
        }
    }

    /// The same, with these addresses among its secrets: `orgconfig:KEY`. Servers repeat the path of one without the rest.
    #[must_use]
    pub fn with_addresses<'a>(mut self, addresses: impl Iterator<Item = &'a str>) -> Self {
        let source = |address: &str| match self.keys.get(address.strip_prefix("orgconfig:")?)? {
            SecretSource::Written(text) => Some(text.clone()),
            SecretSource::Command(command) => Some(source_of(command)),
        };
        self.addresses = addresses.filter_map(source).collect();
        self
    }

    /// The same, with secrets that the program around the engine gives: they take the place of those of the project.
    #[must_use]
    pub fn with_given(mut self, given: BTreeMap<String, SecretString>) -> Self {
        self.keys.extend(given.keys().map(|key| (key.clone(), SecretSource::given(key))));
        self.given = given;
        self
    }

    /// The same, which starts programs that print secrets. Without them, no secret of a program is there.
    #[must_use]
    pub fn with_programs(mut self, programs: Arc<dyn SecretPrograms>) -> Self {
        self.programs = Some(programs);
        self
    }

    /// The value of `env:VAR` or `file:PATH` (a regular file of at most 64 KiB of UTF-8, without its last line
    /// end). It is read once; later calls return the same value until [`Vault::refresh`].
    ///
    /// # Errors
    /// A sentence that names the source and never the text.
    pub fn read(&self, source: &str) -> Result<SecretString, String> {
        if let Some(text) = self.known(source) {
            return Ok(text);
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
        let written = self.keys.values().filter_map(|source| match source {
            SecretSource::Written(text) => Some(text),
            // What a program prints is known to nobody before it is asked.
            SecretSource::Command(_) => None,
        });
        let texts: Vec<(String, String)> = written.filter(is_new).filter_map(read).collect();
        if !texts.is_empty() {
            drop(self.remember(texts));
        }
    }

    /// Reads again the files and variables whose texts are known: from now on, each has the text that it holds now, or none
    /// when it can't be read. What it held before stays hidden.
    pub fn refresh(&self) {
        let known: Vec<(String, SecretString)> = {
            let found = self.found.read().unwrap_or_else(PoisonError::into_inner);
            let is_read = |source: &str| source.starts_with("file:") || source.starts_with("env:");
            let read = found.texts.iter().filter(|(source, _)| is_read(source));
            read.map(|(source, text)| (source.clone(), text.clone())).collect()
        };
        let (mut changed, mut texts) = (Vec::new(), Vec::new());
        for (source, known) in known {
            let text = self.load(&source).ok().filter(|text| !text.is_empty());
            if text.as_deref() != Some(known.expose_secret()) {
                texts.extend(text.map(|text| (source.clone(), text)));
                changed.push((source, known));
            }
        }
        if !changed.is_empty() {
            // A text that is too long to be searched for is not handed out: it is read again by the call that needs it.
            drop(self.replace(changed, texts));
        }
    }

    /// Takes texts in place of those that were known; these stay hidden.
    fn replace(&self, changed: Vec<(String, SecretString)>, texts: Vec<(String, String)>) -> Result<(), String> {
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
        self.remember(texts)
    }

    /// The text that a source is known to have.
    fn known(&self, source: &str) -> Option<SecretString> {
        self.found.read().unwrap_or_else(PoisonError::into_inner).texts.get(source).cloned()
    }

    /// The source of a key of `orgconfig`.
    ///
    /// # Errors
    /// A sentence that says that there is none.
    pub fn source(&self, key: &str) -> Result<SecretSource, String> {
        self.keys.get(key).cloned().ok_or_else(|| {
            let hint = nearest(key, self.keys.keys().map(String::as_str))
                .map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
            format!("there is no secret `{key}` in `orgconfig` of loopctl.json{hint}")
        })
    }

    /// The secret of a source as it was read last.
    ///
    /// # Errors
    /// A sentence that names the source and never the text.
    pub fn held(&self, source: &SecretSource) -> Result<SecretString, String> {
        match source {
            SecretSource::Written(text) => self.read(text),
            SecretSource::Command(command) => self
                .known(&source_of(command))
                .ok_or_else(|| format!("the program `{}` has not given it yet", command.program())),
        }
    }

    /// Whether a key of `orgconfig` can be read, as far as that is known without a program.
    ///
    /// # Errors
    /// A sentence that names the source and never the text.
    pub fn readable(&self, key: &str) -> Result<(), String> {
        match self.source(key)? {
            SecretSource::Command(_) => Ok(()),
            SecretSource::Written(_) => self.secret(key).map(drop),
        }
    }

    /// The secret of a source as it is now, unless a program must be asked. A file is read again: it may have changed. One
    /// that is just being replaced has its last text.
    pub fn at_hand(&self, source: &SecretSource) -> Option<SecretString> {
        match source {
            SecretSource::Written(text) => {
                if text.starts_with("file:") {
                    self.look_again(text);
                }
                self.read(text).ok()
            }
            SecretSource::Command(command) => {
                let source = source_of(command);
                self.program(&source).is_current().then(|| self.known(&source)).flatten()
            }
        }
    }

    /// The same, for which a program is asked if it must be. If it fails, its last secret is used for a while.
    ///
    /// # Errors
    /// A sentence that names the source and never the text.
    pub async fn fresh(&self, source: &SecretSource) -> Result<SecretString, String> {
        if let (SecretSource::Command(command), None) = (source, self.at_hand(source))
            && let Err(why) = self.ask(command, None).await
        {
            if self.known(&source_of(command)).is_none() {
                return Err(why);
            }
            tracing::warn!("an earlier secret is used: {why}");
        }
        self.held(source)
    }

    /// Reads keys of `orgconfig` that are about to be used.
    ///
    /// # Errors
    /// A sentence that names a key that can't be read.
    pub async fn freshen(&self, keys: &[String]) -> Result<(), String> {
        for key in keys {
            // A key that is not there is reported where it is used.
            let Ok(source) = self.source(key) else { continue };
            if self.at_hand(&source).is_none() {
                self.fresh(&source).await.map_err(|why| format!("the secret `{key}` can't be read: {why}"))?;
            }
        }
        Ok(())
    }

    /// The secrets of these keys of `orgconfig` as they are known.
    pub fn hold(&self, keys: &[String]) -> Vec<HeldSecret> {
        let hold = |key: &String| {
            let source = self.source(key).ok()?;
            Some(HeldSecret { text: self.held(&source).ok()?, source })
        };
        keys.iter().filter_map(hold).collect()
    }

    /// Reads secrets again that were refused. Returns whether one of them is another one now.
    ///
    /// # Errors
    /// A sentence that says why none is, if one can't be read.
    pub async fn renewed(&self, refused: &[HeldSecret]) -> Result<bool, String> {
        let (mut is_other, mut failed) = (false, None);
        for HeldSecret { source, text } in refused {
            match source {
                SecretSource::Written(source) => self.look_again(source),
                SecretSource::Command(command) => {
                    failed = self.ask(command, Some(text)).await.err().or(failed);
                }
            }
            is_other |= self.held(source).is_ok_and(|now| now.expose_secret() != text.expose_secret());
        }
        match failed {
            Some(why) if !is_other => Err(why),
            _ => Ok(is_other),
        }
    }

    /// Whether the program of a source gives its secret now: one that was not asked yet, or failed some time ago, is asked, and
    /// waited for shortly.
    ///
    /// # Errors
    /// Why it does not, without secrets.
    pub async fn probe(self: &Arc<Self>, source: &SecretSource) -> Result<(), String> {
        let SecretSource::Command(command) = source else { return self.held(source).map(drop) };
        let program = self.program(&source_of(command));
        if !program.is_current() && !program.rests() && program.asking.try_lock().is_ok() {
            let (vault, source) = (Arc::clone(self), source.clone());
            let asked = tokio::spawn(async move { drop(vault.fresh(&source).await) });
            drop(tokio::time::timeout(PROBE, asked).await);
        }
        match program.asked() {
            0 => Err(format!("the program `{}` has not given it yet", command.program())),
            _ => program.outcome(),
        }
    }

    /// Asks a program, unless another run just does: then its outcome is that of both. `used`: the secret that was refused.
    async fn ask(&self, command: &SecretCommand, used: Option<&SecretString>) -> Result<(), String> {
        let source = source_of(command);
        let program = self.program(&source);
        let before = program.asked();
        let _asking = program.asking.lock().await;
        if program.asked() != before {
            return program.outcome();
        }
        let known = self.known(&source);
        let is_other =
            |used: &SecretString| known.as_ref().is_some_and(|known| known.expose_secret() != used.expose_secret());
        if used.map_or_else(|| program.is_current(), is_other) {
            return Ok(());
        }
        let asked = match self.printed(command).await {
            Ok(printed) => self.take(&source, &printed.text).map(|()| printed),
            Err(why) => Err(why),
        };
        match asked {
            Ok(printed) => {
                program.gave(command, &printed);
                Ok(())
            }
            Err(why) => {
                program.failed(&why, known.is_some());
                Err(why)
            }
        }
    }

    async fn printed(&self, command: &SecretCommand) -> Result<PrintedSecret, String> {
        let wrong = |why: &str| format!("the program `{}` gave none: {}", command.program(), self.shown(why));
        let programs = self.programs.as_ref().ok_or_else(|| wrong("it is started in a run only"))?;
        let printed = programs.printed(&command.command).await.map_err(|why| wrong(&why))?;
        PrintedSecret::read(printed).map_err(wrong)
    }

    /// Keeps what a source has now, so that it is removed from texts from now on, as what it had before.
    ///
    /// # Errors
    /// A sentence that names the source, when the text is too long to be searched for.
    pub fn take(&self, source: &str, now: &str) -> Result<(), String> {
        let text = (source.to_owned(), now.to_owned());
        match self.known(source) {
            Some(known) if known.expose_secret() == now => Ok(()),
            Some(known) => self.replace(vec![(source.to_owned(), known)], vec![text]),
            None => self.remember(vec![text]),
        }
    }

    /// What a program said, as it may be shown: without secrets and keys, and short.
    fn shown(&self, why: &str) -> String {
        let mut text = self.scrub_cut(why.chars().take(4_000).collect());
        for found in secret_shapes::find(&text).into_iter().rev() {
            text.replace_range(found.range, "[hidden]");
        }
        let shown: String = text.chars().take(300).collect();
        shown.chars().map(|c| if c.is_control() || is_hidden(c) { ' ' } else { c }).collect()
    }

    fn program(&self, source: &str) -> Arc<AskedProgram> {
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(asked.entry(source.to_owned()).or_default())
    }

    /// Reads a source again. If it can't be read now, it has its last text.
    fn look_again(&self, source: &str) {
        let Ok(text) = self.load(source) else { return };
        match self.known(source) {
            Some(known) if !text.is_empty() && known.expose_secret() != text => {
                // As in `refresh`.
                drop(self.replace(vec![(source.to_owned(), known)], vec![(source.to_owned(), text)]));
            }
            _ => {}
        }
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
        if let Some(given) = SecretSource::given_key(source).and_then(|key| self.given.get(key)) {
            return Ok(given.expose_secret().to_owned());
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
        let secrets = secrets.flat_map(|(source, text)| {
            let parts = if self.addresses.contains(source) { address_parts::of(text) } else { Vec::new() };
            iter::once(text).chain(parts).map(move |text| (source, text))
        });
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
    fn label(&self, source: &str) -> String {
        let is_it = |at: &SecretSource| match at {
            SecretSource::Written(text) => text == source,
            SecretSource::Command(command) => source_of(command) == source,
        };
        let key = self.keys.iter().find(|(_, at)| is_it(at)).map(|(key, _)| key.clone());
        key.or_else(|| label_of(source)).unwrap_or_else(|| source.to_owned())
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
        let source = self.source(key)?;
        let text = self.held(&source).map_err(|why| format!("the secret `{key}` can't be read: {why}"))?;
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
    let mut text = guarded_read::text(path, MAX_FILE).map_err(|unread| match unread {
        ReadError::Failed(error) if error.kind() == std::io::ErrorKind::NotFound => "does not exist".to_owned(),
        ReadError::Failed(error) => format!("can't be read: {}", error.kind()),
        ReadError::Folder | ReadError::Irregular => "is not a regular file".to_owned(),
        ReadError::TooLong => format!("is longer than {MAX_FILE} bytes"),
        ReadError::NoText => "is not UTF-8".to_owned(),
    })?;
    if text.ends_with('\n') {
        text.pop();
        if text.ends_with('\r') {
            text.pop();
        }
    }
    // Some editors begin a file with the mark of its encoding, which is no part of the text.
    match text.strip_prefix('\u{feff}') {
        Some(text) => Ok(text.to_owned()),
        None => Ok(text),
    }
}
