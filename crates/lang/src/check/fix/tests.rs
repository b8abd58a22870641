//! What is taken, what is left, and that nothing is left to take afterwards.

use proptest::prelude::*;

use super::*;
use crate::compile::{Texts, compile};

const ACTIONS: &str = r#"[
    {"action_name": "look_at", "kind": "http", "description": "Looks.", "url": "https://e.com/x", "http_method": "GET"},
    {"action_name": "charge", "kind": "http", "description": "Pays.", "url": "https://e.com/x", "http_method": "POST"},
    {"action_name": "charges", "kind": "http", "description": "Lists.", "url": "https://e.com/x", "http_method": "GET"}]"#;

fn judged(text: &str) -> (Source, Vec<Diagnostic>) {
    let mut texts = Texts::new(Source::new("loop.json", text));
    texts.actions.push(Source::new("actions/a.json", ACTIONS));
    let faults = compile(&texts).diagnostics;
    (texts.main, faults)
}

/// The text after one round.
fn once(text: &str) -> String {
    let (source, faults) = judged(text);
    let now = apply(text, &taken(&faults, &source));
    if is_worse(&source, &Source::new("loop.json", now.as_str())) { text.to_owned() } else { now }
}

/// The text when nothing is left to take.
fn settled(text: &str) -> String {
    let mut now = text.to_owned();
    for _ in 0..10 {
        let next = once(&now);
        if next == now {
            return now;
        }
        now = next;
    }
    panic!("it does not come to rest: {now}");
}

fn document(properties: &str) -> String {
    format!(
        "{{\"type\": \"loop\", \"properties\": {{\"mode\": \"react\", \"objective\": \"x\", \"tools\": [], {properties}}}}}"
    )
}

#[test]
fn a_slip_of_the_finger_is_one_and_another_word_is_none() {
    for (written, meant) in [
        ("max_iteration", "max_iterations"),
        ("maxIterations", "max_iterations"),
        ("MAX_ITERATIONS", "max_iterations"),
        ("max-iterations", "max_iterations"),
        ("escalte", "escalate"),
        ("objectvie", "objective"),
        ("lokk_at", "look_at"),
        ("retry_with_hnit", "retry_with_hint"),
    ] {
        assert!(is_slip(written, meant), "{written} {meant}");
    }
    for (written, meant) in [
        ("timeout", "timeout_ms"),
        ("get_user", "set_user"),
        ("min_iterations", "max_iterations"),
        ("send_mail", "read_mail"),
        ("create_v1", "create_v2"),
        ("order_10", "order_100"),
        ("list", "last_list"),
        ("put", "post"),
        ("", "x"),
        ("debit_card", "credit_card"),
    ] {
        assert!(!is_slip(written, meant), "{written} {meant}");
        assert!(!is_slip(meant, written), "{meant} {written}");
    }
}

#[test]
fn everything_that_has_one_reading_is_fixed_in_the_end() {
    let text = "\u{feff}{
  \"type\": \"loop\", // a loop
  // only a comment
  \"properties\": {
    \"mode\": \"react\",
    'objective': \"a\ttab\",
    \"max_iteration\": \"10\",
    \"tools\": [\"__complete__\", \"look_at\", \"__pause_for_human__\",],
    \"on_stuck\": {\"action\": \"escalte\"},
  }
}
";
    let fixed = settled(text);
    assert_eq!(
        fixed,
        "{
  \"type\": \"loop\",
  \"properties\": {
    \"mode\": \"react\",
    \"objective\": \"a\\ttab\",
    \"max_iterations\": 10,
    \"tools\": [{\"type\":\"action\",\"name\":\"look_at\"}],
    \"on_stuck\": {\"action\": \"escalate\"}
  }
}
"
    );
    assert!(judged(&fixed).1.is_empty());
}

#[test]
fn a_text_that_is_broken_otherwise_is_left_as_it_is() {
    for text in [
        // A quote is lost: what looks like comments and words is the author's text.
        "{\"type\": \"loop\", \"properties\": {\"objective\": see https://example.com/x, \"tools\": [],}}",
        "{\"type\": \"loop\", \"properties\": {\"max_iteration\": 1,000, \"tools\": [],}}",
        "{\"type\": \"loop\", \"properties\": {\"objective\": \"Say \"sorry\" to them.\", \"tools\": [],}}",
        "{\"type\": \"loop\", \"properties\": {\"objective\": \"x, \"tools\": [],}}",
        "{\"type\": \"loop\", \"properties\": {\"objective\": \"x\", // why\n",
    ] {
        assert_eq!(once(text), text);
    }
}

