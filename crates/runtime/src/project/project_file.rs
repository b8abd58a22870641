//! The project file: the one that belongs to a folder, and its settings.

use std::path::{Component, Path, PathBuf};

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

/// Refuses a file that a link leads to from a folder to elsewhere: somebody who wrote the folder would see what is there in
/// diagnostics about it. The folder is that of the project, as the path is spelled; without a project, the current one.
///
/// # Errors
/// One diagnostic that says so.
pub(super) fn not_linked_out(shown: &Path) -> Result<(), Box<Diagnostic>> {
    if is_of_process(shown) {
        return Ok(());
    }
    let Ok(path) = spelled(shown) else { return Ok(()) };
    let is_project = |folder: &&Path| folder.join(Project::FILE).symlink_metadata().is_ok();
    let current = Path::new(".").canonicalize().unwrap_or_default();
    let is_current = |folder: &&Path| *folder == current && folder.parent().is_some();
    let above = || path.ancestors().skip(1);
    let Some(folder) = above().find(is_project).or_else(|| above().find(is_current)) else { return Ok(()) };
    let is_link = |part: &Path| part.symlink_metadata().is_ok_and(|found| found.is_symlink());
    let is_linked = path.ancestors().take_while(|part| *part != folder).any(is_link);
    if is_linked && !stays_inside(&path, folder) { Err(outside(shown)) } else { Ok(()) }
}

/// Whether a path names what the process has open: /dev/stdin, /dev/null, a pipe of the shell. Those are links to elsewhere.
pub fn is_of_process(path: &Path) -> bool {
    path.parent() == Some(Path::new("/dev")) || path.starts_with("/dev/fd")
}

/// A path from the root on. What is before its last `..` is where the system says that it is.
fn spelled(path: &Path) -> std::io::Result<PathBuf> {
    let path = std::path::absolute(path)?;
    let parts: Vec<Component<'_>> = path.components().collect();
    let Some(last) = parts.iter().rposition(|part| *part == Component::ParentDir) else { return Ok(path) };
    let (before, behind) = parts.split_at_checked(last.saturating_add(1)).unwrap_or((&parts, &[]));
    let mut whole = before.iter().collect::<PathBuf>().canonicalize()?;
    whole.extend(behind);
    Ok(whole)
}

fn stays_inside(path: &Path, folder: &Path) -> bool {
    let (Ok(real), Ok(folder)) = (path.canonicalize(), folder.canonicalize()) else { return true };
    real.starts_with(folder)
}

fn outside(path: &Path) -> Box<Diagnostic> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let message = format!("the file {name} lies outside of its folder: a link leads there, and is not followed");
    let help = "put the file itself there, or a link to one inside of the folder";
    Box::new(at(path, message).help(help))
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
