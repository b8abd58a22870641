//! A run that is folded again comes out byte for byte, in each store; a journal that was changed does not.

use serde_json::json;

use crate::common::{Place, look};
use crate::replay::{done, golden, ran, run};

#[test]
fn a_run_that_is_folded_again_comes_out_as_it_was_stored() {
    let place = ran(json!({}));
    let again = place.call(&["replay", "r"]);
    assert_eq!(again.code, 0, "{again:#?}");
    let (words, state) = again.stdout.split_once("  state ").unwrap();
    golden("again.txt", words);
    let twice = place.call(&["replay", "r", "--output", "json"]).json();
    assert_eq!(twice["state"], state.trim(), "the state is the same each time");
    assert_eq!((&twice["verdict"], &twice["events"]), (&json!("same"), &json!(10)), "{twice:#}");
    assert_eq!(twice["requests"].as_array().map(Vec::len), Some(5), "{twice:#}");
    // A prompt that grows gives another digest each time.
    let mut digests: Vec<_> =
        twice["requests"].as_array().unwrap().iter().map(|one| one["digest"].to_string()).collect();
    digests.dedup();
    assert_eq!(digests.len(), 5);
}

#[test]
fn an_event_that_was_changed_in_the_store_is_found() {
    let place = ran(json!({}));
    let base = rusqlite::Connection::open(place.path().join(".loopctl/runs.db")).unwrap();
    let change = "UPDATE events SET event = replace(event, '\"at\":{', '\"note\":1,\"at\":{') WHERE seq = 2";
    assert_eq!(base.execute(change, []).unwrap(), 1);
    let changed = place.call(&["replay", "r"]);
    assert!(changed.code == 2 && changed.stderr.contains("event 2 is not what was written"), "{changed:#?}");
    run(&place, "sound", &[]);
    let all = place.call(&["replay", "--all"]);
    assert!(all.code == 1 && all.stdout.contains("2 runs: 1 same; 1 not replayed"), "{all:#?}");
}

#[test]
fn all_runs_of_a_store_are_folded_again() {
    let place = Place::new();
    place.looped(&json!({ "max_iterations": 2 })).script(&[look("a"), done()]);
    run(&place, "good", &[]);
    place.script(&[look("a"), look("b")]);
    run(&place, "bad", &[]);
    let all = place.call(&["replay", "--all"]);
    assert_eq!(all.code, 0, "{all:#?}");
    golden("all-again.txt", &all.stdout);
    let none = place.call(&["replay", "--all", "--loop", "other"]);
    assert_eq!((none.code, none.stdout.as_str()), (0, "0 runs\n"), "{none:#?}");
}

#[test]
fn what_is_no_run_is_refused_in_a_sentence() {
    let place = ran(json!({}));
    for (args, words) in [
        (["replay", "x"].as_slice(), "there is no run x"),
        (&["replay"], "required"),
        (&["replay", "r", "--all"], "cannot be used with"),
        (&["replay", "r", "--document", "none.json"], "none.json"),
    ] {
        let refused = place.call(args);
        assert!(refused.code == 2 && refused.stderr.contains(words), "{args:?}: {refused:#?}");
    }
}
