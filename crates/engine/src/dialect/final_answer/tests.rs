//! Tests of the dialect: where the mark ends a run, and where it does not.

use proptest::prelude::*;
use serde_json::json;

use super::{read, say};
use crate::dialect::{Reading, Saying};
use crate::event::{Finish, Reply, SaidCall};

fn text(text: &str) -> Reading {
    read(&Reply { text: text.to_owned(), ..Reply::default() }, None)
}

#[test]
fn the_mark_at_the_beginning_of_a_line_ends() {
    for (reply, thought, answer) in [
        ("FINAL_ANSWER: done", "", "done"),
        ("All is made.\n\nFINAL_ANSWER: done\nand more", "All is made.", "done\nand more"),
        ("**FINAL_ANSWER:** done", "", "done"),
        ("So.\n  → FINAL_ANSWER:\n\ndone", "So.", "done"),
        ("<think>So. FINAL_ANSWER: no</think>FINAL_ANSWER: done", "So. FINAL_ANSWER: no", "done"),
        ("FINAL ANSWER: done, and `FINAL_ANSWER:` is the mark", "", "done, and `FINAL_ANSWER:` is the mark"),
    ] {
        let expected = Reading::Answer { thought: thought.to_owned(), answer: json!(answer) };
        assert_eq!(text(reply), expected, "{reply}");
    }
}

#[test]
fn a_text_without_a_plain_mark_ends_nothing() {
    for reply in [
        "",
        "I will look.",
        "I will write FINAL_ANSWER: when it is done.",
        "FINAL_ANSWER:",
        "FINAL_ANSWER: a\nFINAL_ANSWER: b",
        "final_answer: done",
        "<think>FINAL_ANSWER: done</think>",
    ] {
        assert!(matches!(text(reply), Reading::Unreadable { .. }), "{reply}");
    }
    let cut = Reply { text: "FINAL_ANSWER: do".to_owned(), finish: Finish::Length, ..Reply::default() };
    assert!(matches!(read(&cut, None), Reading::Unreadable { .. }));
}

#[test]
fn a_mark_beside_calls_is_an_ending_beside_calls() {
    let calls = vec![SaidCall { name: "a".to_owned(), ..SaidCall::default() }];
    let reply = Reply { text: "Both.\nFINAL_ANSWER: done".to_owned(), calls, ..Reply::default() };
    let Reading::Calls { thought, calls } = read(&reply, None) else { panic!("not read") };
    assert_eq!((thought.as_str(), calls.len()), ("Both.", 2));
    assert_eq!((calls[1].name.as_str(), &calls[1].input), ("__complete__", &json!({ "answer": "done" })));
}

proptest! {
    #[test]
    fn no_text_makes_it_panic_and_what_was_written_is_read_back(
        any in "(FINAL_ANSWER:|FINAL|<think>|</think>|\n|[a-z*> é]){0,12}",
        thought in "[a-z .]{0,20}",
        answer in "[a-z][a-z .\n]{0,20}[a-z]",
    ) {
        drop(text(&any));
        let (said, _) = say(&Saying { thought: thought.clone(), calls: Vec::new(), answer: Some(answer.clone()) });
        let expected = Reading::Answer { thought: thought.trim().to_owned(), answer: json!(answer) };
        prop_assert_eq!(text(&said), expected);
    }
}
