//! SQLite: reads, writes, limits, and what is refused.

use std::fs;

use serde_json::json;

use super::*;
use crate::drive::tool::db::QueryValues;

const INIT: &str = "CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT UNIQUE, price REAL); \
    INSERT INTO t (name, price) VALUES ('a', 1.5), ('b', NULL);";

/// As an agent's call has it.
const ROWS: RowLimit = RowLimit { most: 1000, is_whole: false };

async fn ask(source: SqliteFile, query: Query) -> Result<Value, ToolFault> {
    let work = DatabaseWork { source, read_only: query.read_only, deadline: query.deadline };
    run(work, move |connection| query::run(&query, connection)).await
}

struct Folder(tempfile::TempDir);

impl Folder {
    fn new(init: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("init.sql"), init).unwrap();
        Self(folder)
    }

    fn source(&self) -> SqliteFile {
        let init = Some(Ok(self.0.path().join("init.sql")));
        SqliteFile { file: self.0.path().join("data/x.db"), init, most_bytes: None }
    }

    async fn ask(&self, sql: &str, read_only: bool, params: Value) -> Result<Value, ToolFault> {
        let (params, input) = match params {
            Value::Array(params) => (params, json!({})),
            input => (Vec::new(), input),
        };
        let values = QueryValues { params, input, optional: vec!["maybe".to_owned()] };
        ask(
            self.source(),
            Query { sql: sql.to_owned(), read_only, values, rows: ROWS, deadline: Duration::from_secs(30) },
        )
        .await
    }

    async fn class(&self, sql: &str, read_only: bool, params: Value) -> String {
        self.ask(sql, read_only, params).await.unwrap_err().class
    }

    fn files(&self) -> Vec<String> {
        let mut names: Vec<_> = fs::read_dir(self.0.path().join("data"))
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }
}

#[tokio::test]
async fn a_query_gives_its_rows() {
    let folder = Folder::new(INIT);
    let value =
        folder.ask("SELECT id, name, price, x'0102' AS b FROM t WHERE id >= $1", true, json!([1])).await.unwrap();
    assert_eq!(
        value.to_string(),
        r#"{"rows":[{"id":1,"name":"a","price":1.5,"b":"AQI="},{"id":2,"name":"b","price":null,"b":"AQI="}],"row_count":2}"#
    );
}

#[tokio::test]
async fn columns_of_one_name_are_all_there() {
    let folder = Folder::new(INIT);
    let value = folder.ask("SELECT 1 AS x, 2 AS x, 3 AS x", true, json!([])).await.unwrap();
    assert_eq!(value["rows"][0], json!({"x": 1, "x_2": 2, "x_3": 3}));
}

#[tokio::test]
async fn a_write_reports_how_many_rows_it_changed() {
    let folder = Folder::new(INIT);
    let insert = folder.ask("INSERT INTO t (name) VALUES (:name)", false, json!({"name": "c"})).await.unwrap();
    assert_eq!(insert, json!({"changes": 1, "last_insert_rowid": 3}));
    let update = folder.ask("UPDATE t SET price = 2", false, json!([])).await.unwrap();
    assert_eq!(update, json!({"changes": 3}));
    let returning = folder.ask("DELETE FROM t RETURNING id", false, json!([])).await.unwrap();
    assert_eq!(returning["row_count"], 3);
    assert_eq!(folder.ask("SELECT count(*) AS n FROM t", true, json!([])).await.unwrap()["rows"][0]["n"], 0);
}

#[tokio::test]
async fn values_are_bound_and_never_read_as_sql() {
    let folder = Folder::new(INIT);
    let evil = "x'); DROP TABLE t; --";
    for (sql, params) in [
        ("SELECT $1 AS v", json!([evil])),
        ("SELECT ?1 AS v", json!([evil])),
        ("SELECT ? AS v", json!([evil])),
        ("SELECT :v AS v", json!({"v": evil})),
        ("SELECT @v AS v", json!({"v": evil})),
        ("SELECT $v AS v", json!({"v": evil})),
        ("SELECT $2 AS v", json!(["other", evil])),
        ("SELECT :v AS v", json!([evil])),
    ] {
        assert_eq!(folder.ask(sql, false, params).await.unwrap()["rows"][0]["v"], evil, "{sql}");
    }
    let order = folder.ask("SELECT $2 AS b, $1 AS a, $2 AS c", true, json!(["x", "y"])).await.unwrap();
    assert_eq!(order["rows"][0], json!({"b": "y", "a": "x", "c": "y"}));
    assert_eq!(folder.ask("SELECT :maybe AS v", true, json!({})).await.unwrap()["rows"][0]["v"], Value::Null);
    assert_eq!(folder.class("SELECT :typo", true, json!({})).await, "database: a parameter has no value");
    assert_eq!(folder.class("SELECT $2", true, json!([1])).await, "database: a parameter has no value");
}

