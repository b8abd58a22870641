//! What loops need of the environment is required at the start: secrets and the keys of models, all named at once.

use serde_json::{Value, json};

use crate::common::server::{Answer, Server};
use crate::common::{Place, complete, think};

/// A tool that sends a secret.
fn keyed(name: &str, url: &str, key: &str) -> Value {
    json!({ "action_name": name, "kind": "http", "description": "Reads.", "url": url, "http_method": "GET",
        "headers": { "Authorization": format!("Bearer orgconfig:{key}") },
        "parameters": { "type": "object", "properties": {} } })
}

/// A loop `loop.json` whose tools `one` and the loop `below` need a secret each; the model `m` needs a key.
fn place(tools: &Server, model: &Server) -> Place {
    let place = Place::new();
    place.json(
        "loopctl.json",
        &json!({
            "model": "m", "models": { "m": { "provider": "openai", "base_url": model.url(), "api_key": "env:MODEL_KEY" },
                "other": { "provider": "openai", "api_key": "env:OTHER_KEY" } },
            "orgconfig": { "first": "env:FIRST", "second": "file:second.txt", "unused": "env:UNUSED" },
            "allow": { "private_addresses": true } }),
    );
    let tool = |kind: &str, name: &str| json!({ "type": kind, "name": name });
    let looped = |name: &str, action: Value, tools: Value| {
        json!({ "type": "loop", "name": name, "description": "Reads.", "actions": [action],
            "properties": { "mode": "react", "objective": "Read.", "tools": tools } })
    };
    let url = tools.url();
    place.json(
        "loop.json",
        &looped("top", keyed("one", &url, "first"), json!([tool("action", "one"), tool("loop", "below")])),
    );
    place.json("loops/below.json", &looped("below", keyed("two", &url, "second"), json!([tool("action", "two")])));
    place
}

fn servers() -> (Server, Server) {
    let model = Server::with(|turn, _| {
        let says = if turn == 0 { think("one", json!({})) } else { complete(json!("done")) };
        Answer::openai(&says.to_string())
    });
    (Server::with(|_, _| Answer::json(&json!({ "read": 1 }))), model)
}

#[test]
fn a_run_without_its_secrets_is_refused_before_a_model_is_asked_and_names_all_of_them() {
    let (tools, model) = servers();
    let place = place(&tools, &model);
    let run = ["run", "loop.json", "--run-id", "r", "--output", "json"];
    let refused = place.call(&run);
    assert_eq!((refused.code, refused.stdout.as_str()), (2, ""), "{refused:#?}");
    for words in ["3 things are missing", "MODEL_KEY", "FIRST", "second.txt", "one needs it", "two needs it"] {
        assert!(refused.stderr.contains(words), "{words}: {refused:#?}");
    }
    for unneeded in ["UNUSED", "OTHER_KEY"] {
        assert!(!refused.stderr.contains(unneeded), "{refused:#?}");
    }
    assert_eq!((model.requests().len(), tools.requests().len()), (0, 0), "nothing was asked");
    assert_eq!(place.call(&["trace", "r"]).code, 2, "nothing is in the store");
    place.file("second.txt", "a-second-secret\n");
    let env = [("MODEL_KEY", "sk-model-key"), ("FIRST", "a-first-secret")];
    let one = place.call_with(&run, &env[..1]);
    assert!(one.code == 2 && one.stderr.contains("FIRST") && !one.stderr.contains("things are missing"), "{one:#?}");
    let done = place.call_with(&run, &env);
    assert_eq!(done.code, 0, "{done:#?}");
    assert_eq!(tools.requests()[0].header("authorization"), Some("Bearer a-first-secret"));
    let again = place.call(&run);
    assert_eq!(again.code, 0, "a run that has ended needs nothing: {again:#?}");
}

#[test]
fn a_resume_without_the_secrets_is_refused_and_changes_nothing() {
    let (tools, model) = servers();
    let place = place(&tools, &model);
    place.file("second.txt", "a-second-secret\n");
    let env = [("MODEL_KEY", "sk-model-key"), ("FIRST", "a-first-secret"), ("LOOPCTL_FAIL", "journal:1:after-sync")];
    place.call_with(&["run", "loop.json", "--run-id", "r"], &env);
    let before = place.call(&["trace", "r", "--format", "json"]).stdout;
    let refused = place.call_with(&["resume", "r", "--output", "json"], &env[..1]);
    assert!(refused.code == 2 && refused.stderr.contains("FIRST"), "{refused:#?}");
    assert_eq!(place.call(&["trace", "r", "--format", "json"]).stdout, before);
    assert_eq!(place.call_with(&["resume", "r"], &env[..2]).code, 0);
}

#[test]
fn tools_and_models_that_a_script_replaces_need_nothing() {
    let (tools, model) = servers();
    let place = place(&tools, &model);
    let replies = [think("one", json!({})), complete(json!("done"))];
    let script = |tools: Value| json!({ "replies": replies, "tools": tools });
    place.json("script.json", &script(json!({ "one": [{ "read": 1 }], "below": ["read"] })));
    let run = ["run", "loop.json", "--script", "script.json", "--store", "memory"];
    assert_eq!(place.call(&run).code, 0);
    place.json("script.json", &script(json!({ "one": [{ "read": 1 }] })));
    let refused = place.call(&run);
    assert!(refused.code == 2 && refused.stderr.contains("second.txt"), "{refused:#?}");
    assert!(!refused.stderr.contains("FIRST") && !refused.stderr.contains("MODEL_KEY"), "{refused:#?}");
}

#[test]
fn check_reports_what_is_missing_with_env_and_does_not_depend_on_the_environment_without_it() {
    let (tools, model) = servers();
    let place = place(&tools, &model);
    let plain = place.call(&["check", "."]);
    assert_eq!(plain.code, 0, "{plain:#?}");
    let env = [("MODEL_KEY", "sk-model-key"), ("FIRST", "a-first-secret")];
    assert_eq!(place.call_with(&["check", "."], &env).stderr, plain.stderr, "the same in any environment");
    let checked = place.call(&["check", ".", "--env", "--format", "json"]);
    assert_eq!(checked.code, 1, "{checked:#?}");
    let faults = checked.json();
    let mut paths: Vec<&str> = faults.as_array().unwrap().iter().filter_map(|fault| fault["path"].as_str()).collect();
    paths.sort_unstable();
    paths.dedup();
    assert_eq!(paths, ["/models/m", "/orgconfig/first", "/orgconfig/second"], "{faults:#}");
    assert!(
        faults.as_array().unwrap().iter().all(|fault| fault["code"] == "L133"
            && fault["file"].as_str().is_some_and(|file| file.ends_with("loopctl.json"))),
        "{faults:#}"
    );
    place.file("second.txt", "a-second-secret\n");
    let sound = place.call_with(&["check", ".", "--env"], &env);
    assert_eq!(sound.code, 0, "{sound:#?}");
}
