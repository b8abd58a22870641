//! Replies while they arrive: what the command line shows of them, and what it never shows.

use std::io::{BufRead, BufReader, Lines};
use std::process::{Child, ChildStdout};

use serde_json::{Value, json};

use super::events::lines;
use crate::common::server::{Answer, Gate, Server};
use crate::common::streams::{PROVIDERS, streamed};
use crate::common::{Place, complete};

/// A place whose model is at this server.
fn place(server: &Server, provider: &str, more: Value) -> Place {
    let place = Place::new();
    let objective = json!({ "mode": "react", "objective": "Answer.", "tools": [], "model": "m", "max_iterations": 5, "retry": { "base_ms": 0 } });
    place.json("loop.json", &json!({ "type": "loop", "name": "l", "properties": objective }));
    let mut model = json!({ "provider": provider, "base_url": server.url(), "model": "test" });
    for (name, value) in more.as_object().expect("settings") {
        model[name] = value.clone();
    }
    place.json("loopctl.json", &json!({ "models": { "m": model }, "orgconfig": { "crm": "env:CRM_KEY" } }));
    place
}

/// The texts of a reply, one or more characters each.
fn pieces(text: &str, size: usize) -> Vec<String> {
    text.chars().collect::<Vec<_>>().chunks(size).map(String::from_iter).collect()
}

fn answer(provider: &str, pieces: &[impl AsRef<str>]) -> Answer {
    let pieces: Vec<&str> = pieces.iter().map(AsRef::as_ref).collect();
    Answer::events(streamed(provider, &pieces))
}

fn parts(lines: &[Value]) -> Vec<Value> {
    lines.iter().filter(|line| line["event"] == "model_delta").cloned().collect()
}

fn text(parts: &[Value]) -> String {
    parts.iter().map(|part| part["text"].as_str().expect("a text")).collect()
}

/// The lines of a run as they come.
struct Reader {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Reader {
    fn start(place: &Place, args: &[&str]) -> Self {
        let mut child = place.start(&[&["run", "loop.json", "--output", "ndjson"], args].concat(), &[]);
        let stdout = child.stdout.take().expect("a pipe");
        Self { child, lines: BufReader::new(stdout).lines() }
    }

    fn next(&mut self) -> Value {
        serde_json::from_str(&self.lines.next().expect("a line").expect("a line")).expect("JSON")
    }

