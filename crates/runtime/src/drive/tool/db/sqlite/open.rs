//! Connections to SQLite: read-only where that is enough, restricted to their own file, and created from a
//! script when the file does not exist yet.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::hooks::{AuthAction, AuthContext, Authorization};
use rusqlite::limits::Limit;
use rusqlite::{Connection, ErrorCode, OpenFlags};

use crate::drive::tool::output::fault;
use crate::project::guarded_read;
use loopctl_engine::event::ToolFault;

/// The most bytes of one value or row.
pub(super) const MAX_VALUE: i32 = 10 * 1024 * 1024;

/// The largest script that makes a database, in bytes.
const MAX_INIT: usize = 16 * 1024 * 1024;

/// How long to wait for the lock of another process.
const BUSY: Duration = Duration::from_secs(5);

/// The number of SQLite's instructions between two checks for a stop.
const STOP_EVERY: i32 = 10_000;

/// A database file, and the script that creates it.
#[derive(Debug, Clone)]
pub(super) struct SqliteFile {
    pub(super) file: PathBuf,
    pub(super) init: Option<Result<PathBuf, String>>,
    /// The most bytes that the database may have; none for as many as the disk has.
    pub(super) most_bytes: Option<i64>,
}

/// Opens a database. Once `stop` is true, what runs on the connection is interrupted.
///
/// # Errors
/// When there is no such file and no script to make it, or the file is no database.
pub(super) fn open(source: &SqliteFile, read_only: bool, stop: Arc<AtomicBool>) -> Result<Connection, ToolFault> {
    if !source.file.exists() {
        match &source.init {
            Some(Ok(init)) => make(source, init, &stop)?,
            Some(Err(why)) => return Err(fault("database: can't be made", why.as_str())),
            None => {
                return Err(fault(
                    "database: can't be opened",
                    format!("there is no file {}; `init` of the datasource would make it", source.file.display()),
                ));
            }
        }
    }
    // Opening a pipe waits for its writer, and a device may be anything.
    if std::fs::metadata(&source.file).is_ok_and(|found| !found.is_file()) {
        let why =
            format!("{} is no regular file (it is a folder, a pipe, a device or a socket)", source.file.display());
        return Err(fault("database: can't be opened", why));
    }
    let mode = if read_only { OpenFlags::SQLITE_OPEN_READ_ONLY } else { OpenFlags::SQLITE_OPEN_READ_WRITE };
    let connection = connect(&source.file, mode, stop).map_err(|error| sql_fault(&error))?;
    if !read_only {
        grows_to(&connection, source.most_bytes).map_err(|error| sql_fault(&error))?;
    }
    if read_only {
        connection.pragma_update(None, "query_only", true).map_err(|error| sql_fault(&error))?;
    }
    Ok(connection)
}

fn connect(file: &Path, mode: OpenFlags, stop: Arc<AtomicBool>) -> rusqlite::Result<Connection> {
    // Without SQLITE_OPEN_URI: a name like `file:x?mode=rwc` is an ordinary name.
    let mut connection = Connection::open_with_flags(file, mode | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    connection.busy_timeout(BUSY)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    connection.set_limit(Limit::SQLITE_LIMIT_ATTACHED, 0)?;
    connection.set_limit(Limit::SQLITE_LIMIT_LENGTH, MAX_VALUE)?;
    connection.authorizer(Some(stay_in_file))?;
    connection.progress_handler(STOP_EVERY, Some(move || stop.load(Ordering::Relaxed)))?;
    Ok(connection)
}

/// Bounds the size of a database.
fn grows_to(connection: &Connection, most_bytes: Option<i64>) -> rusqlite::Result<()> {
    let Some(most) = most_bytes else { return Ok(()) };
    let page: i64 = connection.pragma_query_value(None, "page_size", |row| row.get(0))?;
    // SQLite answers with the number that holds from now on.
    connection.pragma_update_and_check(None, "max_page_count", most / page.max(1), |_| Ok(()))
}

/// Refuses statements that reach other files or load code. Writes are refused by the open mode.
fn stay_in_file(context: AuthContext<'_>) -> Authorization {
    match context.action {
        AuthAction::Attach { .. } | AuthAction::Detach { .. } => Authorization::Deny,
        AuthAction::Function { function_name } if function_name.eq_ignore_ascii_case("load_extension") => {
            Authorization::Deny
        }
        _ => Authorization::Allow,
    }
}

/// Creates the database from its script: in a temporary file that gets the name only when it is complete. If
/// two processes do so at once, the first one's file stays.
fn make(source: &SqliteFile, init: &Path, stop: &Arc<AtomicBool>) -> Result<(), ToolFault> {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let file = source.file.as_path();
    let refuse = |error: io::Error| fault("database: can't be made", format!("{}: {error}", file.display()));
    let sql = script(init)?;
    let folder = file.parent().unwrap_or_else(|| Path::new("."));
    fs::create_dir_all(folder).map_err(refuse)?;
    let mut name = std::ffi::OsString::from(".");
    name.push(file.file_name().unwrap_or_default());
    name.push(format!(".{}-{}.new", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed)));
    let new = Scrap(folder.join(name));
    fill(&new.0, &ended(sql), source.most_bytes, stop).map_err(|error| {
        let fault_ = sql_fault(&error);
        fault(fault_.class, format!("{}: {}", init.display(), fault_.detail.trim_end_matches('\0')))
    })?;
    File::open(&new.0).and_then(|file| file.sync_all()).map_err(refuse)?;
    match fs::hard_link(&new.0, file) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        // A file system without links: the moment between the two calls is the best that we can do.
        Err(_) if !file.exists() => fs::rename(&new.0, file).map_err(refuse),
        Err(_) => Ok(()),
    }
}

