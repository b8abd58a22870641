//! A run that uses secrets, in which everybody repeats them: everything that is printed and every
//! file that is written is searched, and holds none.

use std::fmt::Write;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use serde_json::{Value, json};

use crate::common::server::{Answer, Server};
use crate::common::{Place, Ran, complete, think, web};

/// Secrets with what encodings differ in. The second one goes to a command, the third to the model's
/// server, the fourth is a number.
const HEADER: &str = "S3cr\"t/pw+8\\word&7=<x>?";
const COMMAND: &str = "command secret/\u{e4}\u{f6} +=%22\n2nd line";
const MODEL: &str = "sk-model-0123456789abcdef";
const DIGITS: &str = "735198246013";
/// What is no secret, and takes the same ways.
const MARKER: &str = "marker-4711-visible";

fn hex(text: &str) -> String {
    text.bytes().fold(String::new(), |mut out, byte| {
        let _ = write!(out, "{byte:02x}");
        out
    })
}

fn percent(text: &str) -> String {
    text.bytes().fold(String::new(), |mut out, byte| {
        let kept = byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
        let _ = if kept { write!(out, "{}", char::from(byte)) } else { write!(out, "%{byte:02X}") };
        out
    })
}

fn escaped(text: &str) -> String {
    json!(text).to_string().trim_matches('"').to_owned()
}

fn in_lines(encoded: &str, end: &str) -> String {
    encoded.as_bytes().chunks(4).map(|line| str::from_utf8(line).unwrap()).collect::<Vec<_>>().join(end)
}

/// A text in the encodings that are promised to be found.
fn encodings(text: &str) -> Vec<String> {
    let mut all = vec![
        text.to_owned(),
        STANDARD.encode(text),
        STANDARD_NO_PAD.encode(text),
        URL_SAFE_NO_PAD.encode(text),
        percent(text),
        percent(text).replace("%20", "+"),
        percent(&percent(text)),
        hex(text),
        hex(text).to_uppercase(),
        escaped(text),
        escaped(&escaped(text)),
        text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;"),
        in_lines(&STANDARD.encode(text), "\n"),
        in_lines(&STANDARD.encode(text), "\r\n  "),
        in_lines(&STANDARD.encode(text), "\\n"),
        in_lines(&hex(text), ":"),
        percent(text).replace("%2F", "/"),
        text.chars()
            .map(|c| if c.is_ascii_alphanumeric() { c.to_string() } else { format!("&#x{:x};", u32::from(c)) })
            .collect(),
        text.chars()
            .map(|c| if c.is_ascii_alphanumeric() { c.to_string() } else { format!("&#{};", u32::from(c)) })
            .collect(),
        text.chars().map(|c| format!("\\u{:04x}", u32::from(c))).collect(),
        text.chars().map(|c| format!("{c}\0")).collect::<String>().replace('\0', "\\u0000"),
    ];
    all.sort();
    all.dedup();
    all
}

/// The pieces of base64 that encode the text alone, wherever it begins in what was encoded.
fn pieces(text: &str) -> Vec<String> {
    (0..3_usize)
        .map(|before| {
            let whole = STANDARD_NO_PAD.encode(["", "a", "ab"][before].to_owned() + text + "zz");
            let (from, to) = ((before * 8).div_ceil(6), (before + text.len()) * 8 / 6);
            whole.chars().skip(from).take(to - from).collect()
        })
        .collect()
}

/// A text in which one is repeated in every encoding.
fn echo(text: &str) -> Value {
    let mut said =
        json!({ "marker": MARKER, "list": encodings(text), "line": format!("<{}>", encodings(text).join("|")) });
    said[text] = json!("as a key");
    said["inside"] = json!(["", "u:", "us:", "use:"].map(|before| STANDARD.encode(format!("{before}{text}:x"))));
    said
}

struct Searched {
    place: Place,
    server: Server,
    outputs: Vec<(String, Vec<u8>)>,
}

