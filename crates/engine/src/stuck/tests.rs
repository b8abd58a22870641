//! The patterns, each with a case that must not fire.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{StepDigest, Stuck, StuckPattern, detect};

/// One iteration: thought, action, input, observation, failed, polling.
type Row = (&'static str, &'static str, Value, Value, bool, bool);

fn step(iteration: usize, row: &Row) -> StepDigest {
    let (thought, action, input, observation, failed, polling) = row;
    StepDigest::new(
        u32::try_from(iteration).unwrap(),
        thought,
        [(*action, input, observation, *failed, *polling)].into_iter(),
    )
}

/// Rows that call `action` with `input` and observe `observation`, with a thought of their own.
fn row(action: &'static str, input: Value, observation: Value) -> Row {
    ("", action, input, observation, false, false)
}

/// The iteration at which the first pattern fires, and the pattern.
fn first(rows: &[Row], n: u32) -> Option<(usize, Stuck)> {
    let steps: Vec<StepDigest> = rows.iter().enumerate().map(|(index, row)| step(index + 1, row)).collect();
    (1..=steps.len()).find_map(|end| detect(&steps[..end], n).map(|stuck| (end, stuck)))
}

fn fires(rows: &[Row], n: u32) -> Option<(usize, StuckPattern)> {
    first(rows, n).map(|(at, stuck)| (at, stuck.pattern))
}

/// One-letter actions, each with its own input, observing the words in turn.
fn letters(actions: &'static str, observations: &[&str]) -> Vec<Row> {
    let names = actions.char_indices().map(|(at, c)| &actions[at..at + c.len_utf8()]);
    let seen = observations.iter().cycle();
    names.zip(seen).map(|(name, seen)| row(name, json!({}), json!(seen))).collect()
}

#[test]
fn the_same_action_fires_at_the_nth_time_whatever_it_observes() {
    let rows: Vec<Row> = (0..5).map(|i| row("a", json!({ "x": 1 }), json!(i))).collect();
    assert_eq!(fires(&rows, 3), Some((3, StuckPattern::SameAction)));
    assert_eq!(fires(&rows, 5), Some((5, StuckPattern::SameAction)));
    assert_eq!(fires(&rows, 6), None);
    let stuck = first(&rows, 3).unwrap().1;
    assert_eq!(stuck.iterations, (1, 3));
    assert_eq!(stuck.detail, "The action `a` was called 3 times in a row with the same input (iterations 1 to 3).");
}

#[test]
fn the_same_action_is_compared_as_json() {
    let inputs = ["{\"x\":1,\"y\":[1e1]}", "{\"y\":[10.0],\"x\":1.0}", "{ \"y\": [10], \"x\": 10e-1 }"];
    let rows: Vec<Row> = inputs.iter().map(|text| row("a", serde_json::from_str(text).unwrap(), json!(0))).collect();
    assert_eq!(fires(&rows, 3), Some((3, StuckPattern::SameAction)));
}

#[test]
fn the_same_action_does_not_fire_with_other_inputs_names_or_an_action_between() {
    let inputs: Vec<Row> = (0..9).map(|i| row("a", json!({ "x": i }), json!(0))).collect();
    assert_eq!(fires(&inputs, 3), None);
    let types = [json!({"x":1}), json!({"x":"1"}), json!({"x":[1]}), json!({"x":true})];
    assert_eq!(fires(&types.map(|input| row("a", input, json!(0))), 2), None);
    let between = ["a", "a", "b", "a", "a", "c"].map(|name| row(name, json!({}), json!(0)));
    assert_eq!(fires(&between, 3), None);
    let twins = ["lookup", "lооkup", "Lookup"].map(|name| row(name, json!({}), json!(0)));
    assert_eq!(fires(&twins, 2), None);
}

#[test]
fn a_polling_action_fires_only_when_it_observes_the_same() {
    let poll = |seen: &[i32]| -> Vec<Row> {
        seen.iter().map(|seen| ("", "poll", json!({}), json!({ "done": seen }), false, true)).collect()
    };
    assert_eq!(fires(&poll(&[1, 2, 3, 4, 5, 6, 7]), 3), None);
    assert_eq!(fires(&poll(&[1, 1, 2, 2, 3, 3]), 3), None);
    assert_eq!(fires(&poll(&[1, 2, 1, 2, 1, 2, 1, 2]), 3), None);
    assert_eq!(fires(&poll(&[1, 2, 2, 2]), 3), Some((4, StuckPattern::SameAction)));
}

