//! The workflows of Hyphen's pages run to their end, with `max_concurrency` as it is written and with 7: the results are
//! the same.

use serde_json::{Value, json};

use crate::common::{Place, complete, think};
use crate::run::workflows::resume;

/// The actions that the pages name, and a script that answers for them.
fn place() -> Place {
    let place = Place::new();
    let names =
        ["gmail_send", "process_payment", "send_notification", "lookup_order", "draft_response", "update_erp_status"];
    let action = |name: &&str| {
        json!({ "action_name": name, "kind": "http", "description": "Does its work.", "http_method": "POST",
            "url": format!("https://tools.example.com/{name}"), "parameters": { "type": "object" } })
    };
    place.json("actions/all.json", &json!(names.iter().map(action).collect::<Vec<_>>()));
    let answers: serde_json::Map<String, Value> =
        names.iter().map(|name| ((*name).to_owned(), json!([{ "by": name }]))).collect();
    place.json(
        "script.json",
        &json!({ "replies": [think("lookup_order", json!({ "order_id": "1" })), complete(json!("handled"))],
        "tools": answers }),
    );
    place
}

/// Runs a document with this input, as it is written and with `max_concurrency` 7: what both answer.
fn answer(document: &Value, input: &Value) -> Value {
    let mut answers = Vec::new();
    for concurrency in [None, Some(7)] {
        let mut document = document.clone();
        if let Some(concurrency) = concurrency {
            concurrent(&mut document, concurrency);
        }
        let place = place();
        place.json("loop.json", &document);
        place.json("input.json", input);
        let (ran, result) = place.run(&["--run-id", "r", "--input-file", "input.json"]);
        assert_eq!(ran.code, 0, "{ran:#?}");
        answers.push(result["result"]["answer"].clone());
    }
    assert_eq!(answers[0], answers[1]);
    answers.remove(0)
}

pub fn concurrent(value: &mut Value, concurrency: u32) {
    match value {
        Value::Object(members) => {
            if members.get("mode").is_some_and(|mode| mode == "foreach") {
                members.insert("max_concurrency".to_owned(), concurrency.into());
            }
            members.values_mut().for_each(|member| concurrent(member, concurrency));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| concurrent(item, concurrency)),
        _ => {}
    }
}

#[test]
fn a_batch_of_mails_is_sent_to_each_customer() {
    let document = json!({ "type": "loop", "properties": { "mode": "foreach", "items_path": "@input.customers",
        "item_variable_name": "customer", "actions_to_execute": [{ "type": "gmail_send", "properties": {
            "__oauth_account__": "billing@example.com", "to": "@customer.email",
            "subject": "Statement for {{customer.name}}", "body": "Hello {{customer.name}},\n\nyour statement is attached." } }],
        "max_concurrency": 10, "failure_strategy": "continue_on_error", "collect_results": true, "result_key": "emailResults" } });
    let customers: Vec<Value> =
        (0..12).map(|n| json!({ "name": format!("C{n}"), "email": format!("c{n}@example.com") })).collect();
    let results = answer(&document, &json!({ "customers": customers }));
    assert_eq!(results.as_array().unwrap().len(), 12);
    assert_eq!(results[11], json!({ "index": 11, "status": "completed", "output": { "by": "gmail_send" } }));
}

#[test]
fn each_order_is_paid_with_the_fields_of_its_item() {
    let each = json!({ "type": "loop", "properties": { "mode": "foreach", "items_path": "@input.orders", "item_variable_name": "order",
        "actions_to_execute": [{ "type": "process_payment",
            "properties": { "order_id": "@order.id", "amount": "@order.total", "currency": "@order.currency" } }],
        "collect_results": true, "result_key": "payments" } });
    let document = json!({ "name": "pay", "definition": { "actions": [each] } });
    let orders = json!([{ "id": "1", "total": 10.5, "currency": "EUR" }, { "id": "2", "total": 7, "currency": "USD" }]);
    assert_eq!(answer(&document, &json!({ "orders": orders }))["payments"].as_array().unwrap().len(), 2);
    // An order without a currency: its step is not called with half of its input.
    let place = place();
    place.json("loop.json", &document);
    place.json("input.json", &json!({ "orders": [{ "id": "1", "total": 10.5 }] }));
    let (ran, result) = place.run(&["--input-file", "input.json"]);
    assert_eq!((ran.code, &result["error"]["step"]), (1, &json!("0.0.0")), "{ran:#?}");
}

#[test]
fn a_condition_at_the_top_and_one_at_a_step_decide_what_runs() {
    let high = json!({ "name": "process_high_value", "definition": {
        "condition": { "greaterThan": ["@input.order_total", 10000] }, "actions": [] } });
    assert_eq!(answer(&high, &json!({ "order_total": 12000 })), json!({}));
    assert_eq!(answer(&high, &json!({ "order_total": 12 })), Value::Null);
    let step = json!({ "type": "send_notification", "filter": { "condition": { "greaterThan": ["@input.amount", 5000] } },
        "properties": { "channel": "urgent", "message": "High: ${{input.amount}}" }, "outputKey": "urgent",
        "onFalse": { "type": "send_notification", "outputKey": "standard",
            "properties": { "channel": "standard", "message": "Done: ${{input.amount}}" } } });
    let notify = json!({ "name": "notify", "definition": { "actions": [step] } });
    assert_eq!(answer(&notify, &json!({ "amount": 6000 })), json!({ "urgent": { "by": "send_notification" } }));
    assert_eq!(answer(&notify, &json!({ "amount": 60 })), json!({ "standard": { "by": "send_notification" } }));
}

