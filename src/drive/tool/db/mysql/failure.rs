//! What a server says of a failed call, as the faults of tools: a class for the model, the text for the operator.

use mysql_async::{DriverError, Error, IoError};

use crate::drive::tool::db::server_call::{LOST, transient};
use crate::drive::tool::output::fault;
use crate::drive::tool::runner::RawFault;

/// Whether an error means that the connection is gone.
pub(super) fn is_lost(error: &Error) -> bool {
    match error {
        Error::Server(server) => matches!(server.code, 1053 | 1152 | 1158..=1161 | 1184 | 1927 | 4031),
        Error::Io(_) => !is_too_large(error),
        Error::Driver(driver) => matches!(driver, DriverError::ConnectionClosed),
        _ => false,
    }
}

/// Whether the server sent a row that is longer than a call may read.
pub(super) fn is_too_large(error: &Error) -> bool {
    // The driver's error is of a type that it does not export.
    matches!(error, Error::Io(IoError::Io(error)) if error.to_string().contains("max_allowed_packet"))
}

/// The text of an error with its code.
pub(super) fn text(error: &Error) -> String {
    match error {
        Error::Server(server) => format!("{} ({})", server.message, server.code),
        error => error.to_string(),
    }
}

/// The fault of an error of the server.
pub(super) fn of_error(error: &Error) -> RawFault {
    let text = text(error);
    if is_lost(error) {
        return transient(LOST, text);
    }
    let Error::Server(server) = error else { return fault("database: failed", text).into() };
    match server.code {
        1205 | 1213 | 3572 => transient("database: busy", text),
        1040 | 1203 | 1226 => transient("database: not available", text),
        code => fault(class(code, &server.state), text).into(),
    }
}

/// The class of an error by its code, or else by its SQLSTATE.
fn class(code: u16, state: &str) -> &'static str {
    match code {
        1290 | 1792 | 1836 => "database: read only",
        1062 | 1169 | 1586 => "database: unique constraint failed",
        1048 | 1263 | 1364 => "database: not-null constraint failed",
        1216 | 1217 | 1451 | 1452 => "database: foreign key constraint failed",
        3819 | 4025 => "database: check constraint failed",
        1142 | 1143 | 1227 | 1370 => "database: not allowed",
        1044 | 1045 | 1049 | 1698 | 4151 => "database: login refused",
        1317 | 1969 | 3024 => "database: timed out",
        1153 | 1264 | 1406 | 1690 => "database: value too large",
        1265 | 1292 | 1366 | 1411 | 3140 | 4078 => "database: value not valid",
        1136 => "database: error in the query",
        _ => match state.get(..2).unwrap_or_default() {
            "23" => "database: constraint failed",
            "22" => "database: value not valid",
            "28" | "3D" => "database: login refused",
            "25" | "42" | "0A" => "database: error in the query",
            _ => "database: failed",
        },
    }
}

/// The fault of a connection that could not be made.
pub(super) fn of_connect(error: &Error) -> RawFault {
    match error {
        Error::Server(_) => of_error(error),
        error if is_lost(error) => transient("database: can't be opened", text(error)),
        error => fault("database: can't be opened", text(error)).into(),
    }
}