#[test]
fn the_same_failure_fires_at_twice_n_whatever_the_input() {
    let rows = |fails: &[bool]| -> Vec<Row> {
        let one = |(i, failed): (usize, &bool)| ("", "a", json!({ "x": i }), json!({ "error": i }), *failed, false);
        fails.iter().enumerate().map(one).collect()
    };
    assert_eq!(fires(&rows(&[true; 6]), 3), Some((6, StuckPattern::SameFailure)));
    assert_eq!(
        first(&rows(&[true; 6]), 3).unwrap().1.detail,
        "The action `a` failed 6 times in a row (iterations 1 to 6)."
    );
    assert_eq!(fires(&rows(&[true; 5]), 3), None);
    assert_eq!(fires(&rows(&[true, true, true, false, true, true, true, true, true]), 3), None);
    assert_eq!(fires(&rows(&[false; 20]), 3), None);
}

#[test]
fn two_failing_actions_in_turn_are_no_same_failure() {
    let rows: Vec<Row> = (0..12)
        .map(|i| ("", if i % 2 == 0 { "a" } else { "b" }, json!({ "x": i }), json!({ "error": i }), true, false))
        .collect();
    assert_eq!(fires(&rows, 3), None);
}

#[test]
fn an_alternation_fires_when_it_went_round_n_times_without_news() {
    assert_eq!(fires(&letters("abababab", &["x", "y"]), 3), Some((6, StuckPattern::Alternation)));
    assert_eq!(fires(&letters("abababab", &["x"]), 3), Some((6, StuckPattern::Alternation)));
    assert_eq!(fires(&letters("abababab", &["x", "y", "y", "x"]), 3), Some((6, StuckPattern::Alternation)));
    assert_eq!(fires(&letters("ababa", &["x", "y"]), 3), None);
    let detail = first(&letters("ababab", &["x"]), 3).unwrap().1.detail;
    assert_eq!(
        detail,
        "The actions `a`, `b` were called in this order 3 times, and nothing new was observed (iterations 1 to 6)."
    );
}

#[test]
fn an_alternation_with_news_does_not_fire_until_the_news_is_old() {
    assert_eq!(fires(&letters("abababab", &["1", "2", "3", "4", "5", "6", "7", "8"]), 3), None);
    assert_eq!(fires(&letters("ababab", &["x", "y", "x", "y", "x", "new"]), 3), None);
    assert_eq!(
        fires(&letters("abababab", &["1", "1", "2", "2", "2", "2", "2", "2"]), 3),
        Some((7, StuckPattern::Alternation))
    );
}

#[test]
fn cycles_of_three_to_six_fire_and_one_of_seven_does_not() {
    for (actions, length) in [("abcabcabc", 3), ("abcdabcdabcd", 4), ("abcdeabcdeabcde", 5), ("abcdefabcdefabcdef", 6)]
    {
        assert_eq!(fires(&letters(actions, &["x"]), 3), Some((3 * length, StuckPattern::Cycle)), "{actions}");
        assert_eq!(fires(&letters(&actions[..actions.len() - 1], &["x"]), 3), None, "{actions}");
    }
    assert_eq!(fires(&letters("abcdefgabcdefgabcdefgabcdefg", &["x"]), 3), None);
}

#[test]
fn a_cycle_may_hold_an_action_twice_and_may_begin_late() {
    assert_eq!(fires(&letters("aabaabaab", &["x"]), 3), Some((9, StuckPattern::Cycle)));
    assert_eq!(fires(&letters("qrsabcabcabc", &["x"]), 3), Some((12, StuckPattern::Cycle)));
    assert_eq!(fires(&letters("abcabdabc", &["x"]), 3), None);
}

#[test]
fn a_cycle_with_other_inputs_is_none() {
    let rows: Vec<Row> = (0..12).map(|i| row(["a", "b"][i % 2], json!({ "page": i }), json!("x"))).collect();
    assert_eq!(fires(&rows, 3), None);
}