/// A script as SQLite reads it in place. Without a zero byte at its end, SQLite copies all that is left of it for each statement, which for
/// 100,000 of them takes minutes.
fn ended(sql: String) -> String {
    sql + "\0"
}

fn fill(file: &Path, sql: &str, most_bytes: Option<i64>, stop: &Arc<AtomicBool>) -> rusqlite::Result<()> {
    let mode = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE;
    let connection = connect(file, mode, Arc::clone(stop))?;
    grows_to(&connection, most_bytes)?;
    // The file is synced once, when it is complete; an incomplete one is discarded.
    connection.pragma_update(None, "synchronous", false)?;
    // A dump has its own transaction.
    connection.execute_batch("BEGIN")?;
    match connection.execute_batch(sql) {
        Err(error) if has_own_transaction(&error) => {
            connection.execute_batch("ROLLBACK")?;
            connection.execute_batch(sql)?;
        }
        other => other?,
    }
    if !connection.is_autocommit() {
        connection.execute_batch("COMMIT")?;
    }
    connection.close().map_err(|(_, error)| error)
}

fn has_own_transaction(error: &rusqlite::Error) -> bool {
    error.to_string().contains("transaction")
}

fn script(file: &Path) -> Result<String, ToolFault> {
    let refuse = |why: String| fault("database: can't be made", format!("{}: {why}", file.display()));
    guarded_read::text(file, MAX_INIT).map_err(|unread| refuse(unread.reason(MAX_INIT)))
}

/// A file that is removed on drop.
struct Scrap(PathBuf);

impl Drop for Scrap {
    fn drop(&mut self) {
        // After a rename it does not exist any more.
        let _ = fs::remove_file(&self.0);
    }
}

/// The class of the fault that another connection causes which has the file.
pub(super) const BUSY_FAULT: &str = "database: busy";

/// The class of a database's error, and its whole text for the operator.
pub(super) fn sql_fault(error: &rusqlite::Error) -> ToolFault {
    use rusqlite::Error;
    let class = match error {
        Error::SqliteFailure(failure, message) => match failure.code {
            ErrorCode::ReadOnly => "database: read only",
            ErrorCode::ConstraintViolation => constraint(failure.extended_code),
            ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => BUSY_FAULT,
            ErrorCode::OperationInterrupted => "database: interrupted",
            ErrorCode::CannotOpen => "database: can't be opened",
            ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt => "database: damaged, or no database",
            ErrorCode::DiskFull => "database: disk full",
            ErrorCode::TooBig => "database: value too large",
            ErrorCode::TypeMismatch => "database: wrong type",
            ErrorCode::AuthorizationForStatementDenied => "database: not allowed",
            _ if message.as_deref().is_some_and(|text| text.contains("too many attached")) => "database: not allowed",
            ErrorCode::Unknown => "database: error in the query",
            _ => "database: failed",
        },
        Error::SqlInputError { .. } => "database: error in the query",
        Error::MultipleStatement => "database: more than one statement",
        Error::NulError(_) => "database: error in the query",
        _ => "database: failed",
    };
    fault(class, error.to_string())
}

fn constraint(extended: i32) -> &'static str {
    match extended {
        rusqlite::ffi::SQLITE_CONSTRAINT_UNIQUE | rusqlite::ffi::SQLITE_CONSTRAINT_PRIMARYKEY => {
            "database: unique constraint failed"
        }
        rusqlite::ffi::SQLITE_CONSTRAINT_NOTNULL => "database: not-null constraint failed",
        rusqlite::ffi::SQLITE_CONSTRAINT_FOREIGNKEY => "database: foreign key constraint failed",
        rusqlite::ffi::SQLITE_CONSTRAINT_CHECK => "database: check constraint failed",
        _ => "database: constraint failed",
    }
}
