//! What a server says of a failed call, as the faults of tools: a class for the model, the text for the operator.

use std::error::Error as StdError;
use std::io;

use mysql_async::{DriverError, Error, IoError};
use rustls::CertificateError;

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
        Error::Driver(driver) => of_driver(driver),
        error => of_certificate(error).or_else(|| of_network(error)).unwrap_or_else(|| error.to_string()),
    }
}

fn of_driver(driver: &DriverError) -> String {
    let no_server = "what answers there does not speak the protocol of MySQL";
    match driver {
        DriverError::ConnectionClosed => "the server closed the connection".to_owned(),
        DriverError::NoClientSslFlagFromServer => {
            "the server does not encrypt its connections: `sslmode=disable` in the address does without it".to_owned()
        }
        DriverError::UnknownAuthPlugin { name } => {
            let shown: String = name.chars().take(80).collect();
            format!(
                "the server asks for a login by the plugin `{shown}`, which is not supported: give the user another one"
            )
        }
        DriverError::MysqlOldPasswordDisabled | DriverError::CleartextPluginDisabled => {
            "the server asks for a login that does not protect the password: give the user another plugin".to_owned()
        }
        DriverError::UnexpectedPacket { .. }
        | DriverError::PacketOutOfOrder
        | DriverError::BadCompressedPacketHeader
        | DriverError::CantParseServerVersion { .. } => no_server.to_owned(),
        driver => driver.to_string(),
    }
}

/// The error of a type among the causes of an error, and in the errors of the system that hold another.
fn cause<E: StdError + 'static>(error: &Error) -> Option<&E> {
    let mut at: &(dyn StdError + 'static) = error;
    loop {
        if let Some(found) = at.downcast_ref::<E>() {
            return Some(found);
        }
        at = match at.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
            Some(held) => held,
            None => at.source()?,
        };
    }
}

/// What is wrong with the protection of a connection.
fn of_certificate(error: &Error) -> Option<String> {
    let fault = cause::<rustls::Error>(error)?;
    let rustls::Error::InvalidCertificate(certificate) = fault else {
        return Some(format!("the connection can't be encrypted: {fault}"));
    };
    let why = match certificate {
        CertificateError::UnknownIssuer => {
            "is of an authority that is not trusted here: `sslrootcert` in the address names the file of one that is"
                .to_owned()
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            "is not that of this host: write the address with a name that the certificate holds".to_owned()
        }
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => "has expired".to_owned(),
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "is not valid yet: compare the clocks of both machines".to_owned()
        }
        other => format!("can't be trusted: {other}"),
    };
    Some(format!("the certificate of the server {why}"))
}

/// Why a server can't be reached.
fn of_network(error: &Error) -> Option<String> {
    let system = cause::<io::Error>(error)?;
    let why = match system.kind() {
        io::ErrorKind::ConnectionRefused => "nothing listens there",
        io::ErrorKind::NotFound => "there is no such socket",
        io::ErrorKind::PermissionDenied => "this user may not open its socket",
        io::ErrorKind::TimedOut => "it does not answer",
        io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkUnreachable => "there is no route to it",
        io::ErrorKind::UnexpectedEof
        | io::ErrorKind::ConnectionReset
        | io::ErrorKind::ConnectionAborted
        | io::ErrorKind::BrokenPipe => "the server closed the connection",
        _ if system.to_string().contains("lookup address") => "there is no host of this name",
        _ => return Some(system.to_string()),
    };
    Some(why.to_owned())
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

/// The fault of a connection to a server that could not be made.
pub(super) fn of_connect(error: &Error, server: &str) -> RawFault {
    match error {
        Error::Server(_) => of_error(error),
        error if of_certificate(error).is_none() && is_lost(error) => {
            transient("database: can't be opened", format!("{server}: {}", text(error)))
        }
        error => fault("database: can't be opened", format!("{server}: {}", text(error))).into(),
    }
}
