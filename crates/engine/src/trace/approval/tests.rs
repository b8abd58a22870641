//! How a waiting call is shown, and the warnings about it.

use serde_json::json;

use super::*;
use crate::event::CallId;

fn waiting(input: &str) -> WaitingCall {
    WaitingCall {
        id: "2.0".to_owned(),
        call: CallId { iteration: 2, index: 0 },
        action: "pay".to_owned(),
        action_input: serde_json::from_str(input).unwrap(),
        hash: "0123456789abcdef".to_owned(),
        approval: None,
    }
}

fn approval(input: &str) -> String {
    call(&Look::plain(80), &waiting(input), true)
}

#[test]
fn numbers_stand_as_they_are_written() {
    for number in ["1e2", "100", "1.0", "12345678901234567890123", "0.1", "-0", "1E400"] {
        let written: Value = serde_json::from_str(number).unwrap();
        assert!(approval(&format!(r#"{{"n": {number}}}"#)).contains(&format!("\"n\": {written}\n")), "{number}");
    }
    assert_ne!(approval(r#"{"n": 1e2}"#), approval(r#"{"n": 100}"#));
}

#[test]
fn what_is_not_seen_is_written_out_and_said() {
    let mut tried = 0;
    for hidden in ('\u{7f}'..=char::MAX).filter(|c| deceives(*c) && !is_blank(*c)) {
        let shown = approval(&json!({ "to": format!("a{hidden}b") }).to_string());
        let written = format!("\\u{{{:X}}}", u32::from(hidden));
        assert!(shown.contains(&written) && shown.contains("1 character that nobody sees"), "{shown}");
        assert!(!shown.contains(hidden), "{shown}");
        tried += 1;
    }
    assert!(tried > 4_000, "{tried}");
    // JSON itself escapes the other control characters.
    assert!(approval(r#"{"to": "a\u001b[2Jb"}"#).contains(r"a\u001b[2Jb"));
}

#[test]
fn a_look_alike_of_a_space_is_written_out_and_said() {
    let mut tried = 0;
    for blank in ('\0'..=char::MAX).filter(|c| is_blank(*c)) {
        let shown = approval(&json!({ "command": format!("rm{blank}-rf") }).to_string());
        let written = format!("rm\\u{{{:X}}}-rf", u32::from(blank));
        assert!(shown.contains(&written), "{shown}");
        assert!(shown.contains("1 character that looks like a space and is none"), "{shown}");
        tried += 1;
    }
    assert_eq!(tried, 17);
    let plain = approval(r#"{"command": "rm -rf"}"#);
    assert!(plain.contains("rm -rf") && !plain.contains("looks like a space"), "{plain}");
    assert!(approval("{\"a\": \"\u{a0}\u{3000}\"}").contains("2 characters that look like a space and are none"));
}

#[test]
fn a_padded_call_is_readable_with_its_beginning_its_end_and_the_count_between() {
    let rows: Vec<u32> = (0..10_000).collect();
    let shown = approval(&json!({ "first": 1, "rows": rows, "last": "rm -rf" }).to_string());
    assert!(shown.lines().count() < 60, "{}", shown.lines().count());
    assert!(shown.contains("\"first\": 1") && shown.contains("\"last\": \"rm -rf\""), "{shown}");
    assert!(shown.contains("… 9,967 lines of this input not shown here …"), "{shown}");
    let padded = json!({ "cmd": format!("echo{}; rm -rf", "\n".repeat(10_000)) }).to_string();
    assert!(is_cut(&Look::plain(80), &waiting(&padded)) && approval(&padded).contains("; rm -rf"));
    assert!(call(&Look::plain(80), &waiting(&padded), false).lines().count() > 200);
}

#[test]
fn names_that_look_alike_are_flagged_and_others_are_not() {
    for (one, other) in [
        ("amount", "\u{430}mount"),
        ("to", "to\u{200b}"),
        ("to", "TO"),
        ("id", "\u{ff49}d"),
        ("l1", "ll"),
        ("a_b", "a-b"),
    ] {
        let shown = approval(&json!({ one: 1, other: 2 }).to_string());
        assert!(shown.contains("two names look alike"), "{one} {other}: {shown}");
    }
    for names in [["amount", "account"], ["from", "to"], ["id", "ids"]] {
        let shown = approval(&json!({ names[0]: 1, names[1]: 2 }).to_string());
        assert!(!shown.contains('!'), "{shown}");
    }
}

#[test]
fn words_of_several_scripts_are_flagged_and_names_of_one_script_are_not() {
    assert!(
        approval(r#"{"host": "p\u0430ypal.com"}"#).contains("letters of several scripts in one word"),
        "Cyrillic a"
    );
    for plain in ["Müller", "Москва", "日本語のテスト", "Ελλάδα", "Москва and London", "Tokyo東京", "naïve 5 €"]
    {
        let shown = approval(&json!({ "text": plain }).to_string());
        assert!(!shown.contains('!'), "{plain}: {shown}");
    }
}

#[test]
fn a_hidden_secret_is_counted() {
    assert!(approval(r#"{"password": "[hidden]"}"#).contains("1 value hidden as a secret"));
}
