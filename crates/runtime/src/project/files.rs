//! The files that a project names in `documents`: they are read as documents of the project are, and nothing outside of
//! its folder is.

use std::path::Path;

use super::guarded::{self, Unread};
use loopctl_lang::program::file_value::MAX_BYTES;

/// The text of a file, by its path in the project's folder.
///
/// # Errors
/// Why it can't be read, in a sentence without a final stop.
pub fn text(root: &Path, file: &str) -> Result<String, String> {
    let failed = |error| Unread::Failed(error).reason(MAX_BYTES);
    let root = root.canonicalize().map_err(failed)?;
    let real = root.join(file).canonicalize().map_err(failed)?;
    if !real.starts_with(&root) {
        return Err("it lies outside of the project's folder".to_owned());
    }
    guarded::text(&real, MAX_BYTES).map_err(|unread| match unread {
        Unread::NoText => "it is no text; loopctl reads CSV, JSON and texts of UTF-8".to_owned(),
        unread => unread.reason(MAX_BYTES),
    })
}
