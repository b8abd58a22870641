//! New files in a folder: all of them, or none. Nothing that exists is written over, and no link in the folder is followed.
//! Each file is there whole or not at all, and the one that makes the folder a project comes last: what a process that was killed
//! has left is completed by the next one.

use std::borrow::Cow;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::failure::CommandError;
use crate::syntax::formatter::formatted_document;

/// A file that is to be written.
#[derive(Debug, Clone)]
pub struct NewFile {
    /// Its path in the folder, with `/` between names.
    pub path: Cow<'static, str>,
    /// Its text.
    pub text: Cow<'static, str>,
    /// Whether one that exists already is left as it is: other tools write it too.
    pub may_exist: bool,
}

impl NewFile {
    /// A file that must not exist.
    pub fn new(path: impl Into<Cow<'static, str>>, text: impl Into<Cow<'static, str>>) -> Self {
        Self { path: path.into(), text: text.into(), may_exist: false }
    }

    /// A document that must not exist, formatted.
    pub fn document(path: impl Into<Cow<'static, str>>, text: &str) -> Self {
        let path = path.into();
        let text = formatted_document(&path, text);
        Self::new(path, text)
    }

    /// A file that is left as it is when it exists.
    pub fn unless_there(path: impl Into<Cow<'static, str>>, text: impl Into<Cow<'static, str>>) -> Self {
        Self { may_exist: true, ..Self::new(path, text) }
    }
}

/// A new temporary folder that nobody else on this machine can read.
///
/// # Errors
/// When none can be made; `or_else` is what to do without one.
pub fn temporary_folder(prefix: &str, or_else: &str) -> Result<TempDir, CommandError> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(prefix);
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o700));
    builder.tempdir().map_err(|error| {
        CommandError::usage_help(
            format!("no temporary folder can be made in {}: {error}", std::env::temp_dir().display()),
            format!("name another one with TMPDIR{or_else}"),
        )
    })
}

/// What was done with files.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct WrittenFiles {
    /// The paths of those that were written.
    pub written: Vec<String>,
    /// The paths of those that were there, and are as they were.
    pub kept: Vec<String>,
}

/// Writes files into a folder, which is made if it does not exist.
///
/// # Errors
/// When a file exists that must not, or one can't be written: then nothing is left of the others.
pub fn write(folder: &Path, files: &[NewFile]) -> Result<WrittenFiles, CommandError> {
    let FilesInPlace { kept, whole } = judge(folder, files)?;
    let mut made = MadeFiles::default();
    let path_of = |file: &NewFile| file.path.clone().into_owned();
    let written: Vec<&NewFile> = files.iter().filter(|file| !kept.contains(&path_of(file))).collect();
    let last = deciding(files).map(path_of);
    let is_last = |file: &&&NewFile| Some(path_of(file)) == last;
    let absent = written.iter().filter(|file| !whole.contains(&path_of(file)));
    let (last, others): (Vec<&&NewFile>, Vec<&&NewFile>) = absent.partition(is_last);
    for file in others.into_iter().chain(last) {
        let path = folder.join(&*file.path);
        let done = made.folder(path.parent().unwrap_or(folder)).and_then(|()| made.file(&path, &file.text));
        done.map_err(|error| {
            CommandError::usage(format!("nothing was written: {} can't be written: {error}", path.display()))
        })?;
    }
    made.keep();
    Ok(WrittenFiles { written: written.into_iter().map(path_of).collect(), kept })
}

/// What is there of files that are to be written.
#[derive(Debug, Default)]
pub struct FilesInPlace {
    /// The paths of those that may be there, and stay as they are.
    kept: Vec<String>,
    /// The paths of those that a process which was killed has written already.
    whole: Vec<String>,
}

/// The file without which the others are no project: it is written last.
fn deciding(files: &[NewFile]) -> Option<&NewFile> {
    let must_be_new = || files.iter().filter(|file| !file.may_exist);
    must_be_new().find(|file| file.path == "loopctl.json").or_else(|| must_be_new().next_back())
}

/// Whether a file has a text, and nothing else.
fn has_text(path: &Path, text: &str) -> bool {
    let is_as_long =
        fs::symlink_metadata(path).is_ok_and(|found| found.is_file() && usize::try_from(found.len()) == Ok(text.len()));
    is_as_long && fs::read(path).is_ok_and(|found| found == text.as_bytes())
}

