//! The project file: the one that belongs to a folder, and its settings.

use std::path::{Path, PathBuf};

use super::reached_file::outside;
use super::{read, within};
use loopctl_lang::diagnostic::{Diagnostic, Source};
use loopctl_lang::language::Project;
use loopctl_lang::policy::json_text;

/// A project file that was found.
#[derive(Debug)]
pub struct ProjectFile {
    /// Its path.
    pub path: PathBuf,
    /// The folder that it belongs to, in the user's spelling.
    pub folder: PathBuf,
}

impl ProjectFile {
    /// The nearest project file, from a folder upwards.
    pub fn find(folder: &Path) -> Option<Self> {
        let mut real = folder.canonicalize().ok()?;
        let mut shown = folder.to_owned();
        loop {
            if real.join(Project::FILE).symlink_metadata().is_ok() {
                return Some(Self { path: within(&shown, Project::FILE), folder: shown });
            }
            real = real.parent()?.to_owned();
            shown = above(&shown);
        }
    }

    /// Refuses a link that leads out of the folder: its target is no part of the project, and diagnostics about
    /// it would show its text.
    ///
    /// # Errors
    /// One diagnostic that says so.
    pub fn inside(&self) -> Result<(), Box<Diagnostic>> {
        if stays_inside(&self.path, &self.folder) { Ok(()) } else { Err(outside(&self.path)) }
    }

    /// Its text.
    ///
    /// # Errors
    /// One diagnostic that says why it can't be read.
    pub fn read(&self) -> Result<Source, Box<Diagnostic>> {
        self.inside()?;
        read(&self.path)
    }
}

/// Whether a path names what the process has open: /dev/stdin, /dev/null, a pipe of the shell. Those are links to elsewhere.
pub fn is_of_process(path: &Path) -> bool {
    path.parent() == Some(Path::new("/dev")) || path.starts_with("/dev/fd")
}

fn stays_inside(path: &Path, folder: &Path) -> bool {
    let (Ok(real), Ok(folder)) = (path.canonicalize(), folder.canonicalize()) else { return true };
    real.starts_with(folder)
}

/// The settings in the text of a project file.
///
/// # Errors
/// A sentence that names the file.
pub fn settings(source: &Source) -> Result<Project, String> {
    json_text::read(&source.text).map_err(|error| format!("the project file {} can't be read: {error}", source.name))
}

/// The parent of a folder, in the user's spelling.
pub fn above(folder: &Path) -> PathBuf {
    match (folder.parent(), folder.file_name()) {
        (Some(parent), Some(_)) if parent.as_os_str().is_empty() => PathBuf::from("."),
        (Some(parent), Some(_)) => parent.to_owned(),
        _ if folder == Path::new(".") => PathBuf::from(".."),
        _ => folder.join(".."),
    }
}
