//! The databases of a project: queries are prepared against them, never run. A file is opened read-only and
//! immutable, so that nothing is written beside it; one that is not there yet is made by its script in memory.

use std::cell::OnceCell;
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::config::DbConfig;
use rusqlite::fallible_iterator::FallibleIterator as _;
use rusqlite::hooks::{AuthAction, AuthContext, Authorization};
use rusqlite::limits::Limit;
use rusqlite::{Batch, Connection, ErrorCode, OpenFlags};

use super::guarded_read;
use super::paths::in_project;
use loopctl_lang::compile::{DatabaseProbe, DatabaseState, InitFault, QueryFault, QueryFaultKind, ValueKind};
use loopctl_lang::language::project::Datasource;
use loopctl_lang::policy::database_address::DatabaseServer;
use loopctl_lang::policy::statement::sql_words;
use loopctl_lang::policy::{mysql, sql};

/// The largest script that is run to see what it makes, in bytes.
const MAX_INIT_BYTES: usize = 1 << 20;
/// The longest value and statement, in bytes.
const MAX_VALUE_BYTES: i32 = 1 << 20;
/// The pages that a database in memory may have: 16 MiB.
const MAX_PAGES: u32 = 4096;
/// After how many of SQLite's instructions it looks whether it is to stop.
const INSTRUCTIONS_PER_LOOK: i32 = 1_000;
/// How often it looks until a script has taken too much work.
const MAX_INIT_LOOKS: u32 = 5_000;
/// The same for a query.
const MAX_QUERY_LOOKS: u32 = 500;
/// The most queries whose outcome is kept for one database.
const MAX_KEPT_OUTCOMES: usize = 10_000;
/// The setting of SQLite that lists the columns of a table, and changes nothing.
const TABLE_INFO: &str = "table_xinfo";
/// The most columns whose types are looked at.
const MAX_COLUMNS: usize = 2_000;
/// The view that is made of a query, to learn the types of its columns.
const PROBED: &str = "loopctl_probed";
/// The most tables whose columns are listed.
const MAX_TABLES: usize = 200;

/// The databases of a project's datasources, each opened when it is first asked.
#[derive(Debug)]
pub struct Databases {
    root: PathBuf,
    datasources: BTreeMap<String, Datasource>,
    opened: Mutex<BTreeMap<String, ProbedDatabase>>,
}

#[derive(Debug)]
struct ProbedDatabase {
    state: DatabaseState,
    schema: Option<SchemaProbe>,
    kept: HashMap<String, Option<QueryFault>>,
    /// Of a file that is there: what the script of the datasource would make now. None before it is asked for, or without a
    /// script that can be read.
    remade: OnceCell<Option<SchemaProbe>>,
}

/// A connection on which statements are prepared.
#[derive(Debug)]
struct SchemaProbe {
    connection: Connection,
    /// How often SQLite may still look whether it is to stop.
    work: Arc<AtomicU32>,
    /// Whether its script makes tables in a way that is not followed here.
    is_partial: bool,
}

impl Databases {
    /// Those of these datasources; relative paths start in `root`.
    pub fn new(root: &Path, datasources: BTreeMap<String, Datasource>) -> Self {
        Self { root: root.to_owned(), datasources, opened: Mutex::default() }
    }

    fn with<T>(&self, name: &str, ask: impl FnOnce(&mut ProbedDatabase) -> T) -> Option<T> {
        let datasource = self.datasources.get(name)?;
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        let database = opened.entry(name.to_owned()).or_insert_with(|| self.open(datasource));
        Some(ask(database))
    }

    fn open(&self, datasource: &Datasource) -> ProbedDatabase {
        let (state, schema) = match self.look(datasource) {
            Ok((schema, is_made)) => (DatabaseState::Ready { is_made }, Some(schema)),
            Err(state) => (state, None),
        };
        ProbedDatabase { state, schema, kept: HashMap::new(), remade: OnceCell::new() }
    }

    /// Why a query for a server is never sent, if it is not.
    fn refused_by_server(&self, datasource: &str, query: &str) -> Option<QueryFault> {
        let server = self.server(datasource)?;
        let is_mysql = server == DatabaseServer::Mysql;
        let is_several = if is_mysql { mysql::is_several(query) } else { sql::is_several(query) };
        let message = match server {
            _ if is_several => "a query is one statement, and this is more than one".to_owned(),
            DatabaseServer::Mysql => mysql::refusal(query, false)?,
            _ => format!("a call may not be `{}`", sql::refused_by_servers(query)?),
        };
        Some(QueryFault { kind: QueryFaultKind::Invalid, message, offset: None })
    }

