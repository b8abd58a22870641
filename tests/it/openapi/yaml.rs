//! Pages in YAML, which only a build with the feature `openapi-yaml` reads.

#[cfg(feature = "openapi-yaml")]
use serde_json::{Value, json};

#[cfg(feature = "openapi-yaml")]
use super::{actions, pin};
use super::{read, shop};

/// The page of the shop, as YAML that is no JSON.
fn in_yaml(more: &str) -> crate::common::Place {
    let place = shop(|_| {});
    let page = read(&place, "shop.json");
    place.file("shop.yaml", format!("# A shop\n{page}{more}"));
    place
}

fn pinned(place: &crate::common::Place) -> crate::common::Ran {
    let secrets = ["shop_token", "shop_login", "shop_key", "shop_keyinquery"].iter().flat_map(|key| ["--secret", key]);
    let args: Vec<&str> = ["openapi", "pin", "shop.yaml"].into_iter().chain(secrets).collect();
    place.call(&args)
}

#[cfg(not(feature = "openapi-yaml"))]
#[test]
fn a_build_without_the_feature_says_how_a_page_in_yaml_is_read() {
    let place = in_yaml("");
    let ran = pinned(&place);
    assert_eq!(ran.code, 2, "{ran:#?}");
    assert!(ran.stderr.contains("yq -o json") && ran.stderr.contains("--features openapi-yaml"), "{ran:#?}");
}

#[cfg(feature = "openapi-yaml")]
#[test]
fn a_page_in_yaml_makes_the_actions_that_it_makes_in_json() {
    let place = in_yaml("");
    let ran = pinned(&place);
    assert_eq!(ran.code, 0, "{ran:#?}");
    let made = actions(&place);
    let other = shop(|_| {});
    assert_eq!(pin(&other, &[]).code, 0);
    assert_eq!(made, actions(&other));
}

#[cfg(feature = "openapi-yaml")]
#[test]
fn yaml_is_read_as_version_1_2_with_numbers_as_keys_and_files_beside_it() {
    let place = crate::common::Place::new();
    place.json("loopctl.json", &json!({ "allow": { "hosts": ["a.example.com"] } }));
    place.file("parts.yaml", "Country:\n  type: string\n  enum: [no, on, fr]\n");
    place.file(
        "shop.yaml",
        "openapi: 3.1.0\ninfo: {title: Shop, version: 1.10}\nservers:\n- url: https://a.example.com\npaths:\n  /orders:\n    get:\n      \
         operationId: orders\n      description: >\n        Lists\n        orders.\n      parameters:\n      - &country\n        name: country\n        \
         in: query\n        schema: {$ref: 'parts.yaml#/Country'}\n      responses:\n        200: {description: They are there.}\n  \
         /bills:\n    get:\n      operationId: bills\n      description: Lists bills.\n      parameters: [*country]\n      responses:\n        \
         200: {description: They are there.}\n",
    );
    let ran = place.call(&["openapi", "pin", "shop.yaml"]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    let made = actions(&place);
    for name in ["orders", "bills"] {
        let country: &Value = &made[name]["parameters"]["properties"]["country"];
        assert_eq!(country["enum"], json!(["no", "on", "fr"]), "{made:#}");
    }
    assert_eq!(place.call(&["check"]).code, 0);
}

#[cfg(feature = "openapi-yaml")]
#[test]
fn yaml_that_would_do_harm_is_refused_with_its_line() {
    let laughs: String =
        (1..40).map(|at| format!("a{at}: &a{at} [{}]\n", vec![format!("*a{}", at - 1); 10].join(","))).collect();
    let deep = format!("a: {}{}\n", "[".repeat(1_000), "]".repeat(1_000));
    for (name, text) in [
        ("aliases", format!("a0: &a0 [x]\n{laughs}")),
        ("depth", deep),
        ("a key twice", "openapi: 3.1.0\nopenapi: 3.0.0\n".to_owned()),
        ("two documents", "openapi: 3.1.0\n---\nopenapi: 3.1.0\n".to_owned()),
        ("broken", "openapi: [3.1.0\n".to_owned()),
    ] {
        let place = crate::common::Place::new();
        place.json("loopctl.json", &json!({}));
        place.file("shop.yaml", &text);
        let ran = place.call(&["openapi", "pin", "shop.yaml"]);
        assert_eq!(ran.code, 2, "{name}: {ran:#?}");
        assert!(ran.stderr.contains("neither JSON nor YAML"), "{name}: {ran:#?}");
    }
}
