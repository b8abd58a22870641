//! The shapes of secrets: what `check` reports in a document a trace hides, and what a trace hides by its shape
//! `check` reports.

use loopctl::diagnostic::Source;
use loopctl::load_texts;
use loopctl::policy::secret_shapes::find;
use loopctl::trace::Redaction;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::json;

use super::config;

/// How secrets begin, with how many characters of keys behind it. Put together here, so that no file holds a key.
const SHAPES: [(&str, usize, &str); 24] = [
    ("sk-", 40, ""),
    ("sk-ant-", 24, ""),
    ("sk_live_", 24, ""),
    ("rk_live_", 24, ""),
    ("AKIA", 16, ""),
    ("ASIA", 16, ""),
    ("ghp_", 36, ""),
    ("ghu_", 36, ""),
    ("github_pat_", 60, ""),
    ("glpat-", 20, ""),
    ("gldt-", 20, ""),
    ("glsoat-", 20, ""),
    ("glcbt-", 20, ""),
    ("glptt-", 20, ""),
    ("glagent-", 50, ""),
    ("glimt-", 20, ""),
    ("gloas-", 64, ""),
    ("xoxb-", 40, ""),
    ("xoxr-", 40, ""),
    ("SG.", 66, ""),
    ("hf_", 34, ""),
    ("AccountName=a;AccountKey=", 86, "==;b"),
    ("//registry.example.com/:_authToken=", 36, ""),
    ("Authorization: Bearer ", 32, ""),
];

fn characters(count: usize) -> impl Strategy<Value = String> {
    // A digit in front: every key has one.
    let rest = prop::collection::vec(
        select("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789".chars().collect::<Vec<_>>()),
        count - 1,
    );
    rest.prop_map(|rest| std::iter::once('7').chain(rest).collect())
}

fn secret() -> impl Strategy<Value = (String, String)> {
    select(SHAPES.to_vec()).prop_flat_map(|(begins, count, ends)| {
        characters(count).prop_map(move |key| (format!("{begins}{key}{ends}"), key))
    })
}

proptest! {
    #![proptest_config(config(150, 0x405))]

    #[test]
    fn what_check_reports_as_a_secret_a_trace_hides_and_the_reverse(
        (written, key) in secret(),
        before in select(vec!["", "use ", "x: ", "\u{e9} "]),
        after in select(vec!["", " now", "\n"]),
    ) {
        let text = format!("{before}{written}{after}");
        let hidden = !Redaction::default().text(&text).contains(&key);
        prop_assert!(hidden, "a trace shows {}", text);
        prop_assert!(!find(&text).is_empty());
        prop_assert!(is_reported(&text), "check passes {}", text);
    }
}

#[test]
fn a_publishable_key_and_an_id_are_neither_reported_nor_hidden() {
    for text in [format!("pk_live_{}", "a1B2c3D4e5F6".repeat(2)), "3f2504e0-4f89-11d3-9a0c-0305e82c3301".to_owned()] {
        assert!(!is_reported(&text), "{text}");
        assert_eq!(Redaction::default().text(&text), text);
    }
}

fn is_reported(text: &str) -> bool {
    let document = json!({ "type": "loop", "name": "l",
        "properties": { "mode": "react", "objective": text, "tools": [] } });
    let texts = loopctl::compile::Texts::new(Source::new("loop.json", document.to_string()));
    match load_texts(&texts, ".".into()) {
        Ok(_) => false,
        Err(unsound) => unsound.diagnostics.iter().any(|fault| fault.code == "L106"),
    }
}
