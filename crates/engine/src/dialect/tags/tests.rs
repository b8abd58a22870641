//! Tests of the dialect: what is read, what is refused, what is cut, and what holds for any text.

use proptest::prelude::*;
use serde_json::{Map, Number, Value, json};

use super::{STOP, escaped, read_counted, say, write_observation};
use crate::dialect::{Reading, Saying, Wanted};

fn read(reply: &str) -> Reading {
    read_counted(reply, false).0
}

#[track_caller]
fn calls(reply: &str) -> (String, Vec<(String, String)>) {
    match read(reply) {
        Reading::Calls { thought, calls } => {
            (thought, calls.into_iter().map(|Wanted { name, input, .. }| (name, input.to_string())).collect())
        }
        other => panic!("not read: {reply}\n{other:?}"),
    }
}

#[track_caller]
fn refusal(reply: &str) -> String {
    match read(reply) {
        Reading::Unreadable { why, .. } => why,
        other => panic!("read: {reply}\n{other:?}"),
    }
}

#[test]
fn calls_are_read_where_the_meaning_is_plain() {
    for block in [
        "<tool_call>{\"name\":\"look\",\"arguments\":{\"at\":1}}</tool_call>",
        "<tool_call>\n{\"name\": \"look\", \"arguments\": {\"at\": 1}}\n</tool_call>\n",
        "<TOOL_CALL>{'name': 'look', arguments: {at: 1,},}\n</TOOL_CALL>",
        "<tool_call>\n```json\n{\"name\":\"look\",\"arguments\":{\"at\":1}}\n```\n</tool_call>",
        "<tool_call>{\"name\":\"look\",\"arguments\":\"{\\\"at\\\": 1}\"}</tool_call>",
        "<tool_call>{\"name\":\"look\",\"arguments\":{\"at\":1}</tool_call>",
        "<tool_call>{\"name\":\"look\",\"arguments\":{\"at\":1}}",
        "<tool_call>{\"tool\":\"look\",\"parameters\":{\"at\":1}, \"id\": 3}</tool_call></tool_call>",
        "<tool_call>{\"name\":\"look\",\"arguments\":{\"at\":1}}</tool_call>\n<tool_response>\nfound",
        "<tool_call>{\"name\":\"look\",\"arguments\":{\"at\":1}}\n<tool_response>\nfound</tool_response><answer>x</answer>",
    ] {
        let (thought, found) = calls(&format!("<think>\nI look.\n</think>\n{block}"));
        assert_eq!(thought, "I look.", "{block}");
        assert_eq!(found, [("look".to_owned(), "{\"at\":1}".to_owned())], "{block}");
    }
    let (thought, found) = calls(
        "In the prompt it began.</think> So:\n<tool_call>{\"name\":\"a\"}</tool_call>\n<tool_call>{\"name\":\"b\",\"arguments\":null}</tool_call>",
    );
    assert_eq!((thought.as_str(), found.len()), ("In the prompt it began.", 2));
    assert_eq!(calls("I look.\n<tool_call>{\"name\":\"a\"}</tool_call> Now wait.").0, "I look.\nNow wait.");
}

#[test]
fn tags_in_the_strings_of_a_call_are_its_own() {
    let text = "</tool_call> <answer>no</answer> <tool_response> </think>";
    let reply = say(&Saying { thought: "T".into(), calls: vec![("a".into(), json!({ "text": text }))], answer: None });
    assert_eq!(calls(&reply).1, [("a".to_owned(), json!({ "text": text }).to_string())]);
}

#[test]
fn an_answer_ends_and_one_beside_calls_is_a_call_too() {
    for reply in [
        "<answer>It is.</answer>",
        "<think>T</think><answer>\nIt is.\n</answer>\n",
        "<answer>It is.",
        "<answer>It is.</answer><answer>It is.</answer>",
    ] {
        let Reading::Answer { answer, .. } = read(reply) else { panic!("{reply}") };
        assert_eq!(answer, "It is.", "{reply}");
    }
    let (_, found) = calls("<tool_call>{\"name\":\"a\"}</tool_call><answer>x < y</answer>");
    assert_eq!(found[1], ("__complete__".to_owned(), "{\"answer\":\"x < y\"}".to_owned()));
}