#[test]
fn the_first_agent_handles_an_issue_as_a_step() {
    let document = json!({ "name": "customer_issue_agent", "definition": { "actions": [{ "type": "loop", "properties": {
        "mode": "react", "objective": "Handle {{input.issue}}", "result_key": "resolution",
        "tools": [{ "type": "action", "name": "lookup_order" }, { "type": "action", "name": "draft_response" }] } }] } });
    let given = answer(&document, &json!({ "issue": "late" }));
    assert_eq!(given["resolution"]["answer"], "handled");
}

#[test]
fn a_reconciliation_asks_once_for_each_write_off_and_writes_off_what_was_approved() {
    let each = json!({ "id": "review", "type": "loop", "filter": { "condition": { "greaterThan": [{ "length": "@exceptions" }, 0] } },
        "properties": { "mode": "foreach", "items_path": "@exceptions", "item_variable_name": "exception", "max_concurrency": 10,
            "failure_strategy": "continue_on_error", "collect_results": true, "result_key": "reviews", "summary_key": "review_counts",
            "actions_to_execute": [
                { "type": "PbotApproval", "properties": { "comment": "Write off {{exception.amount}}?",
                    "request_payload": { "invoice": "@exception.invoice_id" } } },
                { "type": "update_erp_status", "filter": { "condition": { "equal": ["@__approved", true] } },
                    "properties": { "id": "@exception.invoice_id" } } ] } });
    let document = json!({ "name": "ap", "definition": { "actions": [
        { "type": "matcher", "properties": { "left": "@input.invoices", "right": "@input.payments", "matchOn": ["invoice_id"],
            "tolerance": 0.02, "outputMatched": "reconciled", "outputUnmatchedLeft": "exceptions" } },
        each,
        { "type": "send_notification", "filter": { "condition": { "and": [{ "hasKey": "review_counts" },
            { "greaterThan": ["@review_counts.completed", 1] }] } }, "properties": { "text": "{{review_counts.completed}} seen" },
          "onFalse": { "type": "send_notification", "properties": { "text": "all done" } } } ] } });
    let place = place();
    place.json("loop.json", &document);
    let invoice = |n: u32| json!({ "invoice_id": format!("I{n}"), "amount": n * 10 });
    place.json(
        "input.json",
        &json!({ "invoices": (0..4).map(invoice).collect::<Vec<_>>(), "payments": [invoice(0), invoice(2)] }),
    );
    let (ran, result) = place.run(&["--run-id", "r", "--input-file", "input.json"]);
    assert_eq!((ran.code, result["pause"]["steps"].as_array().map(Vec::len)), (3, Some(2)), "{ran:#?}");
    assert_eq!(resume(&place, &["--approve", "--at", "review.0.0"]).0.code, 3);
    let (ran, result) = resume(&place, &["--deny"]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    let answer = &result["result"]["answer"];
    assert_eq!(answer["reconciled"].as_array().unwrap().len(), 2);
    assert_eq!(answer["reviews"][0]["output"], json!({ "by": "update_erp_status" }));
    assert_eq!(result["steps"][2]["at"], "2");
}

/// A copy of a folder of the examples.
fn example(place: &Place, from: &std::path::Path, to: &str) {
    for entry in std::fs::read_dir(from).unwrap().map(Result::unwrap) {
        let name = format!("{to}/{}", entry.file_name().to_str().unwrap());
        if entry.path().is_dir() {
            if !name.ends_with(".loopctl") {
                example(place, &entry.path(), &name);
            }
        } else {
            place.file(&name, std::fs::read(entry.path()).unwrap());
        }
    }
}

#[test]
fn the_example_reconciles_three_hundred_invoices_and_asks_about_two() {
    let place = Place::new();
    example(&place, std::path::Path::new("examples/ap-reconciliation"), "ap");
    let call = |args: &[&str]| {
        let ran = place.call(args);
        let result: Value = serde_json::from_str(&ran.stdout).unwrap_or_default();
        (ran, result)
    };
    let (ran, result) =
        call(&["run", "ap/workflow.json", "--input", "until=2026-03-31", "--run-id", "march", "--output", "json"]);
    assert_eq!(ran.code, 3, "{ran:#?}");
    let asked: Vec<&Value> = result["pause"]["steps"].as_array().unwrap().iter().map(|step| &step["at"]).collect();
    assert_eq!(asked, [&json!("review.0.approve"), &json!("review.3.approve")]);
    let store = ["--store", "sqlite:ap/.loopctl/runs.db", "--output", "json"];
    let decide = |how: &[&str]| call(&[&["resume", "march"], how, store.as_slice()].concat());
    assert_eq!(decide(&["--at", "review.0.approve", "--approve"]).0.code, 3);
    let (ran, result) = decide(&["--deny", "--reason", "ask them first"]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    let answer = &result["result"]["answer"];
    assert_eq!((&answer["paid"], &answer["counts"]["completed"]), (&json!(294), &json!(6)));
    let decisions: Vec<&str> =
        answer["reviews"].as_array().unwrap().iter().map(|item| item["output"].as_str().unwrap()).collect();
    assert_eq!(decisions, ["write_off", "remind", "remind", "write_off", "remind", "remind"]);
}
