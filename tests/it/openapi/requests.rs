//! What is sent: each value in its place, and what a call leaves out nowhere.

use serde_json::{Value, json};

use super::{actions, pin, shop};
use crate::common::server::{Answer, Server};
use crate::common::{Place, observed, think};

/// Makes calls of the shop at a server.
fn calls(place: &Place, server: &Server, calls: &[Value]) -> Vec<Value> {
    assert_eq!(pin(place, &["--host", &format!("{}/v1", server.url())]).code, 0);
    let keys = ["shop_token", "shop_login", "shop_key", "shop_keyinquery"];
    let secrets: Value = keys.iter().map(|key| ((*key).to_owned(), json!("env:T"))).collect();
    place.json("loopctl.json", &json!({ "orgconfig": secrets, "allow": { "private_addresses": true } }));
    let all = actions(place);
    let tools: Vec<Value> =
        all.as_object().unwrap().keys().map(|name| json!({ "type": "action", "name": name })).collect();
    place.json(
        "loop.json",
        &json!({ "type": "loop", "name": "shop", "properties": { "mode": "react", "objective": "Buy.", "tools": tools } }),
    );
    let checked = place.call(&["check", "--deny-warnings", "loop.json"]);
    assert_eq!(checked.code, 0, "{checked:#?}");
    place.calls_with(calls, &[], &[("T", "S3CR3T")])
}

#[test]
fn each_value_is_sent_in_its_place() {
    let place = shop(|_| {});
    let server = Server::with(|_, _| Answer::json("{\"ok\":true}"));
    let seen = calls(
        &place,
        &server,
        &[
            think(
                "orders_list",
                json!({ "X_Tenant": "a", "state": ["open", "paid"], "filter_paid": true, "X_Trace": "t 1", "ids": [3, 4], "created": { "gte": 5 } }),
            ),
            think("orders_list", json!({ "X_Tenant": "a" })),
            think(
                "orders_create",
                json!({ "X_Tenant": "a", "body": { "lines": [{ "article": "x", "color": "red", "count": 2 }], "note": null } }),
            ),
            think("orders_get", json!({ "order_id": "a/b?c" })),
            think(
                "orders_replace",
                json!({ "order_id": "7", "body": { "text": "a&b", "tags": ["x", "y"], "extra": { "k": "v" } } }),
            ),
            think("orders_replace", json!({ "order_id": "7" })),
            think("delete_orders_order-id", json!({ "order_id": "7" })),
            think("orders_pay", json!({ "order_id": "7", "body": { "kind": "card", "number": "1" } })),
            think("orders_close", json!({ "order_id": "7" })),
        ],
    );
    assert!(seen[..9].iter().all(|entry| observed(entry).contains("true")), "{seen:#?}");
    let sent = server.requests();
    let line = |at: usize| format!("{} {}", sent[at].method, sent[at].path);
    assert_eq!(line(0), "GET /v1/orders?created%5Bgte%5D=5&filter%5Bpaid%5D=true&ids=3,4&state=open&state=paid");
    assert_eq!((sent[0].header("x-tenant"), sent[0].header("x-trace")), (Some("a"), Some("t 1")));
    assert_eq!(sent[0].header("authorization"), Some("Bearer S3CR3T"));
    assert_eq!((line(1).as_str(), sent[1].header("x-trace")), ("GET /v1/orders", None));
    assert_eq!(sent[2].json(), json!({ "lines": [{ "article": "x", "color": "red", "count": 2 }], "note": null }));
    assert_eq!(line(3), "GET /v1/orders/a%2Fb%3Fc");
    assert_eq!(sent[3].header("authorization"), None);
    assert_eq!(
        (sent[4].text().as_str(), sent[4].header("x-api-key")),
        ("text=a%26b&tags=x&tags=y&extra%5Bk%5D=v", Some("S3CR3T"))
    );
    assert_eq!(sent[4].header("content-type"), Some("application/x-www-form-urlencoded"));
    assert_eq!((sent[5].text().as_str(), sent[5].header("content-type")), ("", None));
    assert_eq!((line(6).as_str(), sent[6].header("authorization")), ("DELETE /v1/orders/7", Some("Basic S3CR3T")));
    assert_eq!(
        (line(7).as_str(), sent[7].header("content-type")),
        ("PATCH /v1/orders/7?api_key=S3CR3T", Some("application/merge-patch+json"))
    );
    let closed = (sent[8].text(), sent[8].header("content-type"), sent[8].header("accept"));
    assert_eq!(closed, (String::new(), None, Some("text/csv")));
}

#[test]
fn what_the_page_does_not_take_is_not_sent() {
    let place = shop(|_| {});
    let server = Server::with(|_, _| Answer::json("{\"ok\":true}"));
    let refused = [
        think("orders_get", json!({ "order_id": "" })),
        think("orders_create", json!({ "X_Tenant": "a", "body": { "lines": [] } })),
        think("orders_create", json!({ "X_Tenant": "a" })),
        think("orders_pay", json!({ "order_id": "7", "body": { "kind": "cash" } })),
        think("orders_list", json!({ "X_Tenant": "a", "session": "s" })),
    ];
    let seen = calls(&place, &server, &[&refused[..], &[think("orders_get", json!({ "order_id": "1" }))]].concat());
    assert_eq!(server.requests().len(), 1, "{seen:#?}");
}

#[test]
fn what_only_an_answer_has_is_never_asked_for_in_whichever_part_it_is() {
    let base = json!({ "type": "object", "properties": { "id": { "type": "string", "readOnly": true }, "n": { "type": "integer" } } });
    let beside = json!({ "allOf": [{ "$ref": "#/components/schemas/Base" }], "required": ["id", "n"] });
    let second = json!({ "allOf": [{ "$ref": "#/components/schemas/Base" }, { "required": ["id", "extra"], "properties": { "extra": { "type": "string" } } }] });
    let own = json!({ "required": ["id", "n"], "allOf": [second, { "type": "object", "properties": { "more": { "type": "string" } } }] });
    let choice =
        json!({ "oneOf": [{ "$ref": "#/components/schemas/Base" }, { "allOf": [base] }], "required": ["id", "n"] });
    let place = shop(|page| {
        page["components"]["schemas"]["Base"] = base.clone();
        for (name, schema) in [("beside", &beside), ("second", &second), ("own", &own), ("choice", &choice)] {
            let body = json!({ "required": true, "content": { "application/json": { "schema": schema } } });
            let operation = json!({ "operationId": format!("ro_{name}"), "requestBody": body, "responses": {} });
            page["paths"][format!("/ro/{name}")] = json!({ "post": operation });
        }
    });
    let pinned = pin(&place, &["--operations", "ro_*"]);
    assert_eq!(pinned.code, 0, "{pinned:#?}");
    let made = actions(&place);
    let made = made.as_object().unwrap();
    assert_eq!(made.len(), 4, "{made:?}");
    for action in made.values() {
        let text = action["parameters"].to_string();
        assert!(!text.contains("\"id\"") && text.contains("\"n\""), "{text}");
    }
}