/// The server of the tools and of the model: it repeats whatever it got.
fn server() -> Server {
    let asked = AtomicUsize::new(0);
    Server::with(move |_, request| {
        if request.path.starts_with("/v1") {
            let number = asked.fetch_add(1, Ordering::SeqCst);
            return model(number % 14, request.header("authorization").unwrap_or_default());
        }
        let header = request.header("x-key").unwrap_or_default().to_owned();
        match request.path.split('?').next().unwrap_or_default() {
            "/echo" => Answer::json(&json!({ "yours": echo(&header), "bearer": header, "n": 735198246013_u64 })),
            "/text" => Answer::new("text/plain", format!("{MARKER} {}", encodings(&header).join("\n"))),
            "/error" => Answer::new("text/plain", format!("{MARKER} {}", encodings(&header).join("\n"))).status(400),
            "/redirect" => {
                let to = format!("http://{}.evil.test/{}", hex(&header), percent(&header));
                Answer::new("text/plain", "").status(302).header("location", &to)
            }
            _ => Answer::json("{}").status(404),
        }
    })
}

/// The model says what it can't know, in all its texts: it is as bad as can be.
fn model(number: usize, authorization: &str) -> Answer {
    let secrets = [HEADER, COMMAND, MODEL, authorization];
    let all: Vec<String> = secrets.iter().flat_map(|secret| encodings(secret)).collect();
    let said = |action: &str, input: Value| {
        json!({ "thought": format!("{MARKER} {}", all.join(" ")), "action": action, "action_input": input }).to_string()
    };
    let input = json!({ "note": all.join(" ") });
    match number {
        // The first one before any tool was called: its action's secrets were not used yet.
        0 => Answer::openai(&said("echo", input)),
        1 => Answer::openai(&said("text", input)),
        2 => Answer::openai(&said("error", input)),
        3 => Answer::openai(&said("redirect", input)),
        4 => Answer::openai(&said("program", json!({}))),
        5 => Answer::openai(&said("grumble", json!({}))),
        6 => Answer::openai(&said("__log_progress__", json!({ "message": all.join(" ") }))),
        7 => Answer::openai(&said("__store_memory__", json!({ "key": HEADER, "value": all }))),
        8 => Answer::openai(&said("__retrieve_memory__", json!({}))),
        9 => Answer::openai(&said("no such tool", json!({ "note": COMMAND }))),
        10 => Answer::openai(&format!("prose {}", all.join(" "))),
        11 => Answer::json(&json!({ "error": { "message": format!("bad key {authorization} {}", all.join(" ")) } }))
            .status(500),
        12 => Answer::openai(&said(
            "__pause_for_human__",
            json!({ "question": all.join(" "), "options": [HEADER, COMMAND] }),
        )),
        _ => Answer::openai(&said(
            "__complete__",
            json!({ "answer": { "all": all, "marker": MARKER }, "summary": HEADER }),
        )),
    }
}

const ENV: [(&str, &str); 6] = [
    ("HEADER_KEY", HEADER),
    ("COMMAND_KEY", COMMAND),
    ("MODEL_KEY", MODEL),
    ("DIGITS_KEY", DIGITS),
    ("LOOPCTL_LOG", "trace"),
    ("RUST_LOG", "trace"),
];

impl Searched {
    fn new() -> Self {
        let server = server();
        let place = Place::new();
        let at = |path: &str| format!("{}/{path}", server.url());
        let keyed = json!({ "headers": { "X-Key": "orgconfig:header_key", "X-Digits": "orgconfig:digits" },
            "parameters": { "type": "object", "additionalProperties": true } });
        let program = |name: &str, script: &str| {
            json!({ "action_name": name, "kind": "command", "description": "Runs.", "program": "sh",
                "args": ["-c", script], "env": { "KEY": "orgconfig:command_key" }, "parameters": { "type": "object" } })
        };
        let actions = [
            web("echo", &at("echo"), keyed.clone()),
            web("text", &at("text"), keyed.clone()),
            web("error", &at("error"), keyed.clone()),
            web("redirect", &at("redirect"), keyed),
            program(
                "program",
                &format!(
                    "echo {MARKER}; echo \"$KEY\"; printf %s \"$KEY\" | base64 -w0; env; cat /proc/self/environ | tr '\\0' '|'"
                ),
            ),
            program("grumble", "echo \"$KEY\" >&2; printf %s \"$KEY\" | od -An -tx1 | tr -d ' \\n' >&2; exit 3"),
        ];
        let project = json!({ "allow": { "private_addresses": true, "commands": ["sh"] },
            "orgconfig": { "header_key": "env:HEADER_KEY", "command_key": "env:COMMAND_KEY", "digits": "env:DIGITS_KEY" },
            "models": { "loud": { "provider": "openai", "base_url": format!("{}/v1", server.url()), "api_key": "env:MODEL_KEY" } },
            "model": "loud" });
        place.actions(&actions, &project);
        Self { place, server, outputs: Vec::new() }
    }

