//! Which files belong to a document: the project file, and the actions beside it. Only regular
//! files are opened, none is waited for, and none is larger than a document may be.

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use crate::compile::Texts;
use crate::compile::parse::MAX_BYTES;
use crate::diagnostic::{Diagnostic, Source, codes};

/// The project file's name.
pub const PROJECT: &str = "loopctl.json";
/// The most files that names are looked up in.
pub const MAX_FILES: usize = 2_000;
/// The most bytes of all files that names are looked up in: 64 MiB.
pub const MAX_TOTAL: usize = 64 << 20;

/// A document with all texts that belong to it.
#[derive(Debug)]
pub struct Gathered {
    /// The texts.
    pub texts: Texts,
    /// The folder of the project file; without one that of the document.
    pub root: PathBuf,
}

/// Gathers a document (`-` is standard input), the project file above it, the actions beside it and
/// up to the project's folder, and the files of `actions`.
///
/// # Errors
/// One diagnostic for each file that had to be read and could not be.
pub fn gather(path: &Path, actions: &[PathBuf]) -> Result<Gathered, Vec<Diagnostic>> {
    let stdin = path == Path::new("-");
    let main = if stdin { read_stdin() } else { read(path) };
    let folder = match path.parent() {
        Some(parent) if !stdin && !parent.as_os_str().is_empty() => parent.to_owned(),
        _ => PathBuf::from("."),
    };
    let mut faults = Vec::new();
    let mut keep = |read: Result<Source, Box<Diagnostic>>| read.map_err(|fault| faults.push(*fault)).ok();
    let main = keep(main);
    let project = find_project(&folder);
    let project_source = project.as_ref().and_then(|(file, _)| keep(read(file)));
    let given: Vec<Source> = actions.iter().filter_map(|file| keep(read(file))).collect();
    let root = project.as_ref().map_or(folder.clone(), |(_, root)| root.clone());
    let (Some(main), true) = (main, faults.is_empty()) else { return Err(faults) };
    let mut texts = Texts::new(main);
    texts.project = project_source;
    texts.extra_actions = given;
    let mut known: BTreeSet<PathBuf> = actions.iter().filter_map(|file| file.canonicalize().ok()).collect();
    known.extend(path.canonicalize().ok());
    let mut search = Search { root: root.canonicalize().ok(), known, total: 0, texts: &mut texts };
    for folder in folders(&folder, project.as_ref().map(|(_, root)| root.as_path())) {
        search.folder(&folder.join("actions")).map_err(|fault| vec![*fault])?;
    }
    Ok(Gathered { texts, root })
}

/// The document's folder, and those above it up to the project's.
fn folders(folder: &Path, root: Option<&Path>) -> Vec<PathBuf> {
    let mut folders = vec![folder.to_owned()];
    let (Some(root), Ok(mut at)) = (root, folder.canonicalize()) else { return folders };
    let Ok(root) = root.canonicalize() else { return folders };
    let mut shown = folder.to_owned();
    while at != root {
        let Some(parent) = at.parent() else { break };
        at = parent.to_owned();
        shown = above(&shown);
        folders.push(shown.clone());
    }
    folders
}

/// The folder above one, written the way the user wrote it.
fn above(folder: &Path) -> PathBuf {
    match (folder.parent(), folder.file_name()) {
        (Some(parent), Some(_)) if parent.as_os_str().is_empty() => PathBuf::from("."),
        (Some(parent), Some(_)) => parent.to_owned(),
        _ => folder.join(".."),
    }
}

/// The nearest project file above a folder, and the folder that it stands in.
fn find_project(folder: &Path) -> Option<(PathBuf, PathBuf)> {
    let mut at = folder.canonicalize().ok()?;
    let mut shown = folder.to_owned();
    loop {
        if at.join(PROJECT).symlink_metadata().is_ok() {
            let file = if shown == Path::new(".") { PathBuf::from(PROJECT) } else { shown.join(PROJECT) };
            return Some((file, shown));
        }
        at = at.parent()?.to_owned();
        shown = above(&shown);
    }
}

struct Search<'a> {
    root: Option<PathBuf>,
    known: BTreeSet<PathBuf>,
    total: usize,
    texts: &'a mut Texts,
}

