//! The report of a fault for its author.

use super::*;
use crate::diagnostic::Related;

const TEXT: &str = "{\n  \"type\": \"loop\",\n  \"properties\": {\n    \"max_iteration\": 5\n  }\n}\n";

fn source() -> Source {
    Source::new("loop.json", TEXT)
}

fn at(source: &Source, word: &str) -> crate::diagnostic::Place {
    let start = source.text.find(word).unwrap();
    source.place(start, start + word.len())
}

#[test]
fn a_fault_is_underlined_and_its_cure_shown() {
    let source = source();
    let error = Diagnostic::error(
        "L012",
        "there is no property max_iteration",
        "/properties/max_iteration",
        at(&source, "\"max_iteration\""),
    )
    .help("did you mean max_iterations?")
    .suggest("\"max_iterations\"");
    let mut warning = Diagnostic::warning("L090", "nothing ends it", "", source.whole());
    warning.related.push(Related { file: "other.json".to_owned(), line: 3, message: "declared here".to_owned() });
    insta::assert_snapshot!(human(&[error, warning], &[source], &Look::plain(80)), @r#"
    error[L012]: there is no property max_iteration
     --> loop.json:4:5
      |
    4 |     "max_iteration": 5
      |     ^^^^^^^^^^^^^^^
      |
    help: did you mean max_iterations?
      |
    4 |     "max_iterations": 5
      |                   +

    warning[L090]: nothing ends it
     --> loop.json:1:1
      |
    1 | {
      | ^
      |
      = note: other.json:3: declared here

    1 error, 1 warning
    "#);
}

#[test]
fn a_change_of_a_long_line_is_shown_with_what_stands_beside_it() {
    let entry = r#"{"type": "action", "name": "lookup"}, "#.repeat(400);
    let source = Source::new("loop.json", format!("{{\"tools\": [{entry}{{\"typ\": \"action\"}}, {entry}]}}"));
    let fault = Diagnostic::error("L010", "the field `typ` is not known", "/x", at(&source, "\"typ\""))
        .help("the nearest name is `type`")
        .suggest("\"type\"");
    let shown = human(&[fault], &[source], &Look::plain(80));
    assert!(shown.lines().all(|line| line.chars().count() <= 90), "{shown}");
    let help = shown.split("help: ").nth(1).unwrap();
    insta::assert_snapshot!(help, @r#"
    the nearest name is `type`
      |
    1 | ..."action", "name": "lookup"}, {"type": "action"}, {"type": "action"...
      |                                      +

    1 error
    "#);
}

#[test]
fn hostile_text_and_names_are_masked_and_the_mark_stays_at_its_place() {
    let source = Source::new("a\u{1b}[2J\nb.json", "{\"a\u{202E}\u{1b}[31m\": \t1, \"bad\": 2}");
    let fault = Diagnostic::error("L001", "bad \u{9b}\u{7} name", "/bad", at(&source, "\"bad\"")).help("\u{200B}x");
    let shown = human(&[fault], &[source], &Look::plain(80));
    assert!(!shown.contains(escape::is_hidden), "{shown:?}");
    let lines: Vec<&str> = shown.lines().collect();
    let line = lines.iter().find(|line| line.contains("\"bad\"")).unwrap();
    let mark = lines.iter().find(|line| line.contains("^^^^^")).unwrap();
    assert_eq!(line.find("\"bad\""), mark.find("^^^^^"), "{shown}");
}

#[test]
fn a_place_outside_the_text_or_inside_a_letter_is_no_panic() {
    let source = Source::new("x", "漢\"字\"");
    for (start, end) in [(0, 0), (1, 2), (0, 99), (50, 99), (4, 1)] {
        let mut place = source.whole();
        (place.start, place.end) = (start, end);
        let fault = Diagnostic::error("L001", "x", "", place).suggest("y");
        assert!(human(&[fault], std::slice::from_ref(&source), &Look::plain(80)).contains("L001"));
    }
    let nowhere = Diagnostic::error("L001", "x", "", source.whole());
    assert!(human(&[nowhere], &[], &Look::plain(80)).contains("--> x"));
}

#[test]
fn one_endless_line_costs_only_its_surroundings() {
    let text = format!("[{}\"bad\"{}]", "1,".repeat(500_000), ",2".repeat(500_000));
    let source = Source::new("big.json", text);
    let fault = Diagnostic::error("L001", "x", "", at(&source, "\"bad\""));
    let shown = human(&[fault], &[source], &Look::plain(80));
    assert!(shown.len() < 2_000 && shown.contains("\"bad\""), "{}", shown.len());
    assert!(shown.contains("exactly at line 1, column 1000002"), "{shown}");
}
