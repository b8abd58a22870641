//! What a step reads is whole, and is what it says: results that were cut, files of CSV and JSON that lose values, lists that
//! can't match, values without a form in JSON.

use rusqlite::Connection;
use serde_json::{Value, json};

use crate::common::{Place, Ran, observed, think, with};

const TABLE: &str = "CREATE TABLE bills (id INTEGER, sum INTEGER, ref TEXT);\n";

/// A project with `count` bills, and these actions.
fn place(count: u32, actions: &[Value]) -> Place {
    let place = Place::new();
    let rows = format!(
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {count}) INSERT INTO bills SELECT i, i, 'r' FROM n;"
    );
    place.file("x.sql", format!("{TABLE}{rows}"));
    let source = json!({ "url": "sqlite:x.db", "init": "x.sql" });
    place.json("loopctl.json", &json!({ "datasources": { "x": source, "tables": source } }));
    place.json("actions/all.json", &json!(actions));
    place.json("script.json", &json!({ "replies": [] }));
    place
}

fn query(name: &str, sql: &str, more: Value) -> Value {
    let action = json!({ "action_name": name, "kind": "db", "description": "Asks.", "datasource": "x", "query": sql });
    with(action, more)
}

fn workflow(place: &Place, definition: Value) {
    place.json("loop.json", &json!({ "name": "w", "definition": definition }));
}

fn run(place: &Place) -> (Ran, Value) {
    place.run(&["--store", "memory"])
}

/// Why a run failed.
fn why(place: &Place) -> String {
    let (ran, result) = run(place);
    assert_eq!(ran.code, 1, "{ran:#?}");
    result["error"]["message"].as_str().unwrap_or_else(|| panic!("{result:#}")).to_owned()
}

fn answer(place: &Place) -> Value {
    let (ran, result) = run(place);
    assert_eq!(ran.code, 0, "{ran:#?}");
    result["result"]["answer"].clone()
}

fn check(place: &Place) -> String {
    let ran = place.call(&["check", "loop.json"]);
    format!("{}{}", ran.stdout, ran.stderr)
}

fn matcher(left: Value, right: Value, fields: &[&str]) -> Value {
    json!({ "type": "matcher", "properties": { "left": left, "right": right, "matchOn": fields } })
}

/// A step whose output is small, whatever its query gives: a reason to fail must be its rows.
fn read_step(kind: &str) -> Value {
    json!({ "actions": [{ "type": kind, "outputKey": "a", "properties": {} }], "output": "@a.row_count" })
}

#[test]
fn a_step_whose_result_was_cut_fails_and_says_which_field_to_raise() {
    let all = "SELECT id FROM bills ORDER BY id";
    let actions = [
        query("up", all, json!({})),
        query("more", all, json!({ "max_rows": 1200 })),
        query("less", all, json!({ "max_rows": 3 })),
        query("long", "SELECT hex(zeroblob(2000000)) AS h FROM bills", json!({ "max_rows": 100_000 })),
    ];
    let place = place(1200, &actions);
    for (kind, words) in [
        ("up", "more than 1000 rows, and a step takes no part of a result for the whole: raise `max_rows`"),
        ("less", "more than 3 rows"),
        ("long", "is larger than 10 MiB"),
    ] {
        workflow(&place, read_step(kind));
        let why = why(&place);
        assert!(why.contains("the step `0` failed") && why.contains(words), "{kind}: {why}");
    }
    workflow(&place, read_step("more"));
    assert_eq!(answer(&place), 1200);
    // The same in the items of a loop.
    let each = json!({ "type": "loop", "properties": { "mode": "foreach", "items_path": "@input.two", "item_variable_name": "one",
        "actions_to_execute": [{ "type": "up", "properties": {} }] } });
    workflow(&place, json!({ "actions": [each] }));
    place.json("input.json", &json!({ "two": [1, 2] }));
    let (ran, result) = place.run(&["--store", "memory", "--input-file", "input.json"]);
    assert_eq!(ran.code, 1, "{ran:#?}");
    assert!(result["error"]["message"].as_str().unwrap().contains("more than 1000 rows"), "{result:#}");
}

