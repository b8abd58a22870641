//! The files of given folders: every `*.json` in them, in the order of their paths, each once. Hidden folders
//! and those of build tools are skipped. Links are not followed, except those to files inside the given folder:
//! Kubernetes volumes consist of such links.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use super::{at, reason, within};
use loopctl_lang::diagnostic::Diagnostic;

/// The most JSON files.
pub const MAX_WALKED: usize = 20_000;
/// The most bytes of all of them: 1 GiB.
pub const MAX_WALKED_BYTES: u64 = 1 << 30;
/// The most entries of folders.
const MAX_ENTRIES: usize = 1_000_000;
/// Folders of build tools: nobody writes documents there.
const PASSED_BY: [&str; 2] = ["target", "node_modules"];

/// A file to check.
#[derive(Debug, Clone)]
pub struct Target {
    /// The file as the user wrote it; `-` is standard input.
    pub path: PathBuf,
    /// Its path without links; none for standard input, and for a file that does not exist.
    pub real: Option<PathBuf>,
    /// Whether the user named it; otherwise it was found in a folder.
    pub named: bool,
}

/// The files to check, and the folders that could not be read.
#[derive(Debug, Default)]
pub struct Targets {
    /// The files, in the order of the arguments, and within a folder in the order of their paths.
    pub files: Vec<Target>,
    /// Folders that could not be read.
    pub faults: Vec<Diagnostic>,
}

/// The given files, and those in the given folders.
///
/// # Errors
/// When there are too many files, or too many bytes.
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
    /// The index of each file among the targets, by its path without links.
    seen: BTreeMap<PathBuf, usize>,
    entries: usize,
    found: usize,
    bytes: u64,
}

impl FolderWalk {
    fn take(&mut self, target: Target) {
        let key = target.real.clone().unwrap_or_else(|| target.path.clone());
        match self.seen.get(&key).and_then(|at| self.targets.files.get_mut(*at)) {
            // It was found before, and is named now: then it counts as named.
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
        // A file that was also found under its own name is known by that name.
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

/// The file that a link leads to, if it is inside a folder; none for a pipe and the like.
fn led_to(link: &Path, inside: &Path) -> Option<PathBuf> {
    link.canonicalize().ok().filter(|real| real.starts_with(inside) && real.is_file())
}

fn is_passed_by(folder: &OsStr) -> bool {
    folder.as_encoded_bytes().starts_with(b".") || PASSED_BY.iter().any(|name| folder == OsStr::new(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(folder: &Path, name: &str) {
        let file = folder.join(name);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, "{}").unwrap();
    }

    fn found(folder: &Path, paths: &[&str]) -> Vec<String> {
        let paths: Vec<PathBuf> = paths.iter().map(|path| folder.join(path)).collect();
        let shown = |target: &Target| target.path.strip_prefix(folder).unwrap().display().to_string();
        targets(&paths).unwrap().files.iter().map(shown).collect()
    }

    #[test]
    fn json_files_are_found_in_the_order_of_their_paths_each_once() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["b.json", "a/z.json", "a/b/c.json", "c.json", "a.json", "notes.txt", "a/x.JSON", "json"] {
            write(folder.path(), name);
        }
        let all = ["a/b/c.json", "a/z.json", "a.json", "b.json", "c.json"];
        assert_eq!(found(folder.path(), &[""]), all);
        assert_eq!(
            found(folder.path(), &["c.json", "a", "", "a/../b.json"]),
            ["c.json", "a/b/c.json", "a/z.json", "a.json", "b.json"]
        );
    }

    #[test]
    fn a_file_that_is_found_and_named_counts_as_named() {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), "a.json");
        write(folder.path(), "b.json");
        let targets = targets(&[folder.path().to_owned(), folder.path().join("b.json")]).unwrap();
        assert_eq!(targets.files.iter().map(|target| target.named).collect::<Vec<_>>(), [false, true]);
    }

    #[test]
    fn hidden_folders_and_those_of_build_tools_are_passed_by_unless_they_are_named() {
        let folder = tempfile::tempdir().unwrap();
        for name in [".git/a.json", "target/a.json", "x/node_modules/y/a.json", "x/a.json"] {
            write(folder.path(), name);
        }
        assert_eq!(found(folder.path(), &[""]), ["x/a.json"]);
        assert_eq!(found(folder.path(), &["target", ".git"]), ["target/a.json", ".git/a.json"]);
    }

    #[cfg(unix)]
    #[test]
    fn a_link_to_a_file_inside_is_followed_and_each_file_is_found_once() {
        let folder = tempfile::tempdir().unwrap();
        let link = |to: &str, name: &str| std::os::unix::fs::symlink(to, folder.path().join(name)).unwrap();
        // The layout of a Kubernetes volume.
        write(folder.path(), "..2026/a.json");
        write(folder.path(), "..2026/b.json");
        link("..2026", "..data");
        link("..data/a.json", "a.json");
        link("..data/b.json", "b.json");
        // A file is known by its own name, if that is found too.
        write(folder.path(), "own/z.json");
        link("own/z.json", "again.json");
        link("nothing.json", "broken.json");
        assert_eq!(found(folder.path(), &[""]), ["a.json", "b.json", "own/z.json"]);
        assert_eq!(found(folder.path(), &["own", ""]), ["own/z.json", "a.json", "b.json"]);
        link("again.json", "own/back.json");
        assert_eq!(found(folder.path(), &["own"]), ["own/z.json"]);
    }

    #[cfg(unix)]
    #[test]
    fn links_that_lead_out_pipes_and_loops_of_folders_are_passed_by() {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), "in/a.json");
        write(folder.path(), "out/b.json");
        let link = |to: &str, name: &str| {
            std::os::unix::fs::symlink(folder.path().join(to), folder.path().join(name)).unwrap()
        };
        link("out", "in/folder");
        link("out/b.json", "in/file.json");
        link("in", "in/round");
        link("nowhere", "in/gone.json");
        assert!(
            std::process::Command::new("mkfifo").arg(folder.path().join("in/pipe.json")).status().unwrap().success()
        );
        assert_eq!(found(folder.path(), &["in"]), ["in/a.json"]);
        // A named file is always taken.
        assert_eq!(found(folder.path(), &["in/folder", "in/file.json"]), ["in/folder/b.json"]);
    }

    #[test]
    fn what_is_not_there_is_left_to_the_reader_and_stdin_is_no_folder() {
        let targets = targets(&[PathBuf::from("-"), PathBuf::from("no/such.json")]).unwrap();
        assert_eq!(targets.files.len(), 2);
        assert!(targets.files.iter().all(|target| target.named && target.real.is_none()));
    }

    #[test]
    fn more_files_than_are_looked_at_are_refused() {
        let mut walk = FolderWalk { found: MAX_WALKED, ..FolderWalk::default() };
        assert!(walk.bounded(Path::new("x")).is_ok());
        walk.found += 1;
        assert!(walk.bounded(Path::new("x")).unwrap_err().message.contains("more than 20000 JSON files"));
        let walk = FolderWalk { bytes: MAX_WALKED_BYTES + 1, ..FolderWalk::default() };
        assert!(walk.bounded(Path::new("x")).is_err());
        let walk = FolderWalk { entries: MAX_ENTRIES + 1, ..FolderWalk::default() };
        assert!(walk.bounded(Path::new("x")).is_err());
    }
}
