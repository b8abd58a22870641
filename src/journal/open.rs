//! From a store's name, as it is written in a project file or on the command line, to the store.

use std::path::Path;
use std::sync::Arc;

use super::{Journal, STORES, StoreFault};

/// A kind of store.
pub(super) struct StoreKind {
    /// What its names are, or begin with before a colon.
    pub scheme: &'static str,
    /// How its names are written, for messages.
    pub form: &'static str,
    /// Opens the store of this name.
    pub open: fn(&StoreName<'_>) -> Result<Arc<dyn Journal>, StoreFault>,
}

/// The name of a store, taken apart.
pub(super) struct StoreName<'a> {
    /// As it is written.
    pub written: &'a str,
    /// What follows the colon; none without a colon.
    pub rest: Option<&'a str>,
    /// The folder that relative paths start from.
    #[cfg_attr(not(feature = "sqlite"), expect(dead_code, reason = "read by stores in files only"))]
    pub base: &'a Path,
}

impl StoreName<'_> {
    /// The fault of a name that is not valid.
    pub fn refuse(&self, reason: &str) -> StoreFault {
        StoreFault::Open { store: self.written.to_owned(), reason: reason.to_owned() }
    }

    /// The fault of a name that is of no kind.
    pub fn unknown(&self) -> StoreFault {
        let forms: Vec<&str> = STORES.iter().map(|kind| kind.form).collect();
        self.refuse(&format!("a store is {}; put sqlite: before the path of a file", forms.join(" or ")))
    }
}

/// Opens the store that `url` names: `memory`, or `sqlite:PATH` with a path relative to `base`.
///
/// # Errors
/// When the name is of no kind, or the store can't be opened.
pub fn open(url: &str, base: &Path) -> Result<Arc<dyn Journal>, StoreFault> {
    let (scheme, rest) = url.split_once(':').map_or((url, None), |(scheme, rest)| (scheme, Some(rest)));
    let name = StoreName { written: url, rest, base };
    match STORES.iter().find(|kind| kind.scheme == scheme) {
        Some(kind) => (kind.open)(&name),
        None => Err(name.unknown()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_of_no_kind_is_refused_with_the_forms_of_all_kinds() {
        for name in ["", "mem", "memory:x", "runs.db", "sqlite", "postgres://h/d"] {
            let Err(fault) = open(name, Path::new(".")) else { panic!("{name} was opened") };
            let forms = STORES.iter().all(|kind| fault.to_string().contains(kind.form));
            assert!(forms && fault.to_string().contains(&format!("the store {name} ")), "{fault}");
        }
        assert!(open("memory", Path::new(".")).is_ok());
    }
}
