//! Values that may be missing: optional inputs, keys of skipped steps, `@x.y?`; and texts that are JSON.

use serde_json::{Value, json};

use crate::common::{Place, Ran};
use crate::run::workflows::{answer, definition, foreach, place, run, steps};

/// A workflow with an input of which only `id` must be given.
fn with_input(place: &Place, definition: Value) {
    let properties = json!({
        "id": { "type": "string" }, "remark": { "type": "string" }, "sum": { "type": "number" },
        "part": { "type": "object", "properties": { "a": { "type": "string" } } },
        "list": { "type": "array", "items": { "type": "object", "required": ["id"],
            "properties": { "id": { "type": "string" }, "note": { "type": "string" } } } },
    });
    let input = json!({ "type": "object", "required": ["id"], "properties": properties });
    place.json("loop.json", &json!({ "name": "w", "input": input, "definition": definition }));
}

fn check(place: &Place) -> Ran {
    place.call(&["check", "loop.json"])
}

/// What the first step was given.
fn given(place: &Place, input: Value) -> Value {
    place.json("input.json", &input);
    let lines = place.call(&[
        "run",
        "loop.json",
        "--script",
        "script.json",
        "--output",
        "ndjson",
        "--input-file",
        "input.json",
    ]);
    let mut events = lines.stdout.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let started = events.find(|event| event["event"] == "step_started");
    started.unwrap_or_else(|| panic!("{lines:#?}"))["action_input"].clone()
}

#[test]
fn check_warns_wherever_a_step_needs_an_input_that_may_be_left_out() {
    let step = |properties: Value| json!([{ "type": "a", "properties": properties }]);
    let asks = |properties: Value| json!([{ "type": "PbotApproval", "properties": properties }]);
    let each = |items: &str, properties: Value| {
        json!([foreach(items, json!({}), json!([{ "type": "a", "properties": properties }]))])
    };
    for (actions, name) in [
        (step(json!({ "t": "@input.remark" })), "input.remark"),
        (step(json!({ "t": "About {{input.remark}}." })), "input.remark"),
        (step(json!({ "deep": { "list": ["@input.remark"] } })), "input.remark"),
        (step(json!({ "t": "@input.part.a" })), "input.part"),
        (asks(json!({ "comment": "Pay {{input.sum}}?" })), "input.sum"),
        (asks(json!({ "comment": "Go?", "request_payload": { "r": "@input.remark" } })), "input.remark"),
        (each("@input.list", json!({ "id": "@one.id" })), "input.list"),
        (each("@input.list", json!({ "n": "{{one.note}}" })), "one.note"),
    ] {
        let place = place();
        with_input(&place, json!({ "actions": actions }));
        let ran = check(&place);
        assert_eq!(ran.code, 0, "{actions}: {ran:#?}");
        assert!(ran.stderr.contains(&format!("warning[L061]: `{name}` may be left out")), "{actions}: {}", ran.stderr);
    }
}

#[test]
fn check_is_silent_where_the_value_is_asked_for_required_or_not_needed() {
    let filter = |condition: Value| json!([{ "type": "a", "filter": { "condition": condition }, "properties": { "t": "@input.remark" } }]);
    let has = json!({ "hasKey": "@input.remark" });
    for definition in [
        json!({ "actions": filter(has.clone()) }),
        json!({ "actions": filter(json!({ "and": [has, { "equal": ["@input.id", "7"] }] })) }),
        json!({ "actions": filter(json!({ "equal": ["@input.remark", "x"] })) }),
        json!({ "actions": [{ "type": "b", "filter": { "condition": { "not": { "hasKey": "@input.remark" } } },
            "onFalse": { "type": "a", "properties": { "t": "@input.remark" } } }] }),
        json!({ "condition": { "hasKey": "input.remark" }, "actions": [{ "type": "a", "properties": { "t": "@input.remark" } }] }),
        json!({ "actions": [{ "type": "a", "properties": { "t": "@input.id" } }], "output": { "r": "@input.remark" } }),
        json!({ "actions": [{ "type": "a", "properties": { "t": "@input.remark?", "u": "{{#if input.remark}}{{input.remark}}{{/if}}" } }] }),
        json!({ "actions": [{ "type": "a", "filter": { "condition": { "greaterThan": ["@input.sum?", 5] } },
            "properties": { "t": "@input.sum" } }] }),
    ] {
        let place = place();
        with_input(&place, definition.clone());
        let ran = check(&place);
        assert_eq!((ran.code, ran.stderr.contains("L061")), (0, false), "{definition}: {}", ran.stderr);
    }
}

