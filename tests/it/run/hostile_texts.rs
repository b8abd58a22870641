//! What a hostile text can do: wherever one comes in, and wherever it is passed on, it is data.

use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use crate::common::dialects::{DIALECTS, Says, answers, roles};
use crate::common::hostile::{PLANTED, SECRET, TEXTS, harmless};
use crate::common::server::{Answer, Request, Server};
use crate::common::{Place, Ran, complete, think, web};

/// A loop whose model and tools are at the server.
pub struct Wired {
    pub place: Place,
    pub server: Server,
}

pub fn wired(actions: &dyn Fn(&str) -> Vec<Value>, server: Server) -> Wired {
    wired_in("json", actions, server)
}

fn wired_in(dialect: &str, actions: &dyn Fn(&str) -> Vec<Value>, server: Server) -> Wired {
    let place = Place::new();
    let base = server.url();
    let model = json!({ "provider": "openai", "base_url": format!("{base}/v1") });
    place.actions(
        &actions(&base),
        &json!({ "allow": { "private_addresses": true, "commands": ["printf"] }, "orgconfig": { "key": "env:THE_KEY" },
            "models": { "m": model }, "model": "m" }),
    );
    let wired = Wired { place, server };
    wired.change(|properties| properties["dialect"] = json!(dialect));
    wired
}

impl Wired {
    fn change(&self, change: impl FnOnce(&mut Value)) {
        let path = self.place.path().join("loop.json");
        let mut document: Value = serde_json::from_slice(&std::fs::read(path).expect("it is there")).expect("JSON");
        change(&mut document["properties"]);
        self.place.json("loop.json", &document);
    }

    fn call(&self, args: &[&str]) -> Ran {
        let ran = self.place.call_with(args, &[("THE_KEY", SECRET)]);
        for (name, text) in [("stdout", &ran.stdout), ("stderr", &ran.stderr)] {
            assert!(!text.contains(SECRET), "the secret is in {name}");
        }
        ran
    }

