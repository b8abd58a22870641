//! The file that a path leads to. A folder that somebody else made may have links that lead elsewhere: each link on the way is
//! judged where it is, by the folder that it is in, and what was judged is opened without following a link again. So nobody
//! gains anything by changing a name between the two.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Component, Path, PathBuf};

use super::guarded_read::{self, ReadError};
use super::project_file::is_of_process;
use super::{at, name_of};
use loopctl_lang::diagnostic::Diagnostic;
use loopctl_lang::language::Project;

/// How a file is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FileAccess {
    Read,
    /// It is made where it is not there.
    Write,
}

/// The file that a path leads to.
#[derive(Debug)]
pub struct ReachedFile {
    /// Without links, unless they may be followed.
    path: PathBuf,
    /// Whether it is a thing of the process, or is reached by a link of the system that has no path.
    may_be_linked: bool,
}

/// The folder that the links in it may not lead out of.
struct OwnerFolder {
    path: PathBuf,
    /// Whether it has a project file; else it is the current folder.
    is_project: bool,
}

impl ReachedFile {
    /// Follows a path.
    ///
    /// # Errors
    /// One diagnostic when a link leads out of the folder that it is in: that of its project; without a project, the current one.
    pub fn of(shown: &Path) -> Result<Self, Box<Diagnostic>> {
        let free = |path: &Path| Self { path: path.to_owned(), may_be_linked: true };
        if is_of_process(shown) {
            return Ok(free(shown));
        }
        let Ok(whole) = std::path::absolute(shown) else { return Ok(free(shown)) };
        let mut real = PathBuf::new();
        for part in whole.components() {
            let next = match part {
                Component::Prefix(_) | Component::RootDir => {
                    real.push(part);
                    continue;
                }
                Component::CurDir => continue,
                Component::ParentDir => {
                    real.pop();
                    continue;
                }
                Component::Normal(name) => real.join(name),
            };
            if !next.symlink_metadata().is_ok_and(|found| found.is_symlink()) {
                real = next;
                continue;
            }
            let owner = OwnerFolder::of(&real);
            match (next.canonicalize(), owner) {
                (Ok(target), Some(owner)) if !owner.allows(&target) => return Err(outside(shown)),
                (Ok(target), _) => real = target,
                (Err(_), Some(_)) => return Err(broken(shown)),
                (Err(_), None) => return Ok(free(shown)),
            }
        }
        Ok(Self { path: real, may_be_linked: false })
    }

    /// The file that is to be written at a path. A link of its name is followed inside of its folder.
    ///
    /// # Errors
    /// As for any file.
    pub fn to_write(shown: &Path) -> Result<Self, Box<Diagnostic>> {
        let found = Self::of(shown)?;
        let (Some(name), false) = (shown.file_name(), found.may_be_linked) else { return Ok(found) };
        let folder = Self::of(&super::folder_of(shown))?.path;
        let is_link = folder.join(name).symlink_metadata().is_ok_and(|found| found.is_symlink());
        if is_link && !found.path.starts_with(&folder) { Err(outside(shown)) } else { Ok(found) }
    }

    /// Opens a regular file.
    ///
    /// # Errors
    /// Why it is not opened.
    pub fn open(&self) -> Result<File, ReadError> {
        if self.may_be_linked {
            return guarded_read::opened(&self.path);
        }
        guarded_read::regular(&self.path.symlink_metadata().map_err(ReadError::Failed)?)?;
        let file = open_unlinked(&self.path, FileAccess::Read).map_err(ReadError::Failed)?;
        guarded_read::regular(&file.metadata().map_err(ReadError::Failed)?)?;
        Ok(file)
    }

    /// Its bytes, of which there are at most `most`.
    ///
    /// # Errors
    /// Why it was not read.
    pub fn bytes(&self, most: usize) -> Result<Vec<u8>, ReadError> {
        guarded_read::bounded(self.open()?, most)
    }

    /// The same for a text.
    ///
    /// # Errors
    /// Why it was not read.
    pub fn text(&self, most: usize) -> Result<String, ReadError> {
        String::from_utf8(self.bytes(most)?).map_err(|_| ReadError::NoText)
    }

    /// Writes it, in place of what it holds. No pipe is waited for.
    ///
    /// # Errors
    /// Why it was not written.
    pub fn write(&self, text: &str) -> Result<(), ReadError> {
        if self.may_be_linked {
            return std::fs::write(&self.path, text).map_err(ReadError::Failed);
        }
        if let Ok(found) = self.path.symlink_metadata() {
            guarded_read::regular(&found)?;
        }
        let mut file = open_unlinked(&self.path, FileAccess::Write).map_err(ReadError::Failed)?;
        guarded_read::regular(&file.metadata().map_err(ReadError::Failed)?)?;
        file.set_len(0).and_then(|()| file.write_all(text.as_bytes())).map_err(ReadError::Failed)
    }

    /// The path itself.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl OwnerFolder {
    /// The folder of the nearest project file above a link in this folder, or else the current folder if the link is in it.
    fn of(folder: &Path) -> Option<Self> {
        let is_project = |folder: &&Path| folder.join(Project::FILE).symlink_metadata().is_ok();
        if let Some(path) = folder.ancestors().find(is_project) {
            return Some(Self { path: path.canonicalize().ok()?, is_project: true });
        }
        let current = Path::new(".").canonicalize().ok().filter(|current| current.parent().is_some())?;
        let folder = folder.canonicalize().ok()?;
        folder.starts_with(&current).then_some(Self { path: current, is_project: false })
    }

    /// Whether a link may lead there. From a folder without a project file, one may lead to the folder of a project.
    fn allows(&self, target: &Path) -> bool {
        target.starts_with(&self.path) || !self.is_project && target.join(Project::FILE).is_file()
    }
}

