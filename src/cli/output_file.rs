//! Files that a command writes because its caller named them.

use std::path::Path;

use super::failure::CommandError;
use crate::project::ReachedFile;
use crate::project::guarded_read::ReadError;

/// Writes a file. A folder that somebody else made may have a link of this name, or on the way to it, that leads elsewhere, or a
/// pipe that nobody reads: neither is written to.
///
/// # Errors
/// When it can't be written, or would be another file.
pub fn write(file: &Path, text: &str) -> Result<(), CommandError> {
    reached(file)?.write(text).map_err(|unwritten| match unwritten {
        ReadError::Failed(error) => CommandError::file("written", file, &error),
        other => CommandError::usage(format!("{}: {}", file.display(), other.reason(0))),
    })
}

/// The file that is to be written.
///
/// # Errors
/// When it would be another file.
pub fn reached(file: &Path) -> Result<ReachedFile, CommandError> {
    ReachedFile::to_write(file).map_err(|_| {
        let why =
            format!("{} is a link out of its folder, or is reached by one, and is not written through", file.display());
        CommandError::usage_help(why, "name the file that it leads to")
    })
}
