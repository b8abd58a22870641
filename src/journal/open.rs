//! From a store's name, as it is written in a project file or on the command line, to the store.

use std::path::Path;
use std::sync::Arc;

use super::{Journal, StoreFault, memory::MemoryJournal, sqlite::SqliteJournal};

/// Opens the store that `url` names: `memory`, or `sqlite:PATH` with a path relative to `base`.
///
/// # Errors
/// When the name is of neither form, or as [`SqliteJournal::open`].
pub fn open(url: &str, base: &Path) -> Result<Arc<dyn Journal>, StoreFault> {
    let refuse = |reason: &str| Err(StoreFault::Open { store: url.to_owned(), reason: reason.to_owned() });
    match url.split_once(':') {
        None if url == "memory" => Ok(Arc::new(MemoryJournal::new())),
        Some(("sqlite", "")) => refuse("no path follows sqlite: ; write sqlite:PATH"),
        Some(("sqlite", ":memory:")) => refuse("a store in memory is written memory"),
        Some(("sqlite", path)) if path.starts_with("//") && !path.starts_with("///") => {
            refuse("a path follows sqlite: at once, without //; write sqlite:PATH")
        }
        Some(("sqlite", path)) => Ok(Arc::new(SqliteJournal::open(&base.join(path))?)),
        _ => refuse("a store is memory or sqlite:PATH; put sqlite: before the path of a file"),
    }
}
