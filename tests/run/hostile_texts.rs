//! What a hostile text can do: wherever one comes in, and wherever it is passed on, it is data.

use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use crate::common::hostile::{PLANTED, SECRET, TEXTS, harmless};
use crate::common::server::{Answer, Request, Server};
use crate::common::{Place, Ran, complete, observed, think, web, with};

/// A loop whose model and tools are at the server.
struct Wired {
    place: Place,
    server: Server,
}

fn wired(actions: &dyn Fn(&str) -> Vec<Value>, server: Server) -> Wired {
    let place = Place::new();
    let base = server.url();
    let model = json!({ "provider": "openai", "base_url": format!("{base}/v1") });
    place.actions(
        &actions(&base),
        &json!({ "allow": { "private_addresses": true, "commands": ["printf"] }, "orgconfig": { "key": "env:THE_KEY" },
            "models": { "m": model }, "model": "m" }),
    );
    Wired { place, server }
}

impl Wired {
    fn call(&self, args: &[&str]) -> Ran {
        let ran = self.place.call_with(args, &[("THE_KEY", SECRET)]);
        for (name, text) in [("stdout", &ran.stdout), ("stderr", &ran.stderr)] {
            assert!(!text.contains(SECRET), "the secret is in {name}");
        }
        ran
    }

    fn run(&self, more: &[&str]) -> Value {
        let mut args = vec!["run", "loop.json", "--output", "json", "--store", "memory"];
        args.extend(more);
        let ran = self.call(&args);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        ran.json()
    }

    /// What the model was asked, in the order of the requests.
    fn asked(&self) -> Vec<Request> {
        self.server.requests().into_iter().filter(|request| request.path.starts_with("/v1")).collect()
    }

    fn sent(&self, path: &str) -> Vec<Request> {
        self.server.requests().into_iter().filter(|request| request.path.starts_with(path)).collect()
    }
}

fn roles(request: &Request) -> Vec<String> {
    let body = request.json();
    let messages = body["messages"].as_array().expect("messages");
    messages.iter().map(|message| message["role"].as_str().expect("a role").to_owned()).collect()
}

/// A model that makes these calls and then ends; every other path is the tools'.
fn plays(calls: Vec<Value>, tool: fn(&Request) -> Answer) -> Server {
    let asked = AtomicUsize::new(0);
    Server::with(move |_, request| {
        if !request.path.starts_with("/v1") {
            return tool(request);
        }
        let number = asked.fetch_add(1, Ordering::SeqCst);
        let reply = calls.get(number).cloned().unwrap_or_else(|| complete(json!("done")));
        Answer::openai(&reply.to_string())
    })
}

fn keyed() -> Value {
    json!({ "X-Key": "orgconfig:key" })
}

/// Gives back what it was sent: the body, else the value of the query's `text`.
fn echo(request: &Request) -> Answer {
    let Some((_, query)) = request.path.split_once("text=") else { return Answer::json("{}") };
    let text = percent_encoding::percent_decode_str(query).decode_utf8_lossy().into_owned();
    Answer::new("text/plain", text)
}

fn results(texts: &[String]) -> Wired {
    let calls = texts.iter().map(|text| think("echo", json!({ "text": text }))).collect();
    let actions = |base: &str| {
        let parameters =
            json!({ "type": "object", "properties": { "text": { "type": "string" } }, "required": ["text"] });
        vec![web("echo", &format!("{base}/echo"), json!({ "headers": keyed(), "parameters": parameters }))]
    };
    let wired = wired(&actions, plays(calls, echo));
    let result = wired.run(&["--input", &format!("planted={PLANTED}")]);
    assert_eq!(result["iterations"], texts.len() + 1, "every text is one observation: {:#}", result["metadata"]);
    for (text, entry) in texts.iter().zip(result["trace"].as_array().expect("a trace")) {
        let same = serde_json::from_str::<Value>(text).ok().filter(|_| text.starts_with(['{', '[']));
        assert_eq!(entry["observation"], same.unwrap_or_else(|| json!(text)), "{text:?}");
    }
    wired
}

