//! Parameters that are derived from the templates of an `http` action: what lands in the address or a header is one text.

use serde_json::{Value, json};

use crate::common::server::{Answer, Server};
use crate::common::{Place, complete, observed, think};

/// A loop with an action that has no `parameters`, whose tools and model are at this server.
fn place(server: &Server) -> Place {
    let action = json!({
        "action_name": "find", "kind": "http", "description": "Finds.", "http_method": "GET",
        "url": format!("{}/orders/{{{{id}}}}", server.url()),
        "headers": { "X-Region": "region {{region}}" }, "query": { "state": "@states" }
    });
    let place = Place::new();
    let model = json!({ "provider": "openai", "base_url": format!("{}/v1", server.url()) });
    place
        .actions(&[action], &json!({ "allow": { "private_addresses": true }, "models": { "m": model }, "model": "m" }));
    place
}

fn find(input: Value) -> Value {
    think("find", input)
}

#[test]
fn an_object_or_a_list_where_the_address_has_one_text_is_refused_before_anything_is_sent_and_the_model_reads_why() {
    let turns = [
        find(json!({ "id": { "order": 7 }, "region": "eu", "states": "open" })),
        find(json!({ "id": 7, "region": ["eu"], "states": "open" })),
        find(json!({ "id": 7, "region": "eu", "states": null })),
        find(json!({ "id": 7, "region": "eu", "states": ["open", "late"] })),
        complete(json!("done")),
    ];
    let server = Server::reading(move |_, request| {
        if !request.path.starts_with("/v1") {
            return Answer::json(&json!({ "found": 1 }));
        }
        let messages = request.json()["messages"].as_array().unwrap().len();
        Answer::openai(&turns[(messages - 2) / 2].to_string())
    });
    let ran = place(&server).call(&["run", "loop.json", "--output", "json", "--store", "memory"]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    let trace = &ran.json()["trace"];
    for (at, said) in [
        (0, "at /id: must be a text, a number or true or false"),
        (1, "at /region: must be a text"),
        (2, "at /states: must be a text"),
    ] {
        let observation = observed(&trace[at]);
        assert!(observation.contains("was not accepted, and the tool was not called"), "{observation}");
        let begin: Vec<&str> = said.split(": ").collect();
        assert!(observation.contains(begin[0]) && observation.contains("must be"), "{observation}");
    }
    let called: Vec<_> = server.requests().into_iter().filter(|request| !request.path.starts_with("/v1")).collect();
    assert_eq!(called.len(), 1);
    assert_eq!(called[0].path, "/orders/7?state=open&state=late");
    assert_eq!(called[0].header("x-region"), Some("region eu"));
    let prompt = server.requests()[0].json()["messages"][0]["content"].as_str().unwrap().to_owned();
    assert!(prompt.contains(r#""id":{"type":["string","number","boolean"]}"#), "{prompt}");
}
