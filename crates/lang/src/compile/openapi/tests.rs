//! What is made of small pages.

use serde_json::{Value, json};

use super::*;

fn page(paths: &Value) -> PageFiles {
    let servers = json!([{ "url": "https://api.example.com" }]);
    let page = json!({ "openapi": "3.1.0", "servers": servers, "paths": paths });
    PageFiles::new("page.json", page)
}

fn made(files: &PageFiles, settings: &PinSettings) -> MadeActions {
    actions_of(files, settings).unwrap()
}

fn places(made: &MadeActions) -> Vec<(&str, &str)> {
    made.actions.values().map(|action| (action.name.as_str(), action.place.as_str())).collect()
}

/// The settings of a page that was pinned so.
fn pinned(made: &MadeActions) -> PinSettings {
    let known_names = made.actions.values().map(|action| (action.place.clone(), action.name.clone())).collect();
    PinSettings { known_names, ..PinSettings::default() }
}

#[test]
fn a_secret_stays_with_its_scheme_whatever_comes_before_it() {
    let with_schemes = |names: &[&str]| {
        let scheme = |name: &&str| ((*name).to_owned(), json!({ "type": "apiKey", "in": "header", "name": "X-Key" }));
        let schemes: serde_json::Map<String, Value> = names.iter().map(scheme).collect();
        let operation = |name: &&str| {
            let operation = json!({ "operationId": format!("of_{name}"), "security": [{ *name: [] }] });
            (format!("/{name}"), json!({ "get": operation }))
        };
        let paths: serde_json::Map<String, Value> = names.iter().map(operation).collect();
        let servers = json!([{ "url": "https://api.example.com" }]);
        let page = json!({ "openapi": "3.1.0", "servers": servers, "paths": paths, "components": { "securitySchemes": schemes } });
        PageFiles::new("page.json", page)
    };
    let settings = PinSettings { secret_prefix: "shop".to_owned(), ..PinSettings::default() };
    let sent = |made: &MadeActions| {
        let text = |action: &MadeAction| action.action["headers"]["X-Key"].as_str().unwrap_or_default().to_owned();
        made.actions.iter().map(|(name, action)| (name.clone(), text(action))).collect::<BTreeMap<_, _>>()
    };
    let first = made(&with_schemes(&["api_key"]), &settings);
    assert_eq!(sent(&first)["of_api_key"], "orgconfig:shop_api_key");
    let later = PinSettings { known_keys: first.scheme_keys, ..settings.clone() };
    let again = made(&with_schemes(&["API-Key", "api_key"]), &later);
    assert_eq!(sent(&again)["of_api_key"], "orgconfig:shop_api_key");
    assert_eq!(sent(&again)["of_API-Key"], "orgconfig:shop_api_key_2");
    // Without what was pinned, the first one by its name has it.
    assert_eq!(sent(&made(&with_schemes(&["API-Key", "api_key"]), &settings))["of_API-Key"], "orgconfig:shop_api_key");
}

#[test]
fn a_name_stays_with_its_operation_whatever_comes_before_it() {
    let operation = json!({ "operationId": "dup" });
    let long = json!({ "operationId": "x".repeat(80) });
    let old = json!({ "/b": { "get": operation }, "/c": { "delete": operation }, "/m": { "get": long }, "/{": {} });
    let first = made(&page(&old), &PinSettings::default());
    let cut = "x".repeat(64);
    assert_eq!(places(&first), [("dup", "GET /b"), ("dup_2", "DELETE /c"), (cut.as_str(), "GET /m")]);
    let mut more = old;
    more["/a"] = json!({ "delete": operation });
    more["/l"] = json!({ "delete": long });
    let again = made(&page(&more), &pinned(&first));
    let new = format!("{}_2", "x".repeat(62));
    assert_eq!(
        places(&again),
        [
            ("dup", "GET /b"),
            ("dup_2", "DELETE /c"),
            ("dup_3", "DELETE /a"),
            (new.as_str(), "DELETE /l"),
            (cut.as_str(), "GET /m")
        ]
    );
    // Another id of the operation is no other operation.
    more["/b"]["get"]["operationId"] = json!("renamed");
    let renamed = made(&page(&more), &pinned(&again));
    assert_eq!(places(&renamed), places(&again));
    // A name is free once its operation is gone.
    more.as_object_mut().unwrap().shift_remove("/b");
    more["/d"] = json!({ "get": operation });
    let moved = made(&page(&more), &pinned(&again));
    assert_eq!(places(&moved)[0], ("dup", "GET /d"));
    let odd = PinSettings {
        known_names: BTreeMap::from([("GET /d".to_owned(), "../x".to_owned())]),
        ..PinSettings::default()
    };
    let refused = made(&page(&json!({ "/d": { "get": operation } })), &odd);
    assert_eq!(places(&refused), [("dup", "GET /d")]);
}
