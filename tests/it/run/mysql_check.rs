//! `check` and `check --connect` of datasources on a MariaDB server.

use serde_json::{Value, json};

use super::mysql_tool::{hidden_place, place};
use super::postgres_check::faults;
use super::postgres_tool::query;
use crate::common::{Place, think};

#[test]
fn queries_are_prepared_at_their_mysql_server_and_none_is_run() {
    let write = json!({ "read_only": false });
    let actions = [
        query("sound", "SELECT total FROM orders WHERE id = :id AND note = 'it''s :x'", json!({})),
        query("table", "SELECT total FROM ordrs WHERE id = :id", json!({})),
        query("column", "SELECT :a, totl FROM orders", json!({})),
        query("qualified", "SELECT o.totl FROM orders o", json!({})),
        query("syntax", "SELECT total FROM orders WHER id = :id", json!({})),
        query("form", "SELECT place FROM orders", json!({})),
        query("loaded", "LOAD DATA INFILE '/etc/passwd' INTO TABLE orders", json!({})),
        query("several", "SELECT 1; SELECT 2", json!({})),
        query("emptied", "DELETE FROM orders", write),
        query("counted", "SELECT count(*) AS n FROM orders", json!({})),
    ];
    let setup = [
        "CREATE TABLE orders (id int, total decimal(8, 2), place point, note text)",
        "INSERT INTO orders VALUES (1, 2, NULL, '')",
    ];
    let Some(place) = hidden_place("check --connect", &setup, &actions) else { return };
    assert_eq!(faults(&place, &[]), Vec::<Value>::new(), "without --connect no server is asked");
    let found = faults(&place, &["--connect"]);
    let expected = [
        (1, "L181", "has no table `ordrs`", "the nearest one is `orders`", "ordrs"),
        (2, "L181", "no table of the query has a column `totl`", "the nearest one is `total`", "totl"),
        (3, "L181", "no table of the query has a column `o.totl`", "the nearest one is `total`", "totl"),
        (4, "L180", "error in your SQL syntax", "one of MySQL", "id"),
        (5, "L180", "the type `geometry` has no form in JSON", "each call of the action would fail", ""),
        (6, "L180", "a call may not be `LOAD`", "each call of the action would fail", ""),
        (7, "L180", "an action of its own", "each call of the action would fail", ""),
    ];
    assert_eq!(found.len(), expected.len(), "{found:#?}");
    let text = std::fs::read_to_string(place.path().join("loop.json")).unwrap();
    for (fault, (at, code, message, help, begin)) in found.iter().zip(expected) {
        let path = format!("/actions/{at}/query");
        assert_eq!((fault["code"].as_str(), fault["path"].as_str()), (Some(code), Some(&*path)), "{fault:#}");
        assert!(fault["message"].as_str().unwrap().contains(message), "{fault:#}");
        assert!(fault["help"].as_str().unwrap().contains(help), "{fault:#}");
        let number = |name: &str| usize::try_from(fault[name].as_u64().unwrap()).unwrap() - 1;
        let line = text.lines().nth(number("line")).unwrap();
        assert!(line.get(number("column")..).unwrap().trim_start_matches('"').starts_with(begin), "{fault:#}");
    }
    let counted = place.calls(&[think("counted", json!({}))]);
    assert_eq!(counted[0]["observation"]["rows"][0]["n"], 1, "nothing was deleted");
}

#[test]
fn check_of_a_mysql_datasource_reports_what_a_call_would_refuse() {
    let queries = [
        ("SELECT 1 /*! INTO OUTFILE '/tmp/x' */", "L180", "comment that the server executes"),
        ("# x\nCOMMIT", "L180", "may not be `COMMIT`"),
        ("SELECT 'it\\'s', :a, 'x'", "L180", "another way"),
        ("CALL p()", "L113", "CALL"),
        ("TRUNCATE t", "L113", "TRUNCATE"),
        ("SELECT * FROM t", "", ""),
    ];
    let name = |at: usize| format!("q{at}");
    let actions: Vec<Value> =
        queries.iter().enumerate().map(|(at, (sql, _, _))| query(&name(at), sql, json!({}))).collect();
    let folder = Place::new();
    let url = "mysql://ada@db.example.com/shop";
    folder.actions(&actions, &json!({ "datasources": { "shop": { "url": url } } }));
    let reported: Value = folder.call(&["check", ".", "--format", "json"]).json();
    for (at, (sql, code, message)) in queries.into_iter().enumerate() {
        let path = format!("/actions/{at}/query");
        let found = reported.as_array().unwrap().iter().find(|fault| fault["path"] == *path);
        match found {
            Some(fault) => {
                let shown = fault["message"].as_str().unwrap();
                assert!(fault["code"] == code && shown.contains(message), "{sql}: {fault:#}");
            }
            None => assert_eq!(code, "", "{sql} is not reported: {reported:#}"),
        }
    }
}

#[test]
fn a_wrong_password_of_mysql_is_reported_without_it() {
    let Some(folder) = place("wrong password", &[], &[query("q", "SELECT 1", json!({}))]) else { return };
    folder.file("password", "another-word-77");
    let found = faults(&folder, &["--connect"]);
    assert_eq!((found.len(), found[0]["code"].as_str()), (1, Some("L182")), "{found:#?}");
    assert!(found[0].to_string().contains("login refused"), "{found:#?}");
    assert!(!found[0].to_string().contains("another-word"), "{found:#?}");
}
