//! Replaces a file atomically.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::{at, read, reason};
use loopctl_lang::diagnostic::Diagnostic;

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

/// The most characters of the name of a file that are in that of the new one beside it.
const MAX_NAME_CHARACTERS: usize = 40;

/// A new file in the same folder, and so on the same file system.
fn beside(path: &Path) -> io::Result<(PathBuf, File)> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    // With all of a long name, the new one would be longer than a file system takes.
    let name: String = name.chars().take(MAX_NAME_CHARACTERS).collect();
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

#[cfg(test)]
mod tests {
    use super::*;

    fn file(text: &str) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("loop.json");
        fs::write(&path, text).unwrap();
        (folder, path)
    }

    fn names(folder: &Path) -> Vec<String> {
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn the_text_is_new_and_nothing_else_is_left_in_the_folder() {
        let (folder, path) = file("old");
        replace(&path, "old", "new").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
        assert_eq!(names(folder.path()), ["loop.json"]);
    }

    #[test]
    fn a_name_may_be_as_long_as_the_file_system_takes() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["x".repeat(250), "ö".repeat(125)] {
            let path = folder.path().join(format!("{name}.json"));
            fs::write(&path, "old").unwrap();
            replace(&path, "old", "new").unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), "new");
        }
        assert_eq!(names(folder.path()).len(), 2);
    }

    #[cfg(unix)]
    #[test]
    fn the_permissions_stay() {
        use std::os::unix::fs::PermissionsExt;
        let (_folder, path) = file("old");
        fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
        replace(&path, "old", "new").unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
    }

    #[test]
    fn a_file_that_changed_meanwhile_is_left_as_it_is() {
        let (folder, path) = file("other");
        let fault = replace(&path, "old", "new").unwrap_err();
        assert!(fault.message.contains("changed"), "{fault:?}");
        assert_eq!((fs::read_to_string(&path).unwrap().as_str(), names(folder.path()).len()), ("other", 1));
    }

    #[cfg(unix)]
    #[test]
    fn a_link_and_a_file_that_is_not_to_be_written_are_left_alone() {
        use std::os::unix::fs::PermissionsExt;
        let (folder, path) = file("old");
        let link = folder.path().join("link.json");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        assert!(replace(&link, "old", "new").unwrap_err().message.contains("link"));
        fs::set_permissions(&path, Permissions::from_mode(0o444)).unwrap();
        assert!(replace(&path, "old", "new").unwrap_err().message.contains("permissions"));
        assert_eq!(fs::read_to_string(&path).unwrap(), "old");
        assert_eq!(replace(&folder.path().join("gone.json"), "", "x").unwrap_err().code, "L000");
    }
}
