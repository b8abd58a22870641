//! A page that has changed: each change has a class.

use serde_json::{Value, json};

use super::{actions, page, pin, read, shop};

fn verify(place: &crate::common::Place) -> (i32, String) {
    let ran = place.call(&["openapi", "pin", "--verify"]);
    (ran.code, ran.stdout + &ran.stderr)
}

#[test]
fn each_change_of_a_page_has_a_class_and_an_exit_code() {
    let place = shop(|_| {});
    assert_eq!(pin(&place, &[]).code, 0);
    let (code, said) = verify(&place);
    assert!(code == 0 && said.contains("as pinned"), "{said}");
    let before = place.files();
    type Change = fn(&mut Value);
    let changes: [(&str, Change); 7] = [
        ("text         orders_create", |page| page["paths"]["/orders"]["post"]["summary"] = json!("Order.")),
        ("input        orders_create", |page| page["components"]["schemas"]["Article"]["required"] = json!([])),
        ("input        orders_get", |page| page["servers"][0]["url"] = json!("https://other.example.com")),
        ("output       orders_list", |page| {
            page["components"]["schemas"]["Order"]["properties"]["id"]["type"] = json!("string")
        }),
        ("gone         orders_get", |page| {
            page["paths"]["/orders/{order-id}"].as_object_mut().unwrap().shift_remove("get");
        }),
        ("gone         orders_get", |page| {
            page["paths"]["/orders/{order-id}"]["get"]["parameters"] =
                json!([{ "name": "s", "in": "cookie", "required": true }]);
        }),
        ("changed since", |page| page["paths"]["/orders"]["get"]["deprecated"] = json!(true)),
    ];
    for (line, change) in changes {
        page(&place, change);
        let (code, said) = verify(&place);
        assert!(code == 1 && said.contains(line), "{line}: {said}");
    }
    // The order of keys, titles and what no call depends on are notation. What is new is named, and no failure.
    page(&place, |page| {
        page["paths"].as_object_mut().unwrap().sort_keys();
        page["components"]["schemas"].as_object_mut().unwrap().sort_keys();
        page["components"]["schemas"]["Order"]["title"] = json!("An order");
        page["components"]["schemas"]["Order"]["required"] = json!(["lines", "id"]);
        page["paths"]["/new"] = json!({ "get": { "operationId": "fresh", "responses": {} } });
    });
    let (code, said) = verify(&place);
    assert!(code == 0 && said.contains("new          fresh") && !said.contains("input"), "{said}");
    // Nothing of this was written.
    let written: Vec<_> = place
        .files()
        .into_iter()
        .filter(|(path, _)| !path.ends_with("shop.json") || path.ends_with("actions/shop.json"))
        .collect();
    assert!(
        before
            .iter()
            .filter(|(path, _)| !path.ends_with("shop.json") || path.ends_with("actions/shop.json"))
            .eq(written.iter())
    );
    page(&place, |page| page["paths"]["/orders"]["post"]["summary"] = json!("Order."));
    let again = pin(&place, &[]);
    assert!(again.code == 0 && again.stderr.contains("changed  orders_create (text)"), "{again:#?}");
    assert_eq!(verify(&place).0, 0);
}

#[test]
fn an_action_keeps_its_operation_when_the_page_has_more_of_its_name() {
    let place = shop(|_| {});
    let operation = json!({ "operationId": "dup", "responses": {} });
    let two = |page: &mut Value| {
        page["paths"]["/b"] = json!({ "get": operation });
        page["paths"]["/c"] = json!({ "delete": operation });
    };
    page(&place, two);
    assert_eq!(pin(&place, &[]).code, 0);
    let names = |place: &crate::common::Place| {
        let lock: Value = serde_json::from_str(&read(place, "openapi.lock.json")).unwrap();
        let actions = lock["pages"]["shop"]["actions"].as_object().unwrap().clone();
        let all = actions.into_iter().filter(|(name, _)| name.starts_with("dup"));
        all.map(|(name, action)| (name, action["place"].as_str().unwrap().to_owned())).collect::<Vec<_>>()
    };
    let named = |all: &[(&str, &str)]| all.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect::<Vec<_>>();
    assert_eq!(names(&place), named(&[("dup", "GET /b"), ("dup_2", "DELETE /c")]));
    page(&place, |page| {
        two(page);
        page["paths"]["/a"] = json!({ "delete": operation });
    });
    let (code, said) = verify(&place);
    assert!(code == 0 && said.contains("new          dup_3  DELETE /a"), "{said}");
    assert_eq!(pin(&place, &[]).code, 0);
    assert_eq!(names(&place), named(&[("dup", "GET /b"), ("dup_2", "DELETE /c"), ("dup_3", "DELETE /a")]));
    // What has its name at another place is another operation.
    page(&place, |page| page["paths"]["/d"] = json!({ "delete": operation }));
    let (code, said) = verify(&place);
    assert!(code == 1 && said.contains("gone         dup  GET /b\n"), "{said}");
    assert!(said.contains("new          dup  DELETE /d\n"), "{said}");
}

