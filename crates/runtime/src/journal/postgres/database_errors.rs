//! Translates PostgreSQL's errors into faults.

use std::error::Error as _;

use super::target::PostgresTarget;
use crate::journal::StoreError;

/// Why a statement was not done.
#[derive(Debug)]
pub(super) enum StatementError {
    /// It was refused, and nothing was written.
    Refused(StoreError),
    /// Whether it was done is not known, or the database is not there: it is sent again.
    Lost(String),
    /// The database undid it because of another statement: it is sent again at once.
    Undone(String),
    /// The database refused it, by this code of its list.
    Database {
        /// The code (SQLSTATE).
        code: String,
        /// What the database says.
        message: String,
    },
}

impl From<StoreError> for StatementError {
    fn from(fault: StoreError) -> Self {
        Self::Refused(fault)
    }
}

impl From<tokio_postgres::Error> for StatementError {
    fn from(error: tokio_postgres::Error) -> Self {
        if let Some(database) = error.as_db_error() {
            return Self::of(database.code().code(), database.message());
        }
        let cause = error.source().map(|cause| format!(": {cause}")).unwrap_or_default();
        let text = format!("{error}{cause}");
        let is_connection = error.is_closed() || error.source().is_none_or(|cause| cause.is::<std::io::Error>());
        if is_connection { Self::Lost(text) } else { Self::Database { code: String::new(), message: text } }
    }
}

impl StatementError {
    /// The trouble of an error with this code.
    pub(super) fn of(code: &str, message: &str) -> Self {
        let text = || format!("{message} ({code})");
        match code.get(..2).unwrap_or_default() {
            "40" => Self::Undone(text()),
            "08" => Self::Lost(text()),
            // Ended by an operator, by a crash, by a time limit; or not there yet.
            "57" => Self::Lost(text()),
            // Out of memory, of connections.
            "53" if code != "53100" => Self::Lost(text()),
            _ => match code {
                // A standby: the next connection looks for the primary.
                "25006" | "55P03" => Self::Lost(text()),
                _ => Self::Database { code: code.to_owned(), message: message.to_owned() },
            },
        }
    }

    /// The fault of a store that can't be opened.
    pub(super) fn while_opening(self, target: &PostgresTarget) -> StoreError {
        match self {
            Self::Refused(fault) => fault,
            Self::Database { code, message } if code.is_empty() && message.contains("does not support TLS") => {
                target.refuse(&format!("{message}: set `ssl = on` there"))
            }
            Self::Lost(why) if why.contains("TLS handshake") => target
                .refuse(&format!("{why}: name its authority with `sslrootcert`, and the host as the certificate does")),
            Self::Lost(why) => {
                target.away(&format!("{why}: start its server, or correct its host, port and `sslmode` in the address"))
            }
            Self::Undone(why) => target.away(&why),
            Self::Database { code, message } => match code.as_str() {
                "28P01" | "28000" => {
                    target.refuse(&format!("{message}: correct the user or the password of the address"))
                }
                "3D000" => target.refuse(&format!("{message}: create it, or correct the address")),
                _ => target.refuse(&Self::Database { code, message }.into_fault().to_string()),
            },
        }
    }

    /// The fault, when nothing more is tried.
    pub(super) fn into_fault(self) -> StoreError {
        match self {
            Self::Refused(fault) => fault,
            Self::Lost(why) | Self::Undone(why) => StoreError::Unreachable(why),
            Self::Database { code, message } => match code.as_str() {
                "53100" => StoreError::Full,
                "42501" => StoreError::ReadOnly(format!(
                    "{message}: give the role USAGE on the schema, and SELECT, INSERT, UPDATE and DELETE on its tables"
                )),
                "26000" | "42P05" => StoreError::Other(format!(
                    "{message}: a pooler before the database keeps no prepared statements. Add `prepare=off` to the address of \
                     the store"
                )),
                "42P01" | "42703" | "3F000" | "XX001" | "XX002" => StoreError::Corrupt(format!("{message} ({code})")),
                "" => StoreError::Other(message),
                _ => StoreError::Other(format!("{message} ({code})")),
            },
        }
    }
}
