//! Tests of the matcher: what a pair is, which pair is taken, and where its work ends.
#![expect(clippy::needless_pass_by_value, reason = "values are written at the call")]

use std::slice::from_ref;

use serde_json::{Value, json};

use super::{MAX_PAIRS, MatchSettings, MatchTooLarge, MatchedLists, match_lists, unread};

pub(super) fn settings(written: Value) -> MatchSettings {
    MatchSettings::new(&serde_json::from_value(written).unwrap()).unwrap()
}

fn matched(written: Value, left: &Value, right: &Value) -> MatchedLists {
    match_lists(&settings(written), left.as_array().unwrap(), right.as_array().unwrap()).unwrap()
}

/// The pairs, by their positions.
fn pairs(written: Value, left: Value, right: Value) -> Vec<(usize, usize)> {
    matched(written, &left, &right).matched.iter().map(|pair| (pair.left, pair.right)).collect()
}

#[test]
fn what_is_left_is_in_order_and_a_pair_has_both_entries() {
    let left = json!([{"id": 1, "x": "l"}, {"id": 2}, {"id": 3}]);
    let right = json!([{"id": 9}, {"id": 1, "x": "r"}, {"id": 8}]);
    let found = matched(json!({"matchOn": ["id"]}), &left, &right);
    let [pairs, lone_left, lone_right] = found.entries(left.as_array().unwrap(), right.as_array().unwrap());
    assert_eq!(json!(pairs), json!([{"a": {"id": 1, "x": "l"}, "b": {"id": 1, "x": "r"}}]));
    assert_eq!((json!(lone_left), json!(lone_right)), (json!([{"id": 2}, {"id": 3}]), json!([{"id": 9}, {"id": 8}])));
}

#[test]
fn keys_are_equal_as_json_is_and_what_lacks_one_has_no_partner() {
    let both = |one: Value, other: Value| {
        !pairs(json!({"matchOn": ["id", "org"]}), json!([{"id": one, "org": 1}]), json!([{"id": other, "org": 1.0}]))
            .is_empty()
    };
    assert!(
        both(json!("A"), json!("A"))
            && both(json!(1), json!(1.0))
            && both(json!([1, {"a": 2}]), json!([1.0, {"a": 2}]))
    );
    assert!(!both(json!(1), json!("1")) && !both(json!("A"), json!("a")) && !both(Value::Null, Value::Null));
    assert!(pairs(json!({"matchOn": ["id"]}), json!([{"x": 1}, 7, "id", null, []]), json!([{"x": 1}, 7])).is_empty());
    // The parts of a key do not run into each other.
    let run_on = json!({"matchOn": ["a", "b"]});
    assert!(pairs(run_on, json!([{"a": "x,y", "b": "z"}]), json!([{"a": "x", "b": "y,z"}])).is_empty());
}

#[test]
fn an_absolute_tolerance_is_exact_and_takes_amounts_that_are_texts() {
    let near = |tolerance: f64, one: Value, other: Value| {
        let written = json!({"matchOn": ["id"], "tolerance": tolerance});
        !pairs(written, json!([{"id": 1, "amount": one}]), json!([{"id": 1, "amount": other}])).is_empty()
    };
    assert!(near(0.02, json!(100.02), json!(100)) && near(0.02, json!("100.02"), json!(100)));
    assert!(!near(0.02, json!(100.021), json!(100)));
    // In floats the difference is more than 0.1.
    assert!(near(0.1, json!(0.3), json!(0.2)) && near(0.1, json!(1_000_000.1), json!(1_000_000.0)));
    assert!(near(0.0, json!(1), json!(1.0)) && !near(0.0, json!("1e-18"), json!(0)));
    assert!(
        near(1e300, json!(-5), json!(5))
            && near(1e-30, json!(5), json!(5))
            && !near(1e-30, json!(5), json!("5.000000000000000001"))
    );
    // Many digits before the point take those behind it, where no amount needs them.
    let wei = "123456789012345678901";
    assert!(near(0.0, json!(wei), json!(wei)) && !near(0.0, json!(wei), json!("123456789012345678902")));
    assert!(near(1.0, json!(wei), json!("123456789012345678902.0")) && near(0.0, json!("1e35"), json!("1e35")));
    assert!(
        near(0.5, json!("123456789012345678901.5"), json!(wei))
            && !near(0.4, json!("123456789012345678901.5"), json!(wei))
    );
    // What is no amount is near to nothing.
    for odd in [json!("n/a"), json!(null), json!(true), json!([1]), json!("1e999"), json!("1e-19"), json!("")] {
        assert!(!near(1e300, odd.clone(), odd.clone()), "{odd}");
    }
}