    fn look(&self, datasource: &Datasource) -> Result<(SchemaProbe, bool), DatabaseState> {
        let path = datasource.sqlite_path().filter(|path| !path.is_empty() && !path.starts_with(":memory:"));
        let file = self.root.join(path.ok_or(DatabaseState::Unknown)?);
        match std::fs::metadata(&file) {
            Ok(found) if found.is_file() => of_file(&file).map(|schema| (schema, false)),
            Ok(_) => Err(DatabaseState::Unreadable("it is no regular file".to_owned())),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                self.after_init(datasource).map(|schema| (schema, true))
            }
            Err(_) => Err(DatabaseState::Unknown),
        }
    }
}

impl Databases {
    /// The database that the script of a datasource makes.
    fn after_init(&self, datasource: &Datasource) -> Result<SchemaProbe, DatabaseState> {
        let init = datasource.init.as_ref().ok_or(DatabaseState::Absent)?;
        // One that is not there, or not in the project, is reported as such.
        let script = in_project(&self.root, init).map_err(|_| DatabaseState::Unknown)?;
        let sql = guarded_read::text(&script, MAX_INIT_BYTES).map_err(|_| DatabaseState::Unknown)?;
        of_script(&sql)
    }
}

impl DatabaseProbe for Databases {
    fn state(&self, datasource: &str) -> DatabaseState {
        self.with(datasource, |database| database.state.clone()).unwrap_or(DatabaseState::Unknown)
    }

    fn server(&self, datasource: &str) -> Option<DatabaseServer> {
        self.datasources.get(datasource)?.server()
    }

    fn prepare(&self, datasource: &str, query: &str) -> Option<QueryFault> {
        self.with(datasource, |database| {
            if let Some(kept) = database.kept.get(query) {
                return kept.clone();
            }
            let fault = match &database.schema {
                Some(schema) => schema.prepare(query),
                None => self.refused_by_server(datasource, query),
            };
            if database.kept.len() < MAX_KEPT_OUTCOMES {
                database.kept.insert(query.to_owned(), fault.clone());
            }
            fault
        })?
    }

    fn is_taken_after_init(&self, datasource: &str, query: &str) -> bool {
        let Some(written) = self.datasources.get(datasource) else { return false };
        let is_taken = |database: &mut ProbedDatabase| {
            let is_there = database.state == DatabaseState::Ready { is_made: false };
            let remade = is_there.then(|| database.remade.get_or_init(|| self.after_init(written).ok()));
            remade.and_then(Option::as_ref).is_some_and(|schema| !schema.is_partial && schema.prepare(query).is_none())
        };
        self.with(datasource, is_taken).unwrap_or(false)
    }

    fn tables(&self, datasource: &str) -> Option<Vec<String>> {
        let schema = |database: &mut ProbedDatabase| {
            let schema = database.schema.as_ref().filter(|schema| !schema.is_partial)?;
            schema.tables().ok().filter(|tables| tables.len() < MAX_TABLES)
        };
        self.with(datasource, schema)?
    }

    fn columns(&self, datasource: &str, table: &str) -> Option<Vec<String>> {
        let schema = |database: &mut ProbedDatabase| {
            database.schema.as_ref().filter(|schema| !schema.is_partial)?.columns_of(table)
        };
        self.with(datasource, schema)?
    }

    fn result_columns(&self, datasource: &str, query: &str) -> Option<Vec<String>> {
        self.with(datasource, |database| database.schema.as_ref()?.result_columns(query))?
    }

    fn column_kinds(&self, datasource: &str, query: &str) -> Vec<Option<ValueKind>> {
        let kinds = |database: &mut ProbedDatabase| {
            let schema = database.schema.as_ref().filter(|schema| !schema.is_partial)?;
            schema.column_kinds(query).ok()
        };
        self.with(datasource, kinds).flatten().unwrap_or_default()
    }

    fn required_columns(&self, datasource: &str, table: &str) -> Option<Vec<String>> {
        let schema = |database: &mut ProbedDatabase| {
            database.schema.as_ref().filter(|schema| !schema.is_partial)?.required_columns(table).ok()
        };
        self.with(datasource, schema)?
    }
}

