//! One line each.

use super::*;
use crate::diagnostic::Source;

fn warnings(count: usize) -> Vec<Diagnostic> {
    let source = Source::new("loop.json", "{\n\"a\": 1}");
    (0..count)
        .map(|_| Diagnostic::warning("L072", "no description", "", source.place(2, 5)).help("write one"))
        .collect()
}

#[test]
fn warnings_have_a_line_each_and_the_last_names_the_command_for_the_details() {
    let look = Look::plain(80);
    assert_eq!(
        brief(&warnings(2), Path::new("my loops/loop.json"), &look),
        "warning[L072] loop.json:2:1: no description\n\
         warning[L072] loop.json:2:1: no description; `loopctl check 'my loops/loop.json'` shows the details\n"
    );
    assert_eq!(brief(&[], Path::new("x"), &look), "");
    assert!(brief(&warnings(1), Path::new("-"), &look).ends_with("; `loopctl check` shows the details\n"));
}

#[test]
fn many_warnings_are_counted() {
    let shown = brief(&warnings(12), Path::new("x"), &Look::plain(80));
    assert_eq!(shown.lines().count(), 11);
    assert!(shown.ends_with("and 2 more warnings; `loopctl check x` shows the details\n"), "{shown}");
}

#[test]
fn a_fix_says_what_stood_there_and_what_stands_there_now() {
    let one = |before: &str, after: &str| {
        let fault = warnings(1).remove(0);
        fixed(&[Fixed { fault, before: before.to_owned(), after: after.to_owned() }], &Look::plain(80))
    };
    assert_eq!(one("\"a\"", "\"b\""), "fixed[L072] loop.json:2:1: \"a\" is \"b\" now\n");
    assert_eq!(one("// x\u{1b}[2J\n", ""), "fixed[L072] loop.json:2:1: took out // x\\u{1B}[2J\\n\n");
    assert_eq!(one("", ","), "fixed[L072] loop.json:2:1: put in ,\n");
}
