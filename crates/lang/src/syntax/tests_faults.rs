//! A fault is reported once, at its exact place, with a fix.
use super::*;

/// Every fault as `line:column code message`, and the text repaired by its suggestions.
fn faults(text: &str) -> (Vec<String>, String) {
    let source = Source::new("case.json", text);
    let (_, faults) = parse(&source);
    let shown = faults
        .iter()
        .map(|fault| format!("{}:{} {} {}", fault.place.line, fault.place.column, fault.code, fault.message))
        .collect();
    let mut repaired = text.to_owned();
    let mut suggestions: Vec<_> = faults.iter().filter_map(|fault| fault.suggestion.as_ref()).collect();
    suggestions.sort_by_key(|suggestion| std::cmp::Reverse(suggestion.start));
    for suggestion in suggestions {
        repaired.replace_range(suggestion.start..suggestion.end, &suggestion.replacement);
    }
    (shown, repaired)
}

fn one(text: &str, fault: &str, repaired: Option<&str>) {
    let (shown, text_repaired) = faults(text);
    assert_eq!(shown, [fault], "in {text}");
    if let Some(repaired) = repaired {
        assert_eq!(text_repaired, repaired);
        assert!(serde_json::from_str::<serde_json::Value>(repaired).is_ok(), "{repaired}");
    } else {
        assert_eq!(text_repaired, text, "no suggestion was meant");
    }
}

#[test]
fn a_trailing_comma_is_reported_at_the_comma() {
    one("{\"a\": 1,\n}", "1:8 L006 a comma before `}`", Some("{\"a\": 1\n}"));
    one("[1, 2 , ]", "1:7 L006 a comma before `]`", Some("[1, 2  ]"));
}

#[test]
fn a_missing_comma_is_reported_after_the_value_before_it() {
    one("{\"a\": 1\n \"b\": 2}", "1:8 L006 a comma is missing here", Some("{\"a\": 1,\n \"b\": 2}"));
    one("[\"a\" \"b\"]", "1:5 L006 a comma is missing here", Some("[\"a\", \"b\"]"));
}

#[test]
fn a_comment_is_reported_whole() {
    one("{\n  // why\n  \"a\": 1}", "2:3 L007 JSON has no comments", Some("{\n  \n  \"a\": 1}"));
    one("{\"a\": /* x\n */ 1}", "1:7 L007 JSON has no comments", Some("{\"a\":  1}"));
    one("# x\n{}", "1:1 L007 JSON has no comments", Some("\n{}"));
}

#[test]
fn other_quotes_and_none_are_reported_and_read() {
    one("{'a': 1}", "1:2 L004 a JSON string needs double quotes", Some("{\"a\": 1}"));
    one("['it\\'s \"x\"']", "1:2 L004 a JSON string needs double quotes", Some("[\"it's \\\"x\\\"\"]"));
    one("{a: 1}", "1:2 L001 the key `a` has no quotes", Some("{\"a\": 1}"));
    one("{\"mode\": react}", "1:10 L001 the text `react` has no quotes", Some("{\"mode\": \"react\"}"));
    one("[True, 1]", "1:2 L001 `True` is written `true` in JSON", Some("[true, 1]"));
}

#[test]
fn what_is_not_closed_at_the_end_is_one_fault() {
    one("{\"a\": [1, {\"b\": 2", "1:18 L001 the text ends where `}]}` is missing", None);
    one("{\"a\": 1,\n", "1:9 L001 the text ends where `}` is missing", None);
    one("{\"a\": \"x\n}", "1:7 L004 this string does not end: its closing quote is missing", None);
    one("{\"a\": \"x", "1:7 L004 this string does not end: its closing quote is missing", None);
}

#[test]
fn a_missing_closing_quote_does_not_swallow_the_next_member() {
    one(
        "{\"a\": \"x,\n \"b\": 1,\n \"c\": \"y\"}",
        "1:7 L004 this string does not end: its closing quote is missing",
        None,
    );
}

#[test]
fn a_line_break_in_a_string_is_reported_and_repaired() {
    one(
        "{\"a\": \"x\n y\", \"b\": 1}",
        "1:9 L004 a JSON string can't hold a line break as it is",
        Some("{\"a\": \"x\\n y\", \"b\": 1}"),
    );
}

#[test]
fn wrong_brackets_are_one_fault() {
    one("{\"a\": [1}", "1:9 L001 `]` is missing before this `}`", None);
    one("{\"a\": [1}]}", "1:9 L001 this `}` closes nothing", None);
    one("{\"a\": 1]", "1:8 L001 `}` was expected; `]` was found", None);
    one("{\"a\": 1}}", "1:9 L001 this `}` closes nothing", None);
    one("{\"a\": 1} {}", "1:10 L001 the document ends before this; there is more after it", None);
    one("{\"a\": [{\"b\": 1]}", "1:15 L001 `}` is missing before this `]`", None);
    one("{\"a\": [{\"b\": [1}]}", "1:16 L001 `]` is missing before this `}`", None);
}

