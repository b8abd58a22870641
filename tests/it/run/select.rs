//! A loop with many tools that offers those which fit its objective, and lets its model find the others.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::common::dialects::{answers, calls};
use crate::common::server::{Request, Server};
use crate::common::{Place, complete, observed, think, web, with};

const SUBJECTS: [&str; 12] = [
    "invoice",
    "customer",
    "order",
    "refund",
    "shipment",
    "product",
    "supplier",
    "ticket",
    "contract",
    "payment",
    "employee",
    "warehouse",
];
const VERBS: [&str; 5] = ["list", "get", "create", "archive", "export"];

/// Sixty actions, each a verb and a subject, and a loop that declares them by a pattern for each verb.
fn place(properties: &Value, server: &str) -> Place {
    let place = Place::new();
    let parameters =
        json!({ "type": "object", "properties": { "id": { "type": "string", "description": "Which one." } } });
    let actions: Vec<Value> = VERBS
        .iter()
        .flat_map(|verb| SUBJECTS.iter().map(move |subject| (verb, subject)))
        .map(|(verb, subject)| {
            let url = format!("{server}/tool/{verb}/{subject}");
            let described =
                json!({ "parameters": parameters, "description": format!("{verb} the {subject}s of the shop") });
            web(&format!("{verb}_{subject}s"), &url, described)
        })
        .collect();
    place.json("actions/shop.json", &json!(actions));
    let model = json!({ "provider": "openai", "base_url": format!("{server}/v1") });
    place.json(
        "loopctl.json",
        &json!({ "allow": { "private_addresses": true }, "models": { "m": model }, "model": "m" }),
    );
    let tools: Vec<Value> = VERBS.iter().map(|verb| json!({ "type": "action", "name": format!("{verb}_*") })).collect();
    let whole = json!({ "mode": "react", "objective": "Say which invoices are not paid.", "tools": tools,
        "select": { "by": "search", "most": 4 } });
    let mut properties = with(whole, properties.clone());
    properties.as_object_mut().expect("an object").retain(|_, value| !value.is_null());
    place.json("loop.json", &json!({ "type": "loop", "name": "test", "properties": properties }));
    place
}

fn prompt(place: &Place) -> Value {
    let asked = place.call(&["prompt", "loop.json", "--output", "json"]);
    assert_eq!(asked.code, 0, "{asked:#?}");
    asked.json()
}

/// The names of the tools that a request declares.
fn declared(request: &Value) -> BTreeSet<String> {
    let tools = request["tools"].as_array().expect("a list").iter();
    tools.map(|tool| tool["function"]["name"].as_str().expect("a name").to_owned()).collect()
}

fn own(names: &BTreeSet<String>) -> Vec<&str> {
    names.iter().map(String::as_str).filter(|name| !name.starts_with("__")).collect()
}

#[test]
fn a_request_offers_the_tools_that_fit_and_one_that_finds_the_others() {
    let place = place(&json!({ "dialect": "tool_calls" }), "http://127.0.0.1:1");
    let names = declared(&prompt(&place));
    assert_eq!(own(&names), ["archive_invoices", "create_invoices", "get_invoices", "list_invoices"]);
    assert!(names.contains("__find_tool__") && names.contains("__complete__"), "{names:?}");
    let text = prompt(&self::place(&json!({}), "http://127.0.0.1:1"));
    let system = text["messages"][0]["content"].as_str().expect("a text");
    for (name, is) in [("list_invoices", true), ("__find_tool__", true), ("list_refunds", false)] {
        assert_eq!(system.contains(name), is, "{name}: {system}");
    }
    let checked = place.call(&["check", "--deny-warnings"]);
    assert_eq!(checked.code, 0, "{checked:#?}");
}

#[test]
fn a_loop_that_declares_no_more_than_that_offers_all_and_finds_none() {
    let place = place(
        &json!({ "dialect": "tool_calls", "tools": [{ "type": "action", "name": "list_*" }],
            "select": { "by": "search" } }),
        "http://127.0.0.1:1",
    );
    let names = declared(&prompt(&place));
    assert_eq!(own(&names).len(), SUBJECTS.len());
    assert!(!names.contains("__find_tool__"), "{names:?}");
}