    fn call(&mut self, args: &[&str]) -> Ran {
        let ran = self.place.call_with(args, &ENV);
        self.outputs.push((format!("stdout of {args:?}"), ran.stdout.clone().into_bytes()));
        self.outputs.push((format!("stderr of {args:?}"), ran.stderr.clone().into_bytes()));
        ran
    }

    /// Everything that was printed, and every file but those that the test wrote.
    fn everything(&self) -> Vec<(String, Vec<u8>)> {
        let ours = ["loop.json", "loopctl.json"].map(PathBuf::from);
        let files = self.place.files().into_iter().filter(|(path, _)| !ours.iter().any(|name| path.ends_with(name)));
        let files = files.map(|(path, bytes)| (path.display().to_string(), bytes));
        self.outputs.iter().cloned().chain(files).collect()
    }
}

fn holds(bytes: &[u8], text: &str) -> bool {
    let finder = aho_corasick::AhoCorasick::new([text]).expect("a text");
    finder.is_match(bytes)
}

#[test]
fn no_secret_is_in_any_output_or_file_of_a_run_that_uses_them() {
    let mut all = Searched::new();
    for (number, output) in ["human", "json", "ndjson"].iter().enumerate() {
        let id = format!("run-{number}");
        let ran = all.call(&["run", "loop.json", "--output", output, "--run-id", &id]);
        assert_eq!(ran.code, 3, "{ran:#?}");
        let ran = all.call(&["resume", &id, "--answer", MARKER, "--output", output]);
        assert_eq!(ran.code, 0, "{ran:#?}");
        for format in ["text", "json", "html"] {
            assert_eq!(all.call(&["trace", &id, "--format", format]).code, 0);
        }
    }
    for output in ["human", "json"] {
        assert_eq!(all.call(&["runs", "--output", output]).code, 0);
        assert_eq!(all.call(&["prompt", "loop.json", "--output", output]).code, 0);
    }
    // The secrets were really used.
    let seen = all.server.requests();
    assert!(
        seen.iter()
            .any(|request| request.header("x-key") == Some(HEADER) && request.header("x-digits") == Some(DIGITS))
    );
    assert!(seen.iter().any(|request| request.header("authorization") == Some(&format!("Bearer {MODEL}"))));
    let everything = all.everything();
    assert!(
        everything.iter().any(|(name, _)| name.ends_with(".db") || name.ends_with(".db-wal")),
        "the store is searched"
    );
    let mut found = Vec::new();
    for secret in [HEADER, COMMAND, MODEL, DIGITS] {
        for text in encodings(secret).into_iter().chain(pieces(secret)) {
            found.extend(
                everything
                    .iter()
                    .filter(|(_, bytes)| holds(bytes, &text))
                    .map(|(name, _)| format!("{text:?} in {name}")),
            );
        }
    }
    assert!(found.is_empty(), "{} places: {:#?}", found.len(), found.iter().take(20).collect::<Vec<_>>());
    // What took the same ways and is no secret is found by the same search.
    let shown: Vec<_> =
        everything.iter().filter(|(_, bytes)| holds(bytes, MARKER)).map(|(name, _)| name.as_str()).collect();
    for kind in [
        "stdout of [\"run\"",
        "stderr of [\"run\"",
        "stdout of [\"resume\"",
        "\"trace\"",
        "\"json\"",
        "\"html\"",
        ".db",
    ] {
        assert!(shown.iter().any(|name| name.contains(kind)), "the marker is not in {kind}: {shown:#?}");
    }
    // Nor did a model get one, but in the header that is meant for it.
    for request in seen.iter().filter(|request| request.path.starts_with("/v1")) {
        for secret in [HEADER, COMMAND, MODEL, DIGITS] {
            let bad = encodings(secret).into_iter().find(|text| holds(&request.body, text));
            assert_eq!(bad, None, "{:.2000}", request.text());
        }
    }
}

