//! Reads a file that somebody named: only regular files, no pipes or devices, without blocking, and never more
//! than a limit.

use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Read};
use std::path::Path;

/// Why a file was not read.
#[derive(Debug)]
pub enum ReadError {
    /// An error of the system.
    Failed(io::Error),
    /// It is a folder.
    Folder,
    /// It is a pipe, a device or a socket.
    Irregular,
    /// It is longer than the limit.
    TooLong,
    /// It is no text.
    NoText,
}

impl ReadError {
    /// Why, in a sentence about the file; `most` is the limit in bytes.
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

/// Reads a regular file of at most this length in bytes.
///
/// # Errors
/// Why it was not read.
pub fn bytes(path: &Path, most: usize) -> Result<Vec<u8>, ReadError> {
    bounded(opened(path)?, most)
}

/// Opens a regular file.
pub(super) fn opened(path: &Path) -> Result<File, ReadError> {
    // Checked before it is opened, because opening a pipe would block; and checked again afterwards, because it
    // may have been replaced in between.
    regular(&std::fs::metadata(path).map_err(ReadError::Failed)?)?;
    let file = open(path).map_err(ReadError::Failed)?;
    regular(&file.metadata().map_err(ReadError::Failed)?)?;
    Ok(file)
}

/// The same for a text.
///
/// # Errors
/// Why it was not read.
pub fn text(path: &Path, most: usize) -> Result<String, ReadError> {
    String::from_utf8(bytes(path, most)?).map_err(|_| ReadError::NoText)
}

/// Reads standard input, which may be a pipe, up to a number of bytes of text.
///
/// # Errors
/// Why it was not read.
pub fn stdin(most: usize) -> Result<String, ReadError> {
    String::from_utf8(bounded(io::stdin().lock(), most)?).map_err(|_| ReadError::NoText)
}

/// At most one byte more than the limit: enough to know that there is more.
pub(super) fn bounded(from: impl Read, most: usize) -> Result<Vec<u8>, ReadError> {
    let mut bytes = Vec::new();
    let length = u64::try_from(most).unwrap_or(u64::MAX).saturating_add(1);
    from.take(length).read_to_end(&mut bytes).map_err(ReadError::Failed)?;
    if bytes.len() > most { Err(ReadError::TooLong) } else { Ok(bytes) }
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

pub(super) fn regular(found: &Metadata) -> Result<(), ReadError> {
    if found.is_dir() {
        return Err(ReadError::Folder);
    }
    if found.is_file() { Ok(()) } else { Err(ReadError::Irregular) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(bytes: &[u8]) -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), bytes).unwrap();
        file
    }

    #[test]
    fn a_file_is_read_up_to_what_is_wanted_and_not_at_all_beyond() {
        let file = written(b"12345");
        for most in [5, 6, usize::MAX] {
            assert_eq!(bytes(file.path(), most).unwrap(), b"12345");
            assert_eq!(text(file.path(), most).unwrap(), "12345");
        }
        assert!(matches!(bytes(file.path(), 4), Err(ReadError::TooLong)));
        assert!(matches!(text(file.path(), 4), Err(ReadError::TooLong)));
        assert!(matches!(text(written(b"\xff").path(), 4), Err(ReadError::NoText)));
        assert!(matches!(bytes(&file.path().join("none"), 4), Err(ReadError::Failed(_))));
    }

    #[test]
    fn what_grows_while_it_is_read_is_bounded_all_the_same() {
        assert_eq!(bounded(&b"123"[..], 3).unwrap(), b"123");
        assert_eq!(bounded(&b""[..], 0).unwrap(), b"");
        assert!(matches!(bounded(&b"1234"[..], 3), Err(ReadError::TooLong)));
        assert!(matches!(bounded(io::repeat(0), 3), Err(ReadError::TooLong)));
    }

    #[cfg(unix)]
    #[test]
    fn a_folder_and_a_socket_are_no_files() {
        let folder = tempfile::tempdir().unwrap();
        assert!(matches!(bytes(folder.path(), usize::MAX), Err(ReadError::Folder)));
        let socket = folder.path().join("s");
        let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        assert!(matches!(bytes(&socket, usize::MAX), Err(ReadError::Irregular)));
    }

    #[test]
    fn each_reason_says_what_is_wrong_and_the_bound_in_its_unit() {
        assert!(ReadError::Folder.reason(1).contains("a folder"));
        assert!(ReadError::Irregular.reason(1).contains("a pipe, a device or a socket"));
        assert!(ReadError::NoText.reason(1).contains("UTF-8"));
        assert_eq!(ReadError::TooLong.reason(1 << 20), "it has more than 1 MiB, and is not read");
        assert_eq!(ReadError::TooLong.reason((1 << 20) - 1), "it has more than 1048575 bytes, and is not read");
        assert_eq!(ReadError::Failed(io::ErrorKind::NotFound.into()).reason(1), "there is no such file");
    }
}
