//! What a step reads of a server or a model is whole, and is what it says: charsets, answers that were cut off, JSON in a fence,
//! and who refused a connection.

use std::net::TcpListener;

use serde_json::{Value, json};

use crate::common::server::{Answer, Server};
use crate::common::{Place, Ran, complete, think, web, with};

/// A workflow whose only action is asked for at `server`, and whose answer is `output`.
fn place(action: Value, project: Value, output: Value) -> Place {
    let place = Place::new();
    place.json("loopctl.json", &with(json!({ "allow": { "private_addresses": true } }), project));
    place.json("actions/all.json", &json!([with(json!({ "action_name": "get", "description": "Gets." }), action)]));
    let steps = json!([{ "type": "get", "outputKey": "a", "properties": {} }]);
    place.json("loop.json", &json!({ "name": "w", "definition": { "actions": steps, "output": output } }));
    place
}

fn run(place: &Place) -> (Ran, Value) {
    let ran = place.call(&["run", "loop.json", "--output", "json", "--store", "memory"]);
    let result = ran.json();
    (ran, result)
}

fn answer(place: &Place) -> Value {
    let (ran, result) = run(place);
    assert_eq!(ran.code, 0, "{ran:#?}");
    result["result"]["answer"].clone()
}

fn why(place: &Place) -> String {
    let (ran, result) = run(place);
    assert_eq!(ran.code, 1, "{ran:#?}");
    result["error"]["message"].as_str().unwrap_or_else(|| panic!("{result:#}")).to_owned()
}

fn http(url: &str) -> Value {
    json!({ "kind": "http", "url": url, "http_method": "GET" })
}

#[test]
fn an_answer_is_read_in_its_charset_or_refused_with_its_name() {
    let server = Server::with(|_, request| match request.path.as_str() {
        "/latin" => Answer::new("text/plain; charset=iso-8859-1", b"Z\xfcrich".to_vec()),
        "/json" => Answer::new("application/json; charset=windows-1252", b"{\"price\": \"\x80 5\"}".to_vec()),
        "/wide" => Answer::new("text/plain; charset=utf-16le", b"Z\0\xfc\0".to_vec()),
        "/utf" => Answer::new("text/plain; charset=utf-8", "Z\u{fc}rich"),
        "/escaped" => Answer::new("application/json; charset=iso-2022-jp", b"{\"name\": \"\x1b$B%F\x1b(B\"}".to_vec()),
        "/shifted" => Answer::new("text/plain; charset=UTF-7", b"Z+APw-rich".to_vec()),
        _ => Answer::new("text/plain; charset=Shift_JIS", b"\x83\x65\x83".to_vec()),
    });
    let at = |path: &str| place(http(&format!("{}/{path}", server.url())), json!({}), json!("@a"));
    for (path, expected) in [
        ("latin", json!("Z\u{fc}rich")),
        ("json", json!({ "price": "\u{20ac} 5" })),
        ("wide", json!("Z\u{fc}")),
        ("utf", json!("Z\u{fc}rich")),
    ] {
        assert_eq!(answer(&at(path)), expected, "{path}");
    }
    for (path, name) in [("japanese", "shift_jis"), ("escaped", "iso-2022-jp"), ("shifted", "utf-7")] {
        let why = why(&at(path));
        let says = format!("the charset {name}; utf-8, iso-8859-1, windows-1252 and utf-16 are read");
        assert!(why.contains(&says), "{why}");
    }
}

#[test]
fn a_refused_connection_says_whose_it_was() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let why = why(&place(http(&format!("http://{free}/x?key=1")), json!({}), json!("@a")));
    assert!(why.contains(&format!("connection refused by {free}")) && !why.contains("key=1"), "{why}");
}

/// A workflow that asks a model, which says this.
fn asking(text: &str, finish: &str, output: Value) -> (Server, Place) {
    let reply = json!({ "id": "c", "object": "chat.completion", "created": 1, "model": "m-1",
        "choices": [{ "index": 0, "message": { "role": "assistant", "content": text }, "finish_reason": finish }],
        "usage": { "prompt_tokens": 9, "completion_tokens": 9, "total_tokens": 18 } });
    let server = Server::with(move |_, _| Answer::json(&reply));
    let models = json!({ "model": "m", "models": { "m": { "provider": "openai", "base_url": format!("{}/v1", server.url()) } } });
    let action = json!({ "kind": "llm", "template": "Rate it as JSON.", "max_tokens": 77 });
    let place = place(action, models, output);
    (server, place)
}

