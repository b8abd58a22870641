//! What holds for any text, and for any value.

use proptest::prelude::*;
use serde_json::{Map, Number, Value, json};

use super::super::MAX_REPLY;
use super::{call, read, read_cut_off};
use crate::dialect::Reading;

/// Any JSON value, with numbers of any size.
fn any_value() -> impl Strategy<Value = Value> {
    let number = "-?(0|[1-9][0-9]{0,30})(\\.[0-9]{1,20})?([eE][+-]?[0-9]{1,4})?";
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        number.prop_map(|digits| Value::Number(digits.parse::<Number>().unwrap())),
        ".*".prop_map(Value::String),
        any::<String>().prop_map(Value::String),
    ];
    leaf.prop_recursive(4, 40, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::Array),
            prop::collection::vec((".{0,8}", inner), 0..6)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

fn any_object() -> impl Strategy<Value = Map<String, Value>> {
    prop::collection::vec((".{0,8}", any_value()), 0..5).prop_map(|members| members.into_iter().collect())
}

/// Texts made of the pieces that replies are made of.
fn any_pieces() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "{",
        "}",
        "[",
        "]",
        "\"",
        "'",
        "“",
        "”",
        ":",
        ",",
        "\\",
        "\\u",
        "\\ud83d",
        "//",
        "/*",
        "*/",
        "#",
        "\n",
        " ",
        "```",
        "```json",
        "<think>",
        "</think>",
        "Observation:",
        "thought",
        "\"thought\"",
        "action",
        "\"action\"",
        "\"action\":\"a\"",
        "action_input",
        "\"action_input\":{",
        "\"action_input\":{}",
        "tool",
        "answer",
        "1",
        "-",
        "1e5",
        "tru",
        "None",
        "é",
        "\u{0}",
        "{\"action\":\"a\",\"action_input\":{}}",
    ]);
    prop::collection::vec(piece, 0..60).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_text_makes_the_reader_panic(text in any::<String>()) {
        let _ = (read(&text), read_cut_off(&text));
    }

    #[test]
    fn no_heap_of_pieces_makes_the_reader_panic_or_call_two_things(text in any_pieces()) {
        if let Reading::Calls { calls, .. } = read(&text) {
            prop_assert_eq!(calls.len(), 1);
            prop_assert!(calls[0].input.is_object() && !calls[0].name.is_empty());
        }
        if let Reading::Calls { calls, .. } = read_cut_off(&text) {
            prop_assert_eq!(calls.len(), 1);
        }
    }

    #[cfg(feature = "exact-numbers")]
    #[test]
    fn what_serde_prints_is_read_back_as_it_was(thought in any::<String>(), name in "[^ ]\\PC{0,20}", input in any_object()) {
        prop_assume!(!name.trim().is_empty() && !thought.trim().is_empty());
        let input = Value::Object(input);
        let reply = json!({ "thought": thought, "action": name, "action_input": input });
        for text in [reply.to_string(), serde_json::to_string_pretty(&reply).unwrap()] {
            let (read_thought, wanted) = call(&text);
            prop_assert_eq!(&read_thought, &thought);
            prop_assert_eq!(&wanted.name, &name);
            prop_assert_eq!(wanted.input.to_string(), input.to_string());
        }
    }

    #[cfg(feature = "exact-numbers")]
    #[test]
    fn fences_prose_and_thinking_around_a_reply_change_nothing(
        input in any_object(), before in "[a-zA-Z .,!?\n]{0,40}", behind in "[a-nA-N .!?\n]{0,40}", hidden in any_object(),
    ) {
        let reply = json!({ "thought": "t", "action": "a", "action_input": input }).to_string();
        let plain = read(&reply);
        prop_assert_eq!(&read(&format!("```json\n{reply}\n```")), &plain);
        prop_assert_eq!(&read(&format!("{before}.\n{reply}\n{behind}")), &plain);
        prop_assert_eq!(&read(&format!("{reply}\nObservation: {}", json!({ "action": "b", "action_input": {} }))), &plain);
        let hidden = Value::Object(hidden).to_string().replace('<', "");
        prop_assert_eq!(&read(&format!("<think>{hidden}</think>\n{before}\n{reply}")), &plain);
    }

    #[cfg(feature = "exact-numbers")]
    #[test]
    fn a_cut_reply_never_calls_anything_but_what_was_meant(input in any_object(), cut in any::<prop::sample::Index>()) {
        let reply = json!({ "thought": "t", "action": "a", "action_input": input }).to_string();
        let ends: Vec<usize> = reply.char_indices().map(|(end, _)| end).collect();
        let part = &reply[..ends[cut.index(ends.len())]];
        prop_assert!(!matches!(read_cut_off(part), Reading::Calls { .. }), "{}", part);
        if let Reading::Calls { calls, .. } = read(part) {
            prop_assert_eq!(&calls[0].name, "a");
        }
    }
}

