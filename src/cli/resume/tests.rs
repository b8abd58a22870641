//! Which flags make which decision, and which can be combined.

use clap::Parser;
use serde_json::Value;

use super::*;
use crate::engine::event::{CallId, Decision};

#[derive(Debug, Parser)]
struct Line {
    #[command(flatten)]
    resume: ResumeCommand,
}

fn parse(line: &str) -> Result<Option<Decided>, String> {
    let line = Line::try_parse_from(format!("resume run-1 {line}").split_whitespace());
    line.map_err(|error| error.to_string())?.resume.decided().map_err(|failure| format!("{failure:?}"))
}

#[test]
fn each_flag_is_its_decision() {
    let decision = |line: &str| parse(line).unwrap().map(|decided| decided.decision);
    assert_eq!(decision(""), None);
    assert_eq!(decision("--answer yes"), Some(Decision::Answer("yes".to_owned())));
    assert_eq!(decision("--approve"), Some(Decision::Approve));
    assert_eq!(decision("--deny"), Some(Decision::Deny(None)));
    assert_eq!(decision("--deny --reason much"), Some(Decision::Deny(Some("much".to_owned()))));
    assert_eq!(decision("--edit {\"n\":1.0}").map(|d| format!("{d:?}").contains("1.0")), Some(true));
    assert_eq!(decision("--happened null"), Some(Decision::Happened(Value::Null)));
    assert_eq!(decision("--retry"), Some(Decision::Retry));
}

#[test]
fn two_decisions_or_a_half_one_are_refused() {
    for line in [
        "--approve --deny",
        "--answer x --retry",
        "--reason x",
        "--call 2.0",
        "--pause 1",
        "--edit {",
        "--approve --call 2",
        "--approve --call x.y",
        "--approve --pause -1",
    ] {
        assert!(parse(line).is_err(), "{line}");
    }
}

#[test]
fn a_decision_may_name_its_call_and_its_pause() {
    let decided = parse("--approve --call 2.1 --pause 3").unwrap().unwrap();
    assert_eq!((decided.call, decided.pause), (Some(CallId { iteration: 2, index: 1 }), Some(3)));
}