#[test]
fn a_list_without_a_readable_amount_or_date_is_named() {
    let fault = |written: Value, left: Value, right: Value| {
        let found = unread(&settings(written), left.as_array().unwrap(), right.as_array().unwrap());
        found.map(|fault| fault.to_string())
    };
    let amounts = json!({"matchOn": ["id"], "tolerance": 0});
    let good = json!([{"id": 1, "amount": "10.00", "date": "2026-12-31"}]);
    let odd = json!([{"id": 1, "amount": null}, {"id": 2, "amount": "10,00", "paid_date": "31.12.2026"}]);
    let why = "nothing matches, because no entry on the left has a number in `amount`: the first one has \"10,00\"";
    assert_eq!(fault(amounts.clone(), odd.clone(), good.clone()).as_deref(), Some(why));
    let days = fault(json!({"matchOn": ["id"], "dateWindowDays": 3}), good.clone(), odd.clone()).unwrap();
    assert!(days.contains("on the right has a date") && days.ends_with("\"31.12.2026\""), "{days}");
    assert_eq!(fault(json!({"matchOn": ["id"]}), odd, good.clone()), None);
    assert_eq!(fault(amounts.clone(), json!([{"id": 1}]), good.clone()), None);
    assert_eq!(fault(amounts, json!([{"amount": "x"}, {"amount": 7}]), good), None);
}

#[test]
fn a_relative_tolerance_is_a_share_of_the_larger_amount() {
    let near = |one: Value, other: Value| {
        let written = json!({"matchOn": ["id"], "tolerance": 0.02, "tolerance_mode": "relative"});
        !pairs(written, json!([{"id": 1, "amount": one}]), json!([{"id": 1, "amount": other}])).is_empty()
    };
    assert!(near(json!(100), json!(98)) && near(json!(98), json!(100)) && !near(json!(100), json!(97.99)));
    assert!(near(json!(-100), json!(-98)) && !near(json!(1), json!(-1)) && near(json!(0), json!("0.0")));
    assert!(near(json!("999999999999999999"), json!("980000000000000000")));
}

#[test]
fn dates_are_days_and_other_fields_count_where_one_alone_is_a_date() {
    let near = |one: Value, other: Value| {
        let mut entries = [one, other];
        entries.iter_mut().for_each(|entry| entry["id"] = json!(1));
        let [one, other] = entries;
        !pairs(json!({"matchOn": ["id"], "dateWindowDays": 3}), json!([one]), json!([other])).is_empty()
    };
    let date = |date: &str| json!({"date": date});
    assert!(near(date("2026-02-27"), date("2026-03-02")) && !near(date("2026-02-26"), date("2026-03-02")));
    assert!(near(date("2026-01-01T23:59:59Z"), date("2026-01-04 00:00")));
    assert!(near(json!({"invoice_date": "2026-01-01"}), json!({"paymentDate": "2026-01-02", "update": "2020-01-01"})));
    let two = json!({"invoice_date": "2026-01-01", "due_date": "2026-01-31"});
    assert!(!near(two, date("2026-01-01")));
    for odd in ["2026-02-30", "01/02/2026", "2026-1-1", "20260101", "2026-01-01x", "heute", "2026-01-0\u{661}"] {
        assert!(!near(date(odd), date(odd)), "{odd}");
    }
}

#[test]
fn texts_are_alike_by_the_share_of_their_characters() {
    let near = |least: f64, one: &str, other: &str| {
        let written = json!({"matchOn": ["id"], "fuzzyThreshold": least, "descriptionKey": "memo"});
        !pairs(written, json!([{"id": 1, "memo": one}]), json!([{"id": 1, "memo": other}])).is_empty()
    };
    assert!(near(80.0, "abcde", "abcdx") && !near(80.1, "abcde", "abcdx"));
    assert!(near(100.0, "ACME  Corp\n", "acme corp") && near(0.0, "a", "zzzzzzz") && !near(1.0, "a", "zzzzzzz"));
    assert!(near(100.0, &"x".repeat(100_000), &"x".repeat(200_000)));
    let written = json!({"matchOn": ["id"], "fuzzyThreshold": 0, "descriptionKey": "memo"});
    assert!(pairs(written, json!([{"id": 1}]), json!([{"id": 1}])).is_empty());
}