/// An existing database. `immutable`: SQLite takes no lock and makes no file beside it.
fn of_file(file: &Path) -> Result<SchemaProbe, DatabaseState> {
    let beside = |ending: &str| {
        let mut name = file.as_os_str().to_owned();
        name.push(ending);
        std::fs::metadata(&name).is_ok_and(|found| found.len() > 0)
    };
    // What is there may be newer than the file, and is not read from an immutable one.
    if beside("-wal") || beside("-journal") {
        return Err(DatabaseState::Unknown);
    }
    let path = file.to_str().ok_or(DatabaseState::Unknown)?;
    let uri = format!("file:{}?immutable=1", uri_path(path));
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(uri, flags).map_err(|_| DatabaseState::Unknown)?;
    let schema = SchemaProbe::new(connection, MAX_QUERY_LOOKS).map_err(|_| DatabaseState::Unknown)?;
    match schema.connection.prepare("SELECT 1 FROM sqlite_schema").map(drop) {
        Ok(()) => Ok(schema),
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::NotADatabase) => {
            Err(DatabaseState::Unreadable("the file is no SQLite database".to_owned()))
        }
        Err(_) => Err(DatabaseState::Unknown),
    }
}

/// A path in a URI: what has a meaning there is escaped.
fn uri_path(path: &str) -> String {
    let mut escaped = String::with_capacity(path.len());
    for byte in path.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'/' | b'.' | b'-' | b'_' => escaped.push(char::from(byte)),
            _ => escaped.push_str(&format!("%{byte:02X}")),
        }
    }
    escaped
}

/// A database in memory with what a script makes: its tables, and none of its rows.
fn of_script(sql: &str) -> Result<SchemaProbe, DatabaseState> {
    let connection = Connection::open_in_memory().map_err(|_| DatabaseState::Unknown)?;
    let pages = connection.pragma_update(None, "max_page_count", MAX_PAGES);
    pages.and_then(|()| connection.pragma_update(None, "temp_store", "MEMORY")).map_err(|_| DatabaseState::Unknown)?;
    let mut schema = SchemaProbe::new(connection, MAX_INIT_LOOKS).map_err(|_| DatabaseState::Unknown)?;
    let mut is_partial = false;
    // Without a zero byte at its end, SQLite copies all that is left of the script for each statement.
    let ended = format!("{sql}\0");
    let mut statements = Batch::new(&schema.connection, &ended);
    loop {
        let done = match statements.next() {
            Ok(None) => break,
            Ok(Some(mut statement)) => match kind_of(&statement.expanded_sql().unwrap_or_default()) {
                StatementKind::Shapes => statement.raw_execute().map(drop),
                StatementKind::Copies => {
                    is_partial = true;
                    Ok(())
                }
                StatementKind::Other => Ok(()),
            },
            Err(error) => Err(error),
        };
        if let Err(error) = done {
            return Err(init_fault(&error, sql, is_partial));
        }
    }
    schema.is_partial = is_partial;
    Ok(schema)
}

/// What a statement of a script does to the shape of the database.
enum StatementKind {
    /// It makes, changes or removes a table, a view or an index.
    Shapes,
    /// It makes a table from the rows of a query, which is not run.
    Copies,
    /// Nothing: it writes rows, or opens a transaction.
    Other,
}

fn kind_of(sql: &str) -> StatementKind {
    let mut words = sql_words(sql).map(str::to_ascii_uppercase);
    match words.next().as_deref() {
        Some("CREATE") => {
            let copies = words.take(8).any(|word| word == "AS");
            let is_view_or_trigger = sql_words(sql)
                .take(4)
                .any(|word| word.eq_ignore_ascii_case("VIEW") || word.eq_ignore_ascii_case("TRIGGER"));
            if copies && !is_view_or_trigger { StatementKind::Copies } else { StatementKind::Shapes }
        }
        Some("ALTER" | "DROP") => StatementKind::Shapes,
        _ => StatementKind::Other,
    }
}

fn init_fault(error: &rusqlite::Error, sql: &str, is_partial: bool) -> DatabaseState {
    let Some(fault) = fault(error).filter(|_| !is_partial) else { return DatabaseState::Unknown };
    let rest = match error {
        rusqlite::Error::SqlInputError { sql: rest, .. } => rest.len(),
        _ => sql.len(),
    };
    let at = sql.len().saturating_sub(rest).saturating_add(fault.offset.unwrap_or(0));
    let line = sql.bytes().take(at).filter(|byte| *byte == b'\n').count() + 1;
    DatabaseState::BadInit(InitFault { message: fault.message, line })
}