#[test]
fn an_answer_of_a_model_that_was_cut_off_is_a_failed_step() {
    let (_server, place) = asking("{\"grade\": 2", "length", json!("@a"));
    let why = why(&place);
    assert!(why.contains("cut off after 77 tokens: raise `max_tokens`"), "{why}");
    let (_server, place) = asking("whole", "stop", json!("@a"));
    assert_eq!(answer(&place), "whole");
}

#[test]
fn a_path_into_the_answer_of_a_model_reads_the_json_in_its_fence() {
    for (text, grade) in [
        ("```json\n{\"grade\": 2}\n```", json!(2)),
        ("Here it is:\n\n```\n{\"grade\":\n 2}\n```\nIs that all?", json!(2)),
        ("{\"grade\": 2}", json!(2)),
        ("<think>{\"grade\": 9}</think>\n{\"grade\": 2}", json!(2)),
        ("<think>Is it this?\n```json\n{\"grade\": 9}\n```</think>\n```json\n{\"grade\": 2}\n```", json!(2)),
        ("\u{feff}{\"grade\": 2}", json!(2)),
        ("It is 2.", Value::Null),
        ("```sh\n{\"grade\": 2}\n```", Value::Null),
    ] {
        let (_server, place) = asking(text, "stop", json!({ "grade": "@a.grade", "all": "@a", "text": "{{a}}" }));
        assert_eq!(answer(&place), json!({ "grade": grade, "all": text, "text": text }), "{text}");
    }
    // Which of the two is meant, nobody says.
    let two = "```json\n{\"grade\": 2}\n```\nor\n```json\n{\"grade\": 3}\n```";
    let (_server, place) = asking(two, "stop", json!("@a.grade"));
    assert!(why(&place).contains("it has several fences with JSON"), "{}", why(&place));
    let (_server, place) = asking(two, "stop", json!({ "all": "@a" }));
    assert_eq!(answer(&place), json!({ "all": two }));
}

#[cfg(unix)]
#[test]
fn a_line_end_at_the_end_of_what_a_program_prints_is_no_part_of_it() {
    for (printed, expected) in [
        ("A1\r\n", "A1"),
        ("A1\n", "A1"),
        ("A1\r\n\r\n", "A1\r\n"),
        ("A1\r\nA2\r\n", "A1\r\nA2"),
        ("A1\r", "A1\r"),
        ("A1", "A1"),
    ] {
        let action = json!({ "kind": "command", "program": "cat", "args": ["printed.txt"] });
        let place = place(action, json!({ "allow": { "commands": ["cat"] } }), json!("@a"));
        place.file("printed.txt", printed);
        assert_eq!(answer(&place), expected, "{printed:?}");
    }
}

#[test]
fn a_fence_is_read_by_filters_and_gives_the_items_of_a_loop() {
    let (_server, place) = asking("Two:\n```json\n[{\"id\": 1}, {\"id\": 2}]\n```", "stop", json!("@ids"));
    let each = json!({ "type": "loop", "filter": { "condition": { "equal": ["@a.1.id", 2] } }, "properties": { "mode": "foreach",
        "items_path": "@a", "item_variable_name": "one", "collect_results": true, "collect": "@one.id", "result_key": "ids",
        "actions_to_execute": [{ "type": "matcher", "properties": { "left": [], "right": [], "matchOn": ["id"] } }] } });
    let steps = json!([{ "type": "get", "outputKey": "a", "properties": {} }, each]);
    place.json("loop.json", &json!({ "name": "w", "definition": { "actions": steps, "output": "@ids" } }));
    let ids = answer(&place);
    assert_eq!(ids.as_array().unwrap().iter().map(|item| item["output"].clone()).collect::<Vec<_>>(), [1, 2]);
}