/// The files that are there and may be.
///
/// # Errors
/// When the folder is none, something in it is no folder where one is needed, or a file is there.
pub fn judge(folder: &Path, files: &[NewFile]) -> Result<FilesInPlace, CommandError> {
    if fs::metadata(folder).is_ok_and(|found| !found.is_dir()) {
        return Err(CommandError::usage_help(
            format!("{} is a file, and no folder", folder.display()),
            "name a folder: one that does not exist is made",
        ));
    }
    if fs::symlink_metadata(folder).is_ok_and(|found| found.is_symlink()) && !folder.exists() {
        return Err(CommandError::usage_help(
            format!("{} is a link that leads to no folder", folder.display()),
            "make the folder that it leads to, or name another one",
        ));
    }
    let (mut there, mut found_files) = (Vec::new(), FilesInPlace::default());
    let exists = |file: &NewFile| fs::symlink_metadata(folder.join(&*file.path)).is_ok();
    let is_cut_off = deciding(files).is_some_and(|file| !exists(file));
    for file in files {
        if let Some(fault) = blocked(folder, &file.path) {
            return Err(fault);
        }
        // A link that leads nowhere is there too.
        match fs::symlink_metadata(folder.join(&*file.path)) {
            Ok(found) if file.may_exist && found.is_file() => found_files.kept.push(file.path.clone().into_owned()),
            Ok(_) if is_cut_off && has_text(&folder.join(&*file.path), &file.text) => {
                found_files.whole.push(file.path.clone().into_owned());
            }
            Ok(_) => there.push(file.path.clone().into_owned()),
            Err(_) => {}
        }
    }
    if there.is_empty() {
        return Ok(found_files);
    }
    let exist = if there.len() == 1 { "exists" } else { "exist" };
    let help = match is_cut_off && there.len() > 1 {
        true => {
            "name another folder, or remove them where an `init` that was broken off has left them; no file is written over"
        }
        false => "name another folder; no file is written over",
    };
    Err(CommandError::usage_help(
        format!("nothing was written: {} {exist} already in {}", there.join(", "), folder.display()),
        help,
    ))
}

/// A link or a file in the place of a folder that a path leads through.
fn blocked(folder: &Path, path: &str) -> Option<CommandError> {
    let mut place = folder.to_owned();
    let (above, _) = path.rsplit_once('/')?;
    for name in above.split('/') {
        place.push(name);
        let what = match fs::symlink_metadata(&place) {
            Ok(found) if found.is_dir() => continue,
            Ok(found) if found.is_symlink() => "is a link, and nothing is written through it",
            Ok(_) => "is a file, and a folder is needed there",
            Err(_) => return None,
        };
        return Some(CommandError::usage_help(
            format!("nothing was written: {} {what}", place.display()),
            "name another folder",
        ));
    }
    None
}

/// The files and folders that were made: without [`MadeFiles::keep`] they are removed again.
#[derive(Default)]
struct MadeFiles {
    paths: Vec<PathBuf>,
}

impl MadeFiles {
    fn folder(&mut self, folder: &Path) -> io::Result<()> {
        let absent = |path: &&Path| !path.as_os_str().is_empty() && !path.is_dir();
        let missing: Vec<&Path> = folder.ancestors().take_while(absent).collect();
        for path in missing.into_iter().rev() {
            fs::create_dir(path)?;
            self.paths.push(path.to_owned());
        }
        Ok(())
    }

    fn file(&mut self, path: &Path, text: &str) -> io::Result<()> {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let mut builder = tempfile::Builder::new();
        builder.prefix(".loopctl-").suffix(".new");
        #[cfg(unix)]
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
        let mut file = builder.tempfile_in(folder)?;
        file.write_all(text.as_bytes())?;
        // It fails where there is anything, a link too.
        file.persist_noclobber(path).map_err(|error| error.error)?;
        self.paths.push(path.to_owned());
        Ok(())
    }

    fn keep(mut self) {
        self.paths.clear();
    }
}

impl Drop for MadeFiles {
    fn drop(&mut self) {
        // A folder that somebody else wrote into stays.
        for path in self.paths.iter().rev() {
            let _ = if path.is_dir() { fs::remove_dir(path) } else { fs::remove_file(path) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files() -> Vec<NewFile> {
        vec![
            NewFile::new("loop.json", "{}"),
            NewFile::new("actions/a.json", "[]"),
            NewFile::unless_there(".gitignore", ".loopctl/\n"),
        ]
    }

    fn said(fault: CommandError) -> String {
        match fault {
            CommandError::Usage { message, .. } => message,
            other => panic!("{other:?}"),
        }
    }

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<String> =
            fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().to_string_lossy().into()).collect();
        names.sort();
        names
    }

    #[test]
    fn all_files_are_written_into_a_folder_that_is_made() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("a/b");
        let done = write(&folder, &files()).unwrap();
        assert_eq!(done.written, ["loop.json", "actions/a.json", ".gitignore"]);
        assert_eq!(fs::read_to_string(folder.join("actions/a.json")).unwrap(), "[]");
    }