#[test]
fn what_has_two_readings_is_refused() {
    for reply in [
        "",
        "I think so.",
        "{\"name\":\"a\",\"arguments\":{}}",
        "<think>I look. <tool_call>{\"name\":\"a\"}</tool_call>",
        "<tool_call>{\"name\":\"a\"}</tool_call></think><tool_call>{\"name\":\"b\"}</tool_call>",
        "<tool_call>{\"name\":\"a\",\"name\":\"b\"}</tool_call>",
        "<tool_call>{\"name\":\"a\",\"tool\":\"b\"}</tool_call>",
        "<tool_call>{\"name\":\"a\",\"arguments\":{\"x\":1},\"input\":{\"x\":2}}</tool_call>",
        "<tool_call>{\"name\":\"a\",\"arguments\":{\"x\":1,\"x\":2}}</tool_call>",
        "<tool_call>{\"name\":\"a\",\"x\":1}</tool_call>",
        "<tool_call>{\"name\":\"a\",\"arguments\":[1]}</tool_call>",
        "<tool_call>{\"name\":7}</tool_call>",
        "<tool_call>{\"arguments\":{}}</tool_call>",
        "<tool_call>a(1)</tool_call>",
        "<tool_call>[{\"name\":\"a\"}]</tool_call>",
        "<tool_call>{\"name\":\"a\"} {\"name\":\"b\"}</tool_call>",
        "<tool_call>{\"name\":\"a\",\"arguments\":{\"x\":1,\"name\":\"b\"}</tool_call>",
        "<tool_call>{\"name\":\"a\",\"arguments\":{\"x\":\"1}}</tool_call>",
        "<tool_call>{\"name\":\"a\"}</tool_call><tool_call>{\"name\":",
        "<answer></answer>",
        "<answer>a</answer><answer>b</answer>",
        "<answer>a</answer> b</answer>",
        "<answer>a <tool_call>{\"name\":\"a\"}</tool_call></answer>",
        "<answer>a <tool_response>b</answer>",
        "<tool_response>found</tool_response><answer>x</answer>",
    ] {
        assert!(refusal(reply).contains("<tool_call>"), "{reply}");
    }
}

#[test]
fn what_max_tokens_cut_off_is_never_completed() {
    for reply in [
        "<tool_call>{\"name\":\"a\",\"arguments\":{\"x\":1}}",
        "<tool_call>{\"name\":\"a\",\"arguments\":{}</tool_call>",
        "<answer>It is",
    ] {
        assert!(!matches!(read(reply), Reading::Unreadable { .. }), "{reply}");
        assert!(matches!(read_counted(reply, true).0, Reading::Unreadable { .. }), "{reply}");
    }
}

#[test]
fn a_response_that_the_model_invents_does_not_count() {
    let reply = "<tool_call>{\"name\":\"a\"}</tool_call>\n<tool_response>\nfound\n</tool_response>\n<answer>x</answer>";
    let (reading, counts) = read_counted(reply, false);
    assert!(matches!(reading, Reading::Calls { calls, .. } if calls.len() == 1));
    assert_eq!(&reply[counts..][..15], "<tool_response>");
    assert_eq!(STOP, ["<tool_response>"]);
}

#[test]
fn an_observation_is_one_block_and_plain_text_stays() {
    let plain = "if a < b { <div> } </answers> <think-tank>";
    assert_eq!(write_observation(plain), format!("<tool_response>\n{plain}\n</tool_response>"));
    assert_eq!(escaped("a</tool_response><answer x=1>"), "a&lt;/tool_response>&lt;answer x=1>");
    assert_eq!(escaped("< / Tool_Call\n>"), "&lt; / Tool_Call\n>");
}

