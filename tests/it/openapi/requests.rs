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
fn a_choice_is_distinguished_by_the_words_that_it_says_itself() {
    let of = |kind: Value| json!({ "type": "object", "properties": { "kind": kind }, "required": ["kind"] });
    let named = |name: &str| json!({ "$ref": format!("#/components/schemas/{name}") });
    let place = shop(|page| {
        let schemas = &mut page["components"]["schemas"];
        schemas["Kind"] = json!({ "type": "string", "enum": ["dog"] });
        schemas["Animal"] = of(json!({ "type": "string" }));
        schemas["Cat"] = of(json!({ "type": "string", "const": "cat" }));
        schemas["Dog"] = of(named("Kind"));
        schemas["Bird"] = json!({ "allOf": [named("Animal"), of(json!({ "type": "string", "enum": ["bird"] }))] });
        schemas["Fish"] = json!({ "oneOf": [of(json!({ "const": "cod" })), of(json!({ "anyOf": [{ "const": "eel" }, { "type": "null" }] }))] });
        // It says no word: its name is one.
        schemas["Fox"] = json!({ "allOf": [named("Animal")] });
        let all: Vec<Value> = ["Cat", "Dog", "Bird", "Fish", "Fox"].into_iter().map(named).collect();
        let schema = json!({ "oneOf": all, "discriminator": { "propertyName": "kind" } });
        let body = json!({ "required": true, "content": { "application/json": { "schema": schema } } });
        page["paths"]["/tell"] =
            json!({ "post": { "operationId": "tell", "requestBody": body, "responses": {}, "security": [] } });
    });
    let server = Server::with(|_, _| Answer::json("{\"ok\":true}"));
    let words = ["cat", "dog", "bird", "cod", "eel", "Fox", "Cat", "Bird", "Fish"];
    let made: Vec<Value> = words.iter().map(|word| think("tell", json!({ "body": { "kind": word } }))).collect();
    let seen = calls(&place, &server, &made);
    let sent: Vec<Value> = server.requests().iter().map(|request| request.json()["kind"].clone()).collect();
    assert_eq!(sent, words[..6], "{seen:#?}");
}

#[test]
fn what_a_page_leaves_open_becomes_actions_all_the_same() {
    let place = shop(|page| {
        page["components"]["schemas"]["Made"] = json!({ "type": "string", "readOnly": true });
        let properties = json!({ "n": { "type": "string" }, "id": { "$ref": "#/components/schemas/Made" } });
        let form = json!({ "type": "object", "required": ["token", "id", "n"], "properties": properties });
        let body = json!({ "required": true, "content": { "application/x-www-form-urlencoded": { "schema": form } } });
        let header = |name: &str| json!([{ "name": name, "in": "header", "schema": { "type": "string" } }]);
        page["paths"]["/open"] = json!({
            "parameters": header("X-Trace"),
            "post": { "operationId": "open_form", "requestBody": body, "responses": {}, "parameters": header("x-trace") },
            "get": { "operationId": "open_lines", "responses": { "200": { "description": "", "content": { "application/x-jsonl": {} } } } },
        });
    });
    let pinned = pin(&place, &["--operations", "open_*"]);
    assert_eq!(pinned.code, 0, "{pinned:#?}");
    let made = actions(&place);
    let body = &made["open_form"]["parameters"]["properties"]["body"];
    let names: Vec<&str> = body["properties"].as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!((names, &body["required"]), (vec!["n", "token"], &json!(["token", "n"])));
    let parameters = made["open_form"]["parameters"]["properties"].as_object().unwrap();
    assert_eq!(parameters.keys().filter(|name| name.eq_ignore_ascii_case("x_trace")).count(), 1, "{parameters:?}");
    assert!(made["open_lines"].is_object(), "{made}");
    let checked = place.call(&["check", "."]);
    assert_eq!(checked.code, 0, "{checked:#?}");
}

#[test]
fn a_page_beside_the_project_is_locked_by_a_path_that_other_checkouts_have() {
    let place = shop(|_| {});
    place.json(
        "project/loopctl.json",
        &json!({ "orgconfig": { "shop_token": "env:T" }, "allow": { "hosts": ["eu.shop.example.com"] } }),
    );
    let call = |args: &[&str]| {
        let made = place.command(args).current_dir(place.path().join("project")).output().unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    };
    call(&["openapi", "pin", "../shop.json", "--operations", "orders/get", "--secret", "shop_token"]);
    let lock: Value = serde_json::from_str(&super::read(&place, "project/openapi.lock.json")).unwrap();
    assert!(lock.to_string().contains("\"../shop.json\""), "{lock}");
    call(&["openapi", "pin", "--verify"]);
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