#[test]
fn a_secret_is_hidden_also_where_the_action_that_uses_it_was_never_called() {
    let place = Place::new();
    let keyed = json!({ "headers": { "X-Key": "orgconfig:key" } });
    let tools =
        [web("keyed", "http://tools.example.com/", keyed), web("other", "http://tools.example.com/", json!({}))];
    let read = |project: Value| {
        place.actions(&tools, &project);
        let answer = json!({ "kept_by_the_server": HEADER });
        let pause = think("__pause_for_human__", json!({ "question": HEADER }));
        let other = think("other", json!({}));
        let replies = [other.clone(), pause, other, complete(json!(HEADER))];
        place.json("script.json", &json!({ "replies": replies, "tools": { "other": [answer] } }));
        let args = ["run", "loop.json", "--script", "script.json", "--output", "json", "--store", "sqlite:s.db"];
        let started = place.call_with(&args, &ENV);
        let id = started.json()["run_id"].as_str().expect("an id").to_owned();
        let args =
            ["resume", &id, "--answer", "x", "--script", "script.json", "--output", "json", "--store", "sqlite:s.db"];
        let ended = place.call_with(&args, &ENV);
        assert_eq!(ended.code, 0, "{ended:#?}");
        format!("{}{}{}{}", started.stdout, started.stderr, ended.stdout, ended.stderr)
    };
    let plain = escaped(HEADER);
    assert!(!read(json!({ "orgconfig": { "key": "env:HEADER_KEY" } })).contains(&plain));
    // To a project that does not know it, the text is as any other.
    assert!(read(json!({ "orgconfig": { "key": "env:DIGITS_KEY" } })).contains(&plain));
}

#[test]
fn fields_that_are_named_like_secrets_are_hidden_and_others_stay() {
    let place = Place::new();
    let open = json!({ "parameters": { "type": "object", "additionalProperties": true } });
    place.actions(&[web("send", "http://tools.example.com/", open)], &json!({ "redact": ["badge"] }));
    let input = json!({ "password": "hunter-two", "api_key": "abc-key-def", "token": "tok-1234", "badge": 5150,
        "nested": [{ "Authorization": "Basic Zm9v", "name": "x" }], "text": "{\"client_secret\": \"inner-secret\"}",
        "next_page_token": "page-77", "max_tokens": 4097, "token_count": 12, "id": "5f0c954e-1111-4222-8333-944455556666" });
    let mut changed = input.clone();
    changed["badge"] = json!(null);
    let thought = format!("I send {changed} now, and \"password\" : \"hunter-two");
    let call = json!({ "thought": thought, "action": "send", "action_input": input });
    let replies = json!({ "replies": [call, complete(json!("done"))], "tools": { "send": [input] } });
    place.json("script.json", &replies);
    let mut outputs = Vec::new();
    for output in ["human", "ndjson", "json"] {
        let ran = place.call(&["run", "loop.json", "--script", "script.json", "--run-id", output, "--output", output]);
        assert_eq!(ran.code, 0, "{ran:#?}");
        outputs.push((output, format!("{}{}", ran.stdout, ran.stderr)));
    }
    for format in ["text", "json", "html"] {
        outputs.push((format, place.call(&["trace", "json", "--format", format]).stdout));
    }
    let hidden = ["hunter-two", "abc-key-def", "tok-1234", "5150", "Zm9v", "inner-secret"];
    let shown = ["page-77", "4097", "5f0c954e-1111-4222-8333-944455556666"];
    for (name, text) in &outputs {
        for secret in hidden {
            assert!(!text.contains(secret), "{secret} in {name}: {text}");
        }
    }
    for format in ["ndjson", "json", "html"] {
        let (_, text) = outputs.iter().find(|(name, _)| *name == format).expect("an output");
        for word in shown {
            assert!(text.contains(word), "{word} is hidden in {format}: {text}");
        }
    }
}

#[test]
fn a_secret_that_is_missing_ends_the_call_or_the_run_before_anything_is_sent() {
    let server = Server::with(|_, _| Answer::json("{}"));
    let place = Place::new();
    let keyed = json!({ "headers": { "X-Key": "orgconfig:key" } });
    let project = json!({ "allow": { "private_addresses": true }, "orgconfig": { "key": "env:NOT_THERE" } });
    place.actions(&[web("call", &server.url(), keyed)], &project);
    place.json("script.json", &json!({ "replies": [think("call", json!({})), complete(json!("x"))] }));
    let ran = place.call(&["run", "loop.json", "--script", "script.json", "--output", "json", "--store", "memory"]);
    assert_eq!(server.connections(), 0);
    assert!(format!("{}{}", ran.stdout, ran.stderr).contains("NOT_THERE"), "{ran:#?}");
}