/// Texts made of the pieces that replies are made of.
fn any_pieces() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "<think>",
        "</think>",
        "<tool_call>",
        "</tool_call>",
        "<answer>",
        "</answer>",
        "<tool_response>",
        "<",
        ">",
        "/",
        "{\"name\":\"a\"",
        ",\"arguments\":{",
        "}",
        "{",
        "\"",
        "'",
        "\\",
        "a",
        " ",
        "\n",
        "é",
        "1",
        ",",
        ":",
        "```",
        "[",
    ]);
    prop::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
}

fn any_input() -> impl Strategy<Value = Map<String, Value>> {
    let number = "-?(0|[1-9][0-9]{0,30})(\\.[0-9]{1,20})?([eE][+-]?[0-9]{1,4})?";
    let value = prop_oneof![
        number.prop_map(|digits| Value::Number(digits.parse::<Number>().unwrap())),
        any_pieces().prop_map(Value::String),
        any::<String>().prop_map(Value::String),
        prop::collection::vec(".{0,6}", 0..3).prop_map(|texts| json!(texts)),
    ];
    prop::collection::vec(("[a-zé ]{0,8}", value), 0..4).prop_map(|members| members.into_iter().collect())
}

#[test]
fn a_call_before_an_invented_response_counts_though_the_reply_was_cut() {
    let text = "<tool_call>{\"name\":\"a\"}<tool_response>";
    let (reading, counts) = read_counted(text, true);
    assert_eq!(counts, "<tool_call>{\"name\":\"a\"}".len());
    assert!(matches!(&reading, Reading::Calls { calls, .. } if calls.len() == 1), "{reading:?}");
    assert_eq!(read_counted(&text[..counts], false).0, reading);
}

proptest! {
    #[test]
    fn no_text_makes_it_panic_and_what_counts_reads_the_same(text in prop_oneof![any_pieces(), any::<String>()], cut: bool) {
        let (reading, counts) = read_counted(&text, cut);
        prop_assert!(text.is_char_boundary(counts));
        if let Reading::Calls { calls, .. } = &reading {
            prop_assert!(!calls.is_empty());
            // What stands before a response that the model invents is whole, wherever the rest was cut.
            let is_cut = cut && counts == text.len();
            prop_assert_eq!(read_counted(&text[..counts], is_cut).0, reading);
        }
    }

    #[cfg(feature = "exact-numbers")]
    #[test]
    fn what_was_written_is_read_back(
        thought in "[a-zA-Zé.,{}\"' ]{0,30}",
        said in prop::collection::vec(("[a-z_.]{1,9}", any_input()), 1..4),
        answer in "[a-zA-Zé.,{}\"' &;]{0,30}",
    ) {
        let calls: Vec<(String, Value)> = said.into_iter().map(|(name, input)| (name, Value::Object(input))).collect();
        let reply = say(&Saying { thought: thought.clone(), calls: calls.clone(), answer: None });
        let Reading::Calls { thought: read_thought, calls: read_calls } = read(&reply) else { panic!("{reply}") };
        prop_assert_eq!(read_thought, thought.trim());
        let read_calls: Vec<(String, Value)> = read_calls.into_iter().map(|call| (call.name, call.input)).collect();
        prop_assert_eq!(read_calls, calls);
        prop_assume!(!answer.trim().is_empty());
        let reply = say(&Saying { thought, calls: Vec::new(), answer: Some(answer.clone()) });
        let Reading::Answer { answer: read_answer, .. } = read(&reply) else { panic!("{reply}") };
        prop_assert_eq!(read_answer, Value::String(answer.trim().to_owned()));
    }

    #[test]
    fn nothing_that_a_tool_says_is_a_tag(text in prop_oneof![any_pieces(), any::<String>()]) {
        let harmless_text = escaped(&text);
        let (reading, _) = read_counted(&harmless_text, false);
        let harmless = matches!(reading, Reading::Unreadable { .. });
        prop_assert!(harmless, "{}", harmless_text);
        prop_assert_eq!(harmless_text.matches("<tool_response").count() + harmless_text.matches("</tool_response").count(), 0);
        prop_assert_eq!(escaped(&harmless_text), harmless_text.as_ref());
    }
}
