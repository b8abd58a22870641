//! The project file: the one that belongs to a folder, and its settings.

use std::path::{Path, PathBuf};

use super::{at, read, within};
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
        let (Ok(real), Ok(folder)) = (self.path.canonicalize(), self.folder.canonicalize()) else { return Ok(()) };
        if real.starts_with(folder) {
            return Ok(());
        }
        let name = self.path.file_name().unwrap_or_default().to_string_lossy();
        let message = format!("the file {name} lies outside of its folder: a link leads there, and is not followed");
        let help = "put the file itself there, or a link to one inside of the folder";
        Err(Box::new(at(&self.path, message).help(help)))
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
