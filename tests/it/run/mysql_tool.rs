//! The `db` tool on a MariaDB server of the tests' own: values and types, what a statement may do, limits, and what becomes
//! of a call whose connection, server or process is lost. `just mysql`

use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::{Value, json};

use super::postgres_tool::query;
use crate::common::mariadb::{self, PASSWORD};
use crate::common::{Place, observed, think};

/// A place with these actions on a database of its own, made by the statements of `setup`; none without a server.
pub fn place(test: &str, setup: &[&str], actions: &[Value]) -> Option<Place> {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let server = mariadb::server(test)?;
    let database = format!("tool_{}", NUMBER.fetch_add(1, Ordering::SeqCst));
    let write = |name: String, sql: &str| query(&name, sql, json!({ "read_only": false }));
    let place = Place::new();
    place.file("password", PASSWORD);
    let project = |database: &str| json!({ "datasources": { "shop": { "url": server.url(database), "password": "file:password" } } });
    let made = |actions: &[Value]| {
        let calls: Vec<Value> =
            actions.iter().map(|action| think(action["action_name"].as_str().unwrap(), json!({}))).collect();
        for entry in place.calls(&calls) {
            assert_eq!(entry["success"], true, "{entry:#}");
        }
    };
    let create = [write("create".to_owned(), &format!("CREATE DATABASE {database} CHARACTER SET utf8mb4"))];
    place.actions(&create, &project("shop"));
    made(&create);
    if !setup.is_empty() {
        let setup: Vec<Value> = setup.iter().enumerate().map(|(at, sql)| write(format!("setup{at}"), sql)).collect();
        place.actions(&setup, &project(&database));
        made(&setup);
    }
    place.actions(actions, &project(&database));
    Some(place)
}

/// The same with the address in a file: what is refused before a server is asked, `check` can't report then.
pub fn hidden_place(test: &str, setup: &[&str], actions: &[Value]) -> Option<Place> {
    let place = place(test, setup, actions)?;
    let mut project: Value =
        serde_json::from_slice(&std::fs::read(place.path().join("loopctl.json")).unwrap()).unwrap();
    place.file("address", project["datasources"]["shop"]["url"].as_str().unwrap());
    project["datasources"]["shop"]["url"] = json!("file:address");
    place.json("loopctl.json", &project);
    Some(place)
}

/// Calls each of the queries once.
fn asked(test: &str, queries: &[String]) -> Option<Vec<Value>> {
    let name = |at: usize| format!("q{at}");
    let actions: Vec<Value> = queries.iter().enumerate().map(|(at, sql)| query(&name(at), sql, json!({}))).collect();
    let place = hidden_place(test, &[], &actions)?;
    let calls: Vec<Value> = (0..queries.len()).map(|at| think(&name(at), json!({}))).collect();
    Some(place.calls(&calls))
}

#[test]
fn every_type_of_mysql_becomes_json_without_loss() {
    let table = "CREATE TABLE t (t1 TINYINT, u8 BIGINT UNSIGNED, i8 BIGINT, n DECIMAL(30,10), z DECIMAL(6,2) ZEROFILL, f FLOAT, \
        d DOUBLE, da DATE, dt DATETIME(6), ts TIMESTAMP(3) NULL, ti TIME(3), y YEAR, c CHAR(3), v VARCHAR(20), tx TEXT, \
        b VARBINARY(5), bl BLOB, bi BIT(10), e ENUM('calm', 'cross'), s SET('a', 'b', 'c'), zd DATE, zt DATETIME, bo BOOLEAN, \
        nul INT, u UUID, j JSON)";
    let row = "INSERT INTO t VALUES (-128, 18446744073709551615, -9223372036854775808, 12345678901234567890.1234567890, 1.5, 0.1, \
        0.1, '2026-01-31', '2026-01-31 13:30:00.000001', '2026-01-31 13:30:00.5', '-838:59:59.5', 2026, 'x', 'é🦀', 'text', \
        x'0102ff', x'00', b'0101100110', 'cross', 'a,c', '0000-00-00', '2026-00-00 00:00:00', TRUE, NULL, \
        'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', '{\"a\": 1.10}')";
    let sql = "SELECT t.*, 1 AS i8, DATE_ADD(da, INTERVAL 1 DAY) AS next, COUNT(*) OVER () AS k FROM t";
    let read = query("q", sql, json!({}));
    let Some(place) = place("types", &[table, row], &[read]) else { return };
    let entry = place.calls(&[think("q", json!({}))])[0].clone();
    let expected = r#"{"t1":-128,"u8":18446744073709551615,"i8":-9223372036854775808,"n":12345678901234567890.1234567890,"z":1.50,"f":0.1,"d":0.1,"da":"2026-01-31","dt":"2026-01-31T13:30:00.000001","ts":"2026-01-31T13:30:00.5Z","ti":"-838:59:59.5","y":2026,"c":"x","v":"é🦀","tx":"text","b":"AQL/","bl":"AA==","bi":"0101100110","e":"cross","s":"a,c","zd":"0000-00-00","zt":"2026-00-00T00:00:00","bo":1,"nul":null,"u":"a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11","j":"{\"a\": 1.10}","i8_2":1,"next":"2026-02-01","k":1}"#;
    assert_eq!(entry["observation"]["rows"][0].to_string(), expected, "{entry:#}");
}