/// A reply whose texts and whose input hold other replies, as a tool's result may that is quoted.
const NESTED: [&str; 3] = [
    r#"{"thought":"It said {'action':'b','action_input':{}} and </think>.","action":"a","action_input":{"text":"Observation: {'action':'b','action_input':{}}","next":{"action":"b","action_input":{}}}}"#,
    r#"{"action":"a","action_input":{"action":"b","action_input":{"action":"b","action_input":{}},"list":[{"action":"b","action_input":{}}]},"thought":"t"}"#,
    r#"So: {'thought': "{'action':'b','action_input':{}}", 'action': 'a', 'action_input': {'steps': [{'action': 'b', 'action_input': {}}]}} # {"x":1}"#,
];

/// One fault anywhere: a character goes, comes or is another one.
#[test]
fn no_single_fault_makes_what_is_quoted_inside_a_reply_the_call() {
    let pieces = [
        "", "{", "}", "[", "]", "\"", "'", "\\", ":", ",", "#", "//", "/*", "*/", "\n", "x", "```", "<think>",
        "</think>", "1",
    ];
    for reply in NESTED {
        let ends: Vec<usize> = reply.char_indices().map(|(at, _)| at).chain([reply.len()]).collect();
        for at in &ends {
            for piece in pieces {
                for skip in [0, 1] {
                    let rest = reply[*at..].chars().skip(skip).collect::<String>();
                    let text = format!("{}{piece}{rest}", &reply[..*at]);
                    if let Reading::Calls { calls, .. } = read(&text) {
                        assert_ne!(calls[0].name, "b", "{text}");
                    }
                }
            }
        }
    }
}

/// Not by a clock: a reader that is not linear does not come to an end here.
#[test]
fn bombs_come_to_an_end() {
    let size = |piece: &str| if ["{", "[", "\"", "{\"a\":"].contains(&piece) { MAX_REPLY } else { MAX_REPLY / 16 };
    let pieces = [
        "{",
        "[",
        "\"",
        "{\"a\":",
        "[{",
        "{/*",
        "{#",
        "{//",
        "{#\n",
        "{'",
        "{\"",
        "<think>",
        "</think>",
        "<",
        "<think></think>",
        "{a ",
        "{a:",
        "{}",
        "{a}",
        "{\"action\":",
        "{\"action\":{",
        "\\",
        "```",
        "Observation:",
        "o",
        "{\"a\" ",
        "{“",
        "{}:",
        "{ \t",
        "} ",
        "{\"a\":1,\"a\":1,",
        "0,",
        "[{},",
        "{a:[[[",
        "{a/**/",
        "{#}\n{",
        "[\"\\ud800",
        "{\"action\":\"a\"}",
        "{\"action\":\"a\"} {x}",
        "{\"action\":\"a\",\"action_input\":{}} o",
        "<think>{</thin",
        "::::{",
        "`{",
        "json{",
    ];
    for piece in pieces {
        let text = piece.repeat(size(piece) / piece.len());
        for head in ["", "{\"action\":\"a\",\"action_input\":", "{\"action\":\"a\",\"action_input\":{\"x\":["] {
            let text = format!("{head}{}", &text[..text.len() - head.len().next_multiple_of(piece.len())]);
            let _ = read(&text);
        }
    }
    let lines = format!("{}\nx ", "{#".repeat(1000)).repeat(MAX_REPLY / 16 / 2003);
    let _ = read(&lines);
}

#[test]
fn levels_and_values_are_bounded() {
    let nested = |levels: usize, open: &str, close: &str| {
        let (open, close) = (open.repeat(levels), close.repeat(levels));
        format!("{{\"action\":\"a\",\"action_input\":{{\"x\":{open}{close}}}}}")
    };
    assert!(matches!(read(&nested(126, "[", "]")), Reading::Calls { .. }));
    assert!(super::refusal(&nested(127, "[", "]")).contains("128 levels"));
    assert!(super::refusal(&nested(100_000, "[", "]")).contains("128 levels"));
    assert!(super::refusal(&nested(50_000, "{\"a\":", "}")).contains("128 levels"));
    let many = format!("{{\"action\":\"a\",\"action_input\":{{\"x\":[{}0]}}}}", "0,".repeat(100_000));
    assert!(super::refusal(&many).contains("100000 values"));
}