#[test]
fn a_thousand_rows_are_all_and_an_agent_reads_that_there_are_more() {
    let place = place(1000, &[]);
    place.json("actions/all.json", &json!([query("up", "SELECT id FROM bills", json!({}))]));
    workflow(&place, read_step("up"));
    assert_eq!(answer(&place), 1000);
    let source = json!({ "url": "sqlite:x.db", "init": "x.sql" });
    place.actions(
        &[query("down", "SELECT id FROM bills", json!({ "max_rows": 2 }))],
        &json!({ "datasources": { "x": source } }),
    );
    place.json("actions/all.json", &json!([]));
    let trace = place.calls(&[think("down", json!({}))]);
    let observation = &trace[0]["observation"];
    assert_eq!((&observation["row_count"], &observation["truncated"]), (&json!(2), &json!(true)), "{observation}");
}

#[test]
fn a_table_that_a_step_reads_is_read_whole_or_not_at_all() {
    let place = place(1001, &[]);
    let read = |more: Value| {
        json!({ "actions": [{ "type": "custom-table", "outputKey": "a",
        "properties": with(json!({ "table": "bills", "operation": "read" }), more) }], "output": "@a.row_count" })
    };
    workflow(&place, read(json!({})));
    let refused = why(&place);
    assert!(refused.contains("more than 1000 rows") && refused.contains("`max_rows`"), "{refused}");
    workflow(&place, read(json!({ "max_rows": 1001 })));
    assert_eq!(answer(&place), 1001);
    workflow(&place, read(json!({ "keys": ["id"], "values": [7] })));
    assert_eq!(answer(&place), 1);
    for most in [json!(0), json!(100_001), json!("many")] {
        workflow(&place, read(json!({ "max_rows": most })));
        assert!(check(&place).contains("error["), "{most}");
    }
}

#[test]
fn what_a_step_can_t_be_given_back_is_not_written() {
    let write = query("close", "UPDATE bills SET sum = 0 RETURNING id", json!({ "read_only": false }));
    let long = "UPDATE bills SET sum = 0 WHERE id <= 900 RETURNING printf('%.*c', 3000, 'x') AS text";
    let long = query("long", long, json!({ "read_only": false }));
    let place = place(1001, &[write.clone(), with(write, json!({ "action_name": "all", "max_rows": 1001 })), long]);
    let open = || -> i64 {
        let database = Connection::open(place.path().join("x.db")).expect("it was made");
        database.query_row("SELECT count(*) FROM bills WHERE sum > 0", [], |row| row.get(0)).expect("a row")
    };
    workflow(&place, read_step("close"));
    assert!(why(&place).contains("more than 1000 rows"));
    assert_eq!(open(), 1001);
    workflow(&place, json!({ "actions": [{ "type": "long" }] }));
    assert!(why(&place).contains("the result is larger than 1 MiB"));
    assert_eq!(open(), 1001);
    workflow(&place, read_step("all"));
    assert_eq!(answer(&place), 1001);
    assert_eq!(open(), 0);
}

#[test]
fn a_result_of_a_script_that_says_that_it_was_cut_fails_a_step_too() {
    let place = place(1, &[query("up", "SELECT id FROM bills", json!({ "max_rows": 7 }))]);
    workflow(&place, read_step("up"));
    let cut = json!({ "rows": [], "row_count": 0, "truncated": true });
    place.json("script.json", &json!({ "replies": [], "tools": { "up": [cut] } }));
    assert!(why(&place).contains("more than 7 rows"));
}

/// A workflow whose answer is a document.
fn with_document(name: &str, text: &str) -> Place {
    let place = Place::new();
    place.file(name, text);
    place.json("loopctl.json", &json!({ "documents": { "d": name } }));
    place.json("script.json", &json!({ "replies": [] }));
    let matcher = matcher(json!([]), json!([]), &["a"]);
    workflow(&place, json!({ "actions": [matcher], "output": "doc:d" }));
    place
}

