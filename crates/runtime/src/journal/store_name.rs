//! Opens the store that a name means, as the name is written in a project file or on the command line.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use super::admin::StoreAdmin;
use super::{Journal, STORES, StoreError};
use loopctl_lang::policy::database_address::may_hold_a_secret;
use loopctl_lang::policy::held_address;

pub(super) struct StoreKind {
    /// The name itself, or what is before its colon.
    pub scheme: &'static str,
    /// How its names are written, for messages.
    pub form: &'static str,
    /// The file of the store of this name; none where it is no file.
    pub file: fn(&StoreName<'_>) -> Option<PathBuf>,
    /// Whether runs outlive the process.
    pub outlives_process: bool,
    /// The store as messages show it: without a password.
    pub shown: fn(&StoreName<'_>) -> String,
    pub open: fn(&StoreName<'_>) -> Result<Arc<dyn Journal>, StoreError>,
    /// What an administrator can ask; none where nothing is kept.
    pub admin: Option<StoreAdmin>,
}

/// The parts of the name of a store.
pub(super) struct StoreName<'a> {
    pub written: &'a str,
    /// The variable or the file that holds it: messages name that, and nothing of what it holds.
    pub source: Option<&'a str>,
    /// What follows the colon; none without a colon.
    pub rest: Option<&'a str>,
    /// The folder that relative paths start from.
    #[cfg_attr(
        not(any(feature = "sqlite", feature = "postgres")),
        expect(dead_code, reason = "read by other stores only")
    )]
    pub base: &'a Path,
}

impl<'a> StoreName<'a> {
    pub(super) fn new(url: &'a str, base: &'a Path) -> Self {
        Self { written: url, source: None, rest: url.split_once(':').map(|(_, rest)| rest), base }
    }

    /// The same, held by a variable or a file.
    pub(super) fn held_by(self, source: Option<&'a str>) -> Self {
        Self { source, ..self }
    }

    pub(super) fn kind(&self) -> Option<&'static StoreKind> {
        let scheme = match self.written.split(':').next()? {
            // Both are written.
            "postgresql" => "postgres",
            scheme => scheme,
        };
        STORES.iter().find(|kind| kind.scheme == scheme)
    }

    /// The fault of a name that is not valid.
    pub fn refuse(&self, reason: &str) -> StoreError {
        StoreError::Open { store: self.shown(), reason: reason.to_owned() }
    }

    /// The name as messages show it.
    pub(super) fn shown(&self) -> String {
        if let Some(source) = self.source {
            return source.to_owned();
        }
        match (self.kind(), self.written.split_once("://")) {
            (Some(kind), _) => (kind.shown)(self),
            // It may hold a password.
            (None, Some((scheme, _))) => format!("{scheme}://..."),
            (None, None) if may_hold_a_secret(self.written) => "of this name".to_owned(),
            (None, None) => self.written.to_owned(),
        }
    }

    /// A fault of the store, without what a variable or a file holds.
    pub(super) fn without_held(&self, fault: StoreError) -> StoreError {
        // What is said of a name of no kind is the same for all names.
        let (Some(source), Some(_)) = (self.source, self.kind()) else { return fault };
        let without = |why: String| held_address::hidden(&why, self.written);
        match fault {
            StoreError::Open { reason, .. } => StoreError::Open { store: source.to_owned(), reason: without(reason) },
            StoreError::Newer { found, known, .. } => StoreError::Newer { store: source.to_owned(), found, known },
            StoreError::ReadOnly(why) => StoreError::ReadOnly(without(why)),
            StoreError::Corrupt(why) => StoreError::Corrupt(without(why)),
            StoreError::Unreachable(why) => StoreError::Unreachable(without(why)),
            StoreError::Other(why) => StoreError::Other(without(why)),
            other => other,
        }
    }

    /// The fault of a name of an unknown kind.
    pub fn unknown(&self) -> StoreError {
        let forms: Vec<&str> = STORES.iter().map(|kind| kind.form).collect();
        self.refuse(&format!("a store is {}; put sqlite: before the path of a file", forms.join(" or ")))
    }
}

/// Opens the store that `url` names: `memory`, `sqlite:PATH` with a path relative to `base`, or
/// `postgres://USER@HOST/DATABASE`.
///
/// # Errors
/// When the name is of no kind, or the store can't be opened.
pub fn open(url: &str, base: &Path) -> Result<Arc<dyn Journal>, StoreError> {
    opened(&StoreName::new(url, base))
}