#[tokio::test]
async fn numbers_keep_their_digits_or_are_refused() {
    let folder = Folder::new(INIT);
    let keeps = [
        "0",
        "-7",
        "9007199254740993",
        "9223372036854775807",
        "-9223372036854775808",
        "0.1",
        "1.5",
        "1e3",
        "1.10",
        "-2.5E-3",
        "123456.789012",
        "0.0",
    ];
    for text in keeps {
        let value: Value = serde_json::from_str(text).unwrap();
        let got = folder.ask("SELECT $1 AS v", true, json!([value])).await.unwrap()["rows"][0]["v"].to_string();
        assert_eq!(got.parse::<f64>().unwrap(), text.parse::<f64>().unwrap(), "{text}");
        if !text.contains(['.', 'e', 'E']) {
            assert_eq!(got, text);
        }
    }
    for text in [
        "9223372036854775808",
        "12345678901234567890123",
        "0.12345678901234567890123",
        "1E400",
        "-1e400",
        "1e-400",
        "9007199254740993.0",
    ] {
        let value: Value = serde_json::from_str(text).unwrap();
        assert_eq!(
            folder.class("SELECT $1 AS v", true, json!([value])).await,
            "database: value can't be kept",
            "{text}"
        );
    }
    let value =
        folder.ask("SELECT $1 AS a, $2 AS b, $3 AS c", true, json!([true, [1, "x"], {"k": 1.0}])).await.unwrap();
    assert_eq!(value["rows"][0], json!({"a": 1, "b": "[1,\"x\"]", "c": "{\"k\":1.0}"}));
}

#[tokio::test]
async fn read_only_refuses_every_write() {
    let folder = Folder::new(INIT);
    for sql in [
        "INSERT INTO t (name) VALUES ('x')",
        "UPDATE t SET name = 'x'",
        "DELETE FROM t",
        "DROP TABLE t",
        "CREATE TABLE u (a)",
        "WITH x AS (SELECT 1) INSERT INTO t (name) SELECT * FROM x",
        "INSERT INTO t (name) VALUES ('x') RETURNING id",
        "PRAGMA user_version = 7",
        "REINDEX",
        "VACUUM",
    ] {
        let class = folder.class(sql, true, json!([])).await;
        assert!(class.starts_with("database: "), "{sql}: {class}");
    }
    assert_eq!(folder.class("DELETE FROM t", true, json!([])).await, "database: read only");
    assert_eq!(folder.ask("SELECT count(*) AS n FROM t", true, json!([])).await.unwrap()["rows"][0]["n"], 2);
    // Switching the guard off lasts only for its own call.
    let _ = folder.ask("PRAGMA query_only = OFF", true, json!([])).await;
    assert_eq!(folder.class("DELETE FROM t", true, json!([])).await, "database: read only");
    // The twin: the same statement on a writable action works.
    assert_eq!(folder.ask("DELETE FROM t", false, json!([])).await.unwrap()["changes"], 2);
}

#[tokio::test]
async fn no_other_file_is_reached() {
    let folder = Folder::new(INIT);
    let other = folder.0.path().join("other.db");
    for read_only in [true, false] {
        for sql in [
            format!("ATTACH DATABASE '{}' AS o", other.display()),
            format!("VACUUM INTO '{}'", other.display()),
            "DETACH DATABASE main".to_owned(),
            "SELECT load_extension('x')".to_owned(),
            "SELECT writefile('x', 'y')".to_owned(),
            "SELECT readfile('/etc/passwd')".to_owned(),
        ] {
            let class = folder.class(&sql, read_only, json!([])).await;
            assert!(
                ["database: not allowed", "database: error in the query", "database: read only"]
                    .contains(&class.as_str()),
                "{sql}: {class}"
            );
        }
    }
    assert!(!other.exists());
}

#[tokio::test]
async fn one_statement_a_call() {
    let folder = Folder::new(INIT);
    for sql in ["SELECT 1; DELETE FROM t", "SELECT 1; SELECT 2", "DELETE FROM t; DROP TABLE t;"] {
        assert_eq!(folder.class(sql, false, json!([])).await, "database: more than one statement", "{sql}");
    }
    assert_eq!(folder.ask("SELECT count(*) AS n FROM t", true, json!([])).await.unwrap()["rows"][0]["n"], 2);
    for sql in ["SELECT 1 AS x;", "SELECT 1 AS x; -- done", " /* a */ SELECT 1 AS x ; ; "] {
        assert_eq!(folder.ask(sql, true, json!([])).await.unwrap()["row_count"], 1, "{sql}");
    }
}

