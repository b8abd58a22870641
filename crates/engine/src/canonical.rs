//! Canonical texts: equal JSON values or thoughts have the same one. For comparisons only, never shown.

use unicode_normalization::char::is_combining_mark;

pub use loopctl_lang::program::canonical::{is_same, number, spell, spelling};

/// A thought without case, punctuation and spacing, so that thoughts which differ only in these are equal.
pub fn words(thought: &str) -> String {
    let mut words = String::with_capacity(thought.len());
    for c in thought.chars().filter(|c| is_kept(*c)) {
        // Fast path for ASCII: no table is needed.
        if c.is_ascii() { words.push(c.to_ascii_lowercase()) } else { words.extend(c.to_lowercase()) }
    }
    words
}

/// Letters, digits, combining marks, and symbols with a meaning (`<`, `+`, `€`, `→`, emoji); not punctuation,
/// spaces or controls.
fn is_kept(c: char) -> bool {
    if c.is_alphanumeric() || matches!(c, '$' | '+' | '<' | '=' | '>' | '^' | '|' | '~') {
        return true;
    }
    !c.is_ascii()
        && (is_combining_mark(c) || matches!(u32::from(c), 0x20a0..=0x20cf | 0x2190..=0x2bff | 0x1f000..=0x1faff))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Number, Value, json};

    use super::{number, spelling, words};

    fn of(text: &str) -> String {
        spelling(&serde_json::from_str(text).unwrap())
    }

    fn digits(text: &str) -> String {
        number(&text.parse::<Number>().unwrap())
    }

    #[cfg(feature = "exact-numbers")]
    #[test]
    fn numbers_of_one_value_have_one_spelling() {
        let classes: [&[&str]; 7] = [
            &["1", "1.0", "1e0", "10e-1", "1E+0", "0.1e1", "0.001e3", "1000e-3", "1.000", "1e-0", "1e00"],
            &["0", "-0", "0.0", "0e9", "-0.000e-5", "0e99999999999999999999999999999999999999999"],
            &["100", "1e2", "100.0", "0.1e3"],
            &["-1.5", "-15e-1", "-1.50"],
            &["12345678901234567890123", "12345678901234567890123.0", "1234567890123456789012.3e1"],
            &["1e400", "10e399", "0.1e401", "1E400"],
            &["1e999999999999999999999", "10e999999999999999999998", "0.1e1000000000000000000000"],
        ];
        let spellings: Vec<String> = classes.iter().map(|class| digits(class[0])).collect();
        for (class, spelled) in classes.iter().zip(&spellings) {
            for text in *class {
                assert_eq!(&digits(text), spelled, "{text}");
            }
            assert_eq!(spellings.iter().filter(|other| *other == spelled).count(), 1, "{spelled}");
        }
    }

    #[cfg(feature = "exact-numbers")]
    #[test]
    fn numbers_that_floats_take_for_one_are_two() {
        assert_ne!(digits("9007199254740993"), digits("9007199254740992"));
        assert_ne!(digits("0.1"), digits("0.1000000000000000055511151231257827"));
        assert_ne!(digits("1e400"), digits("1e401"));
        assert_ne!(digits("1e-400"), digits("0"));
    }

    #[cfg(feature = "exact-numbers")]
    #[test]
    fn an_exponent_that_can_not_be_counted_is_compared_as_written() {
        let huge = format!("1e{}", "9".repeat(50));
        assert_eq!(digits(&huge), digits(&huge));
        assert_ne!(digits(&huge), digits(&format!("1e-{}", "9".repeat(50))));
    }

    #[test]
    fn the_order_of_keys_and_spaces_do_not_matter() {
        assert_eq!(of("{\"b\":[1, {\"d\":1,\"c\":2}],\"a\":null}"), of("{\"a\":null,\"b\":[1.0,{\"c\":2e0,\"d\":1}]}"));
    }

    #[test]
    fn different_values_have_different_spellings() {
        let texts = [
            "null",
            "true",
            "false",
            "0",
            "\"0\"",
            "\"\"",
            "[]",
            "{}",
            "[[]]",
            "[[],[]]",
            "[1,2]",
            "[2,1]",
            "[12]",
            "{\"a\":1}",
            "{\"a\":\"1\"}",
            "{\"a\":[1]}",
            "{\"a\":1,\"b\":1}",
            "\"a,b\"",
            "[\"a\",\"b\"]",
            "[\"a\\\",\\\"b\"]",
            "\"null\"",
            "\"\\u0000\"",
            "\"\\\\u{0}\"",
            "\"\\n\"",
            "\"é\"",
            "\"e\u{301}\"",
            "{\"\":1}",
            "{\"a\\\":1,\\\"b\":1}",
        ];
        for (index, one) in texts.iter().enumerate() {
            for other in texts.iter().skip(index + 1) {
                assert_ne!(of(one), of(other), "{one} and {other}");
            }
        }
    }

    #[test]
    fn a_value_of_any_depth_is_spelled() {
        let mut value = Value::Null;
        for _ in 0..5000 {
            value = Value::Array(vec![value]);
        }
        assert_eq!(spelling(&value).len(), 10_004);
    }

    #[test]
    fn thoughts_are_compared_without_case_punctuation_and_spacing() {
        for same in [
            "I look it up.",
            "i  LOOK\tit up",
            "I look—it up!",
            "“I look”, it… (up)",
            "I look。it、up",
            "*I* `look` it_up",
        ] {
            assert_eq!(words(same), "ilookitup", "{same}");
        }
        assert_eq!(words("ÄÖ ΣΑΣ"), "äöσας".replace('ς', "σ"));
        assert_eq!(words(" .,;!? "), "");
        assert_eq!(words(""), "");
    }

    #[test]
    fn what_says_something_stays_in_a_thought() {
        for (one, other) in [("x > 5", "x < 5"), ("हिन्दी", "हन्द"), ("ok 👍", "ok 👎"), ("5 €", "5 $"), ("a1", "a2")]
        {
            assert_ne!(words(one), words(other));
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn shifting_the_point_does_not_change_the_spelling(n in -1_000_000_000_000i64..1_000_000_000_000, shift in 0usize..30) {
            let plain = digits(&n.to_string());
            prop_assert_eq!(&digits(&format!("{n}{}e-{shift}", "0".repeat(shift))).replace("-0", "0"), &plain.replace("-0", "0"));
            prop_assert_eq!(digits(&format!("{n}.{}", "0".repeat(shift + 1))), plain);
        }

        #[test]
        fn two_integers_have_one_spelling_only_when_they_are_equal(a in any::<i64>(), b in any::<i64>()) {
            prop_assert_eq!(digits(&a.to_string()) == digits(&b.to_string()), a == b);
        }

        #[test]
        fn keys_in_any_order_give_one_spelling(members in prop::collection::btree_map(".{0,6}", any::<i32>(), 0..8)) {
            let forth: Value = members.iter().map(|(key, n)| (key.clone(), json!(n))).collect::<serde_json::Map<_, _>>().into();
            let back: Value = members.iter().rev().map(|(key, n)| (key.clone(), json!(n))).collect::<serde_json::Map<_, _>>().into();
            prop_assert_eq!(spelling(&forth), spelling(&back));
        }

        #[test]
        fn two_texts_have_one_spelling_only_when_they_are_equal(a in any::<String>(), b in any::<String>()) {
            prop_assert_eq!(spelling(&json!([a, b])) == spelling(&json!([b, a])), a == b);
        }
    }
}
