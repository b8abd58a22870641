//! The stanzas of docs/providers.md: each is checked, and played against a server that sees what the page says.

use std::path::Path;

use loopctl::language::Project;
use serde_json::{Value, json};

use crate::common::server::{Answer, Server};
use crate::common::{Place, complete};

const KEY: &str = "the-key-of-4471";

/// A stanza of the page.
struct Stanza {
    title: String,
    project: Value,
    /// The address of its requests.
    url: String,
    /// The headers that say who asks.
    headers: Vec<(String, String)>,
}

fn stanzas() -> Vec<Stanza> {
    let page = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/providers.md")).unwrap();
    let block = |part: &str, kind: &str| {
        let (_, rest) = part.split_once(&format!("```{kind}\n"))?;
        Some(rest.split_once("```")?.0.to_owned())
    };
    let is_stanza = |part: &&str| !["Not supported", "Limits"].iter().any(|title| part.starts_with(title));
    let parts = page.split("\n## ").skip(1).filter(is_stanza);
    let stanza = |part: &str| {
        let part = &part.replace("REGION", "eu-central-1");
        let request = block(part, "http").expect("a request");
        let (first, headers) = request.split_once('\n').unwrap();
        let header = |line: &str| {
            let (name, value) = line.split_once(": ").expect("a header");
            (name.to_owned(), value.replace("KEY", KEY))
        };
        Stanza {
            title: part.lines().next().unwrap().to_owned(),
            project: serde_json::from_str(&block(part, "json").expect("a project")).unwrap(),
            url: first.strip_prefix("POST ").expect("a POST").to_owned(),
            headers: headers.lines().map(header).collect(),
        }
    };
    parts.map(stanza).collect()
}

/// A reply that ends the run, in the protocol of a provider.
fn answer(provider: &str) -> Answer {
    let text = complete(json!("done")).to_string();
    match provider {
        "anthropic" => Answer::anthropic(&text),
        "gemini" => {
            Answer::json(&json!({ "candidates": [{ "content": { "role": "model", "parts": [{ "text": text }] },
            "finishReason": "STOP" }], "usageMetadata": { "promptTokenCount": 10, "candidatesTokenCount": 5 } }))
        }
        "openai-responses" => {
            Answer::json(&json!({ "id": "r", "object": "response", "status": "completed", "output": [
            { "type": "message", "role": "assistant", "status": "completed",
                "content": [{ "type": "output_text", "text": text, "annotations": [] }] }],
            "usage": { "input_tokens": 10, "output_tokens": 5 } }))
        }
        _ => Answer::openai(&text),
    }
}

/// The path of an address.
fn path(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    rest.find('/').and_then(|at| rest.get(at..)).unwrap_or_default()
}