impl SchemaProbe {
    fn new(mut connection: Connection, most: u32) -> rusqlite::Result<Self> {
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
        connection.set_limit(Limit::SQLITE_LIMIT_ATTACHED, 0)?;
        connection.set_limit(Limit::SQLITE_LIMIT_LENGTH, MAX_VALUE_BYTES)?;
        connection.set_limit(Limit::SQLITE_LIMIT_SQL_LENGTH, MAX_VALUE_BYTES)?;
        connection.authorizer(Some(authorize))?;
        let work = Arc::new(AtomicU32::new(most));
        let left = Arc::clone(&work);
        let stop = move || left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_err();
        connection.progress_handler(INSTRUCTIONS_PER_LOOK, Some(stop))?;
        Ok(Self { connection, work, is_partial: false })
    }

    /// What the database has against a query.
    fn prepare(&self, query: &str) -> Option<QueryFault> {
        self.work.store(MAX_QUERY_LOOKS, Ordering::Relaxed);
        let mut fault = fault(&self.connection.prepare(query).err()?)?;
        let unknown = ["no such table: ", "no such column: "].into_iter().enumerate();
        let unknown = unknown.filter_map(|(kind, begin)| Some((kind == 0, fault.message.strip_prefix(begin)?)));
        let mut unknown = unknown.chain(no_column_of_table(&fault.message)).map(|(kind, name)| (kind, name.to_owned()));
        if let Some((is_table, name)) = unknown.next() {
            drop(unknown);
            if self.is_partial {
                return None;
            }
            let tables = self.tables().unwrap_or_default();
            let known = if is_table { tables } else { self.columns(&tables, query) };
            fault.kind = QueryFaultKind::UnknownName { name, is_table, known };
        }
        Some(fault)
    }

    fn tables(&self) -> rusqlite::Result<Vec<String>> {
        self.work.store(MAX_QUERY_LOOKS, Ordering::Relaxed);
        let sql =
            "SELECT name FROM sqlite_schema WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'";
        let mut statement = self.connection.prepare(sql)?;
        let rows = statement.query_map([], |row| row.get(0))?;
        rows.take(MAX_TABLES).collect()
    }

    /// The columns of a table.
    fn columns_of(&self, table: &str) -> Option<Vec<String>> {
        self.result_columns(&format!("SELECT * FROM \"{}\"", table.replace('"', "\"\"")))
    }

    /// The columns of the rows that a query gives.
    fn result_columns(&self, query: &str) -> Option<Vec<String>> {
        self.work.store(MAX_QUERY_LOOKS, Ordering::Relaxed);
        let statement = self.connection.prepare(query).ok()?;
        Some(owned(statement.column_names()))
    }

    /// Of which kind the values of a query's columns are, by the types that their tables declare. SQLite says these of a
    /// view: one for the moment is made of the query.
    fn column_kinds(&self, query: &str) -> rusqlite::Result<Vec<Option<ValueKind>>> {
        self.work.store(MAX_QUERY_LOOKS, Ordering::Relaxed);
        let (mut plain, mut end) = (String::with_capacity(query.len()), 0);
        // A view has no parameters.
        for placeholder in sql::placeholders(query) {
            plain.push_str(query.get(end..placeholder.range.start).unwrap_or_default());
            plain.push_str("NULL");
            end = placeholder.range.end;
        }
        plain.push_str(query.get(end..).unwrap_or_default());
        self.connection.execute_batch(&format!("DROP VIEW IF EXISTS temp.{PROBED}"))?;
        // The line end ends a comment.
        self.connection
            .execute(&format!("CREATE TEMP VIEW {PROBED} AS {}\n", plain.trim_end().trim_end_matches(';')), [])?;
        let mut statement = self.connection.prepare(&format!("PRAGMA temp.{TABLE_INFO}(\"{PROBED}\")"))?;
        let kinds = statement.query_map([], |row| Ok(kind_of_column(&row.get::<_, String>("type")?)))?;
        let kinds = kinds.take(MAX_COLUMNS).collect();
        drop(statement);
        self.connection.execute_batch(&format!("DROP VIEW IF EXISTS temp.{PROBED}"))?;
        kinds
    }

