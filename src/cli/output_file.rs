//! Files that a command writes because its caller named them.

use std::fs;
use std::path::Path;

use super::failure::CommandError;
use crate::project;

/// Writes a file. A folder that somebody else made may have a link of this name that leads elsewhere, or a pipe that nobody
/// reads: neither is written to.
///
/// # Errors
/// When it can't be written, or would be another file.
pub fn write(file: &Path, text: &str) -> Result<(), CommandError> {
    if !project::is_of_process(file) {
        regular(file)?;
    }
    fs::write(file, text).map_err(|error| CommandError::file("written", file, &error))
}

fn regular(file: &Path) -> Result<(), CommandError> {
    let Ok(found) = fs::symlink_metadata(file) else { return Ok(()) };
    if found.is_symlink() {
        let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let stays = |real: &Path| folder.canonicalize().is_ok_and(|folder| real.starts_with(folder));
        if !file.canonicalize().is_ok_and(|real| stays(&real)) {
            let why = format!("{} is a link out of its folder, and is not written through", file.display());
            return Err(CommandError::usage_help(why, "name the file that it leads to"));
        }
    }
    match fs::metadata(file) {
        Ok(found) if !found.is_file() && !found.is_dir() => {
            let why =
                format!("{} is no regular file (a pipe, a device or a socket), and is not opened", file.display());
            Err(CommandError::usage(why))
        }
        _ => Ok(()),
    }
}
