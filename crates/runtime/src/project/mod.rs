//! The project: the files that belong to a document, and the way from them to a program. Only regular files are
//! opened, no read blocks, and no file may be larger than a document.

mod atomic_file;
#[cfg(feature = "sqlite")]
mod databases;
pub mod guarded_read;
pub mod load;
pub mod named_files;
mod neighbours;
pub mod paths;
mod project_file;
mod reached_file;
mod scenarios;
pub mod snapshot_file;

#[cfg(test)]
mod tests;
mod walk;

use std::io;
use std::path::{Path, PathBuf};

use loopctl_lang::compile::Texts;
use loopctl_lang::diagnostic::{Diagnostic, Source, codes};
use loopctl_lang::syntax::MAX_BYTES;

pub use atomic_file::replace;
use guarded_read::ReadError;
pub use named_files::outside;
pub use neighbours::{Library, MAX_FILES, MAX_TOTAL, Neighbours};
pub use project_file::{ProjectFile, is_of_process, settings};
pub use reached_file::ReachedFile;
pub use scenarios::{ExaminedScenarios, ScenarioDocument, ScenarioSet, scenario_file, scenario_file_with, scenarios};
pub use walk::{MAX_WALKED, MAX_WALKED_BYTES, Target, Targets, targets};

/// A document with all texts that belong to it.
#[derive(Debug)]
pub struct Gathered {
    /// The texts.
    pub texts: Texts,
    /// The folder of the project file, or else that of the document.
    pub root: PathBuf,
}

/// Gathers a document (`-` is standard input), the project file above it, the actions beside it and
/// up to the project's folder, and the files of `actions`.
///
/// # Errors
/// One diagnostic for each file that had to be read and could not be.
pub fn gather(path: &Path, actions: &[PathBuf]) -> Result<Gathered, Vec<Diagnostic>> {
    let main = if path == Path::new("-") { read_stdin() } else { read(path) };
    let neighbours = Library::new(actions).neighbours(&folder_of(path));
    match main {
        Ok(main) => neighbours.gathered(main, path.canonicalize().ok().as_deref()),
        Err(fault) => Err(std::iter::once(*fault).chain(neighbours.faults().iter().cloned()).collect()),
    }
}

/// A document without a file, with the files of `actions`. Relative paths start in the current folder.
///
/// # Errors
/// One diagnostic for each file that could not be read.
pub fn alone(main: Source, actions: &[PathBuf]) -> Result<Gathered, Vec<Diagnostic>> {
    let mut texts = Texts::new(main);
    let mut faults = Vec::new();
    for path in actions {
        match read(path) {
            Ok(source) => texts.extra_actions.push(source),
            Err(fault) => faults.push(*fault),
        }
    }
    if faults.is_empty() { Ok(Gathered { texts, root: PathBuf::from(".") }) } else { Err(faults) }
}

/// The folder of a document, in the user's spelling; that of standard input is the current one.
pub fn folder_of(path: &Path) -> PathBuf {
    match path.parent() {
        Some(parent) if path != Path::new("-") && !parent.as_os_str().is_empty() => parent.to_owned(),
        _ => PathBuf::from("."),
    }
}

/// The path of a name in a folder; without the folder if that is the current one.
fn within(folder: &Path, name: impl AsRef<Path>) -> PathBuf {
    if folder == Path::new(".") { name.as_ref().to_owned() } else { folder.join(name) }
}

/// Reads a regular file of at most 16 MiB of UTF-8, to which no link leads from its project to elsewhere.
///
/// # Errors
/// One diagnostic that says what is wrong with it.
pub fn read(path: &Path) -> Result<Source, Box<Diagnostic>> {
    let bytes = ReachedFile::of(path)?.bytes(MAX_BYTES).map_err(|unread| unreadable(path, "the file", &unread))?;
    text(&name_of(path), bytes)
}

/// The text of a file that is not UTF-8, as far as it can be decoded: enough to see its kind.
pub fn letters(path: &Path) -> Option<String> {
    let bytes = guarded_read::bytes(path, MAX_BYTES).ok()?;
    Some(bytes.into_iter().filter(|byte| (1..0x80).contains(byte)).map(char::from).collect())
}

/// Reads standard input, at most 16 MiB of UTF-8.
///
/// # Errors
/// One diagnostic that says what is wrong with it.
pub fn read_stdin() -> Result<Source, Box<Diagnostic>> {
    let bytes = guarded_read::bounded(io::stdin().lock(), MAX_BYTES);
    text("-", bytes.map_err(|unread| unreadable(Path::new("-"), "standard input", &unread))?)
}

fn unreadable(path: &Path, what: &str, unread: &ReadError) -> Box<Diagnostic> {
    match unread {
        ReadError::Failed(error) => at(path, format!("{what} can't be read: {}", reason(error))),
        ReadError::TooLong => {
            let message = format!("the file has more than {} MiB, and is not read", MAX_BYTES >> 20);
            Box::new(Diagnostic { code: codes::TOO_MUCH, ..*at(path, message) })
        }
        other => at(path, other.reason(MAX_BYTES)),
    }
}

fn text(name: &str, bytes: Vec<u8>) -> Result<Source, Box<Diagnostic>> {
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
    // The text is not shown, so the message gives the position: its bytes could control a terminal.
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
    Box::new(Diagnostic::error(codes::FILE, message, "", Source::new(name_of(path), "").whole()))
}

/// The name by which a file is shown, which is that of its text: control characters in it would reach a
/// terminal.
pub fn name_of(path: &Path) -> String {
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
