//! Translates SQLite's errors into faults.

use rusqlite::ErrorCode;

use crate::journal::StoreError;

/// Why a request was not done.
#[derive(Debug)]
pub(super) enum RequestError {
    /// It was refused before anything was written: the other requests are not affected.
    Refused(StoreError),
    /// The database failed: the transaction must be rolled back.
    Database(rusqlite::Error),
}

impl From<rusqlite::Error> for RequestError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Database(error)
    }
}

impl From<StoreError> for RequestError {
    fn from(fault: StoreError) -> Self {
        Self::Refused(fault)
    }
}

impl RequestError {
    /// The fault; `run` is the run in question, if there is one.
    pub(super) fn into_fault(self, store: &str, run: Option<&str>) -> StoreError {
        match self {
            Self::Refused(fault) => fault,
            Self::Database(error) => fault(&error, store, run),
        }
    }
}

/// The fault for an error of the database; `run` is the run in question, if there is one.
pub(super) fn fault(error: &rusqlite::Error, store: &str, run: Option<&str>) -> StoreError {
    let text = match error {
        rusqlite::Error::SqliteFailure(cause, None) => cause.to_string(),
        other => other.to_string(),
    };
    let about = |text: String| run.map_or_else(|| text.clone(), |run| format!("run {run}: {text}"));
    match error {
        rusqlite::Error::SqliteFailure(cause, _) => match cause.code {
            ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked | ErrorCode::FileLockingProtocolFailed => {
                StoreError::Locked
            }
            ErrorCode::DiskFull => StoreError::Full,
            // The index of the log could not grow: a full disk is the only cause.
            ErrorCode::SystemIoFailure if cause.extended_code == rusqlite::ffi::SQLITE_IOERR_SHMSIZE => {
                StoreError::Full
            }
            ErrorCode::ReadOnly | ErrorCode::PermissionDenied => StoreError::ReadOnly(text),
            ErrorCode::CannotOpen => StoreError::Open { store: store.to_owned(), reason: text },
            // Our statements are fixed: if one does not find a table (SQLITE_ERROR), the file was damaged.
            ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase | ErrorCode::Unknown => {
                StoreError::Corrupt(about(text))
            }
            _ => StoreError::Other(about(text)),
        },
        rusqlite::Error::FromSqlConversionFailure(..)
        | rusqlite::Error::IntegralValueOutOfRange(..)
        | rusqlite::Error::InvalidColumnType(..)
        | rusqlite::Error::Utf8Error(..) => StoreError::Corrupt(about(text)),
        _ => StoreError::Other(about(text)),
    }
}

/// Whether the fault concerns the whole store, so that trying the requests of a batch one by one would only
/// fail again.
pub(super) const fn is_everyones(fault: &StoreError) -> bool {
    matches!(fault, StoreError::Locked | StoreError::Full | StoreError::ReadOnly(_) | StoreError::Open { .. })
}