/// The answer of a workflow that asks a model, which says `text`, and then has `steps`.
fn answer_after(text: &str, actions: &Value, steps: &[Value], output: Value) -> (Server, Place) {
    let (server, place) = asking(text, "stop", Value::Null);
    place.json("actions/more.json", actions);
    let ask = json!({ "type": "get", "outputKey": "a", "properties": {} });
    let steps: Vec<Value> = [ask].into_iter().chain(steps.iter().cloned()).collect();
    place.json("loop.json", &json!({ "name": "w", "definition": { "actions": steps, "output": output } }));
    (server, place)
}

const LISTS: [&str; 3] = [
    "[{\"id\": 1}, {\"id\": 2}]",
    "```json\n[{\"id\": 1}, {\"id\": 2}]\n```",
    "Two:\n```\n[{\"id\": 1}, {\"id\": 2}]\n```\nAll.",
];

#[test]
fn a_matcher_takes_the_list_in_the_fence_of_a_text() {
    let step = json!({ "type": "matcher", "properties": { "left": "@a", "right": [{ "id": 2 }], "matchOn": ["id"] } });
    let by_action = json!({ "type": "match_them", "properties": { "one": "@a", "two": "@a" } });
    let action = json!([{ "action_name": "match_them", "description": "Matches.", "kind": "matcher",
        "left": "@input.one", "right": "@two", "matchOn": ["id"] }]);
    let by_input = json!({ "type": "match_them", "properties": { "left": "@a", "right": "@a" } });
    for text in LISTS {
        let (_server, place) = answer_after(text, &json!([]), std::slice::from_ref(&step), json!("@matched.length"));
        assert_eq!(answer(&place), 1, "{text}");
        for by in [&by_action, &by_input] {
            let (_server, place) =
                answer_after(text, &action, std::slice::from_ref(by), json!("@match_them.matched.length"));
            assert_eq!(answer(&place), 2, "{text}: {by}");
        }
    }
    let (_server, place) = answer_after("```json\n[]\n```\n```json\n[]\n```", &json!([]), &[step], Value::Null);
    assert!(why(&place).contains("`left` must be a list; a text was given"));
}

#[test]
fn blocks_read_the_json_of_a_text_and_that_in_its_fence() {
    let of = |text: &str, template: &str| {
        let (_server, place) = answer_after(text, &json!([]), &[], json!(template));
        answer(&place)
    };
    for text in ["{\"grade\": 2}", "```json\n{\"grade\": 2}\n```"] {
        let all = format!("2 {text}");
        assert_eq!(of(text, "{{#with a}}{{grade}} {{this}}{{/with}}"), all);
        assert_eq!(of(text, "{{lookup a \"grade\"}}"), "2");
    }
    let each = "{{#each a}}{{@index}}={{id}};{{else}}none{{/each}}";
    for (text, ids) in [
        (LISTS[0], "0=1;1=2;"),
        (LISTS[1], "0=1;1=2;"),
        ("[]", "none"),
        ("```json\n[]\n```", "none"),
        ("no list", "none"),
    ] {
        assert_eq!(of(text, each), ids, "{text}");
    }
    let (_server, place) = answer_after("```json\n[]\n```\n```json\n[]\n```", &json!([]), &[], json!(each));
    assert!(why(&place).contains("it has several fences with JSON"), "{}", why(&place));
    assert_eq!(of("{\"b\": 1, \"c\": 2}", "{{#each a}}{{@key}}={{this}};{{/each}}"), "b=1;c=2;");
}

