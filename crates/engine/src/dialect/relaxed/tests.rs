//! Tests of the relaxed reader: places, ends, and what follows a brace.

use serde_json::json;

#[cfg(feature = "exact-numbers")]
use super::number;
use super::{Opening, RelaxedFaultKind, UnclosedBrackets, object, opening, whole_object, whole_string};

#[test]
fn an_object_is_read_from_its_place_and_its_end_is_returned() {
    let text = "é {\"x\": [1, {\"y\": null}]} tail";
    let found = object(text, 3, UnclosedBrackets::Refuse).unwrap();
    assert_eq!(found.map, *json!({ "x": [1, { "y": null }] }).as_object().unwrap());
    assert_eq!(&text[found.end..], " tail");
    assert_eq!((found.supplied, found.repeated.len()), (0, 0));
}

#[test]
fn missing_closers_are_counted() {
    assert_eq!(object("{\"x\":{\"z\":{\"y\":true", 0, UnclosedBrackets::Close).unwrap().supplied, 3);
    assert_eq!(object("{\"x\":{\"y\":true", 0, UnclosedBrackets::Refuse).unwrap_err().kind, RelaxedFaultKind::CutOff);
}

#[test]
fn a_list_without_its_end_is_never_completed() {
    for text in [
        "{\"x\":[1,2,3",
        "{\"x\":[1,2,3 ",
        "{\"x\":[\"a\",\"b\"",
        "{\"x\":[{\"y\":true",
        "{\"x\":[[1]",
        "{\"x\":[{\"y\":1}",
    ] {
        assert_eq!(object(text, 0, UnclosedBrackets::Close).unwrap_err().kind, RelaxedFaultKind::CutOff, "{text}");
    }
    assert_eq!(object("{\"x\":[1,2]", 0, UnclosedBrackets::Close).unwrap().supplied, 1);
}

#[cfg(feature = "exact-numbers")]
#[test]
fn a_number_may_lack_the_digits_on_one_side_of_its_point() {
    for (word, expected) in
        [(".25", "0.25"), ("-.5", "-0.5"), ("1.", "1.0"), ("-12.", "-12.0"), ("1.e5", "1.0e5"), (".5E-3", "0.5E-3")]
    {
        assert_eq!(number::number(word).unwrap().as_str(), expected);
    }
    for word in [".", "-.", ".e1", "1..", "..1", "1.2.", "01.", "1._", "+.5", "+1."] {
        assert!(number::number(word).is_none(), "{word}");
    }
}

#[test]
fn a_number_at_the_very_end_may_lack_digits() {
    assert_eq!(object("{\"x\":12", 0, UnclosedBrackets::Close).unwrap_err().kind, RelaxedFaultKind::CutOff);
    assert!(object("{\"x\":12 ", 0, UnclosedBrackets::Close).is_ok());
    assert!(object("{\"x\":12```", 0, UnclosedBrackets::Close).is_ok());
}

#[test]
fn a_line_comment_at_the_very_end_may_hide_brackets() {
    assert_eq!(object("{\"x\":true // }", 0, UnclosedBrackets::Close).unwrap_err().kind, RelaxedFaultKind::CutOff);
    assert!(object("{\"x\":true // y\n", 0, UnclosedBrackets::Close).is_ok());
}

#[test]
fn only_outermost_duplicate_keys_are_reported() {
    let found = object("{\"x\":1,\"x\":1,\"y\":{\"z\":1,\"z\":1}}", 0, UnclosedBrackets::Refuse).unwrap();
    assert_eq!(found.repeated, ["x"]);
}

#[test]
fn faults_report_their_place() {
    let fault = whole_object("{\n \"é\": ?}").unwrap_err();
    assert_eq!(fault.kind, RelaxedFaultKind::Value);
    assert!(fault.words("{\n \"é\": ?}").ends_with("(line 2, column 7)"), "{}", fault.words("{\n \"é\": ?}"));
    assert_eq!(whole_object("{} x").unwrap_err().kind, RelaxedFaultKind::Trailing);
    assert_eq!(whole_object("[]").unwrap_err().kind, RelaxedFaultKind::Value);
    assert_eq!(whole_object("").unwrap_err().kind, RelaxedFaultKind::CutOff);
}

#[test]
fn a_brace_is_judged_by_what_follows_it() {
    let judged = |text: &str| opening(text, 0).0;
    assert_eq!(judged("{ /* c */ }"), Ok(Opening::Object { key: None }));
    assert_eq!(judged("{'k' : 1"), Ok(Opening::Object { key: Some("k".into()) }));
    assert_eq!(judged("{let x = 1;}"), Ok(Opening::Word { word: "let".into(), quoted: false }));
    assert_eq!(judged("{'a', 'b'}"), Ok(Opening::Word { word: "a".into(), quoted: true }));
    assert_eq!(judged("{1}"), Ok(Opening::Other));
    assert_eq!(judged("{'a").unwrap_err().kind, RelaxedFaultKind::OpenString);
}

#[test]
fn only_a_whole_string_is_a_string() {
    assert_eq!(whole_string("\"a\\n\"").as_deref(), Some("a\n"));
    assert_eq!(whole_string("\"a\" b"), None);
    assert_eq!(whole_string("a"), None);
}

#[cfg(feature = "exact-numbers")]
#[test]
fn numbers_are_those_that_serde_json_takes() {
    let words = [
        "0",
        "-0",
        "1",
        "-1",
        "10",
        "01",
        "00",
        "-01",
        "1.0",
        "1.0.0",
        "1e1",
        "1E1",
        "1e+1",
        "1e-1",
        "1e",
        "1e+",
        "e1",
        "--1",
        "+1",
        "-",
        "",
        "1a",
        "0x1",
        "1_0",
        "1e1e1",
        "1e1.0",
        "-e",
        "0e0",
        "0.0e-0",
        "9999999999999999999999999999999",
    ];
    for word in words {
        let strict = serde_json::from_str::<serde_json::Number>(word).is_ok();
        assert_eq!(number::number(word).is_some(), strict, "{word}");
        assert!(number::number(word).is_none_or(|number| number.as_str() == word));
    }
}