#[test]
fn a_polling_action_with_old_observations_is_no_cycle() {
    let rows: Vec<Row> = (0..24).map(|i| ("", "poll", json!({}), json!(i % 3), false, true)).collect();
    assert_eq!(fires(&rows, 3), None);
}

/// Rows with these thoughts and observations that make two calls in turn.
fn thoughts(rows: &[(&'static str, i32)]) -> Vec<Row> {
    let one = |(i, (thought, seen)): (usize, &(&'static str, i32))| {
        (*thought, "a", json!({ "x": i % 2 }), json!(seen), false, false)
    };
    rows.iter().enumerate().map(one).collect()
}

#[test]
fn the_same_thought_fires_when_nothing_new_was_observed() {
    let rows = thoughts(&[("I try again.", 1), ("i try, again", 1), ("I TRY AGAIN!", 1), ("I try again", 1)]);
    assert_eq!(fires(&rows, 3), Some((4, StuckPattern::SameThought)));
    assert_eq!(
        first(&rows, 3).unwrap().1.detail,
        "The same thought came 3 times in a row, and nothing new was observed (iterations 2 to 4)."
    );
    // One that differs from those before it is exempt only at the beginning.
    let calls = [0, 0, 1, 0, 1].map(|x| ("t", "a", json!({ "x": x }), json!(1), false, false));
    assert_eq!(fires(&calls, 3), Some((5, StuckPattern::SameThought)));
    // Seen long before the thought began.
    let rows = thoughts(&[("p", 1), ("q", 2), ("r", 3), ("t", 4), ("t", 1), ("t", 2)]);
    assert_eq!(fires(&rows, 3), Some((6, StuckPattern::SameThought)));
}

#[test]
fn the_same_thought_does_not_fire_with_news_when_empty_or_when_it_changes() {
    assert_eq!(fires(&thoughts(&[("t", 1), ("t", 2), ("t", 3), ("t", 4), ("t", 5)]), 3), None);
    assert_eq!(fires(&thoughts(&[("t", 1), ("t", 1), ("t", 2), ("t", 2), ("t", 3)]), 3), None);
    assert_eq!(fires(&thoughts(&[("", 1), ("", 1), ("...", 1), (" ", 1)]), 3), None);
    assert_eq!(fires(&thoughts(&[("t", 1), ("t", 1), ("u", 1), ("t", 1), ("t", 1)]), 3), None);
    assert_eq!(fires(&thoughts(&[("t", 1), ("t", 1)]), 3), None);
}

#[test]
fn one_thought_over_calls_that_differ_is_a_batch_and_was_a_repetition_in_older_editions() {
    let rows: Vec<Row> = (0..7).map(|x| ("t", "a", json!({ "x": x }), json!([]), false, false)).collect();
    assert_eq!(fires(&rows, 3), None);
    let steps: Vec<StepDigest> = rows.iter().enumerate().map(|(index, row)| step(index + 1, row)).collect();
    let older = super::detect_older(&steps[..3], 3).map(|stuck| stuck.pattern);
    assert_eq!(older, Some(StuckPattern::SameThought));
    // A batch whose last calls were all made before is none any more.
    let again = [0, 1, 2, 3, 1, 0, 2].map(|x| ("t", "a", json!({ "x": x }), json!([]), false, false));
    assert_eq!(fires(&again, 3), Some((6, StuckPattern::SameThought)));
}

#[test]
fn a_turn_of_several_calls_is_compared_as_a_whole_and_in_its_order() {
    let (x, y, seen) = (json!({ "x": 1 }), json!({ "y": 1 }), json!(0));
    let turn = |i: u32, calls: [(&'static str, &Value); 2]| {
        StepDigest::new(i, "", calls.into_iter().map(|(name, input)| (name, input, &seen, false, false)))
    };
    let forth = [("a", &x), ("b", &y)];
    let back = [("b", &y), ("a", &x)];
    let same: Vec<StepDigest> = (1..=3).map(|i| turn(i, forth)).collect();
    let stuck = detect(&same, 3).unwrap();
    assert_eq!((stuck.pattern, stuck.detail.contains("`a, b`")), (StuckPattern::SameAction, true));
    assert_eq!(detect(&[turn(1, forth), turn(2, back), turn(3, forth)], 3), None);
    let polling = |i: u32, seen: [i32; 2]| {
        let seen = seen.map(|seen| json!(seen));
        let calls = [("a", &x, &seen[0], false, true), ("b", &y, &seen[1], true, false)];
        StepDigest::new(i, "", calls.into_iter())
    };
    let mixed = polling(1, [0, 1]);
    assert!(!mixed.polling && !mixed.failed, "every call must be so");
}

#[test]
fn iterations_that_called_nothing_are_no_action() {
    let steps: Vec<StepDigest> = (1..=20).map(|i| StepDigest::new(i, "", std::iter::empty())).collect();
    assert_eq!(detect(&steps, 2), None);
    assert!(!steps[0].failed && !steps[0].polling && steps[0].action.is_none());
}

#[test]
fn names_in_a_sentence_are_shortened_and_escaped() {
    let name: &'static str =
        "evil\u{1b}[2J\nname that is far too long to be shown whole, and goes on and on and on and on and on";
    let rows = [0, 1, 2].map(|i| row(name, json!({}), json!(i)));
    let detail = first(&rows, 3).unwrap().1.detail;
    assert!(
        detail.contains("evil\\u{1b}[2J\\nname") && detail.contains('…') && detail.chars().count() < 200,
        "{detail}"
    );
}

#[test]
fn the_first_pattern_of_the_order_is_reported() {
    let rows: Vec<Row> = (0..6).map(|_| ("t", "a", json!({}), json!({ "error": 1 }), true, false)).collect();
    assert_eq!(fires(&rows, 2), Some((2, StuckPattern::SameAction)));
    let steps: Vec<StepDigest> = rows.iter().enumerate().map(|(i, row)| step(i + 1, row)).collect();
    assert_eq!(detect(&steps, 3).unwrap().pattern, StuckPattern::SameAction);
    assert_eq!(detect(&[], 3), None);
    assert_eq!(detect(&steps, u32::MAX), None);
    assert_eq!(detect(&steps[..1], 0), None, "less than 2 is taken as 2");
}

/// Runs with a few actions, inputs, observations and thoughts, so that patterns occur.
fn any_rows() -> impl Strategy<Value = Vec<Row>> {
    let any_row = (0usize..3, 0..2, 0..3, 0usize..3, any::<bool>(), any::<bool>()).prop_map(
        |(action, input, seen, thought, failed, polling)| {
            let thought = ["", "t", "u"][thought];
            (thought, ["a", "b", "c"][action], json!({ "x": input, "y": 0 }), json!(seen), failed, polling)
        },
    );
    prop::collection::vec(any_row, 0..30)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nothing_fires_before_n_iterations(rows in any_rows(), n in 2u32..7) {
        if let Some((at, stuck)) = first(&rows, n) {
            prop_assert!(at >= usize::try_from(n).unwrap());
            let (from, to) = stuck.iterations;
            prop_assert!(from >= 1 && usize::try_from(to).unwrap() == at && to - from + 1 >= n);
        }
    }

    #[test]
    fn new_inputs_and_new_observations_never_fire(names in prop::collection::vec(0usize..3, 0..40), n in 2u32..5) {
        let rows: Vec<Row> = names.iter().enumerate()
            .map(|(i, name)| ("t", ["a", "b", "c"][*name], json!({ "x": i }), json!({ "seen": i }), false, false)).collect();
        prop_assert_eq!(fires(&rows, n), None);
    }

    #[test]
    fn the_order_of_keys_and_the_spelling_of_numbers_change_nothing(rows in any_rows(), n in 2u32..5) {
        let turned: Vec<Row> = rows.iter().enumerate().map(|(i, row)| {
            let x = &row.2["x"];
            let text = if i % 2 == 0 { format!("{{\"y\":0.0,\"x\":{x}e0}}") } else { format!("{{\"x\":{x}.00,\"y\":-0}}") };
            (row.0, row.1, serde_json::from_str(&text).unwrap(), row.3.clone(), row.4, row.5)
        }).collect();
        prop_assert_eq!(first(&turned, n), first(&rows, n));
    }

    #[test]
    fn what_came_before_the_window_does_not_silence_a_repetition(rows in any_rows(), n in 2u32..5) {
        let mut rows = rows;
        rows.extend((0..n).map(|_| row("z", json!({}), json!("same"))));
        prop_assert!(fires(&rows, n).is_some());
    }
}