    #[test]
    fn what_exists_is_listed_and_nothing_is_written() {
        let place = tempfile::tempdir().unwrap();
        for name in ["loop.json", ".gitignore"] {
            fs::write(place.path().join(name), "mine").unwrap();
        }
        let fault = said(write(place.path(), &files()).unwrap_err());
        assert!(fault.starts_with("nothing was written: loop.json exists already in "), "{fault}");
        assert_eq!(names(place.path()), [".gitignore", "loop.json"]);
        fs::remove_file(place.path().join("loop.json")).unwrap();
        assert_eq!(write(place.path(), &files()).unwrap().kept, [".gitignore"]);
        assert_eq!(fs::read_to_string(place.path().join(".gitignore")).unwrap(), "mine");
    }

    #[test]
    fn what_a_killed_process_has_left_is_completed() {
        let files = [vec![NewFile::new("loopctl.json", "{ }")], files()].concat();
        // In each order in which files can be missing, as long as the project file is.
        for left in 0..8_usize {
            let place = tempfile::tempdir().unwrap();
            write(place.path(), &files).unwrap();
            fs::remove_file(place.path().join("loopctl.json")).unwrap();
            for (at, file) in files.iter().skip(1).enumerate().filter(|(at, _)| left & (1 << at) == 0) {
                fs::remove_file(place.path().join(&*file.path)).unwrap_or_else(|error| panic!("{at}: {error}"));
            }
            let done = write(place.path(), &files).unwrap();
            for file in &files {
                assert_eq!(fs::read_to_string(place.path().join(&*file.path)).unwrap(), file.text);
            }
            let is_kept = left & 4 != 0;
            assert_eq!(done.kept.len(), usize::from(is_kept), "{left}: {done:?}");
            assert_eq!(done.written.len(), files.len() - usize::from(is_kept), "{left}: {done:?}");
            assert_eq!(names(place.path()), [".gitignore", "actions", "loop.json", "loopctl.json"]);
        }
    }

    #[test]
    fn what_is_of_another_project_is_not_completed() {
        let files = [vec![NewFile::new("loopctl.json", "{ }")], files()].concat();
        let place = tempfile::tempdir().unwrap();
        write(place.path(), &files).unwrap();
        // The project is whole.
        let fault = said(write(place.path(), &files).unwrap_err());
        assert!(fault.starts_with("nothing was written: loopctl.json, loop.json, actions/a.json exist"), "{fault}");
        fs::remove_file(place.path().join("loopctl.json")).unwrap();
        fs::write(place.path().join("loop.json"), "[]").unwrap();
        let fault = said(write(place.path(), &files).unwrap_err());
        assert!(fault.starts_with("nothing was written: loop.json exists"), "{fault}");
        assert!(!place.path().join("loopctl.json").exists());
    }

    #[cfg(unix)]
    #[test]
    fn a_file_has_the_permissions_of_any_new_file() {
        use std::os::unix::fs::PermissionsExt as _;
        let place = tempfile::tempdir().unwrap();
        write(place.path(), &files()).unwrap();
        fs::write(place.path().join("other"), "").unwrap();
        let mode = |name: &str| fs::metadata(place.path().join(name)).unwrap().permissions().mode();
        assert_eq!(mode("loop.json"), mode("other"));
    }

    #[test]
    fn what_was_made_is_removed_when_a_file_fails() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("new");
        // A name that no file system takes.
        let long = "x".repeat(300);
        let fault = said(write(&folder, &[&files()[..], &[NewFile::new(long, "")]].concat()).unwrap_err());
        assert!(fault.starts_with("nothing was written: "), "{fault}");
        assert!(names(place.path()).is_empty());
    }

    #[cfg(unix)]
    #[test]
    fn no_link_is_followed() {
        use std::os::unix::fs::symlink;
        let (place, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        symlink(outside.path(), place.path().join("actions")).unwrap();
        let fault = said(write(place.path(), &files()).unwrap_err());
        assert!(fault.ends_with("is a link, and nothing is written through it"), "{fault}");
        fs::remove_file(place.path().join("actions")).unwrap();
        symlink(outside.path().join("gone"), place.path().join("loop.json")).unwrap();
        assert!(said(write(place.path(), &files()).unwrap_err()).contains("loop.json exists already"));
        symlink("gone", place.path().join(".gitignore")).unwrap();
        assert!(said(write(place.path(), &files()).unwrap_err()).contains(".gitignore exist already"));
        assert!(names(outside.path()).is_empty());
    }
}