/// A whole answer of this provider, whose model has this name.
fn named(provider: &str, text: &str, name: &str) -> Value {
    match provider {
        "openai" => json!({ "id": "c", "object": "chat.completion", "model": name, "choices": [{ "index": 0,
            "message": { "role": "assistant", "content": text }, "finish_reason": "stop" }] }),
        "openai-responses" => json!({ "id": "r", "object": "response", "status": "completed", "error": null,
            "model": name, "output": [{ "type": "message", "role": "assistant",
            "content": [{ "type": "output_text", "text": text }] }] }),
        "anthropic" => json!({ "type": "message", "role": "assistant", "model": name, "stop_reason": "end_turn",
            "content": [{ "type": "text", "text": text }], "usage": { "input_tokens": 1, "output_tokens": 1 } }),
        _ => json!({ "modelVersion": name, "candidates": [{ "finishReason": "STOP",
            "content": { "role": "model", "parts": [{ "text": text }] } }] }),
    }
}

/// The same as the events of a stream.
fn named_events(provider: &str, text: &str, name: &str) -> Vec<String> {
    let events = match provider {
        "openai" => vec![
            json!({ "model": name, "choices": [{ "index": 0, "delta": { "content": text } }] }),
            json!({ "model": name, "choices": [{ "index": 0, "delta": {}, "finish_reason": "stop" }] }),
        ],
        "openai-responses" => vec![
            json!({ "type": "response.output_text.delta", "delta": text }),
            json!({ "type": "response.completed", "response": named(provider, text, name) }),
        ],
        "anthropic" => vec![
            json!({ "type": "message_start", "message": { "model": name, "usage": { "input_tokens": 1 } } }),
            json!({ "type": "content_block_delta", "index": 0, "delta": { "type": "text_delta", "text": text } }),
            json!({ "type": "message_delta", "delta": { "stop_reason": "end_turn" }, "usage": { "output_tokens": 1 } }),
            json!({ "type": "message_stop" }),
        ],
        _ => vec![named(provider, text, name)],
    };
    events.iter().map(Value::to_string).collect()
}

#[test]
fn the_name_that_a_provider_gives_its_model_is_hidden_like_every_text_and_bounded() {
    for provider in crate::common::streams::PROVIDERS {
        for streams in [false, true] {
            for (name, shown) in [
                (MODEL.to_owned(), "[secret"),
                (format!("v1 of {MODEL}"), "v1 of [secret"),
                (format!("{MARKER}-1"), MARKER),
                (MARKER.repeat(1_000), MARKER),
            ] {
                let server = Server::with(move |_, _| {
                    let reply = complete(json!("x")).to_string();
                    match streams {
                        true => Answer::events(named_events(provider, &reply, &name)),
                        false => Answer::json(&named(provider, &reply, &name)),
                    }
                });
                let place = Place::new();
                place.json(
                    "loop.json",
                    &json!({ "type": "loop", "name": "l", "properties": { "mode": "react",
                    "objective": "Do the task.", "tools": [], "max_iterations": 8 } }),
                );
                let model = json!({ "provider": provider, "base_url": server.url(), "model": "fake-1",
                    "api_key": "env:KEY" });
                place.json(
                    "loopctl.json",
                    &json!({ "model": "m", "models": { "m": model },
                    "allow": { "private_addresses": true } }),
                );
                let args = ["run", "loop.json", "--output", "ndjson"];
                let ran = place.call_with(&args, &[("KEY", MODEL)]);
                assert_eq!(ran.code, 0, "{provider} {streams} {ran:#?}");
                let printed = format!("{}{}", ran.stdout, ran.stderr);
                assert!(!printed.contains(MODEL), "{provider} {streams}: {printed}");
                assert!(printed.contains(shown), "{provider} {streams}: {printed}");
                assert!(printed.matches(MARKER).count() < 60, "{provider} {streams}: {printed}");
                let store = std::fs::read(place.path().join(".loopctl/runs.db")).expect("a store");
                let log = std::fs::read(place.path().join(".loopctl/runs.db-wal")).unwrap_or_default();
                assert!(!holds(&store, MODEL) && !holds(&log, MODEL), "{provider} {streams}");
            }
        }
    }
}