#[test]
fn what_must_be_called_first_is_offered_whatever_the_objective_says() {
    let properties = json!({ "dialect": "tool_calls", "require_tool_before_answer": ["export_warehouses"] });
    let names = declared(&prompt(&place(&properties, "http://127.0.0.1:1")));
    assert_eq!(own(&names).len(), 4);
    assert!(names.contains("export_warehouses"), "{names:?}");
}

#[test]
fn what_is_found_is_offered_in_the_next_request_and_called() {
    let says = [
        calls("", &[("__find_tool__", json!({ "query": "export shipments" }))]),
        calls("", &[("export_shipments", json!({ "id": "7" }))]),
        answers("", "done"),
    ];
    let asked = std::sync::atomic::AtomicUsize::new(0);
    let server = Server::with(move |_, request: &Request| {
        if !request.path.starts_with("/v1") {
            return crate::common::server::Answer::json(&json!({ "exported": 7 }));
        }
        let turn = asked.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        says.get(turn).expect("three replies").reply("tool_calls", request, turn)
    });
    let place = place(&json!({ "dialect": "tool_calls" }), &server.url());
    let ran = place.call(&["run", "loop.json", "--output", "json"]);
    let result = ran.json();
    assert_eq!((ran.code, &result["result"]["answer"]), (0, &json!("done")), "{ran:#?}");
    let found = &result["trace"][0]["observation"]["tools"];
    assert_eq!(found[0]["name"], "export_shipments", "{result:#}");
    assert!(found[0].get("input").is_none(), "{result:#}");
    assert_eq!(result["trace"][1]["observation"], json!({ "exported": 7 }));
    let requests: Vec<Value> = server
        .requests()
        .iter()
        .filter(|request| request.path.starts_with("/v1"))
        .map(|request| request.json())
        .collect();
    let offered: Vec<BTreeSet<String>> = requests.iter().map(declared).collect();
    assert!(!offered[0].contains("export_shipments"), "{offered:#?}");
    assert!(offered[1].contains("export_shipments") && offered[1].is_superset(&offered[0]), "{offered:#?}");
    assert_eq!(offered[1], offered[2]);
    // The page of the run says what was offered.
    let page = place.call(&["trace", result["run_id"].as_str().expect("an id"), "--format", "html"]).stdout;
    assert!(page.contains("Tools that were offered") && page.contains("export_shipments, "), "{page}");
    let id = result["run_id"].as_str().expect("an id");
    let at = |iteration: &str| place.call(&["trace", id, "--at", iteration, "--format", "json"]).json();
    assert!(at("1")["offered"].to_string().contains("list_invoices"), "{:#}", at("1"));
    assert!(at("2")["offered"].to_string().contains("export_shipments"), "{:#}", at("2"));
}

#[test]
fn a_run_that_is_resumed_offers_what_it_offered() {
    let says = [
        calls("", &[("__find_tool__", json!({ "query": "export shipments" }))]),
        calls("", &[("__pause_for_human__", json!({ "question": "Which?" }))]),
        answers("", "done"),
    ];
    let asked = std::sync::atomic::AtomicUsize::new(0);
    let server = Server::with(move |_, request: &Request| {
        let turn = asked.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        says.get(turn).expect("three replies").reply("tool_calls", request, turn)
    });
    let place = place(&json!({ "dialect": "tool_calls" }), &server.url());
    let paused = place.call(&["run", "loop.json", "--output", "json"]);
    let id = paused.json()["run_id"].as_str().expect("an id").to_owned();
    let ran = place.call(&["resume", &id, "--answer", "7", "--output", "json"]);
    assert_eq!(ran.json()["status"], "completed", "{ran:#?}");
    let offered: Vec<BTreeSet<String>> = server.requests().iter().map(|request| declared(&request.json())).collect();
    assert_eq!(offered.len(), 3);
    assert!(offered[1].contains("export_shipments"), "{offered:#?}");
    assert_eq!(offered[1], offered[2]);
}