#[test]
fn an_action_becomes_another_operation_only_when_it_is_named() {
    let place = shop(|_| {});
    assert_eq!(pin(&place, &[]).code, 0);
    // Another operation with the same id, which comes before.
    let remove = json!({ "operationId": "orders/list", "responses": {} });
    page(&place, |page| page["paths"]["/all"] = json!({ "delete": remove }));
    let (code, said) = verify(&place);
    assert!(code == 0 && said.contains("new          orders_list_2  DELETE /all"), "{said}");
    assert_eq!(pin(&place, &[]).code, 0);
    assert_eq!(actions(&place)["orders_list"]["http_method"], "GET");
    let before = read(&place, "actions/shop.json");
    page(&place, |page| {
        page["paths"]["/orders"].as_object_mut().unwrap().shift_remove("get");
        page["paths"]["/every"] = json!({ "delete": remove });
    });
    let (code, said) = verify(&place);
    assert_eq!(code, 1, "{said}");
    assert!(said.contains("gone         orders_list  GET /orders"), "{said}");
    assert!(said.contains("new          orders_list  DELETE /every"), "{said}");
    let refused = pin(&place, &["--moved", "orders_get"]);
    assert!(
        refused.code == 2 && refused.stderr.contains("`orders_list` was GET /orders, which is gone"),
        "{refused:#?}"
    );
    assert_eq!(read(&place, "actions/shop.json"), before);
    let moved = pin(&place, &["--moved", "orders_l*"]);
    assert!(moved.code == 0 && moved.stderr.contains("gone     orders_list  GET /orders"), "{moved:#?}");
    assert!(moved.stderr.contains("new      orders_list  DELETE /every"), "{moved:#?}");
    assert_eq!(verify(&place).0, 0);
    // The same when the operation is gone first, and another one has the name later.
    let without = |page: &mut Value| drop(page["paths"]["/orders"].as_object_mut().unwrap().shift_remove("get"));
    page(&place, without);
    assert_eq!(pin(&place, &[]).code, 0);
    page(&place, |page| {
        without(page);
        page["paths"]["/later"] = json!({ "delete": remove });
    });
    let refused = pin(&place, &[]);
    assert!(refused.code == 2 && refused.stderr.contains("`orders_list` was DELETE /every"), "{refused:#?}");
    assert_eq!(pin(&place, &["--moved", "orders_list"]).code, 0);
    // The name has an operation again; that of the second one, which left the page before, is kept.
    let lock: Value = serde_json::from_str(&read(&place, "openapi.lock.json")).unwrap();
    let gone = lock["pages"]["shop"]["gone"].as_object().unwrap();
    assert!(gone.contains_key("orders_list_2") && !gone.contains_key("orders_list"), "{gone:?}");
}

#[test]
fn a_file_that_somebody_changed_or_wrote_is_never_written_over() {
    let place = shop(|_| {});
    place.file("actions/shop.json", "[]");
    let refused = pin(&place, &[]);
    assert!(refused.code == 2 && refused.stderr.contains("written by somebody else"), "{refused:#?}");
    assert_eq!((read(&place, "actions/shop.json").as_str(), read(&place, "openapi.lock.json").as_str()), ("[]", ""));
    std::fs::remove_file(place.path().join("actions/shop.json")).unwrap();
    assert_eq!(pin(&place, &[]).code, 0);
    let written = read(&place, "actions/shop.json");
    place.file("actions/shop.json", written.replace("Create an order.", "Creates an order."));
    let (code, said) = verify(&place);
    assert!(code == 1 && said.contains("edited       actions/shop.json"), "{said}");
    page(&place, |page| page["paths"]["/orders"]["post"]["summary"] = json!("Order."));
    let refused = pin(&place, &[]);
    assert!(refused.code == 2 && refused.stderr.contains("changed since it was written"), "{refused:#?}");
    assert!(read(&place, "actions/shop.json").contains("Creates an order."));
    let other = pin(&place, &["--name", "store"]);
    assert!(other.code == 2 && other.stderr.contains("--prefix"), "{other:#?}");
}