    /// The columns of a table that take no NULL and have no default. SQLite counts the rows of an `INTEGER PRIMARY KEY`
    /// itself, and a generated column is not written.
    fn required_columns(&self, table: &str) -> rusqlite::Result<Vec<String>> {
        self.work.store(MAX_QUERY_LOOKS, Ordering::Relaxed);
        let sql = format!("PRAGMA {TABLE_INFO}(\"{}\")", table.replace('"', "\"\""));
        let mut statement = self.connection.prepare(&sql)?;
        let columns = statement.query_map([], |row| {
            let (name, kind): (String, String) = (row.get("name")?, row.get("type")?);
            let (not_null, key): (bool, u32) = (row.get("notnull")?, row.get("pk")?);
            let default: Option<String> = row.get("dflt_value")?;
            let has_default = default.is_some_and(|default| !default.eq_ignore_ascii_case("null"));
            let is_counted = key == 1 && kind.eq_ignore_ascii_case("integer");
            let is_needed = not_null && !has_default && !is_counted && row.get::<_, u32>("hidden")? == 0;
            Ok(is_needed.then_some(name))
        })?;
        columns.filter_map(Result::transpose).collect()
    }

    /// The columns of the tables that a query names.
    fn columns(&self, tables: &[String], query: &str) -> Vec<String> {
        let named = |table: &&String| sql_words(query).any(|word| word.eq_ignore_ascii_case(table));
        let mut columns: Vec<String> = Vec::new();
        for table in tables.iter().filter(named) {
            columns.extend(self.columns_of(table).into_iter().flatten());
        }
        columns
    }
}

/// `table t has no column named c`: that it is a column, and its name.
fn no_column_of_table(message: &str) -> Option<(bool, &str)> {
    let (_, name) = message.strip_prefix("table ")?.split_once(" has no column named ")?;
    Some((false, name))
}

/// Of which kind the values of a column with a declared type are, where SQLite keeps them so. A column of dates, or of true
/// and false, may have texts and numbers.
fn kind_of_column(declared: &str) -> Option<ValueKind> {
    let declared = declared.to_ascii_uppercase();
    let has = |words: &[&str]| words.iter().any(|word| declared.contains(word));
    if has(&["POINT", "INTERVAL"]) {
        return None;
    }
    // SQLite keeps true and false as 1 and 0.
    let is_number = has(&["INT", "REAL", "FLOA", "DOUB", "BOOL"])
        || ["DECIMAL", "NUMERIC"].iter().any(|word| declared.starts_with(word));
    if is_number {
        return Some(ValueKind::Number);
    }
    has(&["CHAR", "CLOB", "TEXT"]).then_some(ValueKind::Text)
}

/// What an error says of a statement; nothing when it says that it took too much.
fn fault(error: &rusqlite::Error) -> Option<QueryFault> {
    use rusqlite::Error;
    let (code, message, offset) = match error {
        Error::SqlInputError { error, msg, offset, .. } => (error.code, msg.clone(), usize::try_from(*offset).ok()),
        Error::SqliteFailure(failure, Some(message)) => (failure.code, message.clone(), None),
        Error::MultipleStatement => {
            let message = "a query is one statement, and this is more than one".to_owned();
            return Some(QueryFault { kind: QueryFaultKind::Invalid, message, offset: None });
        }
        _ => return None,
    };
    let too_much = ["too many", "too large", "too big", "parser stack overflow", "out of memory"];
    let judged = match code {
        ErrorCode::Unknown => !too_much.iter().any(|words| message.contains(words)),
        ErrorCode::AuthorizationForStatementDenied => true,
        _ => false,
    };
    judged.then_some(QueryFault { kind: QueryFaultKind::Invalid, message, offset })
}

/// Refuses what reaches other files or loads code, as the driver does, and leaves settings as they are.
fn authorize(context: AuthContext<'_>) -> Authorization {
    match context.action {
        AuthAction::Attach { .. } | AuthAction::Detach { .. } => Authorization::Deny,
        AuthAction::Function { function_name } if function_name.eq_ignore_ascii_case("load_extension") => {
            Authorization::Deny
        }
        AuthAction::Pragma { pragma_name: TABLE_INFO, .. } => Authorization::Allow,
        AuthAction::Pragma { .. } => Authorization::Ignore,
        _ => Authorization::Allow,
    }
}