#[test]
fn a_path_that_ends_in_a_question_mark_leaves_its_place_out() {
    let place = place();
    with_input(
        &place,
        json!({ "actions": [{ "type": "a", "properties": {
            "id": "@input.id?", "remark": "@input.remark?", "deep": { "r": "@input.remark?", "id": "@input.id" },
            "list": ["@input.remark?", "@input.id?"], "part": "@input.part.a?", "hello": "@anna?", "plain": "Really?" } }] }),
    );
    assert_eq!(
        given(&place, json!({ "id": "7" })),
        json!({ "id": "7", "deep": { "id": "7" }, "list": ["7"], "hello": "@anna?", "plain": "Really?" })
    );
    let all = given(&place, json!({ "id": "7", "remark": "r", "part": { "a": "x" } }));
    assert_eq!((&all["remark"], &all["list"], &all["part"]), (&json!("r"), &json!(["r", "7"]), &json!("x")));
}

#[test]
fn an_order_on_an_optional_operand_that_is_missing_does_not_hold() {
    let place = place();
    let filter = json!({ "condition": { "greaterThan": ["@input.sum?", 5] } });
    with_input(
        &place,
        json!({ "actions": [{ "type": "a", "filter": filter, "properties": {} }],
            "output": { "a": "@a.n", "sum": "@input.sum?", "list": ["@input.sum?"] } }),
    );
    let (ran, result) = run(&place, json!({ "id": "7" }));
    assert_eq!((ran.code, answer(&result)), (0, &json!({ "a": null, "list": [] })), "{ran:#?}");
    let (ran, result) = run(&self::copy(&place), json!({ "id": "7", "sum": 9 }));
    assert_eq!((ran.code, answer(&result)), (0, &json!({ "a": 1, "sum": 9, "list": [9] })), "{ran:#?}");
}

/// Another place with the same document: a run has its own store.
fn copy(place: &Place) -> Place {
    let other = self::place();
    other.file("loop.json", std::fs::read(place.path().join("loop.json")).unwrap());
    other
}

#[test]
fn a_required_input_of_an_action_that_may_be_left_out_and_a_list_that_may_be_are_reported() {
    let place = place();
    let parameters = json!({ "type": "object", "properties": { "t": {} }, "required": ["t"] });
    place.json(
        "actions/note.json",
        &json!([{ "action_name": "note", "kind": "http", "description": "Notes.", "http_method": "POST",
            "url": "https://tools.example.com/note", "parameters": parameters }]),
    );
    with_input(&place, json!({ "actions": [{ "type": "note", "properties": { "t": "@input.remark?" } }] }));
    let said = check(&place).stderr;
    assert!(said.contains("needs the input `t`, and `@input.remark?` may leave it out"), "{said}");
    let each = foreach("@input.list?", json!({}), json!([{ "type": "a", "properties": {} }]));
    with_input(&place, json!({ "actions": [each] }));
    let ran = check(&place);
    assert!(ran.code == 1 && ran.stderr.contains("`items_path` must be an `@path`"), "{ran:#?}");
}

