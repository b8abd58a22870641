//! Two runs compared by their calls: as text, as JSON and as a page.

use serde_json::json;

use crate::common::{Place, look, think};
use crate::replay::{done, golden, run};

/// Three runs: `one`, `twin` with other words, and `other` with another input in its second call.
fn place() -> Place {
    let place = Place::new();
    place.looped(&json!({}));
    for (id, at, thought) in [("one", "b", "I look."), ("twin", "b", "Let me see."), ("other", "c", "I look.")] {
        let mut first = look("a");
        first["thought"] = json!(thought);
        place.script(&[first, look(at), done()]);
        run(&place, id, &[]);
    }
    place
}

/// Without what a clock says.
fn timeless(text: &str) -> String {
    let lines = text.lines().filter(|line| !line.starts_with("active") && !line.contains(">active<"));
    lines.map(|line| format!("{line}\n")).collect()
}

#[test]
fn runs_are_compared_by_their_calls_and_not_by_their_words() {
    let place = place();
    let same = place.call(&["diff", "one", "twin"]);
    assert_eq!(same.code, 0, "{same:#?}");
    let differs = place.call(&["diff", "one", "other"]);
    golden("diff.txt", &timeless(&format!("{}\n{}", same.stdout, differs.stdout)));
    let json = place.call(&["diff", "one", "other", "--format", "json"]).json();
    assert_eq!(json["same_calls"], 1, "{json:#}");
    assert_eq!(json["first_difference"]["what"], "action_input");
    assert_eq!(json["first_difference"]["calls"][1]["action_input"], json!({ "at": "c" }));
    assert_eq!(json["runs"][0]["iterations"], 3);
    let page = place.call(&["diff", "one", "other", "--format", "html"]).stdout;
    golden("diff.html", &timeless(&page));
}

#[test]
fn a_run_with_fewer_calls_lacks_the_next_one() {
    let place = place();
    place.script(&[look("a"), done()]);
    run(&place, "short", &[]);
    let json = place.call(&["diff", "one", "short", "--format", "json"]).json();
    assert_eq!((&json["same_calls"], &json["first_difference"]["what"]), (&json!(1), &json!("action")), "{json:#}");
    let mut long = vec![look("a"), look("b"), done()];
    long.pop();
    place.script(&long);
    run(&place, "cut", &[]);
    let json = place.call(&["diff", "one", "cut", "--format", "json"]).json();
    assert_eq!((&json["same_calls"], &json["first_difference"]["what"]), (&json!(2), &json!("missing")), "{json:#}");
}

#[test]
fn texts_of_a_model_are_escaped_on_the_page_and_in_the_terminal() {
    let place = place();
    place.script(&[think("look", json!({ "at": "<script>alert(1)</script>\u{1b}[2J\u{202e}" })), done()]);
    run(&place, "odd", &[]);
    let page = place.call(&["diff", "one", "odd", "--format", "html"]).stdout;
    assert!(!page.contains("<script") && !page.contains('\u{1b}') && !page.contains('\u{202e}'), "{page}");
    for format in ["text", "json"] {
        let shown = place.call(&["diff", "one", "odd", "--format", format]).stdout;
        assert!(!shown.contains('\u{1b}') && !shown.contains('\u{202e}'), "{shown}");
    }
}
