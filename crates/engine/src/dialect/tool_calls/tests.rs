//! Tests of the dialect: calls, texts that answer, and texts that do not.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{read, say};
use crate::dialect::{Reading, Saying, native};
use crate::event::{Finish, Reply, SaidCall};
use loopctl_lang::program::tool_names::ToolNames;

fn reply(text: &str, calls: &[(&str, &str)]) -> Reply {
    let calls = calls.iter().map(|(name, arguments)| SaidCall {
        id: String::new(),
        name: (*name).to_owned(),
        arguments: (*arguments).to_owned(),
    });
    Reply { text: text.to_owned(), calls: calls.collect(), ..Reply::default() }
}

#[track_caller]
fn calls(reply: &Reply) -> (String, Vec<(String, Option<String>)>) {
    match read(reply, None) {
        Reading::Calls { thought, calls } => {
            let inputs = calls.into_iter().map(|call| (call.input.to_string(), call.unread));
            (thought, inputs.collect())
        }
        other => panic!("not read: {reply:?}\n{other:?}"),
    }
}

#[test]
fn arguments_are_read_where_the_meaning_is_plain() {
    for (arguments, input) in [
        ("{\"n\": 12345678901234567890123}", "{\"n\":12345678901234567890123}"),
        ("", "{}"),
        (" null ", "{}"),
        ("\"\"", "{}"),
        ("\"{\\\"n\\\": 1E400}\"", "{\"n\":1E400}"),
        ("{n: 'x',}", "{\"n\":\"x\"}"),
        ("{\"n\": {\"m\": \"x\"}", "{\"n\":{\"m\":\"x\"}}"),
    ] {
        assert_eq!(calls(&reply("T", &[("a", arguments)])).1, [(input.to_owned(), None)], "{arguments}");
    }
}

#[test]
fn a_call_that_can_not_be_read_leaves_the_others() {
    let (thought, inputs) = calls(&reply("Both.", &[("a", "{\"x\":1,\"x\":2}"), ("b", "{}"), ("c", "[1]")]));
    assert_eq!(thought, "Both.");
    assert!(inputs[0].1.as_ref().is_some_and(|why| why.contains("\"x\" stands there twice")), "{inputs:?}");
    assert_eq!(inputs[1], ("{}".to_owned(), None));
    assert!(inputs[2].1.is_some());
    assert!(matches!(read(&reply("", &[("a", "{"), ("b", "x")]), None), Reading::Unreadable { .. }));
}

#[test]
fn a_reply_without_calls_is_the_answer_without_its_thinking() {
    for (text, thought, answer) in [
        ("It is.", "", "It is."),
        ("<think>So.</think>\n\nIt is.", "So.", "It is."),
        ("So.</think>It is.", "So.", "It is."),
        ("<thinking>A</thinking><think>B</think> {\"x\": 1}", "A\nB", "{\"x\": 1}"),
    ] {
        let expected = Reading::Answer { thought: thought.to_owned(), answer: json!(answer) };
        assert_eq!(read(&reply(text, &[]), None), expected, "{text}");
    }
}

#[test]
fn what_is_no_answer_is_not_taken_for_one() {
    for text in [
        "",
        "  \n",
        "<think>So.",
        "<think>So.</think>",
        "<tool_call>{\"name\":\"a\"}</tool_call>",
        "{\"name\":\"a\",\"arguments\":{}}",
        "```json\n{\"action\": \"a\", \"action_input\": {}}\n```",
    ] {
        assert!(matches!(read(&reply(text, &[]), None), Reading::Unreadable { .. }), "{text}");
    }
    for finish in [Finish::Length, Finish::Filtered] {
        let cut = Reply { finish, ..reply("It is", &[]) };
        assert!(matches!(read(&cut, None), Reading::Unreadable { .. }), "{finish:?}");
    }
    for arguments in ["{\"x\":1", ""] {
        let cut = Reply { finish: Finish::Length, ..reply("", &[("a", "{}"), ("b", arguments)]) };
        assert!(matches!(read(&cut, None), Reading::Unreadable { .. }), "{arguments}");
    }
    let whole = Reply { finish: Finish::Length, ..reply("", &[("a", "{}")]) };
    assert!(matches!(read(&whole, None), Reading::Calls { .. }));
}

#[test]
fn calls_are_kept_as_every_provider_takes_them_back() {
    let called = ToolNames::of(["crm/find"].into_iter());
    let said = |id: &str, name: &str, arguments: &str| SaidCall {
        id: id.to_owned(),
        name: name.to_owned(),
        arguments: arguments.to_owned(),
    };
    let calls = vec![
        said("a", "crm_find", "{\"n\": 1E400}"),
        said("a", "crm/find", "{n: 1}"),
        said("", "no such", "{\"x\":"),
        said("known", "a", "\"{}\""),
        said("b\n", "a", ""),
    ];
    let kept = native::kept(calls, &called, 3, |id| id == "known" || id == "c00003001");
    let shown: Vec<_> =
        kept.iter().map(|call| (call.id.as_str(), call.name.as_str(), call.arguments.as_str())).collect();
    assert_eq!(
        shown,
        [
            ("a", "crm_find", "{\"n\": 1E400}"),
            ("c00003002", "crm_find", "{\"n\":1}"),
            ("c00003003", "no_such", "{}"),
            ("c00003004", "a", "{}"),
            ("c00003005", "a", "{}"),
        ]
    );
}

proptest! {
    #[test]
    fn no_reply_makes_it_panic_and_what_is_kept_is_sound(
        text in ".*",
        said in prop::collection::vec((".{0,4}", ".{0,8}", "[{}\\[\\]\"':,a1 \\\\]{0,16}"), 0..6),
        cut: bool,
    ) {
        let calls: Vec<SaidCall> =
            said.into_iter().map(|(id, name, arguments)| SaidCall { id, name, arguments }).collect();
        let finish = if cut { Finish::Length } else { Finish::Stop };
        drop(read(&Reply { text, calls: calls.clone(), finish, ..Reply::default() }, None));
        let kept = native::kept(calls, &ToolNames::default(), 1, |_| false);
        for (place, call) in kept.iter().enumerate() {
            prop_assert!(loopctl_lang::program::tool_names::is_taken(&call.name));
            prop_assert!(serde_json::from_str::<serde_json::Map<String, Value>>(&call.arguments).is_ok());
            prop_assert!(kept.iter().skip(place + 1).all(|other| other.id != call.id));
        }
    }

    #[test]
    fn what_was_written_is_read_back(thought in "[a-zA-Z ]{0,20}", texts in prop::collection::vec(any::<String>(), 1..4)) {
        let said: Vec<(String, Value)> = texts.into_iter().map(|text| ("a".to_owned(), json!({ "x": text }))).collect();
        let (text, calls) = say(&Saying { thought: thought.clone(), calls: said.clone(), answer: None });
        let Reading::Calls { thought: read_thought, calls } = read(&Reply { text, calls, ..Reply::default() }, None) else {
            panic!("not read")
        };
        prop_assert_eq!(read_thought, thought.trim());
        let read: Vec<(String, Value)> = calls.into_iter().map(|call| (call.name, call.input)).collect();
        prop_assert_eq!(read, said);
    }
}