#[test]
fn what_a_tool_gives_back_is_one_message_whatever_it_says() {
    let hostile: Vec<String> = TEXTS.iter().map(|text| (*text).to_owned()).collect();
    assert!(hostile.len() >= 60, "{}", hostile.len());
    let calm: Vec<String> = hostile.iter().map(|text| harmless(text)).collect();
    let (bad, good) = (results(&hostile), results(&calm));
    let (bad_asked, good_asked) = (bad.asked(), good.asked());
    assert_eq!(bad_asked.len(), hostile.len() + 1);
    for (one, other) in bad_asked.iter().zip(&good_asked) {
        assert_eq!(roles(one), roles(other));
        assert!(!one.text().contains(SECRET) && !one.text().contains(PLANTED));
    }
    for request in bad.sent("/echo") {
        assert_eq!(request.header("x-key"), Some(SECRET), "the secret went where it belongs");
        assert!(!request.path.contains(PLANTED));
    }
}

#[test]
fn an_input_is_data_in_the_prompt_whatever_it_says() {
    let ask = |texts: Vec<String>| {
        let objective: String = (0..texts.len()).map(|at| format!("[{{{{input.a{at}}}}}]\n")).collect();
        let wired = wired(
            &|base| vec![web("echo", &format!("{base}/echo"), json!({ "headers": keyed() }))],
            plays(vec![], echo),
        );
        let path = wired.place.path().join("loop.json");
        let mut document: Value = serde_json::from_slice(&std::fs::read(&path).expect("it is there")).expect("JSON");
        document["properties"]["objective"] = json!(objective);
        wired.place.json("loop.json", &document);
        let mut input = json!({ "planted": PLANTED });
        for (at, text) in texts.iter().enumerate() {
            input[format!("a{at}")] = json!(text);
        }
        wired.place.json("input.json", &input);
        wired.run(&["--input-file", "input.json"]);
        let request = wired.asked().remove(0);
        let body = request.json();
        let all: String =
            body["messages"].as_array().expect("messages").iter().filter_map(|m| m["content"].as_str()).collect();
        for text in &texts {
            assert!(all.contains(&format!("[{text}]")), "{text:?}");
        }
        assert!(!all.contains(PLANTED) && !all.contains(SECRET));
        roles(&request)
    };
    let hostile: Vec<String> = TEXTS.iter().map(|text| (*text).to_owned()).collect();
    let calm = hostile.iter().map(|text| harmless(text)).collect();
    assert_eq!(ask(hostile), ask(calm));
}

#[test]
fn what_is_remembered_comes_back_as_data() {
    let remember = |texts: Vec<String>| {
        let mut calls = Vec::new();
        for text in &texts {
            calls.push(think("__store_memory__", json!({ "key": "k", "value": text })));
            calls.push(think("__retrieve_memory__", json!({ "key": "k" })));
        }
        let wired = wired(
            &|base| vec![web("echo", &format!("{base}/echo"), json!({ "headers": keyed() }))],
            plays(calls, echo),
        );
        let result = wired.run(&["--input", &format!("planted={PLANTED}")]);
        for (at, text) in texts.iter().enumerate() {
            assert_eq!(result["trace"][at * 2 + 1]["observation"], json!(text), "{text:?}");
        }
        wired.asked().iter().map(roles).collect::<Vec<_>>()
    };
    let hostile: Vec<String> = TEXTS.iter().map(|text| (*text).to_owned()).collect();
    let calm = hostile.iter().map(|text| harmless(text)).collect();
    assert_eq!(remember(hostile), remember(calm));
}

