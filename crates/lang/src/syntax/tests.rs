//! JSON is read without a fault and to the same value; other texts have at least one fault.
use proptest::prelude::*;

use super::tests_cases::{INVALID, VALID};
use super::*;

fn faults_of(text: &str) -> Vec<Diagnostic> {
    parse(&Source::new("case.json", text)).1
}

#[cfg(feature = "exact-numbers")]
#[test]
fn what_the_rfc_accepts_has_no_fault_and_the_value_that_serde_json_reads() {
    for text in VALID {
        let source = Source::new("case.json", *text);
        let (tree, faults) = parse(&source);
        assert!(faults.is_empty(), "{text}: {faults:?}");
        let same: serde_json::Value = serde_json::from_str(text).unwrap();
        assert_eq!(tree.value(), same, "{text}");
    }
}

#[test]
fn what_the_rfc_refuses_has_a_fault() {
    for text in INVALID {
        let faults = faults_of(text);
        assert!(!faults.is_empty(), "{text:?} was taken");
        assert!(faults.iter().all(Diagnostic::is_error), "{text:?}");
    }
}

#[test]
fn depth_128_is_read_and_129_refused_with_one_fault() {
    let nested = |depth: usize| format!("{}1{}", "[".repeat(depth), "]".repeat(depth));
    assert!(faults_of(&nested(128)).is_empty());
    let faults = faults_of(&nested(129));
    assert_eq!(faults.len(), 1, "{faults:?}");
    assert_eq!((faults[0].code, faults[0].place.column), ("L009", 129));
}

#[test]
fn a_hundred_thousand_levels_are_one_fault_closed_or_not() {
    for text in [
        "[".repeat(100_000),
        "{\"a\":".repeat(50_000),
        "[{\"a\":".repeat(50_000),
        format!("{}{}", "[".repeat(100_000), "]".repeat(100_000)),
        format!("{}1{}", "{\"a\":".repeat(50_000), "}".repeat(50_000)),
    ] {
        let faults = faults_of(&text);
        assert_eq!(faults.len(), 1, "{:?}", faults.get(1));
        assert_eq!(faults[0].code, "L009");
    }
}

#[test]
fn what_follows_a_value_that_is_too_deep_is_read_on() {
    let text = format!("{{\"deep\": {}{}, \"x\": nul}}", "[".repeat(200), "]".repeat(200));
    let codes: Vec<_> = faults_of(&text).iter().map(|fault| fault.code).collect();
    assert_eq!(codes, ["L009", "L001"]);
}

#[test]
fn a_text_over_16_mib_and_one_of_too_many_values_are_refused_with_one_fault() {
    let long = format!("\"{}\"", "x".repeat(MAX_BYTES));
    assert_eq!(faults_of(&long).len(), 1);
    let many = format!("[{}1]", "1,".repeat(MAX_VALUES + 10));
    let faults = faults_of(&many);
    assert_eq!((faults.len(), faults[0].code), (1, "L009"));
    let broken = "[nope,".repeat(1_000_000);
    assert!(faults_of(&broken).len() <= MAX_FAULTS);
}

#[test]
fn keys_and_values_have_their_exact_places() {
    let text = "{\n  \"\u{e9}\u{1f600}\": [1.50, \"a\\tb\"],\r\n  \"k\\u0041\": {\"x\": true}\n}";
    let source = Source::new("case.json", text);
    let (tree, faults) = parse(&source);
    assert!(faults.is_empty());
    let raw = |pointer: &str| tree.raw(tree.at(pointer).unwrap().span);
    assert_eq!(raw("/\u{e9}\u{1f600}/0"), "1.50");
    assert_eq!(raw("/\u{e9}\u{1f600}/1"), "\"a\\tb\"");
    assert_eq!(raw("/kA/x"), "true");
    let place = tree.place("/\u{e9}\u{1f600}/0");
    assert_eq!((place.line, place.column, place.end_column), (2, 10, 14));
    let key = tree.key_place("/kA");
    assert_eq!((key.line, key.column, key.end_column), (3, 3, 12));
    assert_eq!(tree.place("/kA/missing/deeper").line, 3);
}