#[test]
fn the_nearest_pair_is_taken_first_whatever_the_order_of_the_lists() {
    let left = json!([{"id": 1, "amount": 100.01}, {"id": 1, "amount": 100}]);
    assert_eq!(pairs(json!({"matchOn": ["id"]}), left, json!([{"id": 1, "amount": 100}])), [(1, 0)]);
    // Equal amounts: the nearer date. Equal dates: the first.
    let right = json!([{"id": 1, "amount": 1}, {"id": 1, "amount": 1, "date": "2026-01-09"}, {"id": 1, "amount": 1, "date": "2026-01-02"}]);
    let left = json!([{"id": 1, "amount": 1, "date": "2026-01-01"}]);
    assert_eq!(pairs(json!({"matchOn": ["id"]}), left, right), [(0, 2)]);
    let twins = json!([{"id": 1}, {"id": 1}, {"id": 1}]);
    assert_eq!(pairs(json!({"matchOn": ["id"]}), twins.clone(), twins), [(0, 0), (1, 1), (2, 2)]);
}

#[test]
fn a_field_of_a_pair_is_found_under_a_then_under_b() {
    let settings = || json!({"matchOn": ["id", "ref"], "tolerance": 1});
    let chained = json!([{"a": {"id": 1, "amount": 5}, "b": {"a": {"id": 2}, "b": {"ref": "R", "amount": 9}}}]);
    assert_eq!(pairs(settings(), chained, json!([{"id": 1, "ref": "R", "amount": 5}])), [(0, 0)]);
    // An entry with a field `a` of its own is no pair.
    let own = json!([{"a": {"id": 1, "ref": "R", "amount": 5}, "c": 1, "b": {}}]);
    assert!(pairs(settings(), own, json!([{"id": 1, "ref": "R", "amount": 5}])).is_empty());
}

#[test]
fn hostile_lists_end_in_a_sentence() {
    let same = |count: usize| vec![json!({"id": 1, "memo": "x".repeat(150)}); count];
    let many = same(1_500);
    let fault = match_lists(&settings(json!({"matchOn": ["id"]})), &many, &many).unwrap_err();
    assert!(1_500 * 1_500 > MAX_PAIRS && fault == MatchTooLarge::Pairs, "{fault}");
    let other = vec![json!({"id": 1, "memo": "y".repeat(160)}); 600];
    let fuzzy = json!({"matchOn": ["id"], "fuzzyThreshold": 10, "descriptionKey": "memo"});
    // 36 comparisons of 24,000 steps each would fit: 360,000 of them do not.
    assert_eq!(match_lists(&settings(fuzzy), &same(600), &other).unwrap_err(), MatchTooLarge::Texts);
    // Many entries with keys of their own take no such work.
    let list: Vec<Value> = (0..20_000).map(|id| json!({"id": id})).collect();
    assert_eq!(match_lists(&settings(json!({"matchOn": ["id"]})), &list, &list).unwrap().matched.len(), 20_000);
    let deep = (0..100).fold(json!({"id": 1}), |inner, _| json!({"a": inner, "b": 1}));
    assert!(
        match_lists(&settings(json!({"matchOn": ["id"]})), from_ref(&deep), from_ref(&deep))
            .unwrap()
            .matched
            .is_empty()
    );
}

#[test]
fn settings_that_contradict_each_other_are_refused() {
    for (written, word) in [
        (json!({}), "`matchOn` is missing"),
        (json!({"matchOn": []}), "`matchOn` is missing"),
        (json!({"matchOn": vec!["x"; 33]}), "more than 32"),
        (json!({"matchOn": ["x"], "rules": [{}]}), "`rules`"),
        (json!({"matchOn": ["x"], "tolerance": -1}), "`tolerance` must be"),
        (json!({"matchOn": ["x"], "dateWindowDays": -0.5}), "`dateWindowDays`"),
        (json!({"matchOn": ["x"], "fuzzyThreshold": 101, "descriptionKey": "d"}), "0 to 100"),
        (json!({"matchOn": ["x"], "fuzzyThreshold": 80}), "needs `descriptionKey`"),
    ] {
        let why = MatchSettings::new(&serde_json::from_value(written.clone()).unwrap()).unwrap_err();
        assert!(why.contains(word), "{written}: {why}");
    }
}