/// The fault of a link that leads out of its folder.
pub(super) fn outside(path: &Path) -> Box<Diagnostic> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let message = format!("the file {name} lies outside of its folder: a link leads there, and is not followed");
    let help = "put the file itself there, or a link to one inside of the folder";
    Box::new(at(path, message).help(help))
}

fn broken(path: &Path) -> Box<Diagnostic> {
    let message = format!("{} is reached by a link that leads to nothing, and is not followed", name_of(path));
    Box::new(at(path, message).help("put the file itself there"))
}

/// Opens what a path without links leads to: a link that took a place in it meanwhile is not followed.
#[cfg(target_os = "linux")]
fn open_unlinked(path: &Path, opening: FileAccess) -> io::Result<File> {
    use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat2};
    use rustix::io::Errno;
    let flags = match opening {
        FileAccess::Read => OFlags::RDONLY,
        FileAccess::Write => OFlags::WRONLY | OFlags::CREATE,
    };
    let mode = match opening {
        FileAccess::Read => Mode::empty(),
        FileAccess::Write => Mode::from_raw_mode(0o666),
    };
    match openat2(CWD, path, flags | OFlags::NONBLOCK | OFlags::CLOEXEC, mode, ResolveFlags::NO_SYMLINKS) {
        Ok(file) => Ok(File::from(file)),
        // A kernel before 5.6, and some sandboxes, do not have it.
        Err(Errno::NOSYS | Errno::PERM) => open_last_unlinked(path, opening),
        Err(error) => Err(error.into()),
    }
}

#[cfg(not(target_os = "linux"))]
fn open_unlinked(path: &Path, opening: FileAccess) -> io::Result<File> {
    open_last_unlinked(path, opening)
}

/// The same for the last name of the path alone.
fn open_last_unlinked(path: &Path, opening: FileAccess) -> io::Result<File> {
    let mut options = std::fs::OpenOptions::new();
    match opening {
        FileAccess::Read => options.read(true),
        FileAccess::Write => options.write(true).create(true).truncate(false),
    };
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        options.custom_flags(nix::libc::O_NOFOLLOW | nix::libc::O_NONBLOCK);
    }
    options.open(path)
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn each_link_is_judged_by_the_folder_that_it_is_in() {
        let top = tempfile::tempdir().unwrap();
        let top = top.path().canonicalize().unwrap();
        let (inside, out) = (top.join("p"), top.join("out"));
        for folder in [&inside.join("own"), &out.join("sub"), &out.join("project")] {
            std::fs::create_dir_all(folder).unwrap();
        }
        for file in
            [out.join("secret"), inside.join("own/file"), inside.join("loopctl.json"), out.join("project/loopctl.json")]
        {
            std::fs::write(file, "{}").unwrap();
        }
        for (target, name) in [
            (&out, "away"),
            (&out.join("sub"), "awaysub"),
            (&out.join("project"), "awayproject"),
            (&inside.join("own"), "in"),
        ] {
            symlink(target, inside.join(name)).unwrap();
        }
        symlink(out.join("secret"), inside.join("own/link")).unwrap();
        symlink(inside.join("own/file"), out.join("back")).unwrap();
        let of = |path: &str| ReachedFile::of(&inside.join(path));
        for path in [
            "away/secret",
            "awaysub/../secret",
            "awayproject/loopctl.json",
            "awayproject/../secret",
            "own/link",
            "in/link",
            "in/new/../link",
        ] {
            assert!(of(path).is_err(), "{path}");
        }
        for path in ["own/file", "in/file", "own/../own/file", "in/../in/file", "in/../own/file"] {
            assert_eq!(of(path).unwrap().path(), inside.join("own/file"), "{path}");
        }
        assert_eq!(of("in/new").unwrap().path(), inside.join("own/new"));
        // Of a folder that is no project, and not the current one.
        assert_eq!(ReachedFile::of(&out.join("back")).unwrap().path(), inside.join("own/file"));
        assert!(ReachedFile::to_write(&out.join("back")).is_err());
    }

    #[test]
    fn a_link_that_took_the_place_of_what_was_judged_is_not_followed() {
        let top = tempfile::tempdir().unwrap();
        let top = top.path().canonicalize().unwrap();
        std::fs::create_dir_all(top.join("p/sub")).unwrap();
        std::fs::create_dir_all(top.join("out")).unwrap();
        std::fs::write(top.join("out/file"), "secret").unwrap();
        std::fs::write(top.join("p/sub/file"), "own").unwrap();
        let judged = ReachedFile::of(&top.join("p/sub/file")).unwrap();
        assert_eq!(judged.text(9).unwrap(), "own");
        std::fs::remove_file(top.join("p/sub/file")).unwrap();
        symlink(top.join("out/file"), top.join("p/sub/file")).unwrap();
        assert!(judged.text(9).is_err() && judged.write("mine").is_err());
        // The same with a folder on the way, where the system can open without links.
        std::fs::remove_file(top.join("p/sub/file")).unwrap();
        std::fs::remove_dir(top.join("p/sub")).unwrap();
        symlink(top.join("out"), top.join("p/sub")).unwrap();
        if cfg!(target_os = "linux") {
            assert!(judged.text(9).is_err() && judged.write("mine").is_err());
        }
        assert_eq!(std::fs::read_to_string(top.join("out/file")).unwrap(), "secret");
        let new = ReachedFile::to_write(&top.join("p/new")).unwrap();
        new.write("longer").unwrap();
        new.write("short").unwrap();
        assert_eq!(new.text(9).unwrap(), "short");
    }
}