/// The names; some versions of `rusqlite` give them as a list.
fn owned<'n>(names: impl IntoIterator<Item = &'n str>) -> Vec<String> {
    names.into_iter().map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::fs;
    use std::path::Path;

    use rusqlite::Connection;

    use super::*;

    const TABLES: &str = "CREATE TABLE orders (id INTEGER PRIMARY KEY, total REAL);";

    fn databases(root: &Path, url: &str, init: Option<&str>) -> Databases {
        let datasource = Datasource { url: url.to_owned(), init: init.map(str::to_owned), ..Datasource::default() };
        Databases::new(root, BTreeMap::from([("shop".to_owned(), datasource)]))
    }

    /// The databases of a folder with this script.
    fn scripted(script: &str) -> (tempfile::TempDir, Databases) {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("init.sql"), script).unwrap();
        let databases = databases(folder.path(), "sqlite:shop.db", Some("init.sql"));
        (folder, databases)
    }

    fn is_column(fault: Option<QueryFault>, column: &str) -> bool {
        matches!(fault, Some(QueryFault { kind: QueryFaultKind::UnknownName { name, is_table: false, .. }, .. }) if name == column)
    }

    /// The names and bytes of a folder's files.
    fn contents(folder: &Path) -> BTreeMap<String, Vec<u8>> {
        let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
        files.map(|file| (file.file_name().into_string().unwrap(), fs::read(file.path()).unwrap())).collect()
    }

    #[test]
    fn queries_are_prepared_against_a_file_and_nothing_is_written_beside_it() {
        for mode in ["DELETE", "WAL"] {
            let folder = tempfile::tempdir().unwrap();
            let file = folder.path().join("a ?#%.db");
            let connection = Connection::open(&file).unwrap();
            connection.pragma_update(None, "journal_mode", mode).unwrap();
            connection.execute_batch(TABLES).unwrap();
            connection.close().unwrap();
            let before = contents(folder.path());
            let databases = databases(folder.path(), "sqlite:a ?#%.db", None);
            assert_eq!(databases.state("shop"), DatabaseState::Ready { is_made: false });
            assert_eq!(databases.prepare("shop", "SELECT total FROM orders WHERE id = $1"), None);
            assert_eq!(databases.prepare("shop", "DELETE FROM orders"), None);
            assert!(is_column(databases.prepare("shop", "SELECT totl FROM orders"), "totl"));
            drop(databases);
            assert!(contents(folder.path()) == before, "{mode}: {:?}", contents(folder.path()).keys());
        }
    }

    #[test]
    fn a_database_that_is_being_written_to_is_not_judged() {
        let folder = tempfile::tempdir().unwrap();
        let connection = Connection::open(folder.path().join("shop.db")).unwrap();
        connection.pragma_update(None, "journal_mode", "WAL").unwrap();
        connection.execute_batch(TABLES).unwrap();
        // The table is in the log beside the file as long as the connection is open.
        let databases = databases(folder.path(), "sqlite:shop.db", None);
        assert_eq!(databases.state("shop"), DatabaseState::Unknown);
        assert_eq!(databases.prepare("shop", "SELECT totl FROM orders"), None);
    }

    #[test]
    fn a_script_makes_its_tables_in_memory_and_its_rows_are_not_written() {
        let rows =
            "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) INSERT INTO orders SELECT i, 1 FROM n;";
        let (folder, databases) = scripted(&format!("PRAGMA foreign_keys = ON; BEGIN; {TABLES} {rows} COMMIT;"));
        assert_eq!(databases.state("shop"), DatabaseState::Ready { is_made: true });
        assert!(is_column(databases.prepare("shop", "SELECT o.totl FROM orders o"), "o.totl"));
        assert_eq!(contents(folder.path()).keys().collect::<Vec<_>>(), ["init.sql"]);
    }

    #[test]
    fn a_table_of_the_rows_of_a_query_is_not_made_and_not_missed() {
        let (_folder, databases) = scripted("CREATE TABLE copied AS SELECT 1 AS one; CREATE TABLE own (id INTEGER);");
        assert_eq!(databases.prepare("shop", "SELECT one FROM copied"), None);
        assert!(databases.prepare("shop", "SELEC id FROM own").is_some());
    }

    #[test]
    fn a_fault_of_a_script_says_its_line() {
        let (_folder, databases) =
            scripted("-- a comment\nCREATE TABLE a (id INTEGER);\nCREATE TABL b (id INTEGER);\n");
        let DatabaseState::BadInit(fault) = databases.state("shop") else { panic!("{:?}", databases.state("shop")) };
        assert_eq!(fault.line, 3);
        assert!(fault.message.contains("TABL"), "{fault:?}");
    }

    #[test]
    fn a_script_that_changed_after_the_file_was_made_is_known_to_make_more() {
        let folder = tempfile::tempdir().unwrap();
        Connection::open(folder.path().join("shop.db")).unwrap().execute_batch(TABLES).unwrap();
        let now = format!("{TABLES} CREATE TABLE parts (id INTEGER); ALTER TABLE orders ADD COLUMN paid REAL;");
        fs::write(folder.path().join("init.sql"), now).unwrap();
        let before = contents(folder.path());
        let old = databases(folder.path(), "sqlite:shop.db", Some("init.sql"));
        for (query, is_taken) in
            [("SELECT * FROM parts", true), ("SELECT paid FROM orders", true), ("SELECT lost FROM orders", false)]
        {
            assert!(old.prepare("shop", query).is_some(), "the file does not have it: {query}");
            assert_eq!(old.is_taken_after_init("shop", query), is_taken, "{query}");
        }
        assert!(!databases(folder.path(), "sqlite:shop.db", None).is_taken_after_init("shop", "SELECT * FROM parts"));
        assert!(!databases(folder.path(), "sqlite:shop.db", Some("no.sql")).is_taken_after_init("shop", "SELECT 1"));
        assert_eq!(contents(folder.path()), before, "nothing is written");
        let (_folder, new) = scripted(TABLES);
        assert!(!new.is_taken_after_init("shop", "SELECT * FROM orders"), "the script has made it");
    }

    #[test]
    fn other_files_are_out_of_reach_and_settings_stay() {
        let (folder, databases) = scripted(TABLES);
        let attach = databases.prepare("shop", "ATTACH 'stolen.db' AS other").unwrap();
        assert_eq!(attach.kind, QueryFaultKind::Invalid);
        assert_eq!(databases.prepare("shop", "PRAGMA writable_schema = ON"), None);
        assert!(databases.prepare("shop", "SELECT load_extension('x')").is_some());
        let (other, bad) = scripted("ATTACH 'stolen.db' AS other;");
        assert!(matches!(bad.state("shop"), DatabaseState::BadInit(_)), "{:?}", bad.state("shop"));
        for folder in [&folder, &other] {
            assert_eq!(contents(folder.path()).keys().collect::<Vec<_>>(), ["init.sql"]);
        }
    }

    #[test]
    fn a_script_of_too_much_work_says_nothing() {
        let many: String = (0..20_000).map(|at| format!("CREATE TABLE t{at} (id INTEGER);")).collect();
        let (_folder, databases) = scripted(&many);
        assert_eq!(databases.state("shop"), DatabaseState::Unknown);
        let (_folder, long) = scripted(&format!("{TABLES} -- {}", "x".repeat(MAX_INIT_BYTES)));
        assert_eq!(long.state("shop"), DatabaseState::Unknown);
    }

    #[test]
    fn what_is_no_database_is_said_to_be_none() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(
            folder.path().join("text.db"),
            "no database, but a text that is long enough to be looked at as one".repeat(9),
        )
        .unwrap();
        fs::create_dir(folder.path().join("folder.db")).unwrap();
        let state = |url: &str| databases(folder.path(), url, None).state("shop");
        assert!(matches!(state("sqlite:text.db"), DatabaseState::Unreadable(_)), "{:?}", state("sqlite:text.db"));
        assert!(matches!(state("sqlite:folder.db"), DatabaseState::Unreadable(_)));
        assert_eq!(state("sqlite:none.db"), DatabaseState::Absent);
        for unknown in ["sqlite:", "sqlite::memory:", "orgconfig:key", "postgres://h/x"] {
            assert_eq!(state(unknown), DatabaseState::Unknown, "{unknown}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_pipe_is_not_opened() {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("shop.db");
        let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        let state = databases(folder.path(), "sqlite:shop.db", None).state("shop");
        assert!(matches!(state, DatabaseState::Unreadable(_)), "{state:?}");
    }
}