#[test]
fn a_file_that_would_lose_a_value_is_refused_by_check_and_by_a_run() {
    for (name, text, words) in [
        ("d.csv", "part,text\nP-1,nut\nP-2,\"5/8\"\" pipe\nP-3,bolt\n", "line 3: the quote"),
        ("d.csv", "part,text\nP-1,\"5/8\" pipe\nP-3,bolt\n", "line 2: text stands behind the closing quote"),
        ("d.json", "{\"a\": [\n{\"fee\": 1.50, \"fee\": 15.0}]}", "line 2: the key \"fee\" stands twice"),
        ("d.json", "{\"fee\": 1, \"\\u0066ee\": 2}", "the key \"fee\" stands twice"),
        ("d.json", "[{\"$serde_json::private::Number\": \"5\"}]", "is reserved"),
        ("d.csv", "$serde_json::private::Number\n5\n", "is reserved"),
        ("d.csv", "id;net,eur\n1;5,00\n", "are separated by ';'"),
    ] {
        let place = with_document(name, text);
        let said = check(&place);
        assert!(said.contains("L158") && said.contains(words), "{said}");
        let ran = place.call(&["run", "loop.json", "--script", "script.json"]);
        assert!(ran.code != 0 && ran.stderr.contains(words), "{ran:#?}");
    }
    assert_eq!(
        answer(&with_document("d.csv", "code\nK1\n\n\"\"\n\"a, \"\"b\"\"\nc\"\n")),
        json!([{ "code": "K1" }, { "code": "" }, { "code": "" }, { "code": "a, \"b\"\nc" }])
    );
    assert_eq!(answer(&with_document("d.json", "[{\"a\": 1.10}, {\"a\": 2}]")).to_string(), "[{\"a\":1.10},{\"a\":2}]");
}

#[test]
fn a_key_that_stands_twice_in_a_value_of_the_input_is_refused() {
    let place = with_document("d.json", "{}");
    let ran = place.call(&["run", "loop.json", "--script", "script.json", "--input", "fees={\"a\": 1, \"a\": 2}"]);
    assert!(ran.code != 0 && ran.stderr.contains("the key \"a\" stands twice"), "{ran:#?}");
    let reserved = "fees={\"$serde_json::private::RawValue\": \"{}\"}";
    let ran = place.call(&["run", "loop.json", "--script", "script.json", "--input", reserved]);
    assert!(ran.code != 0 && ran.stderr.contains("is reserved"), "{ran:#?}");
}

#[test]
fn a_document_that_takes_too_much_memory_is_a_sentence() {
    let rows = format!("a\n{}", "x\n".repeat(640_000));
    let objects = format!("[{}]", vec!["{}"; 2_000_000].join(","));
    for (name, text) in [("d.csv", rows), ("d.json", objects)] {
        let place = with_document(name, &text);
        let ran = place.call(&["run", "loop.json", "--script", "script.json"]);
        assert!(ran.code != 0 && ran.stderr.contains(name) && ran.stderr.contains("80 MiB of memory"), "{ran:#?}");
    }
    let place = with_document("d.csv", &format!("a\n{}", "x\n".repeat(20_000)));
    workflow(&place, json!({ "actions": [matcher(json!([]), json!([]), &["a"])], "output": "doc:d.length" }));
    assert_eq!(answer(&place), 20_000);
}

#[test]
fn lists_whose_values_can_t_be_equal_are_a_warning_and_a_step_that_fails() {
    let place = place(2, &[query("stock", "SELECT id, ref FROM bills LIMIT 50", json!({}))]);
    place.json(
        "loopctl.json",
        &json!({ "documents": { "list": "list.csv" }, "datasources": { "x": { "url": "sqlite:x.db", "init": "x.sql" } } }),
    );
    place.file("list.csv", "id,ref\n1,r\n2,q\n");
    let matched = |fields: &[&str]| {
        let stock = json!({ "type": "stock", "outputKey": "s", "properties": {} });
        json!({ "actions": [stock, matcher(json!("doc:list"), json!("@s.rows"), fields)], "output": "@matched.length" })
    };
    workflow(&place, matched(&["id"]));
    let said = check(&place);
    assert!(
        said.contains("warning[L143]") && said.contains("`id` is a text in `doc:list` and a number in `@s.rows`"),
        "{said}"
    );
    let refused = why(&place);
    assert!(
        refused.contains("`id` is a text in each entry on the left and a number in each entry on the right"),
        "{refused}"
    );
    workflow(&place, matched(&["ref"]));
    assert!(!check(&place).contains("L143"));
    assert_eq!(answer(&place), 1);
    // No entry of the same type has a partner, but one might: that is an answer.
    workflow(
        &place,
        json!({ "actions": [matcher(json!([{ "id": 1 }, { "id": "x" }]), json!([{ "id": "1" }]), &["id"])],
        "output": "@matched.length" }),
    );
    assert_eq!(answer(&place), 0);
}

