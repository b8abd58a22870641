//! What a hostile text can do as an argument of a call: wherever it is passed on, it appears as it is.

use serde_json::{Value, json};

use super::hostile_texts::{keyed, plays, wired};
use crate::common::hostile::{PLANTED, SECRET, TEXTS};
use crate::common::server::Answer;
use crate::common::{observed, think, web, with};

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