#[test]
fn a_type_of_mysql_that_json_does_not_have_is_refused_by_name() {
    let Some(entries) = asked("refused types", &["SELECT ST_GeomFromText('POINT(1 2)') AS v".to_owned()]) else {
        return;
    };
    assert!(observed(&entries[0]).contains("the type `geometry` has no form"), "{:#}", entries[0]);
}

#[test]
fn arguments_of_mysql_are_values_whatever_they_contain() {
    let sql = "SELECT :v AS v, ':w' AS quoted, \"it's :v\" AS twice, :v AS again /* :v */ -- :v";
    let parameters = json!({ "type": "object", "properties": { "v": { "type": "string" } }, "required": ["v"] });
    let read = query("q", sql, json!({ "parameters": parameters }));
    let count = query("count", "SELECT count(*) AS n FROM t", json!({}));
    let setup = ["CREATE TABLE t (v text)", "INSERT INTO t VALUES ('one')"];
    let Some(place) = place("injection", &setup, &[read, count]) else { return };
    let mut values: Vec<String> =
        ["'; DROP TABLE t; --", "?", ":v", "\\'; DELETE FROM t #", "1) OR 1=1", "/*! COMMIT */"]
            .map(str::to_owned)
            .to_vec();
    values.push("é".repeat(4_000));
    let mut calls: Vec<Value> = values.iter().map(|value| think("q", json!({ "v": value }))).collect();
    calls.push(think("count", json!({})));
    let trace = place.calls(&calls);
    for (value, entry) in values.iter().zip(&trace) {
        let row = &entry["observation"]["rows"][0];
        assert_eq!(*row, json!({ "v": value, "quoted": ":w", "twice": "it's :v", "again": value }), "{entry:#}");
    }
    assert_eq!(trace[values.len()]["observation"]["rows"][0]["n"], 1);
}