/// The stanza as it is played at a server, and the variables that it names.
fn played(stanza: &Stanza, server: &Server) -> (Value, Vec<(String, String)>) {
    let mut project = stanza.project.clone();
    let mut env: Vec<(String, String)> = Vec::new();
    let model = &mut project["models"]["main"];
    let mut secrets: Vec<Value> = vec![model["api_key"].clone()];
    secrets.extend(model["headers"].as_object().into_iter().flat_map(|headers| headers.values().cloned()));
    for variable in secrets.iter().filter_map(|secret| secret.as_str()?.strip_prefix("env:")) {
        env.push((variable.to_owned(), KEY.to_owned()));
    }
    if model["api_key"].get("command").is_some() {
        // The provider's own program is not on this machine.
        model["api_key"]["command"] = json!(["echo", KEY]);
        project["allow"]["commands"] = json!(["echo"]);
    }
    let model = &mut project["models"]["main"];
    if model["auth"] == "sigv4" {
        // The machine's credentials go to AWS, or to where the environment says.
        let base = model["base_url"].as_str().unwrap().to_owned();
        model["base_url"] = json!("env:BEDROCK_URL");
        env.push(("BEDROCK_URL".to_owned(), format!("{}{}", server.url(), path(&base))));
        let keys = [("AWS_REGION", "eu-central-1"), ("AWS_ACCESS_KEY_ID", "ID"), ("AWS_SECRET_ACCESS_KEY", KEY)];
        env.extend(keys.map(|(name, value)| (name.to_owned(), value.to_owned())));
        return (project, env);
    }
    match model["base_url"].as_str().map(str::to_owned) {
        Some(held) if held.starts_with("env:") => {
            env.push((held.trim_start_matches("env:").to_owned(), format!("{}/held", server.url())));
        }
        Some(base) => model["base_url"] = json!(format!("{}{}", server.url(), path(&base))),
        None => {
            // The provider's own address, which the library knows.
            let typed: Project = serde_json::from_value(stanza.project.clone()).unwrap();
            let home = typed.models["main"].provider.facts().server.as_ref().expect("a server");
            let id = typed.models["main"].model.clone().unwrap();
            let own = format!("{}{}", home.base_url, home.path.replace("{model}", &id));
            assert_eq!(own, stanza.url, "{}", stanza.title);
            env.push((home.base_url_variable.to_owned(), format!("{}{}", server.url(), path(home.base_url))));
        }
    }
    (project, env)
}

#[test]
fn each_stanza_is_sound_and_asks_at_the_address_and_with_the_headers_that_the_page_says() {
    let stanzas = stanzas();
    assert!(stanzas.len() >= 15, "{}", stanzas.len());
    for stanza in stanzas {
        let title = &stanza.title;
        let provider = stanza.project["models"]["main"]["provider"].as_str().unwrap().to_owned();
        let place = Place::new();
        place.file("loop.json", place_loop());
        place.file("team.txt", format!("{KEY}\n"));
        place.json("loopctl.json", &stanza.project);
        let checked = place.call(&["check", "loop.json"]);
        assert_eq!((checked.code, checked.stderr.contains("warning[")), (0, false), "{title}: {checked:#?}");
        let reply = answer(&provider);
        let server = Server::with(move |_, _| reply.clone());
        let (project, env) = played(&stanza, &server);
        place.json("loopctl.json", &project);
        let env: Vec<(&str, &str)> = env.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let ran = place.call_with(&["run", "loop.json", "--output", "json", "--store", "memory"], &env);
        assert_eq!((ran.code, &ran.json()["result"]["answer"]), (0, &json!("done")), "{title}: {ran:#?}");
        let requests = server.requests();
        let expected = path(&stanza.url.replace("LITELLM_BASE_URL", "http://x/held")).to_owned();
        assert_eq!((requests.len(), requests[0].path.as_str()), (1, expected.as_str()), "{title}");
        for (name, value) in &stanza.headers {
            // Behind the id of the key, a signature has what changes.
            let shown = |value: &str| value.split("/DAY/").next().unwrap_or_default().to_owned();
            let sent = requests[0].header(name).map(|sent| match value.contains("/DAY/") {
                true => sent.split('/').next().unwrap_or_default().to_owned(),
                false => sent.to_owned(),
            });
            assert_eq!(sent, Some(shown(value)), "{title}: {name}");
        }
        for name in ["authorization", "x-api-key", "api-key", "x-goog-api-key"] {
            let is_listed = stanza.headers.iter().any(|(listed, _)| listed.eq_ignore_ascii_case(name));
            assert_eq!(requests[0].header(name).is_some(), is_listed, "{title}: {name}");
        }
    }
}

fn place_loop() -> String {
    let action = json!({ "action_name": "look", "kind": "http", "description": "Looks something up.",
        "url": "https://api.example.com/things/{{id}}", "http_method": "GET" });
    json!({ "type": "loop", "name": "test", "actions": [action], "properties": { "mode": "react",
        "objective": "Find out.", "tools": [{ "type": "action", "name": "look" }] } })
    .to_string()
}
