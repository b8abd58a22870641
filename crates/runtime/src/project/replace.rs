//! Replaces a file atomically.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::{at, read, reason};
use loopctl_lang::diagnostic::Diagnostic;

#[cfg(test)]
mod tests;

/// Replaces the content `before` by `after`: through a new file beside it that takes over its name, so that a
/// reader never sees a part. The permissions stay. A link, a read-only file, and a file that was changed since
/// it was read are not replaced.
///
/// # Errors
/// One diagnostic that says why the file was not replaced.
pub fn replace(path: &Path, before: &str, after: &str) -> Result<(), Box<Diagnostic>> {
    let failed = |error: io::Error| at(path, format!("the file can't be written: {}", reason(&error)));
    let found = fs::symlink_metadata(path).map_err(failed)?;
    if !found.is_file() {
        return Err(Box::new(at(path, "this is a link, and is not written through").help("name the file itself")));
    }
    let permissions = found.permissions();
    if permissions.readonly() {
        return Err(at(path, "the file can't be written: its permissions say so"));
    }
    if *read(path)?.text != *before {
        return Err(at(path, "the file was changed by someone else meanwhile, and is left as it is"));
    }
    let (beside, file) = beside(path).map_err(failed)?;
    let done = write(file, after, permissions).and_then(|()| fs::rename(&beside, path));
    if done.is_err() {
        // A file that can't be removed does no harm: its name is hidden and it is no document.
        let _ = fs::remove_file(&beside);
    }
    done.map_err(failed)
}

/// A new file in the same folder, and so on the same file system.
fn beside(path: &Path) -> io::Result<(PathBuf, File)> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let mut number = 0_u32;
    loop {
        let candidate = path.with_file_name(format!(".{name}.{}-{number}.new", std::process::id()));
        match create(&candidate) {
            Ok(file) => return Ok((candidate, file)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && number < 100 => number += 1,
            Err(error) => return Err(error),
        }
    }
}

/// Nobody else may read it before it has the permissions of the replaced file.
#[cfg(unix)]
fn create(path: &Path) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt;
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
}

#[cfg(not(unix))]
fn create(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).open(path)
}

fn write(mut file: File, text: &str, permissions: Permissions) -> io::Result<()> {
    file.write_all(text.as_bytes())?;
    file.set_permissions(permissions)?;
    file.sync_all()
}