#[test]
fn check_warns_of_texts_that_need_the_key_of_a_step_that_may_be_skipped() {
    let first = json!({ "type": "a", "outputKey": "n", "properties": {}, "filter": { "condition": { "greaterThan": ["@input.sum", 5] } } });
    let after = |step: Value| json!([first.clone(), step]);
    let warning = "`n` is missing when the step that writes it was skipped";
    for step in [
        json!({ "type": "b", "properties": { "t": "{{n.changes}} rows" } }),
        json!({ "type": "b", "properties": { "deep": ["@n.changes"] } }),
        json!({ "type": "PbotApproval", "properties": { "comment": "{{n.changes}}?" } }),
        json!({ "type": "matcher", "properties": { "left": "@n.rows", "right": "@n.others", "matchOn": ["id"] } }),
        foreach("@n.rows", json!({}), json!([{ "type": "b", "properties": {} }])),
        json!({ "type": "loop", "properties": { "mode": "react", "objective": "Look at {{n.changes}}.", "tools": [] } }),
    ] {
        let place = place();
        definition(&place, json!({ "actions": after(step.clone()) }));
        let ran = check(&place);
        assert!(ran.code == 0 && ran.stderr.contains(&format!("warning[L141]: {warning}")), "{step}: {ran:#?}");
    }
    for definition in [
        json!({ "actions": after(json!({ "type": "b", "filter": { "condition": { "hasKey": "@n" } }, "properties": { "t": "@n.changes" } })) }),
        json!({ "actions": after(json!({ "type": "b", "properties": { "t": "@n.changes?", "u": "{{#if n}}{{n.changes}}{{/if}}" } })) }),
        json!({ "actions": [first.clone()], "output": "@n.changes" }),
        json!({ "actions": [{ "type": "a", "outputKey": "n", "properties": {}, "filter": first["filter"],
            "onFalse": { "type": "b", "outputKey": "n", "properties": {} } }, { "type": "c", "properties": { "t": "@n.x" } }] }),
    ] {
        let place = place();
        self::definition(&place, definition.clone());
        let ran = check(&place);
        assert!(ran.code == 0 && !ran.stderr.contains(warning), "{definition}: {ran:#?}");
    }
}

#[test]
fn a_path_a_loop_and_a_matcher_read_a_text_that_is_json() {
    let place = place();
    let text = json!({ "type": "string" });
    let input = json!({ "type": "object", "required": ["m", "ids"], "properties": { "m": text, "ids": text } });
    let each = foreach(
        "@input.ids",
        json!({ "summary_key": "s" }),
        json!([{ "type": "a", "properties": { "x": "{{one}}" } }]),
    );
    let matcher =
        json!({ "type": "matcher", "properties": { "left": "@input.ids", "right": "@input.ids", "matchOn": ["id"] } });
    let output = json!({ "id": "@input.m.order.id", "items": "@s.completed", "left": "@unmatchedLeft.length" });
    place.json("script.json", &json!({ "replies": [], "tools": { "a": [{ "n": 1 }, { "n": 1 }] } }));
    place.json(
        "loop.json",
        &json!({ "name": "w", "input": input, "definition": { "actions": [each, matcher], "output": output } }),
    );
    let ran = check(&place);
    assert!(ran.code == 0 && ran.stderr.contains("only the JSON of a list is taken as one"), "{ran:#?}");
    let (ran, result) = run(&place, json!({ "m": "{\"order\": {\"id\": 9}}", "ids": " [4, 5]" }));
    assert_eq!((ran.code, answer(&result)), (0, &json!({ "id": 9, "items": 2, "left": 2 })), "{ran:#?}");
    for ids in ["4, 5", "{\"a\": [1]}", ""] {
        let place = copy(&place);
        let (ran, result) = run(&place, json!({ "m": "{}", "ids": ids }));
        assert_eq!((ran.code, &result["steps"][0]["error"]["code"]), (1, &json!("not_a_list")), "{ids}: {ran:#?}");
    }
}

#[test]
fn a_misspelt_name_of_an_object_stays_an_error() {
    let place = place();
    with_input(&place, json!({ "actions": [{ "type": "a", "properties": { "t": "@input.part.b" } }] }));
    let ran = check(&place);
    assert!(ran.code == 1 && ran.stderr.contains("has no `b`"), "{ran:#?}");
    steps(&place, json!([{ "type": "a", "properties": { "t": "@nobody.x?" } }]));
    assert!(check(&place).stderr.contains("no step before this one writes `@nobody.x`"));
}

