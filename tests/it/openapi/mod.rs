//! Actions that are made of OpenAPI pages: what is written, what is sent, what has changed since, and pages that would do harm.

mod drift;
mod hostile;
mod requests;
mod yaml;

use serde_json::{Value, json};

use crate::common::{Place, Ran};

/// A project with a page.
pub fn shop(change: impl Fn(&mut Value)) -> Place {
    let place = Place::new();
    place.json(
        "loopctl.json",
        &json!({
            "orgconfig": { "shop_token": "env:T", "shop_login": "env:T", "shop_key": "env:T", "shop_keyinquery": "env:T" },
            "allow": { "hosts": ["eu.shop.example.com"] },
        }),
    );
    page(&place, change);
    place
}

/// Writes the page, changed.
pub fn page(place: &Place, change: impl Fn(&mut Value)) {
    let mut page: Value = serde_json::from_str(include_str!("shop.json")).unwrap();
    change(&mut page);
    place.json("shop.json", &page);
}

/// Pins the page, whose secrets the project has.
pub fn pin(place: &Place, more: &[&str]) -> Ran {
    let secrets = ["shop_token", "shop_login", "shop_key", "shop_keyinquery"].iter().flat_map(|key| ["--secret", key]);
    let args: Vec<&str> =
        ["openapi", "pin", "shop.json"].into_iter().chain(secrets).chain(more.iter().copied()).collect();
    place.call(&args)
}

pub fn read(place: &Place, name: &str) -> String {
    std::fs::read_to_string(place.path().join(name)).unwrap_or_default()
}

/// The actions that were written, by name.
pub fn actions(place: &Place) -> Value {
    let all: Vec<Value> = serde_json::from_str(&read(place, "actions/shop.json")).unwrap();
    all.into_iter().map(|action| (action["action_name"].as_str().unwrap().to_owned(), action)).collect()
}

#[test]
#[expect(clippy::disallowed_methods, reason = "a test's own switch comes from the environment")]
fn a_page_becomes_actions_that_check_takes() {
    let place = shop(|_| {});
    let pinned = pin(&place, &[]);
    assert_eq!(pinned.code, 0, "{pinned:#?}");
    let (made, golden) = (read(&place, "actions/shop.json"), "tests/it/openapi/shop.actions.json");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(golden, &made).unwrap();
    }
    assert!(
        made == std::fs::read_to_string(golden).unwrap(),
        "{made}\nread it; if it is right: UPDATE_GOLDEN=1 cargo test --test it openapi::"
    );
    for line in [
        "shop: Shop 1.4.0, 7 actions",
        "left out GET /login: the parameter `session` is a cookie",
        "left out POST /orders/{order-id}/picture: its body is sent as multipart/form-data",
        "left out TRACE /login: no action sends this method",
        "note: orders_list: the parameter `session` is a cookie: it is never sent",
        "left out GET /orders/{order-id}/picture: it answers with image/png, which is no text",
        "note: orders_create: `Order` has itself in it: the inner one is left open",
        "secret shop_login: USER:PASSWORD in base64, sent to https://eu.shop.example.com/v1",
    ] {
        assert!(pinned.stderr.contains(line), "{line}: {}", pinned.stderr);
    }
    let checked = place.call(&["check", "--deny-warnings"]);
    assert_eq!(checked.code, 0, "{checked:#?}");
    assert_eq!(place.call(&["fmt", "--check", "actions/shop.json"]).code, 0);
    // Pinned again, nothing is new, and each file is as it was.
    let before = place.files();
    let again = pin(&place, &[]);
    assert!(again.code == 0 && again.stderr.contains("up to date") && !again.stderr.contains("new "), "{again:#?}");
    assert!(place.files() == before);
}

#[test]
fn a_pattern_names_operations_and_is_kept() {
    let place = shop(|_| {});
    let ran = pin(&place, &["--operations", "orders/l*", "DELETE /orders/*", "--prefix", "shop_"]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    assert!(ran.stderr.contains("8 operations are named by no pattern"), "{ran:#?}");
    let names = || actions(&place).as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(), ["shop_delete_orders_order-id", "shop_orders_list"]);
    assert_eq!(pin(&place, &[]).code, 0);
    assert_eq!(names().len(), 2);
    assert_eq!(pin(&place, &["--operations", "*"]).code, 0);
    assert_eq!(names().len(), 7);
    let none = pin(&place, &["--operations", "invoices/*"]);
    assert!(none.code == 2 && none.stderr.contains("no operation"), "{none:#?}");
    assert_eq!(names().len(), 7);
}

#[test]
fn a_host_gets_into_the_list_of_hosts_by_hand_or_by_a_flag() {
    let place = shop(|_| {});
    place.file(
        "loopctl.json",
        "{\n  // ours\n  \"allow\": { \"hosts\": [\"a.example.com\"] }\n}\n".replace("  // ours\n", ""),
    );
    let said = place.call(&["openapi", "pin", "shop.json"]);
    assert!(said.code == 0 && said.stderr.contains("(or --allow does): \"eu.shop.example.com\""), "{said:#?}");
    assert!(said.stderr.contains("\"orgconfig\": { \"shop_token\": \"env:SHOP_TOKEN\" }"), "{said:#?}");
    let added = place.call(&["openapi", "pin", "shop.json", "--allow"]);
    assert!(added.code == 0 && added.stderr.contains("has eu.shop.example.com now"), "{added:#?}");
    assert_eq!(
        read(&place, "loopctl.json"),
        "{\n  \"allow\": { \"hosts\": [\"a.example.com\", \"eu.shop.example.com\"] }\n}\n"
    );
    let other = place.call(&["openapi", "pin", "shop.json", "--host", "localhost:4010"]);
    assert!(other.stderr.contains("\"localhost:4010\""), "{other:#?}");
    assert!(read(&place, "actions/shop.json").contains("https://localhost:4010/v1/orders"));
}

#[test]
fn a_page_of_many_operations_says_so_before_they_are_read() {
    let place = Place::new();
    let operation = |number: usize| (format!("/x{number}"), json!({ "get": { "operationId": format!("op{number}") } }));
    let paths: serde_json::Map<String, Value> = (0..301).map(operation).collect();
    let page = json!({ "openapi": "3.1.0", "servers": [{ "url": "https://api.example.com" }], "paths": paths });
    place.json("many.json", &page);
    place.file("loopctl.json", "{}");
    let all = place.call(&["openapi", "pin", "many.json"]);
    assert!(all.code == 0 && all.stderr.starts_with("many.json: reading 301 operations"), "{all:#?}");
    let named = place.call(&["openapi", "pin", "many.json", "--operations", "op1"]);
    assert!(named.code == 0 && !named.stderr.contains("reading"), "{named:#?}");
}

#[test]
fn a_private_server_and_an_address_in_the_place_of_a_page_are_said() {
    let place = shop(|page| page["servers"] = json!([{ "url": "http://127.0.0.1:18080" }]));
    let mut settings: Value = serde_json::from_str(&read(&place, "loopctl.json")).unwrap();
    settings["allow"] = json!({});
    place.json("loopctl.json", &settings);
    let pinned = pin(&place, &["--allow"]);
    assert!(
        pinned.stderr.contains("\"private_addresses\": true") && !pinned.stderr.contains("every public host"),
        "{pinned:#?}"
    );
    let address = place.call(&["openapi", "pin", "https://example.com/openapi.json"]);
    assert!(address.code == 2 && address.stderr.contains("curl -fsSLo openapi.json"), "{address:#?}");
}
