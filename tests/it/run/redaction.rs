//! Secrets that the engine never knew, planted in every text that models, tools and humans write: no way
//! out shows one, and what takes the same ways and is no secret is shown.

use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use serde_json::{Value, json};

use crate::common::{Place, complete, web};

/// What is planted: a field's name says that it is a secret, the project says so, or its shape does.
#[derive(Debug, Clone)]
enum Planted {
    Field(&'static str, String),
    OfProject(String),
    Url(String),
    Query(String),
    Bearer(String),
    Header(String),
    InJson(String),
    Key(String),
}

impl Planted {
    fn secret(&self) -> &str {
        match self {
            Self::Field(_, secret) => secret,
            Self::OfProject(secret)
            | Self::Url(secret)
            | Self::Query(secret)
            | Self::Bearer(secret)
            | Self::Header(secret)
            | Self::InJson(secret)
            | Self::Key(secret) => secret,
        }
    }

    /// As it is written in a text.
    fn text(&self) -> String {
        match self {
            Self::Field(name, secret) => json!({ *name: secret }).to_string(),
            Self::OfProject(secret) => json!({ "badge": secret }).to_string(),
            Self::Url(secret) => format!("postgres://app:{secret}@db.example.com/x"),
            Self::Query(secret) => format!("GET https://h.example.com/p?page=2&api_key={secret}&sort=id"),
            Self::Bearer(secret) => format!("Authorization: Bearer {secret}"),
            Self::Header(secret) => json!([{ "name": "X-Api-Key", "value": secret }]).to_string(),
            Self::InJson(secret) => json!({ "body": json!({ "client_secret": secret }).to_string() }).to_string(),
            Self::Key(secret) => format!("the key {secret} is used"),
        }
    }
}

/// All of them in one text.
fn text_of(all: &[Planted]) -> String {
    all.iter().fold(SHOWN.to_owned(), |text, planted| text + " " + &planted.text())
}

/// All of them in one value, as JSON where they are JSON.
fn value_of(all: &[Planted]) -> Value {
    let value = |planted: &Planted| serde_json::from_str(&planted.text()).unwrap_or_else(|_| json!(planted.text()));
    all.iter()
        .enumerate()
        .map(|(at, planted)| (format!("field {at}"), value(planted)))
        .collect::<serde_json::Map<_, _>>()
        .into()
}

/// One of every kind.
fn planted() -> impl Strategy<Value = Vec<Planted>> {
    let names = vec!["password", "api_key", "authorization", "cookie", "access_token", "clientSecret", "private_key"];
    let secrets = proptest::collection::vec("[a-z]{4}[0-9]{4}[A-Z]{4}[0-9]{6}", 7);
    (proptest::sample::select(names), secrets, "[a-z0-9]{20}[0-9]{16}").prop_map(|(name, secrets, rest)| {
        let [one, two, three, four, five, six, seven] = <[String; 7]>::try_from(secrets).expect("seven");
        vec![
            Planted::Field(name, one),
            Planted::OfProject(two),
            Planted::Url(three),
            Planted::Query(four),
            Planted::Bearer(five),
            Planted::Header(six),
            Planted::InJson(seven),
            Planted::Key(format!("ghp_{rest}")),
        ]
    })
}

const SHOWN: &str = "marker-4711-visible";

/// A run in which everybody repeats it, through a pause for a question and one for an approval.
fn outputs(planted: &[Planted]) -> Vec<(String, String)> {
    let place = Place::new();
    let open = json!({ "parameters": { "type": "object", "additionalProperties": true } });
    let tools = [web("send", "http://tools.example.com/", open.clone()), web("ask", "http://tools.example.com/", open)];
    place.actions(&tools, &json!({ "redact": ["badge"] }));
    let text = text_of(planted);
    let said = |action: &str, input: Value| json!({ "thought": text, "action": action, "action_input": input });
    let replies = [
        said("send", value_of(planted)),
        said("send", json!({ "n": 2 })),
        said(&text, value_of(planted)),
        said("__log_progress__", json!({ "message": text, "milestone": text })),
        said("__store_memory__", json!({ "key": "k", "value": value_of(planted) })),
        said("__retrieve_memory__", json!({})),
        json!(format!("no reply, but prose with {text}")),
        json!({ "http": 503, "body": { "error": { "message": text } } }),
        said("__pause_for_human__", json!({ "question": text, "context": text, "options": [text, "b"] })),
        complete(json!("done")),
    ];
    let tools = json!({ "send": [value_of(planted), { "error": text }] });
    place.json("script.json", &json!({ "replies": replies, "tools": tools }));
    let trace_level = [("LOOPCTL_LOG", "trace"), ("RUST_LOG", "trace")];
    let mut all = Vec::new();
    let mut call = |args: &[&str], code: i32| {
        let ran = place.call_with(args, &trace_level);
        assert_eq!(ran.code, code, "{args:?}: {ran:#?}");
        all.push((format!("{args:?}"), ran.stdout + &ran.stderr));
    };
    for output in ["human", "json", "ndjson"] {
        call(&["run", "loop.json", "--script", "script.json", "--run-id", output, "--output", output], 3);
    }
    call(&["resume", "human", "--script", "script.json"], 3);
    for format in ["text", "json", "html"] {
        call(&["trace", "json", "--format", format], 0);
    }
    call(&["runs", "--output", "json"], 0);
    call(&["resume", "ndjson", "--answer", &text, "--script", "script.json", "--output", "ndjson"], 0);
    call(&["trace", "ndjson"], 0);
    call(&["cancel", "json", "--reason", &text], 0);
    call(&["trace", "json"], 0);
    all
}

fn search(planted: &[Planted]) {
    let outputs = outputs(planted);
    for (name, text) in &outputs {
        for one in planted {
            assert!(!text.contains(one.secret()), "{one:?} in {name}: {text}");
        }
    }
    // What took the same ways is there.
    for (name, text) in outputs.iter().filter(|(name, _)| !name.contains("runs") && !name.contains("cancel")) {
        assert!(text.contains(SHOWN), "the marker is not in {name}: {text}");
    }
}

fn search_cases(cases: u32) {
    let config = Config { cases, failure_persistence: None, max_shrink_iters: 0, ..Config::default() };
    let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let mut runner = TestRunner::new_with_rng(config, rng);
    runner
        .run(&planted(), |planted| {
            search(&planted);
            Ok(())
        })
        .expect("no secret is shown");
}

#[test]
fn no_way_out_shows_a_planted_secret() {
    search_cases(1);
}

#[test]
#[ignore = "nightly: 40 cases take a minute"]
fn no_way_out_shows_any_planted_secret() {
    search_cases(40);
}
