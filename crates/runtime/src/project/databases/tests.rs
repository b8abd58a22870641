//! Databases that are looked at before a run: what is seen, and that nothing is changed or waited for.

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
    let (_folder, databases) = scripted("-- a comment\nCREATE TABLE a (id INTEGER);\nCREATE TABL b (id INTEGER);\n");
    let DatabaseState::BadInit(fault) = databases.state("shop") else { panic!("{:?}", databases.state("shop")) };
    assert_eq!(fault.line, 3);
    assert!(fault.message.contains("TABL"), "{fault:?}");
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
    let (_folder, long) = scripted(&format!("{TABLES} -- {}", "x".repeat(MAX_INIT)));
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
