//! Which files are looked at when folders are named: every `*.json` in them, in the order of their
//! paths, each once. Hidden folders and those of build tools are passed by, and links are not followed; but
//! for those to files inside the folder that is named: a volume of Kubernetes has its files so.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use super::{at, reason, within};
use crate::diagnostic::Diagnostic;

#[cfg(test)]
mod tests;

/// The most JSON files that are looked at.
pub const MAX_WALKED: usize = 20_000;
/// The most bytes that all of them may have: 1 GiB.
pub const MAX_WALKED_BYTES: u64 = 1 << 30;
/// The most entries of folders that are looked through.
const MAX_ENTRIES: usize = 1_000_000;
/// Folders of build tools: what stands there is nobody's writing.
const PASSED_BY: [&str; 2] = ["target", "node_modules"];

/// A file that is looked at.
#[derive(Debug, Clone)]
pub struct Target {
    /// The file as the user wrote it; `-` is standard input.
    pub path: PathBuf,
    /// Its path without links; none for standard input, and for what is not there.
    pub real: Option<PathBuf>,
    /// Whether the user named it himself; else it was found in a folder.
    pub named: bool,
}

/// The files that are looked at, and what could not be looked into.
#[derive(Debug, Default)]
pub struct Targets {
    /// The files, in the order of the arguments, and below a folder in that of their paths.
    pub files: Vec<Target>,
    /// Folders that could not be read.
    pub faults: Vec<Diagnostic>,
}

/// The files that are named, and those in the folders that are named.
///
/// # Errors
/// When there are more files, or more bytes, than are looked at.
pub fn targets(paths: &[PathBuf]) -> Result<Targets, Box<Diagnostic>> {
    let mut walk = FolderWalk::default();
    for path in paths {
        let stdin = path == Path::new("-");
        if !stdin && path.is_dir() {
            walk.folder(path)?;
        } else {
            let real = if stdin { None } else { path.canonicalize().ok() };
            walk.take(Target { path: path.clone(), real, named: true });
        }
    }
    Ok(walk.targets)
}

#[derive(Default)]
struct FolderWalk {
    targets: Targets,
    /// Where each file stands among the targets, by its path without links.
    seen: BTreeMap<PathBuf, usize>,
    entries: usize,
    found: usize,
    bytes: u64,
}

impl FolderWalk {
    fn take(&mut self, target: Target) {
        let key = target.real.clone().unwrap_or_else(|| target.path.clone());
        match self.seen.get(&key).and_then(|at| self.targets.files.get_mut(*at)) {
            // Found before, and named now: then it is judged like one that was named.
            Some(known) => known.named |= target.named,
            None => {
                self.seen.insert(key, self.targets.files.len());
                self.targets.files.push(target);
            }
        }
    }

    fn folder(&mut self, top: &Path) -> Result<(), Box<Diagnostic>> {
        let (mut found, mut links) = (Vec::new(), Vec::new());
        let inside = match top.canonicalize() {
            Ok(real) => real,
            Err(error) => {
                self.unreadable(top, &error);
                return Ok(());
            }
        };
        let mut folders = vec![(top.to_owned(), inside.clone())];
        while let Some((folder, real)) = folders.pop() {
            let entries = match std::fs::read_dir(&folder) {
                Ok(entries) => entries,
                Err(error) => {
                    self.unreadable(&folder, &error);
                    continue;
                }
            };
            for entry in entries.flatten() {
                self.entries += 1;
                self.bounded(top)?;
                let name = entry.file_name();
                let path = within(&folder, &name);
                let Ok(kind) = entry.file_type() else { continue };
                let json = path.extension().is_some_and(|ending| ending == "json");
                if kind.is_dir() && !is_passed_by(&name) {
                    folders.push((path, real.join(name)));
                } else if json && kind.is_file() {
                    self.count(&path, top)?;
                    found.push(Target { path, real: Some(real.join(name)), named: false });
                } else if json
                    && kind.is_symlink()
                    && let Some(real) = led_to(&path, &inside)
                {
                    self.count(&path, top)?;
                    links.push(Target { path, real: Some(real), named: false });
                }
            }
        }
        // A file that was found under its own name is known by that one.
        let own: BTreeSet<_> = found.iter().filter_map(|target| target.real.clone()).collect();
        found.extend(links.into_iter().filter(|link| link.real.as_ref().is_none_or(|real| !own.contains(real))));
        found.sort_by(|one, other| one.path.cmp(&other.path));
        found.into_iter().for_each(|target| self.take(target));
        Ok(())
    }

    fn count(&mut self, file: &Path, top: &Path) -> Result<(), Box<Diagnostic>> {
        self.found += 1;
        self.bytes = self.bytes.saturating_add(std::fs::metadata(file).map_or(0, |found| found.len()));
        self.bounded(top)
    }

    fn unreadable(&mut self, folder: &Path, error: &std::io::Error) {
        let fault = at(folder, format!("the folder can't be read: {}", reason(error)));
        self.targets.faults.push(*fault);
    }

    fn bounded(&self, top: &Path) -> Result<(), Box<Diagnostic>> {
        let message = if self.found > MAX_WALKED {
            format!("there are more than {MAX_WALKED} JSON files below this folder")
        } else if self.bytes > MAX_WALKED_BYTES {
            format!("the JSON files below this folder have more than {} MiB", MAX_WALKED_BYTES >> 20)
        } else if self.entries > MAX_ENTRIES {
            format!("there are more than {MAX_ENTRIES} files below this folder")
        } else {
            return Ok(());
        };
        Err(Box::new(at(top, message).help("name the folders that hold loops")))
    }
}

/// The file that a link leads to, when it lies inside a folder; none for a pipe and the like.
fn led_to(link: &Path, inside: &Path) -> Option<PathBuf> {
    link.canonicalize().ok().filter(|real| real.starts_with(inside) && real.is_file())
}

fn is_passed_by(folder: &OsStr) -> bool {
    folder.as_encoded_bytes().starts_with(b".") || PASSED_BY.iter().any(|name| folder == OsStr::new(name))
}
