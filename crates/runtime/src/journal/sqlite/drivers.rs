//! Which drivers are alive: each driver holds a lock on a file of its own for as long as it lives. The system
//! releases the lock when the process ends, however it ends, so nobody waits for a dead driver.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use uuid::Uuid;

use super::schema::beside;

/// The folder with the drivers' lock files, beside the store.
#[derive(Debug, Clone)]
pub(super) struct Drivers {
    folder: PathBuf,
}

/// How often a driver makes its file again that another one removed.
const MAX_TRIES: u32 = 10_000;

/// Whether the folder was there and is not any more: the last driver that leaves removes it.
fn is_gone(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::AlreadyExists)
}

/// A driver's own file, locked.
#[derive(Debug)]
pub(super) struct Membership {
    /// The driver's name, a UUID.
    pub(super) name: String,
    lock: File,
}

impl Drop for Membership {
    fn drop(&mut self) {
        // Explicit: a child process that is just being started may still have the file open too.
        let _ = self.lock.unlock();
    }
}

impl Drivers {
    /// The folder of the store at `store`. Changes nothing.
    pub(super) fn of(store: &Path) -> Self {
        Self { folder: beside(store, ".drivers") }
    }

    /// Registers as a driver.
    pub(super) fn enter(&self) -> io::Result<Membership> {
        let mut last = io::Error::from(io::ErrorKind::NotFound);
        // A driver that leaves may remove the folder, and one that cleans up may remove the file before it is
        // locked: then try again, with another name.
        for _ in 0..MAX_TRIES {
            match fs::create_dir_all(&self.folder) {
                Ok(()) => {}
                Err(error) if is_gone(&error) => {
                    last = error;
                    continue;
                }
                Err(error) => return Err(error),
            }
            let name = Uuid::now_v7().to_string();
            let path = self.path(&name);
            let file = match File::options().write(true).create_new(true).open(&path) {
                Ok(file) => file,
                Err(error) if is_gone(&error) => {
                    last = error;
                    continue;
                }
                Err(error) => return Err(error),
            };
            file.lock()?;
            if fs::exists(&path)? {
                return Ok(Membership { name, lock: file });
            }
        }
        Err(last)
    }

    /// Whether the driver of this name lives. If that can't be found out, it counts as living: its lease
    /// expires.
    pub(super) fn alive(&self, name: &str) -> bool {
        // Only names that we generated are paths.
        if Uuid::try_parse(name).is_err() {
            return false;
        }
        match File::open(self.path(name)) {
            Err(error) => error.kind() != io::ErrorKind::NotFound,
            // A shared lock: two processes that ask at the same moment must not take each other for the driver.
            Ok(file) => matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock | TryLockError::Error(_))),
        }
    }

    /// Removes the file of a dead driver, or our own.
    pub(super) fn remove(&self, name: &str) {
        if Uuid::try_parse(name).is_ok() {
            // A file that stays counts as a dead driver's.
            let _ = fs::remove_file(self.path(name));
        }
    }

    /// Removes the files of all dead drivers, and the folder when it is empty.
    pub(super) fn sweep(&self) {
        for entry in fs::read_dir(&self.folder).into_iter().flatten().flatten() {
            let file = entry.file_name();
            if let Some(name) = file.to_str().and_then(|file| file.strip_suffix(".lock")) {
                self.clear(name);
            }
        }
        let _ = fs::remove_dir(&self.folder);
    }

    /// Removes the file of a driver if it is dead. The file stays locked until it is removed: a driver that has
    /// made its file and not locked it yet looks dead; it gets the lock after us, and finds that it needs
    /// another name.
    fn clear(&self, name: &str) {
        let path = self.path(name);
        // Only names that we generated are ours to remove.
        if Uuid::try_parse(name).is_ok()
            && let Ok(file) = File::open(&path)
            && file.try_lock_shared().is_ok()
        {
            // A file that stays counts as a dead driver's.
            let _ = fs::remove_file(&path);
            let _ = file.unlock();
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}.lock"))
    }
}
