//! Events as they are printed.

use serde_json::json;

use super::*;
use crate::event::CallId;
use crate::outcome::Termination;
use crate::question::{Question, WaitingCall};

#[test]
fn what_others_wrote_is_hidden_by_its_names_and_our_own_fields_stay_what_they_are() {
    let redact = Redaction::new(&["iteration".to_owned(), "call".to_owned(), "success".to_owned()]);
    let notice = Notice::ToolCalled {
        call: CallId { iteration: 2, index: 0 },
        action: "pay".to_owned(),
        action_input: json!({ "password": "hunter2", "call": 7, "to": "https://u:pw1@h/" }),
    };
    let shown = shown(&notice, &redact).unwrap();
    assert_eq!(shown["call"], json!({ "iteration": 2, "index": 0 }));
    assert_eq!(
        shown["action_input"],
        json!({ "password": "[hidden]", "call": "[hidden]", "to": "https://u:[hidden]@h/" })
    );
}

#[test]
fn the_calls_of_a_pause_are_hidden_as_well() {
    let call = WaitingCall {
        id: "1.0".to_owned(),
        call: CallId { iteration: 1, index: 0 },
        action: "pay".to_owned(),
        action_input: json!({ "api_key": "k" }),
        hash: "00".to_owned(),
        approval: None,
    };
    let notice = Notice::Paused {
        steps: Vec::new(),
        pause: 1,
        question: Question {
            options: vec!["use Bearer abcdefgh12345678".to_owned()],
            ..Question::new(Termination::Approval, "send {\"token\":\"abc\"}?")
        },
        calls: vec![call],
    };
    let text = shown(&notice, &Redaction::default()).unwrap().to_string();
    for secret in ["\"k\"", "abc\\\"", "abcdefgh"] {
        assert!(!text.contains(secret), "{text}");
    }
}