#[test]
fn what_may_be_meant_otherwise_is_left_to_its_author() {
    for properties in [
        "\"timeout\": 30",
        "\"min_iterations\": 3",
        "\"colour\": 1",
        "\"tools\": [{\"type\": \"action\", \"name\": \"chargs\"}]",
        "\"tools\": [{\"type\": \"action\", \"name\": \"book_at\"}]",
    ] {
        let text = document(properties).replace("\"tools\": [], \"tools\"", "\"tools\"");
        assert_eq!(once(&text), text);
    }
}

#[test]
fn two_slips_of_one_name_do_not_both_become_it() {
    let text = document("\"max_iteration\": 5, \"max_iterationz\": 6");
    let fixed = settled(&text);
    assert_eq!(fixed.matches("\"max_iterations\"").count(), 1, "{fixed}");
    assert!(fixed.contains("max_iterationz"), "{fixed}");
}

#[test]
fn suggestions_of_other_files_and_of_unknown_codes_are_not_taken() {
    let source = Source::new("a.json", "{\"x\": 1}");
    let elsewhere = Source::new("b.json", "{\"x\": 1}");
    let faults = [
        Diagnostic::error(codes::COMMA, "x", "", elsewhere.place(0, 1)).suggest(""),
        Diagnostic::error("L999", "x", "", source.place(0, 1)).suggest(""),
        Diagnostic::error(codes::COMMA, "x", "", source.place(0, 0)).suggest_at("", 5_000, 9_000),
        Diagnostic::error(codes::COMMA, "x", "", source.place(0, 0)).suggest_at("", 5, 2),
    ];
    assert!(taken(&faults, &source).is_empty());
}

#[test]
fn suggestions_that_touch_are_taken_one_after_the_other() {
    let source = Source::new("a.json", "abcdef");
    let fault = |start, end| Diagnostic::error(codes::COMMA, "x", "", source.place(start, end)).suggest("-");
    let faults = [fault(2, 4), fault(0, 3), fault(3, 5), fault(5, 5), fault(5, 5)];
    let taken = taken(&faults, &source);
    assert_eq!(apply(&source.text, &taken), "--f");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn a_second_time_finds_nothing_to_fix(text in spoiled()) {
        let fixed = settled(&text);
        prop_assert_eq!(&once(&fixed), &fixed);
        let (source, faults) = judged(&fixed);
        let (_, before) = judged(&text);
        let errors = |faults: &[Diagnostic]| faults.iter().filter(|fault| SYNTAX.contains(&fault.code)).count();
        prop_assert!(errors(&faults) <= errors(&before), "{}", source.text);
    }

    #[test]
    fn any_text_is_no_panic(text in "\\PC{0,200}") {
        settled(&text);
    }
}

/// A document with some of the mistakes that people make.
fn spoiled() -> impl Strategy<Value = String> {
    const PARTS: &[&str] = &[
        "\"max_iteration\": \"10\"",
        "\"max_iterations\": 10",
        "\"max_iterationss\": 3",
        "\"on_stuck\": {\"action\": \"escalte\"}",
        "\"temprature\": \"0.5\"",
        "\"modell\": 5",
        "\"tols\": [\"look_at\"]",
        "\"dialect\": \"jsn\"",
        "// words\n",
        "/* more */",
        "'single': 'quotes'",
        "bare: word",
        "\"fallback_models\": \"a\"",
        "\"result_key\": true",
        "\"budget\": {\"cost_us\": \"1\",}",
        "\"a\" \"b\"",
        "\"retry\": {\"atempts\": 2,, \"bas_ms\": 1}",
        "\"open",
        "]",
        "\"line\nbreak\": 1",
        "\"name\": .5",
    ];
    const TOOLS: &[&str] = &[
        "\"look_at\"",
        "\"lok_at\"",
        "\"__complete__\"",
        "\"__log_progress__\"",
        "{\"type\": \"action\", \"name\": \"look_t\"}",
        "{\"type\": \"acton\", \"name\": \"charge\"}",
        "{\"name\": \"charges\", \"max_calls\": \"3\"}",
        "7",
    ];
    let parts = proptest::collection::vec((proptest::sample::select(PARTS), 0..6_u8), 0..6);
    let tools = proptest::collection::vec(proptest::sample::select(TOOLS), 0..5);
    (parts, tools, any::<bool>()).prop_map(|(parts, tools, mark)| {
        let mut body = String::new();
        for (part, join) in parts {
            body.push_str(part);
            body.push_str(match join { 0 => "\n", 1 => ",,", 2 => ";", _ => ",\n  " });
        }
        let tools = tools.join(", ");
        let mark = if mark { "\u{feff}" } else { "" };
        format!("{mark}{{\"type\": \"loop\", \"properties\": {{\"mode\": \"react\", \"objective\": \"x\", {body} \"tools\": [{tools}]}}}}")
    })
}