#[test]
fn in_an_action_an_optional_value_leaves_out_a_member_and_is_null_in_sql() {
    let place = Place::new();
    place.file("t.sql", "CREATE TABLE t (id TEXT, note TEXT, at TEXT);");
    place.json(
        "loopctl.json",
        &json!({ "datasources": {
        "d": { "url": "sqlite:t.db", "init": "t.sql" }, "tables": { "url": "sqlite:t.db", "init": "t.sql" } } }),
    );
    let db = |name: &str, query: &str, more: Value| {
        let action =
            json!({ "action_name": name, "kind": "db", "description": "Does.", "datasource": "d", "query": query });
        crate::common::with(action, more)
    };
    place.json(
        "actions/db.json",
        &json!([
            db(
                "put",
                "INSERT INTO t(id, note) VALUES ($1, $2)",
                json!({ "read_only": false, "params": ["@id", "@input.note?"],
                    "parameters": { "type": "object", "properties": { "id": {} }, "required": ["id"] } })
            ),
            db("all", "SELECT id, note FROM t ORDER BY id LIMIT 10", json!({})),
        ]),
    );
    let table = |values: Value, fields: Value| json!({ "type": "custom-table", "properties": { "table": "t", "operation": "write", "keys": ["id"], "values": values, "fields": fields } });
    let document = |step: Value| {
        let input = json!({ "type": "object", "required": ["id"], "properties": { "id": { "type": "string" }, "note": { "type": "string" } } });
        json!({ "name": "w", "input": input, "definition": { "output": "@all.rows", "actions": [
            { "type": "put", "properties": { "id": "@input.id" } }, step, { "type": "all" } ] } })
    };
    place.json("loop.json", &document(table(json!(["b"]), json!({ "note": "@input.note?", "at": "now" }))));
    place.json("script.json", &json!({ "replies": [] }));
    let (ran, result) = run(&place, json!({ "id": "a" }));
    let rows = json!([{ "id": "a", "note": null }, { "id": "b", "note": null }]);
    assert_eq!((ran.code, answer(&result)), (0, &rows), "{ran:#?}");
    place.json("loop.json", &document(table(json!(["@input.note?"]), json!({ "at": "now" }))));
    let ran = check(&place);
    assert!(ran.code == 1 && ran.stderr.contains("each entry of `values` belongs to one of `keys`"), "{ran:#?}");
}

#[test]
fn what_is_gathered_or_answered_of_json_that_can_not_be_read_fails_and_is_not_null() {
    let place = place();
    let each = foreach(
        "@input.rows",
        json!({ "collect_results": true, "result_key": "rows", "collect": { "v": "@one.v" },
            "failure_strategy": "continue_on_error" }),
        json!([{ "type": "a", "properties": {} }]),
    );
    let report = json!({ "type": "c", "properties": { "why": "{{__error.message}}" } });
    let definition = json!({ "actions": [each], "on_failure": [report],
        "output": { "rows": "@rows", "v": "@input.m.v" } });
    self::definition(&place, definition);
    place.json("script.json", &json!({ "replies": [], "tools": { "a": [{ "n": 1 }, { "n": 1 }], "c": [{}] } }));
    let (good, cut) = ("{\"v\": 5}", "{\"v\": 5,");
    let (ran, result) = run(&place, json!({ "rows": [good, cut], "m": cut }));
    assert_eq!(ran.code, 1, "{ran:#?}");
    let (steps, error) = (&result["steps"], &result["error"]);
    assert_eq!(steps[0]["items"]["failed_indexes"], json!([1]), "{steps:#}");
    assert_eq!((&error["code"], &error["step"]), (&json!("bad_output"), &Value::Null), "{error:#}");
    let message = error["message"].as_str().unwrap();
    assert!(
        message.starts_with("the workflow's `output` can't be made: a value can't be read: `input.m`"),
        "{message}"
    );
    assert_eq!(steps[1]["at"], json!("on_failure.0"), "{steps:#}");
    let retried = place.call(&["retry", "r", "--after-on-failure", "--script", "script.json"]);
    assert!(retried.code == 1 && retried.stderr.contains("`output` can't be made"), "{retried:#?}");
}

#[test]
fn a_text_that_is_too_long_is_no_missing_value() {
    let place = place();
    steps(&place, json!([{ "type": "a", "properties": { "x": "{{input.t}}".repeat(17) } }]));
    let (ran, result) = run(&place, json!({ "t": "x".repeat(1_000_000) }));
    let error = &result["steps"][0]["error"];
    assert_eq!((ran.code, &error["code"]), (1, &json!("bad_value")), "{error:#}");
    assert_eq!(error["message"], "a text can't be made: the text would be longer than 16 MiB");
}