impl Search<'_> {
    /// Takes the JSON files of a folder, in the order of their names.
    fn folder(&mut self, folder: &Path) -> Result<(), Box<Diagnostic>> {
        let Ok(entries) = std::fs::read_dir(folder) else { return Ok(()) };
        let mut files: Vec<PathBuf> = Vec::new();
        for entry in entries.flatten() {
            let file = entry.path();
            if file.extension().is_some_and(|ending| ending == "json") {
                files.push(file);
            }
            if files.len() + self.texts.actions.len() > MAX_FILES {
                let message = format!("there are more than {MAX_FILES} files that actions may stand in");
                return Err(Box::new(at(folder, message).help("give those that are needed with `--actions FILE`")));
            }
        }
        files.sort();
        for file in files {
            self.file(&file)?;
        }
        Ok(())
    }

    fn file(&mut self, file: &Path) -> Result<(), Box<Diagnostic>> {
        let Ok(real) = file.canonicalize() else { return Ok(()) };
        let inside = self.root.as_ref().is_some_and(|root| real.starts_with(root));
        if !inside {
            let message = "the file lies outside of the project's folder: a link leads there";
            self.texts.unread.push(at(file, message).help("name it with `--actions FILE`"));
            return Ok(());
        }
        if !self.known.insert(real) {
            return Ok(());
        }
        match read(file) {
            Ok(source) => {
                self.total += source.text.len();
                self.texts.actions.push(source);
            }
            Err(fault) => self.texts.unread.push(*fault),
        }
        if self.total > MAX_TOTAL {
            let message = format!("the files that actions may stand in have more than {} MiB", MAX_TOTAL >> 20);
            return Err(Box::new(at(file, message).help("give those that are needed with `--actions FILE`")));
        }
        Ok(())
    }
}

/// Reads a regular file of at most 16 MiB of UTF-8.
///
/// # Errors
/// One diagnostic that says what is wrong with it.
pub fn read(path: &Path) -> Result<Source, Box<Diagnostic>> {
    let failed = |error: io::Error| at(path, format!("the file can't be read: {}", reason(&error)));
    // Looked at before it is opened, for opening a pipe would wait for its other end; and looked at
    // once more after it, for it may have been replaced in between.
    let found = std::fs::metadata(path).map_err(failed)?;
    regular(path, &found)?;
    let file = open(path).map_err(failed)?;
    let found = file.metadata().map_err(failed)?;
    regular(path, &found)?;
    let bytes = bounded(file).map_err(failed)?;
    text(&shown(path), bytes)
}

fn read_stdin() -> Result<Source, Box<Diagnostic>> {
    let failed = |error: io::Error| at(Path::new("-"), format!("standard input can't be read: {}", reason(&error)));
    text("-", bounded(io::stdin().lock()).map_err(failed)?)
}

#[cfg(unix)]
fn open(path: &Path) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt;
    OpenOptions::new().read(true).custom_flags(nix::libc::O_NONBLOCK).open(path)
}

#[cfg(not(unix))]
fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).open(path)
}

fn regular(path: &Path, found: &std::fs::Metadata) -> Result<(), Box<Diagnostic>> {
    if found.is_dir() {
        return Err(at(path, "this is a folder; a file was expected"));
    }
    if !found.is_file() {
        return Err(at(path, "this is no regular file (a pipe, a device or a socket), and is not opened"));
    }
    if usize::try_from(found.len()).is_ok_and(|length| length <= MAX_BYTES) { Ok(()) } else { Err(too_large(path)) }
}

fn too_large(path: &Path) -> Box<Diagnostic> {
    let message = format!("the file has more than {} MiB, and is not read", MAX_BYTES >> 20);
    Box::new(Diagnostic { code: codes::TOO_MUCH, ..*at(path, message) })
}

/// At most one byte more than a document may have: enough to know that it is too long.
fn bounded(from: impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let most = u64::try_from(MAX_BYTES).unwrap_or(u64::MAX).saturating_add(1);
    from.take(most).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn text(name: &str, bytes: Vec<u8>) -> Result<Source, Box<Diagnostic>> {
    if bytes.len() > MAX_BYTES {
        return Err(too_large(Path::new(name)));
    }
    let bytes = match String::from_utf8(bytes) {
        Ok(text) => return Ok(Source::new(name, text)),
        Err(error) => error,
    };
    let valid = bytes.utf8_error().valid_up_to();
    let bytes = bytes.into_bytes();
    let before = String::from_utf8_lossy(bytes.get(..valid).unwrap_or_default()).into_owned();
    let wide = bytes.starts_with(&[0xFF, 0xFE]) || bytes.starts_with(&[0xFE, 0xFF]);
    let byte = bytes.get(valid).copied().unwrap_or_default();
    let place = Source::new(name, before).place(valid, valid);
    // The text is not shown, so the message says where: to a terminal its bytes may mean anything.
    let message = if wide {
        "the file is UTF-16, and a document is UTF-8".to_owned()
    } else {
        let (line, column) = (place.line, place.column);
        format!("the file is not UTF-8: the byte 0x{byte:02X} in line {line}, column {column} can't stand there")
    };
    Err(Box::new(Diagnostic::error(codes::ENCODING, message, "", place).help("save it as UTF-8")))
}

/// A fault of a file as a whole.
fn at(path: &Path, message: impl Into<String>) -> Box<Diagnostic> {
    Box::new(Diagnostic::error(codes::FILE, message, "", Source::new(shown(path), "").whole()))
}

/// A file's name as it is shown: control characters in it would reach a terminal.
fn shown(path: &Path) -> String {
    let name = path.to_string_lossy();
    name.chars().map(|c| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c }).collect()
}

fn reason(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "there is no such file".to_owned(),
        io::ErrorKind::PermissionDenied => "no permission".to_owned(),
        _ => error.to_string(),
    }
}