#[test]
fn in_a_dialect_of_texts_what_is_found_is_shown_with_its_input() {
    let place = place(&json!({}), "http://127.0.0.1:1");
    let script = json!({
        "replies": [
            think("__find_tool__", json!({ "query": "archive_suppliers" })),
            think("archive_suppliers", json!({ "id": "9" })),
            think("__find_tool__", json!({ "query": "xylophone" })),
            think("archive_suppliers_", json!({})),
            complete(json!("ok")),
        ],
        "tools": { "archive_suppliers": [{ "archived": 9 }] },
    });
    place.json("script.json", &script);
    let (ran, result) = place.run(&[]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    let found = &result["trace"][0]["observation"]["tools"];
    assert_eq!(found[0]["name"], "archive_suppliers", "{result:#}");
    assert_eq!(found[0]["input"]["properties"]["id"]["type"], "string");
    assert_eq!(result["trace"][1]["observation"], json!({ "archived": 9 }));
    assert_eq!(result["trace"][2]["success"], false);
    let unknown = observed(&result["trace"][3]);
    // What is offered is named, and not all that is declared.
    assert!(unknown.contains("Did you mean archive_suppliers?") && !unknown.contains("list_contracts"), "{unknown}");
}

#[test]
fn only_what_is_declared_is_found_or_called() {
    let place = place(
        &json!({ "tools": [{ "type": "action", "name": "list_*" }, { "type": "action", "name": "get_*" }] }),
        "http://127.0.0.1:1",
    );
    place.json(
        "script.json",
        &json!({ "replies": [
            think("__find_tool__", json!({ "query": "export_shipments" })),
            think("export_shipments", json!({ "id": "7" })),
            complete(json!("ok")),
        ] }),
    );
    let (ran, result) = place.run(&[]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    let found = result["trace"][0]["observation"]["tools"].as_array().expect("a list");
    assert!(found.iter().all(|tool| tool["name"] != "export_shipments"), "{result:#}");
    assert!(observed(&result["trace"][1]).contains("no tool named"), "{result:#}");
}

#[test]
fn a_scenario_plays_what_finds_tools_and_the_coverage_names_it() {
    let place = place(&json!({ "tools": [{ "type": "action", "name": "list_*" }] }), "http://127.0.0.1:1");
    place.json(
        "loop.scenarios.json",
        &json!({ "document": "loop.json", "scenarios": [{
            "name": "finds the refunds",
            "replies": [
                think("__find_tool__", json!({ "query": "refunds" })),
                think("list_refunds", json!({ "id": "1" })),
                complete(json!("two")),
            ],
            "tools": { "list_refunds": [["a", "b"]] },
            "expect": { "status": "completed", "answer": "two" },
        }] }),
    );
    let tested = place.call(&["test", "--crash"]);
    assert_eq!(tested.code, 0, "{tested:#?}");
    let probed = place.call(&["test", "--probe", "loop.json"]);
    assert!(probed.stderr.contains("✓ a call of `__find_tool__` succeeds"), "{probed:#?}");
}

#[test]
fn an_estimate_counts_what_can_be_offered_and_not_what_is_declared() {
    let tokens = |properties: &Value| {
        let place = place(properties, "http://127.0.0.1:1");
        let ran = place.call(&["estimate", "loop.json", "--output", "json"]);
        assert_eq!(ran.code, 0, "{ran:#?}");
        ran.json()["most"]["input_tokens"].as_u64().expect("a number")
    };
    let all = json!({ "max_iterations": 1, "select": null, "max_tokens": 1000 });
    let (all, some) = (tokens(&all), tokens(&json!({ "max_iterations": 1, "max_tokens": 1000 })));
    assert!(some < all, "{some} of {all}");
}

#[test]
fn a_pattern_that_no_action_has_is_an_error_and_so_is_a_description_of_many() {
    for (declaration, code) in [
        (json!({ "type": "action", "name": "buy_*" }), "L030"),
        (json!({ "type": "action", "name": "list_*", "description": "Lists." }), "L030"),
    ] {
        let place = place(&json!({ "tools": [declaration], "select": { "by": "search" } }), "http://127.0.0.1:1");
        let checked = place.call(&["check"]);
        assert_eq!(checked.code, 1, "{checked:#?}");
        assert!(checked.stdout.contains(code) || checked.stderr.contains(code), "{checked:#?}");
    }
}

#[test]
fn two_patterns_that_name_the_same_action_are_an_error() {
    let place = place(
        &json!({ "tools": [
            { "type": "action", "name": "*" },
            { "type": "action", "name": "archive_*", "requires_approval": true },
        ] }),
        "http://127.0.0.1:1",
    );
    let checked = place.call(&["check", "--format", "json"]);
    assert_eq!(checked.code, 1, "{checked:#?}");
    assert!(checked.stdout.contains("L033") && checked.stdout.contains("and 11 more"), "{checked:#?}");
}

#[test]
fn a_declaration_by_the_full_name_holds_in_any_order() {
    let all = json!({ "type": "action", "name": "*" });
    let own = json!({ "type": "action", "name": "archive_orders", "requires_approval": true });
    for tools in [json!([all, own]), json!([own, all])] {
        let place = place(&json!({ "tools": tools }), "http://127.0.0.1:1");
        let checked = place.call(&["check"]);
        assert_eq!(checked.code, 0, "{checked:#?}");
        place.json(
            "script.json",
            &json!({ "replies": [think("archive_orders", json!({ "id": "7" })), complete(json!("ok"))] }),
        );
        let (_, result) = place.run(&[]);
        assert_eq!(result["status"], "paused", "{result:#}");
    }
}

#[test]
fn a_tool_that_says_much_takes_no_other_ones_place() {
    let place = place(
        &json!({ "dialect": "tool_calls", "tools": [{ "type": "action", "name": "*" }],
            "objective": "Tell the customer by mail when the money of a refund arrives, who paid twice for one thing." }),
        "http://127.0.0.1:1",
    );
    let says = json!({ "description": "Tell her by mail when money arrives: paid twice for one thing." });
    place.json("actions/notes.json", &json!([web("notes", "http://127.0.0.1:1/notes", says)]));
    let names = declared(&prompt(&place));
    assert_eq!(own(&names).len(), 4, "{names:?}");
    assert!(names.iter().any(|name| name.ends_with("_refunds")), "{names:?}");
}

#[test]
fn the_end_of_a_long_objective_is_read() {
    let long: String = (0..400).map(|number| format!("word{number} ")).collect();
    let properties = json!({ "dialect": "tool_calls", "objective": format!("{long} Export the shipments.") });
    let names = declared(&prompt(&place(&properties, "http://127.0.0.1:1")));
    assert!(names.contains("export_shipments"), "{names:?}");
}

#[test]
fn an_estimate_counts_all_that_must_be_called() {
    let tokens = |select: Value| {
        let names: Vec<String> =
            VERBS.iter().flat_map(|verb| SUBJECTS.iter().map(move |subject| format!("{verb}_{subject}s"))).collect();
        let properties =
            json!({ "max_iterations": 1, "max_tokens": 1000, "select": select, "require_tool_before_answer": names });
        let ran = place(&properties, "http://127.0.0.1:1").call(&["estimate", "loop.json", "--output", "json"]);
        assert_eq!(ran.code, 0, "{ran:#?}");
        ran.json()["most"]["input_tokens"].as_u64().expect("a number")
    };
    let (some, all) = (tokens(json!({ "by": "search", "most": 1 })), tokens(Value::Null));
    assert!(some >= all, "{some} of {all}");
}

#[test]
fn what_is_offered_is_not_found_again_and_the_rest_is_counted() {
    let place = place(&json!({}), "http://127.0.0.1:1");
    let replies = json!([
        think("__find_tool__", json!({ "query": "invoices" })),
        think("__find_tool__", json!({ "query": "export" })),
        complete(json!("ok")),
    ]);
    place.json("script.json", &json!({ "replies": replies }));
    let (_, result) = place.run(&[]);
    let first = &result["trace"][0]["observation"];
    assert_eq!(first["tools"].as_array().map(Vec::len), Some(1), "{first:#}");
    assert_eq!(first["tools"][0]["name"], "export_invoices");
    assert_eq!(first["already_offered"].as_array().map(Vec::len), Some(4), "{first:#}");
    let second = &result["trace"][1]["observation"];
    assert_eq!((second["tools"].as_array().map(Vec::len), &second["more_that_match"]), (Some(6), &json!(6)));
}

#[test]
fn a_long_schema_is_shown_in_short_and_whole_where_the_tool_is_named() {
    let place = place(
        &json!({ "tools": [{ "type": "action", "name": "*" }], "max_observation_chars": 4_000 }),
        "http://127.0.0.1:1",
    );
    let action = |name: &str, length: usize| {
        let parameters = json!({ "type": "object", "required": ["account"], "properties": {
            "account": { "type": "string", "description": "x".repeat(length) }, "limit": { "type": "integer" } } });
        let described = json!({ "parameters": parameters, "description": "Audits the ledger." });
        web(name, "http://127.0.0.1:1/audit", described)
    };
    place.json("actions/audit.json", &json!([action("audit_one", 3_000), action("audit_all", 9_000)]));
    let find = |query: &str| think("__find_tool__", json!({ "query": query }));
    let replies = json!([find("audit all"), find("audit_one"), find("audit_all"), complete(json!("ok"))]);
    place.json("script.json", &json!({ "replies": replies }));
    let (ran, result) = place.run(&[]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    let short = json!({ "type": "object", "required": ["account"], "properties": {
        "account": { "type": "string" }, "limit": { "type": "integer" } } });
    let found = |at: usize| &result["trace"][at]["observation"]["tools"][0];
    for at in [0, 2] {
        assert_eq!((&found(at)["name"], &found(at)["input"]), (&json!("audit_all"), &short), "{result:#}");
        assert!(found(at)["note"].as_str().is_some_and(|note| note.contains("in short")), "{result:#}");
    }
    assert!(found(1)["input"].to_string().len() > 3_000, "{result:#}");
}

#[test]
fn a_new_document_by_which_other_tools_were_found_is_refused() {
    let says = [
        calls("", &[("__find_tool__", json!({ "query": "export shipments" }))]),
        calls("", &[("__pause_for_human__", json!({ "question": "Which?" }))]),
        answers("", "done"),
    ];
    let asked = std::sync::atomic::AtomicUsize::new(0);
    let server = Server::with(move |_, request: &Request| {
        let turn = asked.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        says.get(turn).expect("three replies").reply("tool_calls", request, turn)
    });
    let place = place(&json!({ "dialect": "tool_calls" }), &server.url());
    let paused = place.call(&["run", "loop.json", "--output", "json"]);
    let id = paused.json()["run_id"].as_str().expect("an id").to_owned();
    let whole = std::fs::read_to_string(place.path().join("actions/shop.json")).expect("a text");
    place.file("actions/shop.json", whole.replace("export_shipments", "send_shipments"));
    let resume = || place.call(&["resume", &id, "--answer", "7", "--new-document", "--output", "json"]);
    let refused = resume();
    assert!(refused.code != 0 && refused.stderr.contains("`__find_tool__` in iteration 1"), "{refused:#?}");
    let forked = place.call(&["fork", &id, "--at", "2", "--document", "loop.json"]);
    assert!(forked.code != 0 && forked.stderr.contains("`__find_tool__` in iteration 1"), "{forked:#?}");
    place.file("actions/shop.json", whole.replace("list the invoices", "list all invoices"));
    let ran = resume();
    assert_eq!(ran.json()["status"], "completed", "{ran:#?}");
}

#[test]
fn many_tools_are_warned_of_where_each_request_has_all() {
    let whole = place(&json!({ "select": null }), "http://127.0.0.1:1");
    let checked = whole.call(&["check", "--format", "json"]);
    assert!(checked.stdout.contains("L241") && checked.stdout.contains("65 tools"), "{checked:#?}");
}
