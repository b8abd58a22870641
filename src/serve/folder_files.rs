//! The files of a served folder, as they were at one moment: whether one of them has changed since.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::project::{self, ProjectFile};

/// The documents of a folder and its project file, by their paths.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct FolderFiles(BTreeMap<PathBuf, Option<FileState>>);

/// When a file was written, and how long it is.
#[derive(Debug, PartialEq, Eq)]
struct FileState {
    modified: SystemTime,
    bytes: u64,
}

impl FolderFiles {
    /// The files as they are now; none of a folder that can't be read.
    pub fn of(folder: &Path) -> Self {
        let project = ProjectFile::find(folder).map(|file| file.path);
        let targets = project::targets(&[folder.to_owned()]).map(|targets| targets.files).unwrap_or_default();
        let files = targets.into_iter().map(|target| target.path).chain(project);
        let state = |path: &PathBuf| {
            let file = std::fs::metadata(path).ok()?;
            Some(FileState { modified: file.modified().ok()?, bytes: file.len() })
        };
        Self(files.map(|path| (path.clone(), state(&path))).collect())
    }
}