#[test]
fn arguments_of_mysql_keep_all_their_digits() {
    let parameters = json!({ "type": "object", "properties": { "v": {} }, "required": ["v"] });
    let action = |name: &str, sql: &str| query(name, sql, json!({ "parameters": parameters }));
    let actions = [
        action("plain", "SELECT :v AS v"),
        action("sum", "SELECT :v + 0.1 AS v"),
        action("found", "SELECT n AS v FROM t WHERE n = :v"),
        action("limited", "SELECT n AS v FROM t ORDER BY n LIMIT :v"),
        action("moment", "SELECT ts AS v FROM m WHERE ts >= :v"),
    ];
    let setup = [
        "CREATE TABLE t (n DECIMAL(40, 10))",
        "INSERT INTO t VALUES (123456789012345678901234567890.0000000001), (5)",
        "CREATE TABLE m (ts TIMESTAMP)",
        "INSERT INTO m VALUES ('2026-01-31 10:00:00')",
    ];
    let Some(place) = place("arguments", &setup, &actions) else { return };
    let cases = [
        ("plain", "18446744073709551615", "18446744073709551615"),
        ("plain", "12345678901234567890.123456789", "12345678901234567890.123456789"),
        ("plain", "true", "1"),
        ("plain", "null", "null"),
        ("plain", "[1, {\"a\": 2.50}]", r#""[1,{\"a\":2.50}]""#),
        ("sum", "0.2", "0.3"),
        ("found", "123456789012345678901234567890.0000000001", "123456789012345678901234567890.0000000001"),
        ("limited", "1", "5.0000000000"),
        ("moment", "\"2026-01-31T10:00:00\"", "\"2026-01-31T10:00:00Z\""),
        ("moment", "\"2026-01-31T10:00:00Z\"", "\"2026-01-31T10:00:00Z\""),
    ];
    let input = |value: &str| json!({ "v": serde_json::from_str::<Value>(value).unwrap() });
    let calls: Vec<Value> = cases.iter().map(|(name, value, _)| think(name, input(value))).collect();
    for ((name, value, expected), entry) in cases.iter().zip(place.calls(&calls)) {
        assert_eq!(entry["observation"]["rows"][0]["v"].to_string(), *expected, "{name} {value}: {entry:#}");
    }
}

#[test]
fn a_mysql_database_that_is_read_refuses_every_way_to_write() {
    let cases = [
        ("SELECT shop.writes()", "read only"),
        ("WITH x AS (SELECT 1) SELECT * FROM x INTO OUTFILE '/tmp/loopctl-out'", "not allowed"),
        ("/* x */ TRUNCATE t", "not allowed"),
        ("RENAME TABLE t TO u", "not allowed"),
        ("SELECT n FROM t FOR UPDATE NOWAIT", ""),
        ("CALL shop.leaves()", "not allowed"),
        ("COMMIT", "not allowed"),
        ("/*! COMMIT */", "not allowed"),
        ("/* x */ # y\n START TRANSACTION READ WRITE", "not allowed"),
        ("SET GLOBAL general_log = 1", "not allowed"),
        ("LOAD DATA LOCAL INFILE '/etc/passwd' INTO TABLE t", "not allowed"),
        ("BEGIN NOT ATOMIC INSERT INTO t VALUES (2)", "not allowed"),
        ("SELECT 1; DELETE FROM t", "more than one statement"),
        ("SELECT 1 --\u{a0}\n INTO OUTFILE '/tmp/loopctl-out'", "not allowed"),
        ("SELECT 1 --\u{2003}INTO OUTFILE '/tmp/loopctl-out'", "not allowed"),
    ];
    let name = |at: usize| format!("q{at}");
    let mut actions: Vec<Value> =
        cases.iter().enumerate().map(|(at, (sql, _))| query(&name(at), sql, json!({}))).collect();
    actions.push(query("count", "SELECT (SELECT count(*) FROM t) + (SELECT count(*) FROM shop.kept) AS n", json!({})));
    let setup = ["CREATE TABLE t (n int)", "INSERT INTO t VALUES (1)"];
    let Some(place) = hidden_place("read only", &setup, &actions) else { return };
    let mut calls: Vec<Value> = (0..cases.len()).map(|at| think(&name(at), json!({}))).collect();
    calls.push(think("count", json!({})));
    let trace = place.calls(&calls);
    for ((sql, message), entry) in cases.iter().zip(&trace) {
        assert!(observed(entry).contains(message), "{sql}: {entry:#}");
    }
    assert_eq!(trace[cases.len()]["observation"]["rows"][0]["n"], 1, "nothing was written");
}

#[test]
fn a_text_of_mysql_is_never_compared_with_a_number() {
    let parameters = json!({ "type": "object", "properties": { "v": {} }, "required": ["v"] });
    let write = |name: &str, sql: &str| query(name, sql, json!({ "parameters": parameters, "read_only": false }));
    let read = |name: &str, sql: &str| query(name, sql, json!({ "parameters": parameters }));
    let actions = [
        write("delete", "DELETE FROM t WHERE id = :v"),
        write("delete_reversed", "DELETE FROM t WHERE :v = t.id"),
        write("delete_lower", "DELETE FROM t WHERE LOWER(id) = :v"),
        write("delete_in", "DELETE FROM t WHERE id IN ('x', :v)"),
        write("delete_between", "DELETE FROM t WHERE id BETWEEN :v AND 'z'"),
        write("delete_inner", "DELETE FROM t WHERE n IN (SELECT n FROM (SELECT n FROM t AS u WHERE u.id <=> :v) AS w)"),
        write("delete_row", "DELETE FROM t WHERE (n, id) = (1, :v)"),
        write("delete_enum", "DELETE FROM t WHERE kind = :v"),
        write("delete_day", "DELETE FROM t WHERE day >= :v"),
        write("delete_sum", "DELETE FROM t WHERE id = :v + 0"),
        write("update", "UPDATE t SET n = 9 WHERE id = :v"),
        write("number", "DELETE FROM t WHERE n = :v"),
        write("number_decimal", "DELETE FROM t WHERE price <> :v"),
        read("found", "SELECT n FROM t WHERE id = :v"),
        read("found_number", "SELECT id FROM t WHERE n = :v"),
        read("found_like", "SELECT n FROM t WHERE id LIKE CONCAT('%', :v, '%')"),
        read("count", "SELECT count(*) AS n, sum(n) AS s, :v AS v FROM t"),
    ];
    let setup = [
        "CREATE TABLE t (id VARCHAR(20), n INT, kind ENUM('a', 'b'), price DECIMAL(8, 2), day DATE)",
        "INSERT INTO t VALUES ('abc', 1, 'a', 1, '2026-01-31'), ('7', 2, 'b', 2, '2026-01-31')",
    ];
    let Some(place) = place("text and number", &setup, &actions) else { return };
    let mut calls = Vec::new();
    for name in ["", "_reversed", "_lower", "_in", "_between", "_inner", "_row", "_enum", "_day", "_sum"] {
        calls.push(think(&format!("delete{name}"), json!({ "v": 0 })));
    }
    calls.push(think("delete", json!({ "v": false })));
    calls.push(think("update", json!({ "v": 0 })));
    calls.push(think("found", json!({ "v": 7 })));
    for value in [json!("abc"), json!(""), json!([1])] {
        calls.push(think("number", json!({ "v": value })));
    }
    calls.push(think("number_decimal", json!({ "v": "x" })));
    let refused = calls.len();
    for (name, value) in [
        ("count", json!(1)),
        ("found", json!("7")),
        ("found_number", json!(2)),
        ("found_number", json!("2")),
        ("found_number", json!(null)),
        ("found_like", json!(7)),
    ] {
        calls.push(think(name, json!({ "v": value })));
    }
    let trace = place.calls(&calls);
    for (call, entry) in calls.iter().zip(&trace).take(refused) {
        assert!(observed(entry).contains("value not valid"), "{call}: {entry:#}");
    }
    assert!(observed(&trace[0]).contains("`:v`") && observed(&trace[0]).contains("`id`"), "{:#}", trace[0]);
    let rows = |at: usize| trace[refused + at]["observation"]["rows"].to_string();
    assert_eq!(rows(0), r#"[{"n":2,"s":3,"v":1}]"#, "nothing was written");
    assert_eq!(
        (rows(1), rows(2), rows(3)),
        (r#"[{"n":2}]"#.into(), r#"[{"id":"7"}]"#.into(), r#"[{"id":"7"}]"#.into())
    );
    assert_eq!((rows(4), rows(5)), ("[]".to_owned(), r#"[{"n":2}]"#.to_owned()));
}

#[test]
fn what_a_column_of_mysql_would_round_or_cut_is_refused() {
    let parameters = json!({ "type": "object", "properties": { "v": {} }, "required": ["v"] });
    let write = |name: &str, sql: &str| query(name, sql, json!({ "parameters": parameters, "read_only": false }));
    let columns = ["whole", "price", "small", "at", "at3", "day", "name"];
    let mut actions: Vec<Value> = Vec::new();
    for column in columns {
        actions.push(write(column, &format!("INSERT INTO t ({column}) VALUES (:v)")));
        actions.push(write(&format!("{column}_set"), &format!("UPDATE t SET {column} = :v WHERE id = 1")));
    }
    actions.push(write("sum", "UPDATE t SET price = :v * 1.005 WHERE id = 1"));
    actions.push(write("ignored", "INSERT IGNORE INTO t (name) VALUES (:v)"));
    actions.push(write("double", "INSERT IGNORE INTO t (id) VALUES (:v)"));
    actions.push(write("cut", "INSERT INTO plain (price) VALUES (:v * 1.005)"));
    actions.push(query("count", "SELECT count(*) AS n, (SELECT count(*) FROM plain) AS plain FROM t", json!({})));
    let setup = [
        "CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, whole INT, price DECIMAL(8, 2), small FLOAT, at DATETIME, at3 TIME(3), \
         day DATE, name VARCHAR(3))",
        "CREATE TABLE plain (price DECIMAL(8, 2)) ENGINE=MyISAM",
        "INSERT INTO t (id, whole) VALUES (1, 1)",
    ];
    let Some(place) = place("rounding", &setup, &actions) else { return };
    let mut calls = Vec::new();
    for (column, value) in [
        ("whole", json!(1.5)),
        ("whole", json!("1.5")),
        ("price", json!(1.005)),
        ("small", json!(16_777_217)),
        ("at", json!("2026-01-31T10:00:00.25")),
        ("at3", json!("10:00:00.1234")),
        ("name", json!("abcd")),
    ] {
        calls.push(think(column, json!({ "v": value.clone() })));
        calls.push(think(&format!("{column}_set"), json!({ "v": value })));
    }
    calls.push(think("sum", json!({ "v": 1 })));
    calls.push(think("ignored", json!({ "v": "abcd" })));
    calls.push(think("cut", json!({ "v": 1 })));
    let refused = calls.len();
    for (name, value) in [
        ("whole_set", json!(2.0)),
        ("price_set", json!(1.5)),
        ("price_set", json!("2.10")),
        ("small_set", json!(0.1)),
        ("at_set", json!("2026-01-31T10:00:00.000")),
        ("at3_set", json!("10:00:00.123")),
        ("name_set", json!("abc")),
        ("double", json!(1)),
        ("count", json!(1)),
    ] {
        calls.push(think(name, if name == "count" { json!({}) } else { json!({ "v": value }) }));
    }
    let trace = place.calls(&calls);
    for (call, entry) in calls.iter().zip(&trace).take(refused) {
        let words = observed(entry);
        assert!(words.contains("value not valid") || words.contains("value too large"), "{call}: {entry:#}");
    }
    assert!(observed(&trace[refused - 1]).contains("keeps what was written"), "{:#}", trace[refused - 1]);
    for (call, entry) in calls.iter().zip(&trace).skip(refused) {
        assert_eq!(entry["success"], true, "{call}: {entry:#}");
    }
    assert_eq!(trace[calls.len() - 1]["observation"]["rows"], json!([{ "n": 1, "plain": 1 }]));
}

#[test]
fn what_a_call_to_mysql_reads_is_counted_as_json() {
    let actions = [
        query("signs", "SELECT repeat(CHAR(1 USING utf8mb4), 1000000) AS v FROM seq_1_to_100", json!({})),
        query("bytes", "SELECT repeat(x'00', 4000000) AS v FROM seq_1_to_100", json!({})),
    ];
    let Some(place) = place("size", &[], &actions) else { return };
    for name in ["signs", "bytes"] {
        super::postgres_tool::assert_bounded(&place, name);
    }
}

#[test]
fn the_time_of_a_query_of_mysql_begins_when_there_is_a_connection_for_it() {
    let nap = query("nap", "SELECT sleep(0.4)", json!({ "timeout_ms": 1200 }));
    let Some(place) = place("waiting", &[], std::slice::from_ref(&nap)) else { return };
    let ended = super::postgres_tool::naps(&place, &nap, 30);
    assert_eq!(ended["status"], "completed", "{ended:#}");
    assert!(!ended.to_string().contains("timed out"), "{ended:#}");
}