#[test]
fn a_place_inside_a_string_counts_its_escapes() {
    let text = "{\"t\": \"\\u00e9\\n\\ud83d\\ude00{{x}}\"}";
    let source = Source::new("case.json", text);
    let (tree, _) = parse(&source);
    let meant = tree.at("/t").unwrap().as_str().unwrap().to_owned();
    let begin = meant.find("{{x}}").unwrap();
    let place = tree.place_inside("/t", &(begin..begin + 5));
    assert_eq!(&text[place.start..place.end], "{{x}}");
    let plain = Source::new("case.json", "[\"a {{y}}\"]");
    let (tree, _) = parse(&plain);
    let place = tree.place_inside("/0", &(2..7));
    assert_eq!(&plain.text[place.start..place.end], "{{y}}");
}

#[test]
fn a_key_that_stands_twice_is_reported_with_both_places_and_the_last_one_counts() {
    let source = Source::new("case.json", "{\"a\": 1,\n\"b\": {\"c\": 1, \"c\": 2},\n\"a\": 3}");
    let (tree, faults) = parse(&source);
    assert!(faults.is_empty());
    let faults = repeated_keys(&tree);
    let found: Vec<_> =
        faults.iter().map(|fault| (fault.path.as_str(), fault.place.line, fault.related[0].line)).collect();
    assert_eq!(found, [("/b/c", 2, 2), ("/a", 3, 1)]);
    assert_eq!(tree.value()["a"], 3);
}

fn json() -> impl Strategy<Value = serde_json::Value> {
    let leaf = prop_oneof![
        Just(serde_json::Value::Null),
        any::<bool>().prop_map(serde_json::Value::from),
        any::<i64>().prop_map(serde_json::Value::from),
        any::<f64>().prop_map(serde_json::Value::from),
        ".*".prop_map(serde_json::Value::from),
    ];
    leaf.prop_recursive(5, 60, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(serde_json::Value::from),
            prop::collection::btree_map(".{0,8}", inner, 0..6)
                .prop_map(|map| serde_json::Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn no_text_makes_it_panic_and_every_place_lies_in_the_text(text in "[\\[\\]{}:,\"'\\\\/*#a-c0-2.+eu \\n\\t\u{e9}\u{201c}\u{feff}-]{0,60}") {
        for fault in faults_of(&text) {
            prop_assert!(fault.place.start <= fault.place.end && fault.place.end <= text.len());
            prop_assert!(text.get(fault.place.start..fault.place.end).is_some());
        }
    }

    #[test]
    fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let text = String::from_utf8_lossy(&bytes);
        let source = Source::new("case.json", &*text);
        let (_, faults) = parse(&source);
        prop_assert_eq!(faults.is_empty(), serde_json::from_str::<serde_json::Value>(&text).is_ok());
    }

    #[test]
    fn it_agrees_with_serde_json_on_what_is_json(text in "[\\[\\]{}:,\"\\\\/a-b0-1.+\\-e ]{0,12}") {
        let ours = faults_of(&text).is_empty();
        prop_assert_eq!(ours, serde_json::from_str::<serde_json::Value>(&text).is_ok(), "{}", text);
    }

    #[test]
    fn what_serde_json_writes_is_read_to_the_same_value(value in json()) {
        for text in [serde_json::to_string(&value).unwrap(), serde_json::to_string_pretty(&value).unwrap()] {
            let source = Source::new("case.json", text.as_str());
            let (tree, faults) = parse(&source);
            prop_assert!(faults.is_empty(), "{:?}", faults);
            prop_assert_eq!(tree.value(), serde_json::from_str::<serde_json::Value>(&text).unwrap());
        }
    }
}
