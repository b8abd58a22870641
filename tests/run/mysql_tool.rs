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
