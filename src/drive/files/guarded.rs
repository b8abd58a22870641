//! Reading a file that somebody named: a regular one and no pipe or device, without waiting for anybody, and
//! never more of it than is wanted.

use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Read};
use std::path::Path;

/// Why a file was not read.
#[derive(Debug)]
pub enum Unread {
    /// The system says why.
    Failed(io::Error),
    /// It is a folder.
    Folder,
    /// It is a pipe, a device or a socket.
    Irregular,
    /// It has more bytes than are wanted.
    TooLong,
    /// It is no text.
    NoText,
}

impl Unread {
    /// Why, in a sentence about the file; `most` is what was wanted, in bytes.
    pub fn reason(&self, most: usize) -> String {
        match self {
            Self::Failed(error) => super::reason(error),
            Self::Folder => "this is a folder; a file was expected".to_owned(),
            Self::Irregular => "this is no regular file (a pipe, a device or a socket), and is not opened".to_owned(),
            Self::TooLong if most >= 1 << 20 => format!("it has more than {} MiB, and is not read", most >> 20),
            Self::TooLong => format!("it has more than {most} bytes, and is not read"),
            Self::NoText => "it is not UTF-8".to_owned(),
        }
    }
}

/// Reads a regular file of at most so many bytes.
///
/// # Errors
/// Why it was not read.
pub fn bytes(path: &Path, most: usize) -> Result<Vec<u8>, Unread> {
    // Looked at before it is opened, for opening a pipe would wait for its other end; and looked at
    // once more after it, for it may have been replaced in between.
    regular(&std::fs::metadata(path).map_err(Unread::Failed)?, most)?;
    let file = open(path).map_err(Unread::Failed)?;
    regular(&file.metadata().map_err(Unread::Failed)?, most)?;
    bounded(file, most)
}

/// The same of a text.
///
/// # Errors
/// Why it was not read.
pub fn text(path: &Path, most: usize) -> Result<String, Unread> {
    String::from_utf8(bytes(path, most)?).map_err(|_| Unread::NoText)
}

/// Reads standard input, which may be a pipe, at most so many bytes of text.
///
/// # Errors
/// Why it was not read.
pub fn stdin(most: usize) -> Result<String, Unread> {
    String::from_utf8(bounded(io::stdin().lock(), most)?).map_err(|_| Unread::NoText)
}

/// At most one byte more than is wanted: enough to know that there is too much.
pub(super) fn bounded(from: impl Read, most: usize) -> Result<Vec<u8>, Unread> {
    let mut bytes = Vec::new();
    let length = u64::try_from(most).unwrap_or(u64::MAX).saturating_add(1);
    from.take(length).read_to_end(&mut bytes).map_err(Unread::Failed)?;
    if bytes.len() > most { Err(Unread::TooLong) } else { Ok(bytes) }
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

fn regular(found: &Metadata, most: usize) -> Result<(), Unread> {
    if found.is_dir() {
        return Err(Unread::Folder);
    }
    if !found.is_file() {
        return Err(Unread::Irregular);
    }
    if usize::try_from(found.len()).is_ok_and(|length| length <= most) { Ok(()) } else { Err(Unread::TooLong) }
}
