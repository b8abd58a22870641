//! Places, nearest names, codes, and texts that are escaped for display.
use super::*;

#[test]
fn columns_count_characters_and_lines_begin_after_line_feeds() {
    let source = Source::new("x", "a\n\u{e9}\u{1f600}b\r\nc");
    let place = source.place(8, 9);
    assert_eq!((place.line, place.column, place.end_line, place.end_column), (2, 3, 2, 4));
    assert_eq!(source.place(11, 12).line, 3);
    let beyond = source.place(500, 900);
    assert_eq!((beyond.line, beyond.column), (3, 2));
}

#[test]
fn a_slip_is_near_and_a_twin_in_other_letters_is_not() {
    assert_eq!(nearest("max_iteration", ["max_iterations", "model"]), Some("max_iterations"));
    assert_eq!(nearest("maxIterations", ["max_iterations"]), Some("max_iterations"));
    assert_eq!(nearest("l\u{43e}okup", ["lookup"]), None);
    assert_eq!(nearest("colour", ["model", "tools"]), None);
    assert_eq!(nearest("timeout", ["timeout_ms"]), None);
}

#[test]
fn a_field_is_near_by_its_words_too() {
    assert_eq!(nearest_field("timeout", ["tool_timeout_ms", "timeout_ms"]), Some("timeout_ms"));
    assert_eq!(nearest_field("include_trace", ["include_reasoning_trace"]), Some("include_reasoning_trace"));
    assert_eq!(nearest_field("id", ["id_of_it"]), None);
}

#[test]
fn codes_are_in_order_and_none_is_used_twice() {
    let all: Vec<&str> = codes::TABLE.iter().map(|row| row.code).collect();
    let mut sorted = all.clone();
    sorted.sort_unstable();
    sorted.dedup();
    assert_eq!(all, sorted);
    assert_eq!(codes::find("L012").map(|row| row.name), Some("wrong-word"));
    assert!(codes::find("L999").is_none());
}

#[test]
fn messages_can_not_steer_a_terminal_or_begin_a_line() {
    let place = Source::new("x", "").whole();
    let fault = Diagnostic::error("L001", "a\u{1b}[2J\n::error\u{202e}b", "", place).help("\u{9b}x");
    assert_eq!(fault.message, "a\\u{1B}[2J\\u{A}::error\\u{202E}b");
    assert_eq!(fault.help.as_deref(), Some("\\u{9B}x"));
    // A name that only looks like another one.
    assert_eq!(shown("send\u{a0}mail\u{34f} a\u{fe0f}\u{180b}"), "send\\u{A0}mail\\u{34F} a\\u{FE0F}\\u{180B}");
    assert!(shown(&"x".repeat(5_000)).chars().count() <= 1_001);
}