    pub fn run(&self, more: &[&str]) -> Value {
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

    pub fn sent(&self, path: &str) -> Vec<Request> {
        self.server.requests().into_iter().filter(|request| request.path.starts_with(path)).collect()
    }
}

/// A model that makes these calls and then ends; every other path is the tools'.
pub fn plays(calls: Vec<Value>, tool: fn(&Request) -> Answer) -> Server {
    plays_in("json", calls, tool)
}

fn plays_in(dialect: &str, calls: Vec<Value>, tool: fn(&Request) -> Answer) -> Server {
    let (asked, dialect) = (AtomicUsize::new(0), dialect.to_owned());
    Server::with(move |_, request| {
        if !request.path.starts_with("/v1") {
            return tool(request);
        }
        let number = asked.fetch_add(1, Ordering::SeqCst);
        let says = calls.get(number).map_or_else(
            || answers("", "done"),
            |call| {
                let text = |name: &str| call[name].as_str().expect("a text").to_owned();
                Says {
                    thought: text("thought"),
                    calls: vec![(text("action"), call["action_input"].clone())],
                    answer: None,
                }
            },
        );
        // What a model thinks is its own; a tag in it is not what is looked at here.
        let says = Says { thought: format!("Turn {number}."), ..says };
        says.reply(&dialect, request, number)
    })
}

pub fn keyed() -> Value {
    json!({ "X-Key": "orgconfig:key" })
}

/// Gives back what it was sent: the body, else the value of the query's `text`.
fn echo(request: &Request) -> Answer {
    let Some((_, query)) = request.path.split_once("text=") else { return Answer::json("{}") };
    let text = percent_encoding::percent_decode_str(query).decode_utf8_lossy().into_owned();
    Answer::new("text/plain", text)
}

fn results(dialect: &str, texts: &[String]) -> Wired {
    let calls = texts.iter().map(|text| think("echo", json!({ "text": text }))).collect();
    let actions = |base: &str| {
        let parameters =
            json!({ "type": "object", "properties": { "text": { "type": "string" } }, "required": ["text"] });
        vec![web("echo", &format!("{base}/echo"), json!({ "headers": keyed(), "parameters": parameters }))]
    };
    let wired = wired_in(dialect, &actions, plays_in(dialect, calls, echo));
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
    for dialect in DIALECTS {
        let hostile: Vec<String> = TEXTS.iter().map(|text| (*text).to_owned()).collect();
        assert!(hostile.len() >= 60, "{}", hostile.len());
        let calm: Vec<String> = hostile.iter().map(|text| harmless(text)).collect();
        let (bad, good) = (results(dialect, &hostile), results(dialect, &calm));
        let (bad_asked, good_asked) = (bad.asked(), good.asked());
        assert_eq!(bad_asked.len(), hostile.len() + 1);
        for (one, other) in bad_asked.iter().zip(&good_asked).rev().step_by(5) {
            assert_eq!(roles(one), roles(other), "{dialect}");
            assert!(!one.text().contains(SECRET) && !one.text().contains(PLANTED));
        }
        if dialect == "tags" {
            let last = bad_asked.last().expect("a request").json();
            let messages = last["messages"].as_array().expect("messages").iter();
            for message in messages.filter(|message| message["role"] == "user").skip(1) {
                let text = message["content"].as_str().expect("a text");
                let inner =
                    text.strip_prefix("<tool_response>\n").and_then(|text| text.strip_suffix("\n</tool_response>"));
                let inner = inner.expect("one block").to_lowercase();
                for tag in ["<tool_", "</tool_", "</ tool_", "<answer", "</answer", "<think", "</think"] {
                    assert!(!inner.contains(tag), "{inner}");
                }
            }
        }
        for request in bad.sent("/echo") {
            assert_eq!(request.header("x-key"), Some(SECRET), "the secret went where it belongs");
            assert!(!request.path.contains(PLANTED));
        }
    }
}

#[test]
fn what_describes_a_tool_is_no_message_in_any_dialect() {
    for dialect in DIALECTS {
        let asked = |texts: Vec<String>| {
            let actions = |base: &str| {
                let one = |(at, text): (usize, &String)| {
                    web(
                        &format!("t{at}"),
                        &format!("{base}/echo"),
                        json!({ "description": format!("Does it. {text}") }),
                    )
                };
                texts.iter().enumerate().map(one).collect()
            };
            let wired = wired_in(dialect, &actions, plays_in(dialect, vec![], echo));
            let result = wired.run(&["--input", &format!("planted={PLANTED}")]);
            assert_eq!((&result["iterations"], &result["result"]["answer"]), (&json!(1), &json!("done")));
            let request = wired.asked().remove(0);
            assert!(!request.text().contains(PLANTED) && !request.text().contains(SECRET));
            (roles(&request), request.json().as_object().expect("an object").keys().cloned().collect::<Vec<_>>())
        };
        // The check reports what names a secret; the rest is data.
        let hostile: Vec<String> = TEXTS
            .iter()
            .filter(|text| !text.contains("orgconfig") && !text.contains('\0'))
            .map(|text| (*text).to_owned())
            .collect();
        let calm = hostile.iter().map(|text| harmless(text)).collect();
        assert_eq!(asked(hostile), asked(calm), "{dialect}");
    }
}

#[test]
fn an_input_is_data_in_the_prompt_whatever_it_says() {
    let ask = |dialect: &str, texts: Vec<String>| {
        let objective: String = (0..texts.len()).map(|at| format!("[{{{{input.a{at}}}}}]\n")).collect();
        let wired = wired_in(
            dialect,
            &|base| vec![web("echo", &format!("{base}/echo"), json!({ "headers": keyed() }))],
            plays_in(dialect, vec![], echo),
        );
        wired.change(|properties| properties["objective"] = json!(objective));
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
    let calm: Vec<String> = hostile.iter().map(|text| harmless(text)).collect();
    for dialect in DIALECTS {
        assert_eq!(ask(dialect, hostile.clone()), ask(dialect, calm.clone()), "{dialect}");
    }
}

#[test]
fn what_is_remembered_comes_back_as_data() {
    let remember = |dialect: &str, texts: Vec<String>| {
        let mut calls = Vec::new();
        for text in &texts {
            calls.push(think("__store_memory__", json!({ "key": "k", "value": text })));
            calls.push(think("__retrieve_memory__", json!({ "key": "k" })));
        }
        let wired = wired_in(
            dialect,
            &|base| vec![web("echo", &format!("{base}/echo"), json!({ "headers": keyed() }))],
            plays_in(dialect, calls, echo),
        );
        let result = wired.run(&["--input", &format!("planted={PLANTED}")]);
        for (at, text) in texts.iter().enumerate() {
            assert_eq!(result["trace"][at * 2 + 1]["observation"], json!(text), "{text:?}");
        }
        roles(wired.asked().last().expect("a request"))
    };
    // In the dialects beside `json`, those texts that speak of their marks and of messages.
    for dialect in DIALECTS {
        let texts = TEXTS.iter().skip(if dialect == "json" { 0 } else { 37 });
        let texts = texts.take(if dialect == "json" { TEXTS.len() } else { 24 });
        let hostile: Vec<String> = texts.map(|text| (*text).to_owned()).collect();
        let calm = hostile.iter().map(|text| harmless(text)).collect();
        assert_eq!(remember(dialect, hostile), remember(dialect, calm), "{dialect}");
    }
}

#[test]
fn what_a_human_answers_is_data() {
    let texts: Vec<&str> =
        TEXTS.iter().copied().filter(|text| !text.contains('\0') && !text.is_empty()).step_by(6).collect();
    assert!(texts.len() >= 10);
    human_says("json", &texts);
    for dialect in ["tool_calls", "tags", "final_answer"] {
        let marks: Vec<&str> =
            TEXTS.iter().copied().filter(|text| text.contains("pwned") || text.contains("tool_call_id")).collect();
        assert!(marks.len() >= 4);
        human_says(dialect, &marks);
    }
}

fn human_says(dialect: &str, texts: &[&str]) {
    let calls = texts.iter().map(|_| think("__pause_for_human__", json!({ "question": "Well?" }))).collect();
    let actions = |base: &str| vec![web("echo", &format!("{base}/echo"), json!({ "headers": keyed() }))];
    let wired = wired_in(dialect, &actions, plays_in(dialect, calls, echo));
    let input = format!("planted={PLANTED}");
    let ran = wired.call(&["run", "loop.json", "--run-id", "r", "--output", "json", "--input", &input]);
    assert_eq!(ran.code, 3, "{ran:#?}");
    for (at, text) in texts.iter().enumerate() {
        let ran = wired.call(&["resume", "r", &format!("--answer={text}"), "--output", "json"]);
        assert_eq!(ran.code, if at + 1 == texts.len() { 0 } else { 3 }, "{dialect} {text:?}: {ran:#?}");
        assert_eq!(ran.json()["trace"][at]["observation"], json!(text), "{text:?}");
    }
    assert_eq!(wired.sent("/echo").len(), 0);
    for (at, request) in wired.asked().iter().enumerate() {
        assert_eq!(roles(request).len(), roles(&wired.asked()[0]).len() + at * 2);
        assert!(!request.text().contains(PLANTED));
    }
}

#[test]
fn a_question_of_an_llm_tool_is_one_message_of_the_user() {
    let action =
        json!({ "action_name": "asked", "kind": "llm", "description": "Asks.", "template": "Sum up: <{{text}}>" });
    let calls: Vec<Value> = TEXTS.iter().map(|text| think("asked", json!({ "text": text }))).collect();
    let asked = AtomicUsize::new(0);
    let server = Server::with(move |_, request| {
        // The tool's question is found by its length: the loop's own requests are long.
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