#[test]
fn what_a_human_answers_is_data() {
    let texts: Vec<&str> =
        TEXTS.iter().copied().filter(|text| !text.contains('\0') && !text.is_empty()).step_by(6).collect();
    assert!(texts.len() >= 10);
    let calls = texts.iter().map(|_| think("__pause_for_human__", json!({ "question": "Well?" }))).collect();
    let wired =
        wired(&|base| vec![web("echo", &format!("{base}/echo"), json!({ "headers": keyed() }))], plays(calls, echo));
    let input = format!("planted={PLANTED}");
    let ran = wired.call(&["run", "loop.json", "--run-id", "r", "--output", "json", "--input", &input]);
    assert_eq!(ran.code, 3, "{ran:#?}");
    for (at, text) in texts.iter().enumerate() {
        let ran = wired.call(&["resume", "r", &format!("--answer={text}"), "--output", "json"]);
        assert_eq!(ran.code, if at + 1 == texts.len() { 0 } else { 3 }, "{text:?}: {ran:#?}");
        assert_eq!(ran.json()["trace"][at]["observation"], json!(text), "{text:?}");
    }
    assert_eq!(wired.sent("/echo").len(), 0);
    for (at, request) in wired.asked().iter().enumerate() {
        assert_eq!(roles(request).len(), roles(&wired.asked()[0]).len() + at * 2);
        assert!(!request.text().contains(PLANTED));
    }
}

#[test]
fn an_argument_appears_literally_wherever_it_is_passed_on() {
    let parameters = json!({ "type": "object", "properties": { "text": { "type": "string" } }, "required": ["text"] });
    let post = |more: Value| {
        with(json!({ "http_method": "POST", "headers": keyed(), "parameters": parameters.clone() }), more)
    };
    let actions = |base: &str| {
        vec![
            web("path", &format!("{base}/path/{{{{text}}}}/end"), json!({ "headers": keyed() })),
            web(
                "query",
                &format!("{base}/query"),
                json!({ "query": { "q": "{{text}}", "r": "@text" }, "headers": keyed() }),
            ),
            web(
                "header",
                &format!("{base}/header"),
                json!({ "headers": { "X-Key": "orgconfig:key", "X-Note": "{{text}}" } }),
            ),
            web("typed", &format!("{base}/typed"), post(json!({ "body": { "whole": "@text", "part": "<{{text}}>" } }))),
            web("written", &format!("{base}/written"), post(json!({ "body": "{\"part\": \"<{{text}}>\"}" }))),
            web("left", &format!("{base}/left"), post(json!({}))),
            json!({ "action_name": "printed", "kind": "command", "description": "Prints.", "program": "printf", "args": ["<%s>", "{{text}}"],
                "env": { "KEY": "orgconfig:key" }, "allow_leading_dash": true }),
            json!({ "action_name": "asked", "kind": "llm", "description": "Asks.", "template": "Sum up: <{{text}}>" }),
        ]
    };
    let names = ["path", "query", "header", "typed", "written", "left", "printed"];
    let mut calls = Vec::new();
    for text in TEXTS {
        calls.extend(names.map(|name| think(name, json!({ "text": text }))));
    }
    let wired = wired(&actions, plays(calls, |_| Answer::json("{}")));
    let result = wired.run(&["--input", &format!("planted={PLANTED}")]);
    let decoded = |text: &str| percent_encoding::percent_decode_str(text).decode_utf8_lossy().into_owned();
    let is_control = |text: &str| text.chars().any(|c| u32::from(c) < 0x20 || c == '\u{7f}');
    for (at, text) in TEXTS.iter().enumerate() {
        let entry = |name: &str| {
            let place = names.iter().position(|known| *known == name).expect("a name");
            &result["trace"][at * names.len() + place]
        };
        assert_eq!(entry("header")["success"], !is_control(text), "{text:?}: {:#}", entry("header"));
        if !text.contains('\0') {
            assert_eq!(observed(entry("printed")), format!("<{text}>"), "{text:?}");
        }
    }
    let sound: Vec<&str> = TEXTS.iter().copied().filter(|text| !matches!(*text, "." | "..")).collect();
    for (request, text) in wired.sent("/path").iter().zip(&sound) {
        let part = request.path.strip_prefix("/path/").and_then(|path| path.strip_suffix("/end")).expect("one part");
        assert_eq!(decoded(part), *text);
    }
    for (request, text) in wired.sent("/query").iter().zip(TEXTS) {
        let pairs: Vec<String> = request.path.trim_start_matches("/query?").split('&').map(decoded).collect();
        assert_eq!(pairs, [format!("q={text}"), format!("r={text}")]);
    }
    let visible: Vec<&str> = TEXTS.iter().copied().filter(|text| !is_control(text)).collect();
    for (request, text) in wired.sent("/header").iter().zip(&visible) {
        assert_eq!(request.header("x-note"), Some(text.trim()), "{text:?}");
    }
    for (path, make) in [
        ("/typed", (|text: &str| json!({ "whole": text, "part": format!("<{text}>") })) as fn(&str) -> Value),
        ("/written", |text| json!({ "part": format!("<{text}>") })),
        ("/left", |text| json!({ "text": text })),
    ] {
        let sent = wired.sent(path);
        assert_eq!(sent.len(), TEXTS.len(), "{path}");
        for (request, text) in sent.iter().zip(TEXTS) {
            assert_eq!(request.json(), make(text), "{path}");
        }
    }
    for request in wired.server.requests() {
        let whole = format!("{} {}", request.path, request.text());
        assert!(!whole.contains(SECRET) && !whole.contains(PLANTED), "{whole:.500}");
    }
}