/// The stores that programs have open, each for all their loops.
static SHARED: Mutex<BTreeMap<String, Weak<dyn Journal>>> = Mutex::new(BTreeMap::new());

/// The same, shared: whoever opens a store of this process a second time, while it is open, has the one that is there. `memory` is a
/// store of its own each time.
///
/// # Errors
/// As those of [`open`].
pub fn open_shared(url: &str, base: &Path) -> Result<Arc<dyn Journal>, StoreError> {
    if !outlives_process(url) {
        return open(url, base);
    }
    // The file by its path without links, if it is there already.
    let path = file(url, base).map(|path| path.canonicalize().unwrap_or(path));
    let name = path.map_or_else(|| url.to_owned(), |path| path.display().to_string());
    let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
    shared.retain(|_, journal| journal.strong_count() > 0);
    if let Some(journal) = shared.get(&name).and_then(Weak::upgrade) {
        return Ok(journal);
    }
    let journal = open(url, base)?;
    // It is there now.
    let path = file(url, base).map(|path| path.canonicalize().unwrap_or(path));
    shared.insert(path.map_or(name, |path| path.display().to_string()), Arc::downgrade(&journal));
    Ok(journal)
}

/// The same for a name that a variable or a file holds. Messages name `source`, and nothing of the name.
///
/// # Errors
/// As those of [`open`].
pub fn open_held(url: &str, source: Option<&str>, base: &Path) -> Result<Arc<dyn Journal>, StoreError> {
    opened(&StoreName::new(url, base).held_by(source))
}

fn opened(name: &StoreName<'_>) -> Result<Arc<dyn Journal>, StoreError> {
    match name.kind() {
        Some(kind) => (kind.open)(name).map_err(|fault| name.without_held(fault)),
        None => Err(name.unknown()),
    }
}

/// The file that the store of a name is, whether it exists or not; none where it is no file.
pub fn file(url: &str, base: &Path) -> Option<PathBuf> {
    let name = StoreName::new(url, base);
    name.kind().and_then(|kind| (kind.file)(&name))
}

/// The store of a name as messages show it: without a password.
pub fn shown(url: &str, base: &Path) -> String {
    StoreName::new(url, base).shown()
}

/// Whether the runs in the store of this name outlive the process. A name of no kind is refused when it
/// is opened.
pub fn outlives_process(url: &str) -> bool {
    StoreName::new(url, Path::new("")).kind().is_none_or(|kind| kind.outlives_process)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_of_no_kind_is_refused_with_the_forms_of_all_kinds() {
        for name in ["", "mem", "memory:x", "runs.db", "sqlite", "mysql://ada:s3cret@h/d"] {
            let Err(fault) = open(name, Path::new(".")) else { panic!("{name} was opened") };
            let forms = STORES.iter().all(|kind| fault.to_string().contains(kind.form));
            let shown = if name.contains("://") { "mysql://..." } else { name };
            assert!(forms && fault.to_string().contains(&format!("the store {shown} ")), "{fault}");
        }
        assert!(open("memory", Path::new(".")).is_ok());
    }

    #[test]
    fn what_a_variable_or_a_file_holds_is_never_shown() {
        for held in [
            "sk-secret-17",
            "host=db user=u password=secret-17",
            "postgres://ada:secret-17@/d?x=secret-17",
            "postgres:host=secret-17",
            "sqlite://secret-17",
            "line one\nsecret-17",
        ] {
            let Err(fault) = open_held(held, Some("env:KEY"), Path::new(".")) else { panic!("{held} was opened") };
            let shown = format!("{fault} {fault:?}");
            assert!(shown.contains("env:KEY") && !shown.contains("secret-17"), "{shown}");
        }
        for given in ["host=db user=u password=secret-17", "sk-proj-secret17secret17secret17secret17secret17"] {
            let Err(fault) = open(given, Path::new(".")) else { panic!("{given} was opened") };
            assert!(!fault.to_string().contains("secret"), "{fault}");
        }
        assert!(open_held("memory", Some("env:KEY"), Path::new(".")).is_ok());
    }

    #[test]
    fn a_name_says_which_file_it_is_and_whether_runs_outlive_the_process() {
        assert_eq!(file("sqlite:a/b.db", Path::new("x")), Some(PathBuf::from("x/a/b.db")));
        assert!(outlives_process("sqlite:a/b.db"));
        assert_eq!(file("memory", Path::new("x")), None);
        assert!(!outlives_process("memory"));
        assert_eq!(file("postgres://h/d", Path::new("x")), None);
    }
}
