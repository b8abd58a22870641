//! `check --connect`: queries are prepared at their server, and none is run.

use std::net::TcpListener;

use serde_json::{Value, json};

use super::postgres_tool::{hidden_place, query};
use crate::common::Place;

/// The faults that a check of the folder reports of codes of databases.
pub fn faults(place: &Place, more: &[&str]) -> Vec<Value> {
    let ran = place.call(&[&["check", ".", "--format", "json"], more].concat());
    let faults: Value = ran.json();
    let of_databases = |fault: &&Value| ["L180", "L181", "L182"].contains(&fault["code"].as_str().unwrap());
    faults.as_array().unwrap().iter().filter(of_databases).cloned().collect()
}

#[test]
fn queries_are_prepared_at_their_server_and_none_is_run() {
    let write = json!({ "read_only": false });
    let actions = [
        query("sound", "SELECT total FROM orders WHERE id = :id::int", json!({})),
        query("table", "SELECT total FROM ordrs WHERE id = :id::int", json!({})),
        query("column", "SELECT :a::int, totl FROM orders", json!({})),
        query("qualified", "SELECT o.totl FROM orders o", json!({})),
        query("syntax", "SELECT total FROM orders WHER id = 1", json!({})),
        query("types", "SELECT total FROM orders WHERE id = 'x' || :a", json!({})),
        query("form", "SELECT price FROM orders", json!({})),
        query("copied", "COPY orders TO '/tmp/x'", json!({})),
        query("several", "SELECT 1; SELECT 2", json!({})),
        query("emptied", "DELETE FROM orders", write),
        query("counted", "SELECT count(*) AS n FROM orders", json!({})),
    ];
    let setup = "CREATE TABLE orders (id int, total numeric, price money); INSERT INTO orders VALUES (1, 2, 3)";
    let Some(place) = hidden_place("check --connect", setup, &actions) else { return };
    assert_eq!(faults(&place, &[]), Vec::<Value>::new(), "without --connect no server is asked");
    let found = faults(&place, &["--connect"]);
    let expected = [
        (1, "L181", "has no table `ordrs`", "the nearest one is `orders`"),
        (2, "L181", "no table of the query has a column `totl`", "the nearest one is `total`"),
        (3, "L181", "no table of the query has a column `o.totl`", "the nearest one is `total`"),
        (4, "L180", "syntax error", "one of PostgreSQL"),
        (5, "L180", "operator does not exist", "one of PostgreSQL"),
        (6, "L180", "the type `money` has no form in JSON", "each call of the action would fail"),
        (7, "L180", "a call may not be `COPY`", "each call of the action would fail"),
        (8, "L180", "an action of its own", "each call of the action would fail"),
    ];
    assert_eq!(found.len(), expected.len(), "{found:#?}");
    for (fault, (at, code, message, help)) in found.iter().zip(expected) {
        assert_eq!(
            (fault["code"].as_str(), fault["path"].as_str()),
            (Some(code), Some(&*format!("/actions/{at}/query")))
        );
        assert!(fault["message"].as_str().unwrap().contains(message), "{fault:#}");
        assert!(fault["help"].as_str().unwrap().contains(help), "{fault:#}");
    }
    let column = &found[1];
    let line = std::fs::read_to_string(place.path().join("loop.json")).unwrap();
    let line = line.lines().nth(usize::try_from(column["line"].as_u64().unwrap()).unwrap() - 1).unwrap().to_owned();
    let from = usize::try_from(column["column"].as_u64().unwrap()).unwrap() - 1;
    assert_eq!(line.get(from..from + 4), Some("totl"), "{column:#}");
    let counted = place.calls(&[crate::common::think("counted", json!({}))]);
    assert_eq!(counted[0]["observation"]["rows"][0]["n"], 1, "nothing was deleted");
}

#[test]
fn a_parameter_whose_declared_type_its_server_never_takes_is_reported_at_its_place() {
    let of = |types: Value| json!({ "parameters": { "type": "object", "properties": { "v": { "type": types } }, "required": ["v"] } });
    let by_name = "SELECT id FROM orders WHERE name = :v";
    let by_id = "SELECT id FROM orders WHERE id = :v";
    let actions = [
        query("number", by_name, of(json!("integer"))),
        query("text", by_name, of(json!("string"))),
        query("digits", by_id, of(json!("string"))),
        query("flag", by_id, of(json!("boolean"))),
        query("either", by_name, of(json!(["integer", "string"]))),
        query("cast", "SELECT id FROM orders WHERE name = :v::int::text", of(json!("integer"))),
        query("list", "SELECT id FROM orders WHERE id = ANY(:v)", of(json!("string"))),
        query("any", "SELECT :v::jsonb AS v", of(json!("object"))),
    ];
    let setup = "CREATE TABLE orders (id int, name text)";
    let Some(place) = hidden_place("parameters of check --connect", setup, &actions) else { return };
    let found = faults(&place, &["--connect"]);
    let expected = [
        (0, "`v` is of type `text` in the database, which takes string, and is declared as integer", 35),
        (3, "`v` is of type `int4`", 33),
        (6, "`v` is of type `_int4` in the database, which takes array", 37),
    ];
    assert_eq!(found.len(), expected.len(), "{found:#?}");
    for (fault, (at, message, offset)) in found.iter().zip(expected) {
        assert_eq!(fault["path"], format!("/actions/{at}/query"), "{fault:#}");
        assert!(fault["code"] == "L180" && fault["message"].as_str().unwrap().contains(message), "{fault:#}");
        let text = std::fs::read_to_string(place.path().join("loop.json")).unwrap();
        let number = |name: &str| usize::try_from(fault[name].as_u64().unwrap()).unwrap() - 1;
        let line = text.lines().nth(number("line")).unwrap();
        let begin = line.find("SELECT").unwrap();
        assert_eq!(
            (number("column") - begin, line.get(number("column")..number("end_column")).unwrap()),
            (offset, ":v"),
            "{fault:#}"
        );
    }
    // What is reported fails, and what is not does not.
    let calls = [("number", json!(1)), ("flag", json!(true)), ("digits", json!("1")), ("cast", json!(1))];
    let trace = place.calls(&calls.map(|(name, value)| crate::common::think(name, json!({ "v": value }))));
    let done: Vec<bool> = trace.iter().take(4).map(|entry| entry["success"] == true).collect();
    assert_eq!(done, [false, false, true, true], "{trace:#?}");
}

#[test]
fn a_server_that_does_not_answer_is_reported_once_and_without_its_password() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let place = Place::new();
    place.file("password", "hunter22secret");
    let url = format!("postgres://ada@{address}/d");
    let project = json!({ "datasources": { "shop": { "url": url, "password": "file:password" } } });
    place.actions(&[query("q", "SELECT 1", json!({})), query("r", "SELECT 2", json!({}))], &project);
    let found = faults(&place, &["--connect"]);
    assert_eq!(found.len(), 1, "{found:#?}");
    assert_eq!((found[0]["code"].as_str(), found[0]["path"].as_str()), (Some("L182"), Some("/datasources/shop/url")));
    assert!(
        found[0].to_string().contains("can't be opened") && !found[0].to_string().contains("hunter22"),
        "{found:#?}"
    );
}