    /// The next line of this kind.
    fn until(&mut self, kind: &str) -> Value {
        loop {
            let line = self.next();
            if line["event"] == kind {
                return line;
            }
        }
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        // No process of a failed test may survive.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn each_provider_s_reply_is_printed_while_it_arrives() {
    for provider in PROVIDERS {
        let whole = complete(json!("It is the cable.")).to_string();
        let (first, rest) = whole.split_at(20);
        let (second, third) = rest.split_at(20);
        let (gates, held) = ([Gate::default(), Gate::default()], [first, second, third]);
        let stream = answer(provider, &held).held_at(1, &gates[0]).held_at(2, &gates[1]);
        let server = Server::new(vec![stream]);
        let place = place(&server, provider, json!({}));
        let mut reader = Reader::start(&place, &["--deltas"]);
        assert_eq!(reader.until("model_asked")["iteration"], 1);
        // Each part is there before the next one is sent.
        let one = reader.next();
        assert!(one["time_to_first_token_ms"].is_u64(), "{one}");
        assert_eq!((&one["iteration"], &one["attempt"], &one["estimated"]), (&json!(1), &json!(1), &json!(true)));
        assert!(first.starts_with(one["text"].as_str().unwrap()) && one["text"] != "", "{one}");
        gates[0].open();
        let two = reader.next();
        assert_eq!((&two["event"], &two["time_to_first_token_ms"]), (&json!("model_delta"), &Value::Null));
        assert!(two["output_tokens"].as_u64() > one["output_tokens"].as_u64(), "{two}");
        gates[1].open();
        let mut all = vec![one, two];
        while all.last().unwrap()["last"] != true {
            all.push(reader.next());
        }
        assert_eq!(text(&all), whole, "{provider}");
        let end = all.last().unwrap();
        assert_eq!((&end["output_tokens"], &end["estimated"]), (&json!(5), &json!(false)), "{provider} counted them");
        let replied = reader.next();
        assert_eq!(replied["event"], "model_replied");
        assert_eq!(replied["time_to_first_token_ms"], all[0]["time_to_first_token_ms"]);
        assert_eq!(reader.until("result")["result"]["answer"], "It is the cable.");
    }
}

#[test]
fn parts_of_replies_are_printed_only_when_they_are_asked_for_and_there_are_any() {
    let whole = complete(json!("done")).to_string();
    let asks =
        |server: &Server| server.requests()[0].json()["stream"] == true || server.requests()[0].path.contains("stream");
    for provider in PROVIDERS {
        let reply = pieces(&whole, 9);
        let server = Server::with(move |_, _| answer(provider, &reply));
        let ran = place(&server, provider, json!({})).call(&["run", "loop.json", "--output", "ndjson"]);
        assert_eq!((ran.code, parts(&lines(&ran.stdout)), asks(&server)), (0, vec![], false), "{provider}");
    }
    // A server that does not stream, and a model that must not.
    for (more, streams) in [(json!({}), true), (json!({ "stream": false }), false)] {
        let reply = whole.clone();
        let server = Server::with(move |_, _| Answer::openai(&reply));
        let ran = place(&server, "openai", more).call(&["run", "loop.json", "--output", "ndjson", "--deltas"]);
        let lines = lines(&ran.stdout);
        assert_eq!((ran.code, parts(&lines), asks(&server)), (0, vec![], streams));
        let replied = lines.iter().find(|line| line["event"] == "model_replied").unwrap();
        assert_eq!(replied["time_to_first_token_ms"], Value::Null);
    }
    let place = Place::new();
    place.json(
        "loop.json",
        &json!({ "type": "loop", "name": "l", "properties": { "mode": "react", "objective": "x", "tools": [] } }),
    );
    for output in [&[][..], &["--output", "json"]] {
        let ran = place.call(&[&["run", "loop.json", "--deltas"], output].concat());
        assert_eq!(ran.code, 2);
        assert!(ran.stderr.contains("add --output ndjson"), "{}", ran.stderr);
    }
}

#[test]
fn a_reply_that_is_asked_for_again_makes_its_parts_void() {
    let whole = complete(json!("done")).to_string();
    let mut wrong = streamed("openai", &["It is all", " wrong"]);
    wrong.truncate(2);
    let server = Server::new(vec![Answer::events(wrong).cut(), answer("openai", &pieces(&whole, 7))]);
    let ran = place(&server, "openai", json!({})).call(&["run", "loop.json", "--output", "ndjson", "--deltas"]);
    let lines = lines(&ran.stdout);
    let parts = parts(&lines);
    let of = |attempt: u32| -> Vec<Value> { parts.iter().filter(|part| part["attempt"] == attempt).cloned().collect() };
    assert!("It is all wrong".starts_with(&text(&of(1))) && !of(1).is_empty(), "{parts:?}");
    assert_eq!((&of(2)[0]["text"], text(&of(2))), (&json!(""), whole), "the first part of the second says so");
    let at = |kind: &str| lines.iter().position(|line| line["event"] == kind).unwrap();
    assert_eq!(lines[at("model_retried") + 1], of(2)[0], "at once");
    assert_eq!(ran.code, 0);
}

#[test]
fn reasoning_counts_as_tokens_and_is_not_printed() {
    let reasoning = |text: &str| json!({ "choices": [{ "delta": { "reasoning_content": text } }] }).to_string();
    let whole = complete(json!("done")).to_string();
    let mut stream = vec![reasoning("A private thought, "), reasoning("and one more of them.")];
    stream.extend(streamed("openai", &[&whole]));
    let server = Server::with(move |_, _| Answer::events(&stream));
    let ran = place(&server, "openai", json!({})).call(&["run", "loop.json", "--output", "ndjson", "--deltas"]);
    let parts = parts(&lines(&ran.stdout));
    assert_eq!((text(&parts), &parts[0]["text"]), (whole, &json!("")));
    assert!(parts[0]["output_tokens"].as_u64().unwrap() > 0, "{parts:?}");
}

/// The project's secret, a key of a known shape, and a value of a secret name.
const SECRETS: [&str; 3] = ["crm-k3y/s3cr3t+value", "ghp_0123456789abcdefghijABCDEFGHIJ012345", "hunter2-and-more"];

fn with_secrets() -> String {
    let [own, key, password] = SECRETS;
    let thought = format!("The key is {own}, in base64 {}.", {
        use base64::Engine as _;
        base64::engine::general_purpose::STANDARD.encode(own)
    });
    json!({ "thought": thought, "action": "__complete__", "action_input": { "answer": format!("A=1\n{key}\nB"),
        "confidence": 1.0, "sources": [{ "value": password, "name": "Authorization" }, { "password": password }] } })
    .to_string()
}

fn shows_no_secret(shown: &str) {
    for secret in SECRETS.iter().copied().chain(["Y3JtLWszeS9zM2"]) {
        assert!(!shown.contains(secret), "{secret}: {shown}");
        // Nor a part that would be of use.
        assert!(!shown.contains(secret.split_at(12).0), "{secret}: {shown}");
    }
}

#[test]
fn a_secret_in_pieces_of_any_size_is_never_printed() {
    for (provider, size) in PROVIDERS.into_iter().cycle().zip([1, 2, 3, 5, 8, 13, 40, 400]) {
        let reply = pieces(&with_secrets(), size);
        let server = Server::with(move |_, _| answer(provider, &reply));
        let place = place(&server, provider, json!({}));
        let env = [("CRM_KEY", SECRETS[0])];
        let ran = place.call_with(&["run", "loop.json", "--output", "ndjson", "--deltas"], &env);
        let shown = text(&parts(&lines(&ran.stdout)));
        assert!(shown.contains("The key is [secret crm], in base64 [secret crm]."), "{provider}, {size}: {shown}");
        assert!(shown.contains("\"password\":\"[hidden]\""), "{shown}");
        shows_no_secret(&shown);
        shows_no_secret(&ran.stdout);
        shows_no_secret(&ran.stderr);
    }
}

#[cfg(debug_assertions)]
#[test]
fn in_a_pipe_a_line_says_now_and_then_what_is_waited_for() {
    let whole = complete(json!("done")).to_string();
    let gates = [Gate::default(), Gate::default()];
    let (first, rest) = whole.split_at(40);
    let stream = answer("openai", &[first, rest]).behind(&gates[0]).held_at(1, &gates[1]);
    let server = Server::new(vec![stream]);
    // In place of 15 seconds.
    let place = place(&server, "openai", json!({}));
    let mut child = place.start(&["run", "loop.json"], &[("LOOPCTL_FAIL", "time:20:quiet")]);
    let mut lines = BufReader::new(child.stderr.take().expect("a pipe")).lines().map(|line| line.expect("a line"));
    let thinking = lines.find(|line| line.contains("… thinking, ")).expect("it is said");
    assert!(thinking.ends_with(" ms"), "{thinking}");
    gates[0].open();
    let replying = lines.find(|line| line.contains("… replying: about ")).expect("it is said");
    assert!(replying.contains(" tokens, the first after "), "{replying}");
    assert!(!replying.contains("thought"), "in a pipe there is no text of it");
    gates[1].open();
    assert!(child.wait().expect("it ends").success());
    let rest: Vec<String> = lines.collect();
    assert!(rest.iter().any(|line| line.contains("completed")), "{rest:?}");
}

#[test]
fn a_short_wait_in_a_pipe_says_nothing() {
    let whole = complete(json!("done")).to_string();
    let server = Server::with(move |_, _| answer("openai", &pieces(&whole, 9)));
    let ran = place(&server, "openai", json!({})).call(&["run", "loop.json"]);
    assert_eq!(ran.code, 0);
    assert!(!ran.stderr.contains('…'), "{}", ran.stderr);
}

#[cfg(unix)]
#[test]
fn a_terminal_shows_the_tokens_and_the_end_of_the_text_as_data() {
    use crate::common::terminal::Terminal;

    // No reply of the dialect: the next one is.
    let whole = format!("Look at the cable first \u{1b}[31mred\u{1b}]0;owned\u{7} and then {} at the lamp", SECRETS[1]);
    let at = whole.find(" and then").expect("a part") + 10;
    let gate = Gate::default();
    let (before, behind) = whole.split_at(at);
    let first = answer("openai", &[before, behind]).held_at(1, &gate);
    let server = Server::new(vec![first, answer("openai", &[complete(json!("done")).to_string()])]);
    let place = place(&server, "openai", json!({}));
    let mut terminal = Terminal::start(&place, &["run", "loop.json"]);
    terminal.sees("replying: about ");
    let line = terminal.sees("red\\u{1B}]0;owned\\u{7}");
    assert!(line.contains("the first after "), "{line:?}");
    gate.open();
    let (code, shown, stdout) = terminal.ends(&place);
    assert_eq!((code, stdout.as_str()), (0, "done\n"));
    assert!(!shown.contains("\u{1b}[31m") && !shown.contains("\u{1b}]0;"), "{shown:?}");
    assert!(!shown.contains(SECRETS[1].split_at(20).0), "{shown:?}");
}
