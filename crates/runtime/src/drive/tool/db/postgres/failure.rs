//! What a server says of a failed call, as the faults of tools: a class for the model, the text for the operator.

use std::error::Error as _;

use tokio_postgres::Error;
use tokio_postgres::error::ErrorPosition;

use super::connect::ConnectFault;
use crate::drive::tool::db::server_call::{LOST, transient};
use crate::drive::tool::db::server_query::ServerQuery;
use crate::drive::tool::output::fault;
use crate::drive::tool::runner::RawFault;

/// Whether an error means that the connection is gone.
pub(super) fn is_lost(error: &Error) -> bool {
    match error.as_db_error() {
        // Ended by an operator or a crash.
        Some(database) => database.code().code().starts_with("57P") || database.code().code().starts_with("08"),
        None => error.is_closed() || error.source().is_none_or(|cause| cause.is::<std::io::Error>()),
    }
}

/// The text of an error with its cause and its code.
pub(super) fn text(error: &Error) -> String {
    match error.as_db_error() {
        Some(database) => {
            let more = |text: Option<&str>| text.map(|text| format!("; {text}")).unwrap_or_default();
            let (detail, hint) = (more(database.detail()), more(database.hint()));
            format!("{} ({}){detail}{hint}", database.message(), database.code().code())
        }
        None => match error.source() {
            Some(cause) => format!("{error}: {cause}"),
            None => error.to_string(),
        },
    }
}

/// Where in the query, as it is written, the server found an error, in bytes.
pub(super) fn place(error: &Error, query: &ServerQuery) -> Option<usize> {
    let Some(ErrorPosition::Original(character)) = error.as_db_error()?.position() else { return None };
    // It counts characters, from 1.
    let at = usize::try_from(*character).ok()?.checked_sub(1)?;
    let (at, _) = query.text.char_indices().nth(at)?;
    Some(query.written_at(at))
}

/// The fault of a statement that the server can't prepare, with its place.
pub(super) fn of_statement(error: &Error, query: &ServerQuery) -> RawFault {
    let mut raw = of_error(error);
    if let Some(at) = place(error, query) {
        raw.fault.detail.push_str(&format!("; at byte {at} of the query"));
    }
    raw
}

/// The fault of an error of the server. Nothing was written: the transaction was rolled back.
pub(super) fn of_error(error: &Error) -> RawFault {
    let text = text(error);
    let Some(database) = error.as_db_error() else {
        return if is_lost(error) { transient(LOST, text) } else { fault("database: failed", text).into() };
    };
    let code = database.code().code();
    if is_lost(error) || code.starts_with("53") {
        return transient(if code.starts_with("53") { "database: not available" } else { LOST }, text);
    }
    if matches!(code, "40001" | "40P01" | "55P03") {
        return transient("database: busy", text);
    }
    fault(class(code), text).into()
}

/// The class of an error by its code (SQLSTATE).
fn class(code: &str) -> &'static str {
    match code {
        "25006" => "database: read only",
        "23505" => "database: unique constraint failed",
        "23502" => "database: not-null constraint failed",
        "23503" => "database: foreign key constraint failed",
        "23514" => "database: check constraint failed",
        "42501" => "database: not allowed",
        "57014" => "database: timed out",
        "22003" | "22001" => "database: value too large",
        _ => match code.get(..2).unwrap_or_default() {
            "23" => "database: constraint failed",
            "22" => "database: value not valid",
            "28" | "3D" => "database: login refused",
            "25" | "2D" | "42" | "0A" => "database: error in the query",
            _ => "database: failed",
        },
    }
}

/// The fault of a connection that could not be made.
pub(super) fn of_connect(fault_: &ConnectFault) -> RawFault {
    match fault_ {
        ConnectFault::Server { error, .. } if error.as_db_error().is_some() => of_error(error),
        ConnectFault::Server { server, error } => {
            let (class, detail) = ("database: can't be opened", format!("{server}: {}", text(error)));
            if is_lost(error) { transient(class, detail) } else { fault(class, detail).into() }
        }
        ConnectFault::Unreachable(why) => transient("database: can't be opened", why.clone()),
    }
}
