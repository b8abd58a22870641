//! Thresholds of stuck detection, judged by old runs.

use serde_json::json;

use crate::common::{Place, complete, look};
use crate::replay::{done, golden, run};

/// Runs of a loop that stops after four repetitions: one without any, one that repeats and completes, one that is stopped,
/// and one that fails otherwise after a repetition.
fn place() -> Place {
    let place = Place::new();
    place.looped(&json!({ "on_stuck": { "iterations": 4 }, "max_iterations": 6 }));
    for (id, replies) in [
        ("fine", vec![look("a"), done()]),
        ("slow", vec![look("a"), look("a"), look("a"), done()]),
        ("lost", vec![look("a"), look("a"), look("a"), look("a")]),
        ("spent", vec![look("a"), look("a"), look("b"), look("c"), look("d"), look("e")]),
    ] {
        place.script(&replies);
        run(&place, id, &[]);
    }
    place
}

#[test]
fn each_threshold_is_judged_by_what_it_would_have_stopped() {
    let place = place();
    let table = place.call(&["tune", "on_stuck", "--to", "5", "--html", "tuning.html"]);
    assert_eq!(table.code, 0, "{table:#?}");
    golden("tune.txt", &table.stdout);
    golden("tune.html", &std::fs::read_to_string(place.path().join("tuning.html")).unwrap());
    let json = place.call(&["tune", "on_stuck", "--output", "json"]).json();
    assert_eq!((&json["runs"], &json["completed"]), (&json!(4), &json!(2)), "{json:#}");
    let row = |at: usize| (json["thresholds"][at]["stopped"].clone(), json["thresholds"][at]["false_stops"].clone());
    assert_eq!(
        [row(0), row(1), row(2)],
        [(json!(3), json!(1)), (json!(2), json!(1)), (json!(1), json!(0))],
        "{json:#}"
    );
    let none = place.call(&["tune", "on_stuck", "--loop", "other", "--output", "json"]).json();
    assert_eq!(none["runs"], 0);
}

#[test]
fn a_hint_and_the_answer_of_a_human_begin_anew_and_do_not_hide_earlier_patterns() {
    let place = Place::new();
    place.looped(&json!({ "on_stuck": { "iterations": 2, "action": "retry_with_hint" } }));
    place.script(&[look("a"), look("a"), look("a"), complete(json!("ok"))]);
    run(&place, "hinted", &[]);
    place.looped(&json!({ "on_stuck": { "iterations": 2, "action": "escalate" } }));
    run(&place, "asked", &[]);
    let answered = place.call(&["resume", "asked", "--answer", "go on", "--script", "script.json"]);
    assert_eq!(answered.code, 0, "{answered:#?}");
    let json = place.call(&["tune", "on_stuck", "--output", "json"]).json();
    // Without the hint at 2, a threshold of 3 sees three; a human's answer begins anew.
    let stopped: Vec<_> = json["thresholds"].as_array().unwrap().iter().map(|row| row["stopped"].clone()).collect();
    assert_eq!(stopped[..3], [json!(2), json!(1), json!(0)], "{json:#}");
    assert_eq!(json["not_judged"], 0);
}

#[test]
fn what_is_no_setting_or_range_is_refused() {
    let place = place();
    for args in
        [["tune", "other"].as_slice(), &["tune", "on_stuck", "--from", "1"], &["tune", "on_stuck", "--from", "9"]]
    {
        assert_eq!(place.call(args).code, 2, "{args:?}");
    }
}