#[test]
fn a_value_without_a_form_in_json_fails_the_call_with_its_column() {
    let rows =
        "INSERT INTO bills VALUES (1, 2, cast(x'4af67267' AS TEXT)), (2, 9e999, 'J\u{f6}rg'), (3, NULL, x'00ff');";
    let actions = [
        query("names", "SELECT id, ref FROM bills LIMIT 9", json!({})),
        query("sums", "SELECT -sum AS minus FROM bills LIMIT 9", json!({})),
        query("fine", "SELECT sum, ref FROM bills WHERE id > 2 LIMIT 9", json!({})),
    ];
    let place = place(1, &actions);
    place.file("x.sql", format!("{TABLE}{rows}"));
    for (kind, words) in [
        ("names", "a value of the column `ref` is no text in UTF-8"),
        ("sums", "a value of the column `minus` is -Infinity, which JSON does not have"),
    ] {
        workflow(&place, read_step(kind));
        let why = why(&place);
        assert!(why.contains(words), "{why}");
    }
    workflow(
        &place,
        json!({ "actions": [{ "type": "custom-table", "outputKey": "a",
        "properties": { "table": "bills", "operation": "read" } }], "output": "@a.rows" }),
    );
    assert!(why(&place).contains("column `ref` is no text in UTF-8"));
    workflow(
        &place,
        json!({ "actions": [{ "type": "fine", "outputKey": "a", "properties": {} }], "output": "@a.rows" }),
    );
    assert_eq!(answer(&place), json!([{ "sum": null, "ref": "AP8=" }]));
    let source = json!({ "url": "sqlite:x.db", "init": "x.sql" });
    place.actions(&[actions[0].clone()], &json!({ "datasources": { "x": source } }));
    place.json("actions/all.json", &json!([]));
    let trace = place.calls(&[think("names", json!({}))]);
    assert!(observed(&trace[0]).contains("column `ref` is no text in UTF-8"), "{:#}", trace[0]);
}

#[test]
fn a_filter_that_needs_a_part_of_a_page_in_place_of_json_fails_its_step() {
    let definition = |filter: Value| {
        json!({ "actions": [
            { "type": "order", "outputKey": "o", "properties": {} },
            { "type": "ship", "filter": { "condition": filter }, "properties": {} },
        ], "output": "@ship" })
    };
    let order = |text: &str| {
        let program = json!({ "action_name": "order", "kind": "command", "description": "Reads.", "program": "echo", "args": [text] });
        let place = place(1, &[program, query("ship", "SELECT id FROM bills LIMIT 1", json!({}))]);
        let source = json!({ "url": "sqlite:x.db", "init": "x.sql" });
        place.json("loopctl.json", &json!({ "datasources": { "x": source }, "allow": { "commands": ["echo"] } }));
        place
    };
    let down = order("<html>Down for maintenance</html>");
    for filter in [
        json!({ "notEqual": ["@o.state", "cancelled"] }),
        json!({ "not": { "equal": ["@o.state", "cancelled"] } }),
        json!({ "equal": [{ "length": "@o.faults" }, 0] }),
    ] {
        workflow(&down, definition(filter.clone()));
        let why = why(&down);
        assert!(why.contains("`o` is a text and has no"), "{filter}: {why}");
    }
    for filter in [json!({ "hasKey": "@o.state" }), json!({ "equal": ["@o.state?", "open"] })] {
        workflow(&down, definition(filter));
        assert_eq!(answer(&down), Value::Null);
    }
    for text in ["{\"state\": \"open\"}", "```json {\"state\": \"open\"}```", "~~~\n{\"state\": \"open\"}\n~~~"] {
        let place = order(text);
        workflow(&place, definition(json!({ "notEqual": ["@o.state", "cancelled"] })));
        assert_eq!(answer(&place)["row_count"], 1, "{text}");
    }
}