#[test]
fn a_question_of_an_llm_tool_is_one_message_of_the_user() {
    let action =
        json!({ "action_name": "asked", "kind": "llm", "description": "Asks.", "template": "Sum up: <{{text}}>" });
    let calls: Vec<Value> = TEXTS.iter().map(|text| think("asked", json!({ "text": text }))).collect();
    let asked = AtomicUsize::new(0);
    let server = Server::with(move |_, request| {
        // The tool's question is told by its length: the loop's own requests are long.
        if request.header("content-length").and_then(|length| length.parse::<usize>().ok()) < Some(1200) {
            return Answer::openai("{\"action\":\"__complete__\",\"action_input\":{\"answer\":\"approved\"}}");
        }
        let number = asked.fetch_add(1, Ordering::SeqCst);
        Answer::openai(&calls.get(number).cloned().unwrap_or_else(|| complete(json!("done"))).to_string())
    });
    let wired = wired(&|_| vec![action.clone()], server);
    let result = wired.run(&["--input", &format!("planted={PLANTED}")]);
    assert_eq!(result["result"]["answer"], "done", "what the tool's model says is an observation");
    let questions: Vec<Request> = wired.asked().into_iter().filter(|request| roles(request).len() == 1).collect();
    assert_eq!(questions.len(), TEXTS.len());
    for (request, text) in questions.iter().zip(TEXTS) {
        let body = request.json();
        assert_eq!(body["messages"], json!([{ "role": "user", "content": format!("Sum up: <{text}>") }]), "{text:?}");
    }
}

#[test]
fn what_the_author_writes_is_rendered() {
    let wired = wired(&|base| vec![web("echo", &format!("{base}/echo"), json!({}))], plays(vec![], echo));
    let path = wired.place.path().join("loop.json");
    let mut document: Value = serde_json::from_slice(&std::fs::read(&path).expect("it is there")).expect("JSON");
    let planted = |objective: &str| {
        document["properties"]["objective"] = json!(objective);
        wired.place.json("loop.json", &document);
        wired.run(&["--input", &format!("planted={PLANTED}")]);
        wired.asked().pop().expect("it was asked").text().contains(PLANTED)
    };
    // The texts above bring something out where they are a template, or are put into JSON by hand.
    let mut planted = planted;
    assert!(planted(TEXTS[0]) && planted(TEXTS[1]) && !planted("harmless"));
    let by_hand = |text: &str| {
        let request = format!(r#"{{"messages":[{{"role":"user","content":"{text}"}}]}}"#);
        serde_json::from_str::<Value>(&request).ok().and_then(|request| request["messages"].as_array().map(Vec::len))
    };
    assert!(TEXTS.iter().any(|text| by_hand(text) == Some(3)));
}