#[tokio::test]
async fn faults_have_classes_without_paths() {
    let folder = Folder::new(INIT);
    assert_eq!(folder.class("SELEC 1", true, json!([])).await, "database: error in the query");
    assert_eq!(folder.class("SELECT * FROM nowhere", true, json!([])).await, "database: error in the query");
    assert_eq!(
        folder.class("INSERT INTO t (name) VALUES ('a')", false, json!([])).await,
        "database: unique constraint failed"
    );
    assert_eq!(folder.class("SELECT zeroblob(20000000)", true, json!([])).await, "database: value too large");
    let missing = SqliteFile { file: folder.0.path().join("none.db"), init: None, most_bytes: None };
    let query = Query {
        sql: "SELECT 1".to_owned(),
        read_only: false,
        values: QueryValues { params: vec![], input: json!({}), optional: vec![] },
        rows: ROWS,
        deadline: Duration::from_secs(30),
    };
    assert_eq!(ask(missing, query).await.unwrap_err().class, "database: can't be opened");
    assert!(!folder.0.path().join("none.db").exists(), "nothing is made in passing");
    fs::write(folder.0.path().join("data/x.db"), "no database at all, but long enough to be looked at".repeat(10))
        .unwrap();
    assert_eq!(folder.class("SELECT * FROM t", true, json!([])).await, "database: damaged, or no database");
}

#[tokio::test]
async fn many_rows_are_cut_and_it_is_said() {
    let folder = Folder::new(INIT);
    let counting = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT $1) SELECT i FROM n";
    let all = folder.ask(counting, true, json!([1000])).await.unwrap();
    assert_eq!((all["row_count"].clone(), all.get("truncated")), (json!(1000), None));
    let cut = folder.ask(counting, true, json!([1001])).await.unwrap();
    assert_eq!((cut["row_count"].clone(), cut["truncated"].clone()), (json!(1000), json!(true)));
    let wide = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 50) SELECT hex(zeroblob(500000)) AS x FROM n";
    let cut = folder.ask(wide, true, json!([])).await.unwrap();
    assert_eq!((cut["row_count"].clone(), cut["truncated"].clone()), (json!(10), json!(true)));
}

#[tokio::test]
async fn a_dropped_query_stops() {
    let folder = Folder::new(INIT);
    folder.ask("SELECT 1", true, json!([])).await.unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let connection = open::open(&folder.source(), true, Arc::clone(&stop)).unwrap();
    drop(StopOnDrop(stop));
    let endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n";
    let values = QueryValues { params: vec![], input: json!({}), optional: vec![] };
    let query =
        Query { sql: endless.to_owned(), read_only: true, values, rows: ROWS, deadline: Duration::from_secs(30) };
    let fault = query::run(&query, &connection).unwrap_err();
    assert_eq!(fault.class, "database: interrupted");
}

#[tokio::test]
async fn the_init_script_runs_once() {
    let folder = Folder::new(INIT);
    folder.ask("DELETE FROM t WHERE id = 1", false, json!([])).await.unwrap();
    fs::write(folder.0.path().join("init.sql"), "never read again").unwrap();
    assert_eq!(folder.ask("SELECT count(*) AS n FROM t", true, json!([])).await.unwrap()["rows"][0]["n"], 1);
    assert_eq!(folder.files(), ["x.db"]);
}

#[test]
fn many_at_once_make_one_database() {
    let sources: Vec<_> = (0..8).map(|_| Folder::new(INIT)).collect();
    for folder in &sources {
        let threads: Vec<_> = (0..8)
            .map(|_| {
                let source = folder.source();
                std::thread::spawn(move || open::open(&source, true, Arc::default()).map(drop))
            })
            .collect();
        for thread in threads {
            thread.join().unwrap().unwrap();
        }
        assert_eq!(folder.files(), ["x.db"]);
    }
}

#[tokio::test]
async fn a_dump_with_its_own_transaction_is_a_script_too() {
    let folder = Folder::new(
        "PRAGMA foreign_keys=OFF;\nBEGIN TRANSACTION;\nCREATE TABLE t (a);\nINSERT INTO t VALUES(1);\nCOMMIT;\n",
    );
    assert_eq!(folder.ask("SELECT a FROM t", true, json!([])).await.unwrap()["row_count"], 1);
}

#[tokio::test]
async fn a_database_with_a_write_ahead_log_is_read_too() {
    let folder = Folder::new("PRAGMA journal_mode = WAL; CREATE TABLE t (a); INSERT INTO t VALUES (1);");
    assert_eq!(folder.ask("SELECT a FROM t", true, json!([])).await.unwrap()["row_count"], 1);
    assert_eq!(folder.ask("INSERT INTO t VALUES (2)", false, json!([])).await.unwrap()["changes"], 1);
    assert_eq!(folder.class("DELETE FROM t", true, json!([])).await, "database: read only");
    assert_eq!(folder.ask("SELECT a FROM t", true, json!([])).await.unwrap()["row_count"], 2);
}

#[tokio::test]
async fn a_broken_script_leaves_nothing() {
    let folder = Folder::new("CREATE TABLE t (a); INSERT INTO nowhere VALUES (1);");
    assert_eq!(folder.class("SELECT 1", true, json!([])).await, "database: error in the query");
    assert!(folder.files().is_empty(), "{:?}", folder.files());
    fs::write(folder.0.path().join("init.sql"), INIT).unwrap();
    assert_eq!(folder.ask("SELECT 1 AS x", true, json!([])).await.unwrap()["row_count"], 1);
}