#[test]
fn numbers_of_other_languages_are_reported_and_repaired_where_there_is_one_reading() {
    one("[+1]", "1:2 L005 `+1` is no number of JSON: it begins with a plus", Some("[1]"));
    one("[.5]", "1:2 L005 `.5` is no number of JSON: a digit is missing beside the point", Some("[0.5]"));
    one("[5.]", "1:2 L005 `5.` is no number of JSON: a digit is missing beside the point", Some("[5.0]"));
    one("[010]", "1:2 L005 `010` is no number of JSON: it begins with a zero", None);
    one("[NaN]", "1:2 L005 `NaN` is no JSON value", None);
}

#[test]
fn escapes_are_reported_at_the_escape() {
    one("[\"a\\d\"]", "1:4 L004 `\\d` is no escape of JSON", Some("[\"a\\\\d\"]"));
    one("[\"a\\ud800b\"]", "1:4 L004 half of a surrogate pair has no other half", None);
    one("[\"a\\u12\"]", "1:4 L004 `\\u` needs four hexadecimal digits", None);
}

#[test]
fn a_mark_of_byte_order_and_an_empty_file_are_reported() {
    one("\u{feff}{}", "1:1 L002 the file begins with a byte-order mark", Some("{}"));
    one("", "1:1 L003 the file has no JSON in it", None);
    one(" \n ", "1:1 L003 the file has no JSON in it", None);
}

#[test]
fn several_faults_are_all_reported() {
    let (shown, _) = faults("{\n  'a': 1,\n  b: +2\n  \"c\": [1,], // x\n}");
    let shown: Vec<_> = shown.iter().map(|fault| fault.split(' ').take(2).collect::<Vec<_>>().join(" ")).collect();
    assert_eq!(shown, ["2:3 L004", "3:3 L001", "3:6 L005", "3:8 L006", "4:10 L006", "4:12 L006", "4:14 L007"]);
}

#[test]
fn quotes_inside_of_a_string_are_one_fault_with_the_text_as_it_was_meant() {
    one(
        "{\"a\": \"say \"yes\" now\", \"b\": 1}",
        "1:12 L004 this quote ends the string, and the text goes on",
        Some("{\"a\": \"say \\\"yes\\\" now\", \"b\": 1}"),
    );
    one(
        "[\"a \"b\", then \"c\".\"]",
        "1:5 L004 this quote ends the string, and the text goes on",
        Some("[\"a \\\"b\\\", then \\\"c\\\".\"]"),
    );
}

#[test]
fn an_array_with_keys_is_one_fault() {
    one("[\"a\": 1, \"b\": {\"c\": 2}]", "1:2 L001 an array has no keys, and this is one", None);
}

#[test]
fn the_quotes_of_print_are_reported_and_read() {
    one("{\u{201c}a\u{201d}: 1}", "1:2 L001 a text needs straight double quotes", Some("{\"a\": 1}"));
    one("{\"a\": \u{201e}b\u{201d}}", "1:7 L001 a text needs straight double quotes", Some("{\"a\": \"b\"}"));
    one("{(a): 1, \"b\": 2}", "1:2 L001 a key was expected; `(` was found", None);
}

#[test]
fn a_text_of_another_language_is_one_fault() {
    one("a: 1\nb:\n  - 2\n", "1:1 L001 a document begins with `{` or `[`; `a` was found", None);
    one("1_000", "1:1 L005 `1_000` is no number of JSON: its digits are not grouped", Some("1000"));
    one("[0x1F]", "1:2 L005 `0x1F` is no number of JSON: JSON has decimal numbers alone", Some("[31]"));
}

#[test]
fn keys_that_are_too_long_together_on_the_way_to_a_value_are_one_fault() {
    let inside = |bytes: usize| {
        let key = "k".repeat(bytes / 4);
        format!("{{\"{key}\": {{\"{key}\": {{\"{key}\": {{\"{key}\": 1}}}}}}}}")
    };
    let codes =
        |text: &str| faults(text).0.iter().map(|fault| fault.split(' ').nth(1).unwrap().to_owned()).collect::<Vec<_>>();
    assert_eq!(codes(&inside(MAX_PATH_BYTES - 64)), [""; 0], "the twin: so much is read");
    assert_eq!(codes(&inside(MAX_PATH_BYTES + 64)), ["L009"]);
}