#[test]
fn the_texts_of_actions_and_prompts_read_the_json_of_a_text_as_paths_do() {
    for text in ["[{\"id\": 1}, {\"id\": 2}]", "Two:\n```json\n[{\"id\": 1}, {\"id\": 2}]\n```"] {
        let server = Server::with(|_, _| Answer::json(&json!({ "ok": 1 })));
        let place = Place::new();
        let list = "{{#each s}}{{id}},{{/each}}{{s.1.id}}";
        let of_input = "{{#each input.s}}{{id}},{{/each}}{{input.s.1.id}}";
        let send = with(
            web(
                "send",
                &format!("{}/{{{{s.0.id}}}}", server.url()),
                json!({ "http_method": "POST", "query": { "q": list } }),
            ),
            json!({ "headers": { "X-Ids": list }, "body": { "path": "@s.1.id", "ids": list },
                "parameters": { "type": "object", "properties": { "s": { "type": "string" } }, "required": ["s"] } }),
        );
        place.actions(&[send], &json!({ "allow": { "private_addresses": true } }));
        let mut document: Value =
            serde_json::from_slice(&std::fs::read(place.path().join("loop.json")).unwrap()).unwrap();
        document["properties"]["objective"] = json!(of_input);
        document["properties"]["system_prompt"] =
            json!(format!("{{{{objective}}}} | {of_input} {{{{dialect_instructions}}}}"));
        place.json("loop.json", &document);
        let input = json!({ "s": text }).to_string();
        place.json("script.json", &json!({ "replies": [think("send", json!({ "s": text })), complete(json!("ok"))] }));
        let ran = place.call(&[
            "run",
            "loop.json",
            "--script",
            "script.json",
            "--input",
            &input,
            "--output",
            "json",
            "--run-id",
            "r",
        ]);
        assert_eq!(ran.code, 0, "{ran:#?}");
        let sent = &server.requests()[0];
        assert_eq!(sent.json(), json!({ "path": 2, "ids": "1,2,2" }), "{text}");
        assert_eq!((sent.path.as_str(), sent.header("x-ids")), ("/1?q=1%2C2%2C2", Some("1,2,2")), "{text}");
        let prompt = place.call(&["prompt", "loop.json", "--script", "script.json", "--input", &input]);
        assert!(prompt.stdout.contains("1,2,2 | 1,2,2 "), "{prompt:#?}");
    }
}

#[test]
fn a_key_that_stands_twice_in_the_json_of_a_text_is_no_value() {
    for text in ["{\"fee\": 1, \"fee\": 2}", "```json\n{\"fee\": 1, \"fee\": 2}\n```", "[{\"fee\": 1, \"fee\": 2}]"] {
        let name = if text.starts_with('[') { "@a.0.fee" } else { "@a.fee" };
        let other = json!({ "action_name": "other", "kind": "llm", "description": "Asks.", "template": "{{v}}",
            "parameters": { "type": "object", "properties": { "v": {} }, "required": ["v"] } });
        let step = json!({ "type": "other", "properties": { "v": name } });
        let (_server, place) = answer_after(text, &json!([other]), std::slice::from_ref(&step), json!("@other"));
        assert!(why(&place).contains("it has the key `fee` twice in one object"), "{text}: {}", why(&place));
        let each = json!({ "type": "loop", "properties": { "mode": "foreach", "items_path": "@a", "item_variable_name": "x",
            "actions_to_execute": [step] } });
        let (_server, place) = answer_after(text, &json!([other]), &[each], Value::Null);
        assert_ne!(run(&place).0.code, 0, "{text}");
    }
    let (_server, place) = answer_after("{\"a\": {\"fee\": 1}, \"fee\": 2}", &json!([]), &[], json!("@a.fee"));
    assert_eq!(answer(&place), 2);
}

#[test]
fn json_whose_value_takes_too_much_memory_is_kept_as_a_text() {
    let one = |count: usize| format!("[{}]", vec!["{\"a\":1}"; count].join(","));
    let (light, heavy) = (one(50_000), one(400_000));
    let server = Server::with(move |number, _| Answer::json(if number == 0 { &light } else { &heavy }));
    let place = Place::new();
    let action = json!({ "action_name": "get", "kind": "http", "description": "Gets.", "http_method": "GET", "url": server.url(),
        "parameters": { "type": "object" } });
    place.actions(&[action], &json!({ "allow": { "private_addresses": true } }));
    let trace = place.calls(&[think("get", json!({})), think("get", json!({}))]);
    let shown = |entry: &Value| entry["observation"].to_string().chars().take(100).collect::<String>();
    assert!(!shown(&trace[0]).contains("kept as text"), "{}", shown(&trace[0]));
    assert!(
        shown(&trace[1]).contains("[kept as text: its value takes more than 80 MiB of memory]"),
        "{}",
        shown(&trace[1])
    );
}
